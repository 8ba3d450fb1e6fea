//! Pieces that several architectures are made of.

use super::Size;
use crate::graph::{GraphBuilder, GraphError, Value};
use crate::operation::{Activation, BatchNorm, Bias, Convolution, Gain, Initial, Linear, Mean, Operation};

/// Layers in one list of an architecture at most.
pub(super) const MOST_LAYERS: usize = 10_000;

/// How the weights of a convolution begin.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weights {
    /// As in PyTorch's layers.
    Default,
    /// Normal with variance 2 / fan-in (He).
    FanIn,
    /// Normal with variance 2 / fan-out (He), the deviation multiplied by a factor.
    FanOut(f64),
    /// Zero.
    Zero,
}

impl Weights {
    fn initial(self, inputs: usize, outputs: usize, taps: usize) -> Option<Initial> {
        let he = |fan: usize| (2.0 / (fan as f64 * taps as f64)).sqrt();
        match self {
            Self::Default => None,
            Self::FanIn => Some(Initial::Normal(he(inputs))),
            Self::FanOut(factor) => Some(Initial::Normal(he(outputs) * factor)),
            Self::Zero => Some(Initial::Constant(0.0)),
        }
    }
}

/// An error of the settings of a kind.
pub(super) fn wrong(kind: &'static str, problem: impl Into<String>) -> GraphError {
    GraphError::Architecture { kind, problem: problem.into() }
}

/// The numbers of one of the published sizes, or those given instead.
pub(super) fn size_or<const N: usize>(
    kind: &'static str,
    size: Option<Size>,
    given: Option<[usize; N]>,
    what: &str,
    table: [[usize; N]; 3],
) -> Result<[usize; N], GraphError> {
    match (size, given) {
        (Some(size), None) => Ok(table[size as usize]),
        (None, Some(given)) => Ok(given),
        _ => Err(wrong(kind, format!("give either `size` (small, medium, big) or {what}"))),
    }
}

/// A convolution with a square kernel (padding half of it), its weight begun as asked.
pub(super) fn convolution(
    b: &mut GraphBuilder,
    name: &str,
    (outputs, kernel, stride): (usize, usize, usize),
    bias: bool,
    weights: Weights,
    x: Value,
) -> Result<Value, GraphError> {
    let inputs = b.shape(x).first().copied().unwrap_or(0);
    let y = b.convolution(name, Convolution::square(outputs, kernel, stride, kernel / 2, bias), x)?;
    if let Some(initial) = weights.initial(inputs, outputs, kernel * kernel) {
        b.describe(&format!("{name}.weight"), true, Some(initial))?;
    }
    Ok(y)
}

/// Batch norm with the usual constants.
pub(super) fn batch_norm(b: &mut GraphBuilder, name: &str, x: Value) -> Result<Value, GraphError> {
    b.add(name, Operation::BatchNorm(BatchNorm::default()), &[x])
}

pub(super) fn relu(b: &mut GraphBuilder, name: &str, x: Value) -> Result<Value, GraphError> {
    b.activation(name, Activation::Relu, x)
}

/// A fully connected layer, its weight begun as asked; zero weights have a zero bias.
pub(super) fn linear(
    b: &mut GraphBuilder,
    name: &str,
    outputs: usize,
    bias: bool,
    weights: Weights,
    x: Value,
) -> Result<Value, GraphError> {
    let inputs = b.shape(x).last().copied().unwrap_or(0);
    let y = b.add(name, Operation::Linear(Linear { outputs, bias }), &[x])?;
    if let Some(initial) = weights.initial(inputs, outputs, 1) {
        b.describe(&format!("{name}.weight"), true, Some(initial))?;
    }
    if bias && matches!(weights, Weights::Zero) {
        b.describe(&format!("{name}.bias"), true, Some(Initial::Constant(0.0)))?;
    }
    Ok(y)
}

/// Mean over all positions of `[channels, height, width]`.
pub(super) fn global_pool(b: &mut GraphBuilder, name: &str, x: Value) -> Result<Value, GraphError> {
    b.add(name, Operation::Mean(Mean { axes: vec![1, 2], keep: false }), &[x])
}

/// All values on one axis; nothing where that is so.
pub(super) fn flatten(b: &mut GraphBuilder, name: &str, x: Value) -> Result<Value, GraphError> {
    if b.shape(x).len() == 1 {
        return Ok(x);
    }
    let total = b.shape(x).iter().product();
    b.add(name, Operation::Reshape(vec![total]), &[x])
}

/// Adds one learned number, a parameter of shape `[1]` called `name`, that begins at zero.
pub(super) fn scalar_bias(b: &mut GraphBuilder, name: &str, x: Value) -> Result<Value, GraphError> {
    b.add_named(name, Operation::Bias(Bias { shape: vec![1] }), &[x], &[name])
}

/// Multiplies by one learned number, a parameter of shape `[1]` called `name`, that begins at one.
pub(super) fn scalar_gain(b: &mut GraphBuilder, name: &str, x: Value) -> Result<Value, GraphError> {
    b.add_named(name, Operation::Gain(Gain { shape: vec![1] }), &[x], &[name])
}
