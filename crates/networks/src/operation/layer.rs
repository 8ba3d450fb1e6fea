//! What every operation must know about itself.

use crate::array::{Array, Precision, Sets};
use crate::graph::trace::accumulate;
use std::borrow::Cow;
use std::fmt::Debug;

/// Whether batch statistics are computed or taken as constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Batch norm uses its stored statistics: every example is on its own. All inference happens here.
    #[default]
    Evaluation,
    /// Batch norm normalises by the statistics of the batch, as while learning.
    Training,
}

/// What a forward pass leaves for the derivatives, besides inputs and output.
#[derive(Clone, Debug)]
pub(crate) enum Saved<T> {
    Nothing,
    /// Max pooling: where the maxima stand.
    Positions(Vec<u32>),
    /// Normalised values and one over the standard deviation of each segment.
    Normalised {
        values: Array<T>,
        scales: Vec<T>,
    },
    /// Batch norm in training: normalised values and, by channel, mean, biased variance and one over the standard deviation.
    Batch {
        values: Array<T>,
        mean: Vec<T>,
        variance: Vec<T>,
        scales: Vec<T>,
        count: usize,
    },
}

/// The value, and what is kept for derivatives.
pub(crate) type Output<T> = (Array<T>, Saved<T>);

/// A term of a gradient; None where it is zero.
pub(crate) type Term<T> = Option<Array<T>>;

/// The point at which a layer is differentiated.
pub(crate) struct At<'a, T> {
    pub(crate) inputs: &'a [&'a Array<T>],
    pub(crate) parameters: &'a [&'a Array<T>],
    pub(crate) output: &'a Array<T>,
    pub(crate) saved: &'a Saved<T>,
}

/// How one parameter's gradient by example is made, where it has structure that saves work.
pub(crate) enum Factors<'a, T: Precision> {
    /// `G[r] = sum over positions t of sensitivities[r, t] inputs[r / width, t]^T`: inputs are `[examples, positions, columns]`, sensitivities
    /// `[rows, positions, outputs]`; the transpose where `transposed`.
    Outer { inputs: Cow<'a, Array<T>>, sensitivities: Cow<'a, Array<T>>, positions: usize, transposed: bool },
}

/// An operation prepared for the shapes of its inputs, with its derivatives.
///
/// Blocks of tangents and cotangents have `width` rows for each example, example by example (see [`Sets`]). All maps are exact derivatives at
/// the point [`At`]; tests hold each against finite differences in double precision.
pub(crate) trait Layer<T: Precision>: Send + Sync + Debug {
    /// The value for `rows` examples.
    fn forward(&self, inputs: &[&Array<T>], parameters: &[&Array<T>], rows: usize, mode: Mode) -> Output<T>;

    /// `J_input tangent`.
    fn jvp_input(&self, at: &At<'_, T>, input: usize, tangent: &Array<T>) -> Array<T>;

    /// `J_input^T cotangent`. By default the Jacobian is symmetric, as that of a function of each value is.
    fn vjp_input(&self, at: &At<'_, T>, input: usize, cotangent: &Array<T>) -> Array<T> {
        self.jvp_input(at, input, cotangent)
    }

    /// Adds `J_input tangent` to a sum; joins of many values touch their own part of it alone.
    fn add_jvp_input(&self, at: &At<'_, T>, input: usize, tangent: &Array<T>, sum: &mut Term<T>) {
        accumulate(sum, self.jvp_input(at, input, tangent));
    }

    /// Adds `J_input^T cotangent` to a sum; parts of a value touch their own part of it alone.
    fn add_vjp_input(&self, at: &At<'_, T>, input: usize, cotangent: &Array<T>, sum: &mut Term<T>) {
        accumulate(sum, self.vjp_input(at, input, cotangent));
    }

    /// `J_parameter tangent` for `rows` rows, each with its set of `tangent`, `[sets, parameter shape]`.
    fn jvp_parameter(
        &self,
        _at: &At<'_, T>,
        _slot: usize,
        _tangent: &Array<T>,
        _sets: Sets,
        _rows: usize,
    ) -> Array<T> {
        unreachable!("an operation without parameters")
    }

    /// `J_parameter^T cotangent`, summed over the rows of each set and added to `out[set * stride..]`, which is zero where `sets` is
    /// [`Sets::Rows`] (it may then be overwritten).
    fn vjp_parameter(
        &self,
        _at: &At<'_, T>,
        _slot: usize,
        _cotangent: &Array<T>,
        _sets: Sets,
        _stride: usize,
        _out: &mut [T],
    ) {
        unreachable!("an operation without parameters")
    }

    /// Whether [`Self::vjp_parameter`] writes every entry when each row has its own set, so that what was there before does not matter.
    fn overwrites_rows(&self, _slot: usize) -> bool {
        false
    }

    /// The gradient in `input` of `<cotangent, sum_i J_i tangents[i]>` with `J` over the inputs; None where it is zero.
    fn second_input(
        &self,
        _at: &At<'_, T>,
        _input: usize,
        _tangents: &[Term<T>],
        _cotangent: &Array<T>,
    ) -> Term<T> {
        None
    }

    /// The gradient in `input` of `<cotangent, J_parameter tangent>`, where every row has its own `tangent`; None where it is zero.
    fn second_parameter(
        &self,
        _at: &At<'_, T>,
        _slot: usize,
        _tangent: &Array<T>,
        _input: usize,
        _cotangent: &Array<T>,
    ) -> Term<T> {
        None
    }

    /// The structure of a parameter's gradients, if there is some.
    fn factors<'a>(
        &self,
        _at: &'a At<'_, T>,
        _slot: usize,
        _cotangent: &'a Array<T>,
    ) -> Option<Factors<'a, T>> {
        None
    }
}

/// How a parameter begins before training.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initial {
    /// Uniform on `(-bound, bound)`.
    Uniform(f64),
    /// Normal with mean 0 and this standard deviation.
    Normal(f64),
    /// One constant.
    Constant(f64),
}

/// A parameter that an operation needs.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSpecification {
    /// Its name within the layer: `weight`, `bias`, `running_mean`, ...
    pub name: &'static str,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Whether training changes it by gradients; batch-norm statistics are not trainable.
    pub trainable: bool,
    /// How it begins.
    pub initial: Initial,
}

/// What an operation makes of inputs of given shapes.
pub struct Prepared<T> {
    pub(crate) shape: Vec<usize>,
    pub(crate) parameters: Vec<ParameterSpecification>,
    /// Multiplications and additions for each example, forward.
    pub(crate) flops: u64,
    pub(crate) layer: std::sync::Arc<dyn Layer<T>>,
}
