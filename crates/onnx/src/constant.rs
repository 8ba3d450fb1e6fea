//! Tensors that are known without running the network: weights and the arithmetic of shapes.

use super::dimension::Dimension;
use posterior_networks::operation::LARGEST_EXAMPLE;
use std::sync::Arc;

/// Axes of a tensor at most.
pub(super) const MOST_AXES: usize = 12;

/// What stands for infinity in masks: far below every score, and still finite when several are added up in single precision.
pub(super) const MASKED: f64 = 1e30;

/// Whether numbers are those of a mask that is added before a softmax: zeros and one large negative number.
fn is_mask(values: &[f64]) -> bool {
    let lowest = values.iter().copied().fold(0.0, f64::min);
    lowest <= -1e4 && values.iter().all(|&v| v == 0.0 || v == lowest)
}

/// The numbers of a tensor in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    /// Of a floating-point type, widened.
    Float(Vec<f64>),
    /// Of a whole-number type, or truth values as 0 and 1.
    Whole(Vec<Dimension>),
}

/// Where a tensor comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The initialiser, or the value that was folded.
    pub(super) name: String,
    /// Whether it is (made from) a weight.
    pub(super) trainable: bool,
    /// Whether it is one number repeated under a name that an exporter made up: a weight in the place of a weight, a constant elsewhere.
    pub(super) filler: bool,
}

/// A known tensor.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Constant {
    pub(super) shape: Vec<usize>,
    pub(super) data: Arc<Data>,
    pub(super) origin: Origin,
}

impl Origin {
    /// Of a constant that is no weight.
    pub(super) fn constant(name: impl Into<String>) -> Self {
        Self { name: name.into(), trainable: false, filler: false }
    }

    /// Of something made from weights, or not.
    pub(super) fn made(name: impl Into<String>, trainable: bool) -> Self {
        Self { name: name.into(), trainable, filler: false }
    }

    /// Whether an exporter made up the name: the parameters of a model have theirs.
    pub(super) fn has_made_up_name(&self) -> bool {
        let name = self.name.trim_end_matches(|c: char| c == '_' || c.is_ascii_digit());
        let name =
            ["_like", "_default"].iter().fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
        let functions =
            ["zeros", "ones", "full", "new_zeros", "new_ones", "new_full", "scalar_tensor", "arange"];
        self.name.starts_with("onnx::") || (name == "val" && self.name != "val") || functions.contains(&name)
    }
}

impl Constant {
    /// As an operand of its own: a filler is no weight there, and neither is a mask, whose minus infinity becomes [`MASKED`].
    pub(super) fn as_operand(&self) -> Self {
        let mask = self.float_slice().filter(|values| is_mask(values));
        let trainable = self.origin.trainable && !self.origin.filler && mask.is_none();
        let origin = Origin { trainable, ..self.origin.clone() };
        match mask {
            Some(values) if values.iter().any(|&v| v < -MASKED) => {
                let values = values.iter().map(|&v| v.max(-MASKED)).collect();
                Self::new(self.shape.clone(), Data::Float(values), origin)
            }
            _ => Self { origin, ..self.clone() },
        }
    }

    pub(super) fn new(shape: Vec<usize>, data: Data, origin: Origin) -> Self {
        Self { shape, data: Arc::new(data), origin }
    }

    /// Whole numbers in one row, without a name.
    pub(super) fn row(values: Vec<Dimension>) -> Self {
        Self::new(vec![values.len()], Data::Whole(values), Origin::constant(""))
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        match &*self.data {
            Data::Float(values) => values.len(),
            Data::Whole(values) => values.len(),
        }
    }

    /// The same values in another shape.
    pub(super) fn reshaped(&self, shape: Vec<usize>) -> Self {
        Self { shape, ..self.clone() }
    }

    /// As floating-point numbers.
    pub(super) fn floats(&self) -> Result<Vec<f64>, String> {
        match &*self.data {
            Data::Float(values) => Ok(values.clone()),
            Data::Whole(_) => Ok(self.whole()?.into_iter().map(|v| v as f64).collect()),
        }
    }

    /// The floating-point numbers, if they are.
    pub(super) fn float_slice(&self) -> Option<&[f64]> {
        match &*self.data {
            Data::Float(values) => Some(values),
            Data::Whole(_) => None,
        }
    }

    /// Whole numbers that may depend on the number of examples.
    pub(super) fn dimensions(&self) -> Result<&[Dimension], String> {
        match &*self.data {
            Data::Whole(values) => Ok(values),
            Data::Float(_) => {
                Err(format!("`{}` must hold whole numbers", super::error::short(&self.origin.name)))
            }
        }
    }

    /// Whole numbers.
    pub(super) fn whole(&self) -> Result<Vec<i64>, String> {
        let known =
            |d: &Dimension| d.known().ok_or("a number here depends on the number of examples".to_string());
        self.dimensions()?.iter().map(known).collect()
    }

    /// Its value, if it holds a single number.
    pub(super) fn scalar(&self) -> Option<f64> {
        match &*self.data {
            Data::Float(values) if values.len() == 1 => values.first().copied(),
            Data::Whole(values) if values.len() == 1 => values.first()?.known().map(|v| v as f64),
            _ => None,
        }
    }

    /// Whether every value is this number.
    pub(super) fn all(&self, value: f64) -> bool {
        match &*self.data {
            Data::Float(values) => values.iter().all(|&v| v == value),
            Data::Whole(values) => values.iter().all(|v| v.known().is_some_and(|v| v as f64 == value)),
        }
    }

    /// The values at `positions`, in another shape, with a new origin.
    pub(super) fn pick(&self, shape: Vec<usize>, positions: &[usize], origin: Origin) -> Self {
        let data = match &*self.data {
            Data::Float(values) => Data::Float(positions.iter().map(|&i| values[i]).collect()),
            Data::Whole(values) => Data::Whole(positions.iter().map(|&i| values[i]).collect()),
        };
        Self::new(shape, data, origin)
    }
}

/// Number of values of a shape, if it can be counted.
pub(super) fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |product, &length| product.checked_mul(length))
}

/// Whether loops over some of the axes end: an axis of length 0 may not hide lengths that no memory could hold.
pub(super) fn countable(shape: &[usize]) -> bool {
    let others: Vec<usize> = shape.iter().copied().filter(|&length| length != 0).collect();
    count(&others).is_some_and(|n| others.len() == shape.len() || n <= LARGEST_EXAMPLE)
}

/// Positions in a tensor of shape `from` (aligned at the last axis) of the entries of its broadcast to `to`.
pub(super) fn broadcast_positions(from: &[usize], to: &[usize]) -> Vec<usize> {
    let offset = to.len() - from.len();
    let strides = strides(from);
    let mut steps = vec![0; to.len()];
    for axis in 0..from.len() {
        steps[offset + axis] = if from[axis] == 1 { 0 } else { strides[axis] };
    }
    strided_positions(to, &steps, 0)
}

/// Row-major strides.
pub(super) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * shape[axis + 1];
    }
    strides
}

/// `start + sum of coordinate * step` over all entries of `shape`, in order.
pub(super) fn strided_positions(shape: &[usize], steps: &[usize], start: usize) -> Vec<usize> {
    if shape.contains(&0) {
        return vec![];
    }
    let mut out = vec![start];
    for (&length, &step) in shape.iter().zip(steps) {
        out = out.iter().flat_map(|&at| (0..length).map(move |i| at + i * step)).collect();
    }
    out
}

/// The shape of two tensors broadcast together, as NumPy and ONNX do it.
pub(super) fn broadcast_shape(a: &[usize], b: &[usize]) -> Result<Vec<usize>, String> {
    let rank = a.len().max(b.len());
    let at = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (x, y) if x == y || y == 1 => Ok(x),
            (1, y) => Ok(y),
            _ => Err(format!("shapes {a:?} and {b:?} do not broadcast")),
        })
        .collect()
}
