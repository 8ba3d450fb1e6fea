//! Products with the Jacobian and its transpose.

use super::normal_range::normal_range;
use super::shared::SharedUses;
use crate::PerNetworkPrecision;
use crate::array::{Array, Precision, Sets, add_to, batch_shape};
use crate::graph::trace::{Reach, accumulate};
use crate::graph::{Graph, NetworkError, SelectedParameter, Selection, Trace};
use posterior_linalg::compiled_here;
use std::borrow::Cow;

/// How many nodes use each parameter.
pub(super) fn uses(graph: &Graph) -> Vec<usize> {
    let mut uses = vec![0; graph.parameters().len()];
    graph.nodes().iter().flat_map(|n| &n.parameters).for_each(|&p| uses[p] += 1);
    uses
}

impl<T: Precision> Trace<'_, T> {
    /// Rows of a block for each example.
    #[inline(never)]
    pub(crate) fn width(
        &self,
        what: &'static str,
        block: &Array<T>,
        shape: &[usize],
    ) -> Result<usize, NetworkError> {
        let rows = self.rows();
        if block.shape().get(1..) != Some(shape) || rows == 0 || !block.rows().is_multiple_of(rows) {
            let (expected, found) = (batch_shape(rows, shape), block.shape().to_vec());
            return Err(NetworkError::Shape { what, expected, found });
        }
        Ok(block.rows() / rows)
    }

    /// Adds what node `node` contributes to the gradient of the selected parameters: `out` is `[sets, selection]`. What `shared` keeps is still to be added.
    pub(super) fn parameter_gradient(
        &self,
        node: usize,
        selection: &Selection,
        cotangent: &Array<T>,
        sets: Sets,
        (uses, mut shared): (&[usize], Option<&mut SharedUses<T>>),
        out: &mut [T],
    ) {
        let (graph, layer) = (self.network().graph(), self.network().layer(node));
        let (stride, rows) = (selection.len(), cotangent.rows());
        for (slot, &parameter) in graph.nodes()[node].parameters.iter().enumerate() {
            let Some(part) = selection.part(parameter) else { continue };
            if let Some(shared) = &mut shared
                && self.at(node, |at| shared.keep((node, parameter, slot), layer, at, cotangent))
            {
                continue;
            }
            let direct = part.indices.is_none()
                && match sets {
                    Sets::One => true,
                    Sets::Rows => uses[parameter] == 1,
                    Sets::Tangents(_) => false,
                };
            if direct {
                self.at(node, |at| {
                    layer.vjp_parameter(at, slot, cotangent, sets, stride, &mut out[part.offset..])
                });
                continue;
            }
            let length = graph.parameters()[parameter].len();
            let mut whole = vec![T::ZERO; sets.count(rows) * length];
            self.at(node, |at| layer.vjp_parameter(at, slot, cotangent, sets, length, &mut whole));
            for (whole, out) in whole.chunks_exact(length).zip(out.chunks_mut(stride)) {
                let out = &mut out[part.offset..part.offset + part.length];
                match &part.indices {
                    None => add_to(out, whole),
                    Some(indices) => out.iter_mut().zip(indices).for_each(|(o, &i)| *o += whole[i]),
                }
            }
        }
    }

    /// `[sets, selection]` for a block of cotangents, in any mode.
    #[inline(never)]
    pub(crate) fn gradient(&self, selection: &Selection, cotangent: Array<T>, sets: Sets) -> Array<T> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a] Trace::gradient_here, (
            trace: &'a Trace<'b, T> = self,
            selection: &'a Selection = selection,
            cotangent: Array<T> = cotangent,
            sets: Sets = sets,
        ) -> Array<T>)
    }

    fn gradient_here(&self, selection: &Selection, cotangent: Array<T>, sets: Sets) -> Array<T> {
        let graph = self.network().graph();
        let (cotangent, scales) = normal_range(Cow::Owned(cotangent), sets);
        let (reach, uses) = (Reach::new(graph, Some(selection), false), uses(graph));
        let shape = vec![sets.count(cotangent.rows()), selection.len()];
        let mut out =
            if sets == Sets::Rows { self.rows_to_fill(shape, selection, &uses) } else { Array::zeros(shape) };
        let mut shared = SharedUses::of(graph);
        self.pull(cotangent.into_owned(), &reach, &mut |node, cotangent| {
            let shared = (sets == Sets::Rows).then_some(&mut shared);
            self.parameter_gradient(node, selection, cotangent, sets, (&uses, shared), out.values_mut());
        });
        for joined in shared.joined() {
            let Some(part) = selection.part(joined.parameter) else { continue };
            let out = &mut out.values_mut()[part.offset..];
            match &part.indices {
                None => joined.add_gradients(out, selection.len()),
                Some(indices) => {
                    let whole = joined.gradients();
                    for (out, whole) in
                        out.chunks_mut(selection.len()).zip(whole.values().chunks_exact(whole.row_len()))
                    {
                        out.iter_mut().zip(indices).for_each(|(o, &i)| *o += whole[i]);
                    }
                }
            }
        }
        scales.undo(&mut out);
        out
    }

    /// Room for gradients by example: zero except where a layer will write every entry, which spares a pass over memory.
    fn rows_to_fill(&self, shape: Vec<usize>, selection: &Selection, uses: &[usize]) -> Array<T> {
        if shape.iter().product::<usize>() > crate::array::LARGE {
            return Array::zeros(shape);
        }
        let graph = self.network().graph();
        let mut out = Array::any(shape);
        let mut clear = vec![true; selection.parts().len()];
        for (i, node) in graph.nodes().iter().enumerate() {
            for (slot, &parameter) in node.parameters.iter().enumerate() {
                if let Some(at) = selection.parts().iter().position(|p| p.parameter == parameter) {
                    let whole = uses[parameter] == 1 && selection.parts()[at].indices.is_none();
                    clear[at] = !(whole && self.network().layer(i).overwrites_rows(slot));
                }
            }
        }
        for row in out.values_mut().chunks_exact_mut(selection.len().max(1)) {
            for (part, _) in selection.parts().iter().zip(&clear).filter(|(_, clear)| **clear) {
                row[part.offset..part.offset + part.length].fill(T::ZERO);
            }
        }
        out
    }

    /// `sum_n J_n^T u_n` for `width` cotangents of each example: `[examples * width, outputs...] -> [width, selection]`.
    ///
    /// Cost: about twice a forward pass for each of the `width` rows.
    ///
    /// # Errors
    /// When the cotangents do not fit the outputs, or the network is in training mode.
    #[inline(never)]
    pub fn vjp(&self, selection: &Selection, cotangents: &Array<T>) -> Result<Array<T>, NetworkError> {
        self.network().require_evaluation("vector-Jacobian products")?;
        let width = self.width("cotangents", cotangents, &self.output().shape()[1..])?;
        let sets = match width {
            0 => return Ok(Array::zeros(vec![0, selection.len()])),
            1 => Sets::One,
            _ => Sets::Tangents(width),
        };
        Ok(self.gradient(selection, cotangents.clone(), sets))
    }

    /// `J_n^T u_n` for every row: `[examples * width, outputs...] -> [examples * width, selection]`. This is the one product whose result has
    /// the size of a Jacobian.
    ///
    /// # Errors
    /// As [`Self::vjp`].
    #[inline(never)]
    pub fn vjp_by_example(
        &self,
        selection: &Selection,
        cotangents: &Array<T>,
    ) -> Result<Array<T>, NetworkError> {
        self.network().require_evaluation("gradients by example")?;
        self.width("cotangents", cotangents, &self.output().shape()[1..])?;
        Ok(self.gradient(selection, cotangents.clone(), Sets::Rows))
    }

    /// The same with respect to the input: `[examples * width, outputs...] -> [examples * width, input...]`.
    ///
    /// # Errors
    /// As [`Self::vjp`].
    pub fn vjp_input(&self, cotangents: &Array<T>) -> Result<Array<T>, NetworkError> {
        self.network().require_evaluation("vector-Jacobian products")?;
        self.width("cotangents", cotangents, &self.output().shape()[1..])?;
        let graph = self.network().graph();
        let reach = Reach::new(graph, None, true);
        let pulled = self.pull(cotangents.clone(), &reach, &mut |_, _| {});
        Ok(pulled.unwrap_or_else(|| Array::zeros(batch_shape(cotangents.rows(), graph.input_shape()))))
    }

    /// `J_n v_k` for every example and every tangent `v_k` of the parameters: `[k, selection] -> [examples * k, outputs...]`.
    ///
    /// Cost: about twice a forward pass for each tangent.
    ///
    /// # Errors
    /// When the tangents do not fit the selection, or the network is in training mode.
    #[inline(never)]
    pub fn jvp(&self, selection: &Selection, tangents: &Array<T>) -> Result<Array<T>, NetworkError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a] Trace::jvp_here, (
            trace: &'a Trace<'b, T> = self,
            selection: &'a Selection = selection,
            tangents: &'a Array<T> = tangents,
        ) -> Result<Array<T>, NetworkError>)
    }

    fn jvp_here(&self, selection: &Selection, tangents: &Array<T>) -> Result<Array<T>, NetworkError> {
        self.network().require_evaluation("Jacobian-vector products")?;
        if tangents.shape().len() != 2 || tangents.row_len() != selection.len() {
            let (expected, found) = (vec![tangents.rows(), selection.len()], tangents.shape().to_vec());
            return Err(NetworkError::Shape { what: "tangents", expected, found });
        }
        let (graph, width) = (self.network().graph(), tangents.rows());
        let rows = self.rows() * width;
        if width == 0 {
            return Ok(Array::zeros(batch_shape(0, graph.output_shape())));
        }
        let (tangents, scales) = normal_range(Cow::Borrowed(tangents), Sets::Rows);
        let mut pushed = self.push(None, false, &mut |node| {
            let mut sum = None;
            for (slot, &parameter) in graph.nodes()[node].parameters.iter().enumerate() {
                if let Some(block) = spread(selection, graph, parameter, &tangents) {
                    let layer = self.network().layer(node);
                    let term = self
                        .at(node, |at| layer.jvp_parameter(at, slot, &block, Sets::Tangents(width), rows));
                    accumulate(&mut sum, term);
                }
            }
            sum
        });
        let out = pushed.swap_remove(graph.output().0);
        let mut out = out.unwrap_or_else(|| Array::zeros(batch_shape(rows, graph.output_shape())));
        scales.undo(&mut out);
        Ok(out)
    }

    /// `J_n v` with respect to the input: `[examples * width, input...] -> [examples * width, outputs...]`.
    ///
    /// # Errors
    /// When the tangents do not fit the input, or the network is in training mode.
    pub fn jvp_input(&self, tangents: &Array<T>) -> Result<Array<T>, NetworkError> {
        self.network().require_evaluation("Jacobian-vector products")?;
        let graph = self.network().graph();
        self.width("tangents", tangents, graph.input_shape())?;
        let mut pushed = self.push(Some(tangents.clone()), false, &mut |_| None);
        let out = pushed.swap_remove(graph.output().0);
        Ok(out.unwrap_or_else(|| Array::zeros(batch_shape(tangents.rows(), graph.output_shape()))))
    }
}

/// The part of flat rows that belongs to one parameter, as `[rows, parameter shape]`; None if it is not selected.
#[inline(never)]
pub(super) fn spread<T: Precision>(
    selection: &Selection,
    graph: &Graph,
    parameter: usize,
    rows: &Array<T>,
) -> Option<Array<T>> {
    let part = selection.part(parameter)?;
    let own = (0..rows.rows()).map(|r| &rows.row(r)[part.offset..part.offset + part.length]);
    Some(spread_rows(part, graph, own))
}

/// Rows of the selected entries of one parameter as `[rows, parameter shape]`.
pub(super) fn spread_rows<'a, T: Precision>(
    part: &SelectedParameter,
    graph: &Graph,
    rows: impl ExactSizeIterator<Item = &'a [T]>,
) -> Array<T> {
    let slot = &graph.parameters()[part.parameter];
    let mut out = Array::zeros(batch_shape(rows.len(), &slot.shape));
    for (out, from) in out.values_mut().chunks_exact_mut(slot.len()).zip(rows) {
        match &part.indices {
            None => out.copy_from_slice(from),
            Some(indices) => indices.iter().zip(from).for_each(|(&i, &v)| out[i] = v),
        }
    }
    out
}
