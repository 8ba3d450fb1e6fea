//! Values looked at in other ways: other shapes, other orders of axes, other places of the batch axis, repeated, or made from constants.

use super::constant::{Constant, MOST_AXES};
use super::error::Fault;
use super::importer::{Importer, Parameter};
use super::layout::{Place, Tracked, example_shape, settle};
use super::node::Node;
use posterior_networks::operation::{Broadcast, Learned, Operation, Transpose};

impl Importer<'_> {
    /// The same numbers with another ONNX shape and place of the batch axis.
    pub(super) fn view(
        &mut self,
        node: &Node,
        x: &Tracked,
        dims: Vec<usize>,
        place: Option<Place>,
    ) -> Result<Tracked, Fault> {
        if dims.len() > MOST_AXES {
            return Err(Fault::Limit(format!("a value has {} axes, more than {MOST_AXES}", dims.len())));
        }
        let shape = example_shape(&dims, place);
        let value = if self.builder.shape(x.value) == shape {
            x.value
        } else {
            self.emit(node, Operation::Reshape(shape), &[x.value])?
        };
        Ok(Tracked { value, dims, place, whole: x.whole })
    }

    /// Where the batch is fixed to 1: the same with an axis other than `axis` (or none) dropped.
    pub(super) fn release(&mut self, node: &Node, x: Tracked, axis: usize) -> Result<Tracked, Fault> {
        let batch = x.place.is_some_and(|p| p.axis == axis);
        match batch {
            false => Ok(x),
            true if self.model.dynamic => {
                Err(Fault::Batch(format!("it works along axis {axis}, which holds the batch")))
            }
            true => {
                let other = settle(&x.dims, usize::MAX).filter(|p| p.axis != axis);
                let dims = x.dims.clone();
                self.view(node, &x, dims, other)
            }
        }
    }

    /// With the batch axis alone in front, as images have it.
    pub(super) fn batch_first(&mut self, node: &Node, x: &Tracked) -> Result<Tracked, Fault> {
        let first = Some(Place { axis: 0, outer: 1 });
        if x.dims.first() != Some(&1) || (self.model.dynamic && x.place.is_none_or(|p| p.axis != 0)) {
            return Err(Fault::Batch("its first axis must hold the batch and nothing else".into()));
        }
        self.view(node, x, x.dims.clone(), first)
    }

    /// With more axes of length 1 in front.
    pub(super) fn pad_rank(&mut self, node: &Node, x: Tracked, rank: usize) -> Result<Tracked, Fault> {
        let more = rank.saturating_sub(x.rank());
        if more == 0 {
            return Ok(x);
        }
        let dims: Vec<usize> = std::iter::repeat_n(1, more).chain(x.dims.iter().copied()).collect();
        let place = x.place.map(|p| Place { axis: p.axis + more, ..p });
        self.view(node, &x, dims, place)
    }

    /// Repeated along axes of length 1, up to `dims`.
    pub(super) fn broadcast(&mut self, node: &Node, x: Tracked, dims: &[usize]) -> Result<Tracked, Fault> {
        let shape = example_shape(dims, x.place);
        if self.builder.shape(x.value) == shape {
            return Ok(Tracked { dims: dims.to_vec(), ..x });
        }
        let value = self.emit(node, Operation::Broadcast(Broadcast { shape }), &[x.value])?;
        Ok(Tracked { value, dims: dims.to_vec(), ..x })
    }

    /// In a file for a fixed number of examples, a constant with as many equal entries along an axis: one of them.
    pub(super) fn one_example(&mut self, c: &Constant, axis: usize) -> Option<Constant> {
        let batch = self.model.fixed?;
        if c.shape.get(axis) != Some(&batch) {
            return None;
        }
        self.charge(2 * c.len()).ok()?;
        let inner: usize = c.shape[axis + 1..].iter().product();
        let outer: usize = c.shape[..axis].iter().product();
        let first: Vec<usize> =
            (0..outer).flat_map(|o| (0..inner).map(move |i| o * batch * inner + i)).collect();
        let mut shape = c.shape.clone();
        shape[axis] = 1;
        let one = c.pick(shape, &first, c.origin.clone());
        let again: Vec<usize> = (0..c.len()).map(|at| at / (batch * inner) * inner + at % inner).collect();
        (one.pick(c.shape.clone(), &again, c.origin.clone()).data == c.data).then_some(one)
    }

    /// A constant as a value of the graph, with the batch axis at `place`.
    pub(super) fn learned(
        &mut self,
        node: &Node,
        constant: &Constant,
        place: Option<Place>,
    ) -> Result<Tracked, Fault> {
        let one = place.and_then(|p| self.one_example(constant, p.axis));
        let constant = one.as_ref().unwrap_or(constant);
        let dims = constant.shape.clone();
        if self.model.dynamic && place.is_none_or(|p| dims.get(p.axis) != Some(&1)) {
            return Err(Fault::Batch("a constant takes part with a batch axis of its own".into()));
        }
        let place = place.filter(|p| dims.get(p.axis) == Some(&1));
        let shape = example_shape(&dims, place);
        let parameter = Parameter::new(&constant.as_operand(), shape.clone())?;
        let value = self.emit_with(node, Operation::Learned(Learned { shape }), &[], vec![parameter])?;
        Ok(Tracked { value, dims, place, whole: false })
    }

    /// Reorders the ONNX axes.
    pub(super) fn transpose(&mut self, node: &Node, x: &Tracked, order: &[usize]) -> Result<Tracked, Fault> {
        let dims: Vec<usize> = order.iter().map(|&axis| x.dims[axis]).collect();
        let place = x.place.and_then(|p| {
            let axis = order.iter().position(|&a| a == p.axis)?;
            Some(Place { axis, ..p })
        });
        let dropped = |axis: usize| x.place.is_some_and(|p| p.axis == axis) && x.dims[axis] == 1;
        let position = |axis: usize| (0..axis).filter(|&a| !dropped(a)).count();
        let axes: Vec<usize> = order.iter().filter(|&&a| !dropped(a)).map(|&a| position(a)).collect();
        let sorted = axes.windows(2).all(|pair| pair[0] < pair[1]);
        let value = if sorted {
            x.value
        } else {
            self.emit(node, Operation::Transpose(Transpose { axes }), &[x.value])?
        };
        Ok(Tracked { value, dims, place, whole: x.whole })
    }
}
