//! Parameters that are added, multiplied or given as they are: biases, gains, learned constants.

use super::layer::{At, Initial, Layer, Mode, Output, ParameterSpecification, Prepared, Saved, Term};
use crate::array::{Array, Channels, Precision, Sets, batch_shape, channel_affine, channel_sums, repeat};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Adds a parameter named `bias`, broadcast from `shape` (aligned at the last axis; its axes other than 1 next to each other).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bias {
    /// Shape of the parameter, for example `[16, 1, 1]` for channels of images or `[1]` for a scalar.
    pub shape: Vec<usize>,
}

/// Multiplies by a parameter named `weight`, broadcast as in [`Bias`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gain {
    /// Shape of the parameter.
    pub shape: Vec<usize>,
}

/// No input: the same learned `weight` for every example (a class token, a fixed query).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    /// Shape of the parameter and of the output.
    pub shape: Vec<usize>,
}

fn channels(example: &[usize], shape: &[usize]) -> Result<Channels, String> {
    Channels::broadcast(example, shape).ok_or_else(|| {
        format!("a parameter of shape {shape:?} does not broadcast over {example:?} along neighbouring axes")
    })
}

fn specification(name: &'static str, shape: &[usize], initial: Initial) -> Vec<ParameterSpecification> {
    vec![ParameterSpecification { name, shape: shape.to_vec(), trainable: true, initial }]
}

impl Bias {
    /// Whether its parameter broadcasts over an example of this shape, as that of a [`Gain`] of the same shape then does.
    pub fn broadcasts_over(&self, example: &[usize]) -> bool {
        channels(example, &self.shape).is_ok()
    }

    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let layer = Arc::new(Added(channels(inputs[0], &self.shape)?));
        let parameters = specification("bias", &self.shape, Initial::Constant(0.0));
        Ok(Prepared { shape: inputs[0].to_vec(), parameters, flops: super::count(inputs[0]), layer })
    }
}

impl Gain {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let layer = Arc::new(Multiplied(channels(inputs[0], &self.shape)?));
        let parameters = specification("weight", &self.shape, Initial::Constant(1.0));
        Ok(Prepared { shape: inputs[0].to_vec(), parameters, flops: super::count(inputs[0]), layer })
    }
}

impl Learned {
    pub(crate) fn prepare<T: Precision>(&self, _: &[&[usize]]) -> Result<Prepared<T>, String> {
        super::check_size(&self.shape)?;
        let parameters = specification("weight", &self.shape, Initial::Normal(0.02));
        let layer = Arc::new(Given(self.shape.clone()));
        Ok(Prepared { shape: self.shape.clone(), parameters, flops: 0, layer })
    }
}

#[derive(Debug)]
struct Added(Channels);

impl<T: Precision> Layer<T> for Added {
    fn forward(&self, inputs: &[&Array<T>], parameters: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        let out = channel_affine(inputs[0], self.0, None, Some(parameters[0].values()), Sets::One);
        (out, Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        tangent.clone()
    }

    fn jvp_parameter(
        &self,
        at: &At<'_, T>,
        _: usize,
        tangent: &Array<T>,
        sets: Sets,
        rows: usize,
    ) -> Array<T> {
        let zero = Array::zeros(batch_shape(rows, &at.output.shape()[1..]));
        channel_affine(&zero, self.0, None, Some(tangent.values()), sets)
    }

    fn vjp_parameter(&self, _: &At<'_, T>, _: usize, c: &Array<T>, sets: Sets, stride: usize, out: &mut [T]) {
        channel_sums(c, None, self.0, sets, stride, out);
    }
}

#[derive(Debug)]
struct Multiplied(Channels);

impl<T: Precision> Layer<T> for Multiplied {
    fn forward(&self, inputs: &[&Array<T>], parameters: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        let out = channel_affine(inputs[0], self.0, Some(parameters[0].values()), None, Sets::One);
        (out, Saved::Nothing)
    }

    fn jvp_input(&self, at: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        channel_affine(tangent, self.0, Some(at.parameters[0].values()), None, Sets::One)
    }

    fn jvp_parameter(
        &self,
        at: &At<'_, T>,
        _: usize,
        tangent: &Array<T>,
        sets: Sets,
        rows: usize,
    ) -> Array<T> {
        let x = repeat(at.inputs[0], rows / at.inputs[0].rows().max(1));
        channel_affine(&x, self.0, Some(tangent.values()), None, sets)
    }

    fn vjp_parameter(
        &self,
        at: &At<'_, T>,
        _: usize,
        c: &Array<T>,
        sets: Sets,
        stride: usize,
        out: &mut [T],
    ) {
        channel_sums(c, Some(at.inputs[0]), self.0, sets, stride, out);
    }

    fn second_parameter(
        &self,
        _: &At<'_, T>,
        _: usize,
        tangent: &Array<T>,
        _: usize,
        c: &Array<T>,
    ) -> Term<T> {
        Some(channel_affine(c, self.0, Some(tangent.values()), None, Sets::Rows))
    }
}

#[derive(Debug)]
struct Given(Vec<usize>);

impl<T: Precision> Layer<T> for Given {
    fn forward(&self, _: &[&Array<T>], parameters: &[&Array<T>], rows: usize, _: Mode) -> Output<T> {
        let one = parameters[0].clone().reshaped(batch_shape(1, &self.0));
        (repeat(&one, rows), Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, _: usize, _: &Array<T>) -> Array<T> {
        unreachable!("a learned constant has no input")
    }

    fn jvp_parameter(
        &self,
        _: &At<'_, T>,
        _: usize,
        tangent: &Array<T>,
        sets: Sets,
        rows: usize,
    ) -> Array<T> {
        let zero = Array::zeros(batch_shape(rows, &self.0));
        let channels = Channels { channels: self.0.iter().product(), inner: 1 };
        channel_affine(&zero, channels, None, Some(tangent.values()), sets)
    }

    fn vjp_parameter(&self, _: &At<'_, T>, _: usize, c: &Array<T>, sets: Sets, stride: usize, out: &mut [T]) {
        channel_sums(c, None, Channels { channels: self.0.iter().product(), inner: 1 }, sets, stride, out);
    }
}
