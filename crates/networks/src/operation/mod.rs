//! **Operations**: what the nodes of a network compute, each with its derivatives.
//!
//! | file | operations | parameters |
//! |---|---|---|
//! | `linear` | `y = x W^T + b` on the last axis | `weight`, `bias` |
//! | `convolution` | convolutions in 1 to 3 dimensions, transposed ones too | `weight`, `bias` |
//! | `batch_norm` | batch norm | `weight`, `bias`, `running_mean`, `running_var` |
//! | `affine` | bias, gain, learned constant | `bias` or `weight` |
//! | `elementwise` | activations, scaling | |
//! | `normalise` | mean 0 and variance 1, mean square 1, softmax | |
//! | `pairs` | product, sum, quotient, larger and smaller of two values, choice between them | |
//! | `rearrange` | transpose, slice, mean, broadcast, reshape | |
//! | `pad` | zeros, constants, own values around | |
//! | `pool`, `resize` | average pool, interpolation | |
//! | `extremes` | largest and smallest over axes | |
//! | `max_pool`, `concatenate`, `matrix_product` | as named | |
//! | `embedding` | table lookup | `weight` |
//!
//! An operation is plain data ([`Operation`]); prepared for the shapes of its inputs it becomes a layer that maps batches, tangents and
//! cotangents. A new operation is a new file, one line in the enumeration and one in `prepare`.

mod affine;
mod batch_norm;
mod concatenate;
mod convolution;
mod elementwise;
mod embedding;
mod extremes;
mod layer;
mod linear;
mod matrix_product;
mod max_pool;
mod normalise;
mod pad;
mod pairs;
mod pool;
mod rearrange;
mod resize;
mod sparse;
#[cfg(test)]
mod tests;

pub use crate::array::Activation;
use crate::array::Precision;
pub use affine::{Bias, Gain, Learned};
pub use batch_norm::BatchNorm;
pub use convolution::Convolution;
pub use embedding::Embedding;
pub use extremes::Extreme;
pub(crate) use layer::{At, Factors, Layer, Prepared, Saved};
pub use layer::{Initial, Mode, ParameterSpecification};
pub use linear::Linear;
pub use matrix_product::MatrixProduct;
pub use normalise::{Normalise, Over, RmsNormalise};
pub use pad::{Pad, PadMode};
pub use pool::Pool;
pub use rearrange::{Broadcast, Mean, Slice, Transpose};
pub use resize::{Interpolation, Resize};
use serde::{Deserialize, Serialize};

/// What a node computes. Shapes and axes never count the batch axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// `y = x W^T + b` on the last axis.
    Linear(Linear),
    /// Convolution, possibly transposed.
    Convolution(Convolution),
    /// Batch norm.
    BatchNorm(BatchNorm),
    /// Adds a parameter.
    Bias(Bias),
    /// Multiplies by a parameter.
    Gain(Gain),
    /// A parameter as a value.
    Learned(Learned),
    /// A function of each value.
    Activation(Activation),
    /// Mean 0 and variance 1 over segments.
    Normalise(Normalise),
    /// Mean square 1 over segments.
    RmsNormalise(RmsNormalise),
    /// Softmax over the last axis.
    Softmax,
    /// Multiplication by a constant.
    Scale(f64),
    /// Elementwise product of two inputs.
    Multiply,
    /// Sum of two inputs.
    Add,
    /// The first of two inputs divided by the second.
    Divide,
    /// The larger of two inputs.
    Maximum,
    /// The smaller of two inputs.
    Minimum,
    /// The second of three inputs where the first is positive, else the third; the derivative in the first is zero.
    Choose,
    /// Matrix product of two inputs.
    MatrixProduct(MatrixProduct),
    /// Joins inputs along an axis.
    Concatenate(usize),
    /// Another shape.
    Reshape(Vec<usize>),
    /// Another order of axes.
    Transpose(Transpose),
    /// Part of an axis.
    Slice(Slice),
    /// Zeros, or other values, around.
    Pad(Pad),
    /// Mean over axes.
    Mean(Mean),
    /// Largest value over axes.
    Largest(Extreme),
    /// Smallest value over axes.
    Smallest(Extreme),
    /// Repetition along axes.
    Broadcast(Broadcast),
    /// Largest value of each window.
    MaxPool(Pool),
    /// Mean of each window.
    AveragePool(Pool),
    /// Interpolation.
    Resize(Resize),
    /// Rows of a table.
    Embedding(Embedding),
}

impl Operation {
    /// Its name, as in tables and errors.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linear(_) => "linear",
            Self::Convolution(c) if c.transposed => "transposed convolution",
            Self::Convolution(_) => "convolution",
            Self::BatchNorm(_) => "batch norm",
            Self::Bias(_) => "bias",
            Self::Gain(_) => "gain",
            Self::Learned(_) => "learned constant",
            Self::Activation(a) => a.name(),
            Self::Normalise(_) => "normalise",
            Self::RmsNormalise(_) => "rms normalise",
            Self::Softmax => "softmax",
            Self::Scale(_) => "scale",
            Self::Multiply => "multiply",
            Self::Add => "add",
            Self::Divide => "divide",
            Self::Maximum => "maximum",
            Self::Minimum => "minimum",
            Self::Choose => "choose",
            Self::MatrixProduct(_) => "matrix product",
            Self::Concatenate(_) => "concatenate",
            Self::Reshape(_) => "reshape",
            Self::Transpose(_) => "transpose",
            Self::Slice(_) => "slice",
            Self::Pad(_) => "pad",
            Self::Mean(_) => "mean",
            Self::Largest(_) => "largest",
            Self::Smallest(_) => "smallest",
            Self::Broadcast(_) => "broadcast",
            Self::MaxPool(_) => "max pool",
            Self::AveragePool(_) => "average pool",
            Self::Resize(_) => "resize",
            Self::Embedding(_) => "embedding",
        }
    }

    /// How many inputs it takes: least and most.
    fn arity(&self) -> (usize, usize) {
        match self {
            Self::Learned(_) => (0, 0),
            Self::Multiply
            | Self::Add
            | Self::Divide
            | Self::Maximum
            | Self::Minimum
            | Self::MatrixProduct(_) => (2, 2),
            Self::Choose => (3, 3),
            Self::Concatenate(_) => (1, usize::MAX),
            _ => (1, 1),
        }
    }

    /// Fits the operation to the shapes of its inputs; the error says what does not fit.
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        T::prepare(self, inputs)
    }

    /// What [`Precision::prepare`] calls: here the code of all layers is made.
    pub(crate) fn layer<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let (least, most) = self.arity();
        if !(least..=most).contains(&inputs.len()) {
            return Err(format!("`{}` does not take {} inputs", self.name(), inputs.len()));
        }
        let prepared = match self {
            Self::Linear(o) => o.prepare(inputs),
            Self::Convolution(o) => o.prepare(inputs),
            Self::BatchNorm(o) => o.prepare(inputs),
            Self::Bias(o) => o.prepare(inputs),
            Self::Gain(o) => o.prepare(inputs),
            Self::Learned(o) => o.prepare(inputs),
            Self::Activation(o) => o.prepare(inputs),
            Self::Normalise(o) => o.prepare(inputs),
            Self::RmsNormalise(o) => o.prepare(inputs),
            Self::Softmax => normalise::prepare_softmax(inputs),
            Self::Scale(factor) => elementwise::prepare_scale(*factor, inputs),
            Self::Multiply => pairs::prepare_multiply(inputs),
            Self::Add => pairs::prepare_add(inputs),
            Self::Divide => pairs::prepare_divide(inputs),
            Self::Maximum => pairs::prepare_extreme(true, inputs),
            Self::Minimum => pairs::prepare_extreme(false, inputs),
            Self::Choose => pairs::prepare_choose(inputs),
            Self::MatrixProduct(o) => o.prepare(inputs),
            Self::Concatenate(axis) => concatenate::prepare(*axis, inputs),
            Self::Reshape(shape) => rearrange::prepare_reshape(shape, inputs),
            Self::Transpose(o) => o.prepare(inputs),
            Self::Slice(o) => o.prepare(inputs),
            Self::Pad(o) => o.prepare(inputs),
            Self::Mean(o) => o.prepare(inputs),
            Self::Largest(o) => o.prepare(true, inputs),
            Self::Smallest(o) => o.prepare(false, inputs),
            Self::Broadcast(o) => o.prepare(inputs),
            Self::MaxPool(o) => o.prepare_maximum(inputs),
            Self::AveragePool(o) => o.prepare_average(inputs),
            Self::Resize(o) => o.prepare(inputs),
            Self::Embedding(o) => o.prepare(inputs),
        }?;
        check_size(&prepared.shape)?;
        if prepared.shape.contains(&0) {
            return Err(format!("an axis of the output {:?} has length 0", prepared.shape));
        }
        Ok(prepared)
    }
}

/// Values of one example of one node may not pass this: sizes beyond it in a file are a mistake or an attack.
pub const LARGEST_EXAMPLE: usize = 1 << 27;

/// Refuses shapes whose number of values is beyond reason (and would overflow the indices of sparse maps).
pub(crate) fn check_size(shape: &[usize]) -> Result<(), String> {
    let total = shape.iter().try_fold(1usize, |product, &length| product.checked_mul(length));
    if total.is_none_or(|total| total > LARGEST_EXAMPLE) {
        return Err(format!("an example of shape {shape:?} would hold more than {LARGEST_EXAMPLE} values"));
    }
    Ok(())
}

/// A product of sizes that stops at the largest number instead of overflowing.
pub(crate) fn count(sizes: &[usize]) -> u64 {
    sizes.iter().fold(1, |product, &size| product.saturating_mul(size as u64))
}

/// Refuses what cannot be added to a variance.
fn check_epsilon(epsilon: f64) -> Result<(), String> {
    if epsilon.is_finite() && epsilon >= 0.0 {
        return Ok(());
    }
    Err(format!("`epsilon` must be a finite number from 0 on, not {epsilon}"))
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}
