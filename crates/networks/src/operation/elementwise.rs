//! Activations, normalisation and softmax as layers.

use super::layer::{At, Layer, Mode, Output, Prepared, Saved, Term};
use crate::array::{
    Activation, Array, Precision, activate, activate_second, activate_tangent, multiply, normalise,
    normalise_second, normalise_tangent, softmax, softmax_second, softmax_tangent,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

impl Activation {
    pub(crate) fn prepare<T: Precision>(self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        if let Self::LeakyRelu { slope: constant } | Self::Elu { alpha: constant } = self
            && !constant.is_finite()
        {
            return Err(format!("the constant of `{}` must be finite", self.name()));
        }
        let flops = super::count(inputs[0]);
        Ok(Prepared {
            shape: inputs[0].to_vec(),
            parameters: vec![],
            flops,
            layer: Arc::new(Activated(self)),
        })
    }
}

#[derive(Debug)]
struct Activated(Activation);

impl<T: Precision> Layer<T> for Activated {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        (activate(self.0, inputs[0]), Saved::Nothing)
    }

    fn jvp_input(&self, at: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        activate_tangent(self.0, tangent.clone(), at.inputs[0])
    }

    fn second_input(&self, at: &At<'_, T>, _: usize, tangents: &[Term<T>], c: &Array<T>) -> Term<T> {
        let tangent = tangents[0].as_ref().filter(|_| !self.0.piecewise_linear())?;
        Some(activate_second(self.0, multiply(tangent.clone(), c), at.inputs[0]))
    }
}

/// `(x - mean) / sqrt(variance + epsilon)` over segments: the part of layer and group norms that has no parameters (a [`Gain`](super::Gain) and a
/// [`Bias`](super::Bias) follow).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalise {
    /// What is normalised together.
    pub over: Over,
    /// Added to the variance.
    #[serde(default = "Normalise::usual_epsilon")]
    pub epsilon: f64,
}

/// Values that share a mean and a variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// The last so many axes (layer norm).
    LastAxes(usize),
    /// Each of so many groups of channels with all their positions (group norm).
    Groups(usize),
}

impl Normalise {
    fn usual_epsilon() -> f64 {
        1e-5
    }

    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        super::check_epsilon(self.epsilon)?;
        let shape = inputs[0].to_vec();
        let total: usize = shape.iter().product();
        let length = match self.over {
            Over::LastAxes(axes) if (1..=shape.len()).contains(&axes) => {
                shape[shape.len() - axes..].iter().product()
            }
            Over::LastAxes(axes) => {
                return Err(format!("cannot normalise over the last {axes} axes of {shape:?}"));
            }
            Over::Groups(groups) => {
                let &channels = shape.first().ok_or("group norm needs channels")?;
                if groups == 0 || !channels.is_multiple_of(groups) {
                    return Err(format!("{groups} groups must divide {channels} channels"));
                }
                total / groups
            }
        };
        if length == 0 {
            return Err("nothing to normalise".into());
        }
        let layer = Arc::new(Standardised { length, epsilon: self.epsilon });
        Ok(Prepared { flops: 5 * super::count(&shape), shape, parameters: vec![], layer })
    }
}

#[derive(Debug)]
struct Standardised {
    length: usize,
    epsilon: f64,
}

impl Standardised {
    fn at<'a, T: Precision>(&self, at: &'a At<'_, T>) -> (&'a Array<T>, &'a [T]) {
        match at.saved {
            Saved::Normalised { values, scales } => (values, scales),
            _ => unreachable!("the forward pass saves normalised values"),
        }
    }
}

impl<T: Precision> Layer<T> for Standardised {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        let (values, scales) = normalise(inputs[0], self.length, self.epsilon);
        (values.clone(), Saved::Normalised { values, scales })
    }

    fn jvp_input(&self, at: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        let (z, r) = self.at(at);
        normalise_tangent(tangent.clone(), self.length, z, r)
    }

    fn second_input(&self, at: &At<'_, T>, _: usize, tangents: &[Term<T>], c: &Array<T>) -> Term<T> {
        let (z, r) = self.at(at);
        Some(normalise_second(tangents[0].as_ref()?, c, self.length, z, r))
    }
}

/// Softmax over the last axis (inside a network: attention).
pub(crate) fn prepare_softmax<T: Precision>(inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
    let shape = inputs[0].to_vec();
    let &length = shape.last().filter(|&&l| l > 0).ok_or("softmax needs an axis")?;
    Ok(Prepared {
        flops: 4 * super::count(&shape),
        shape,
        parameters: vec![],
        layer: Arc::new(Softmax(length)),
    })
}

#[derive(Debug)]
struct Softmax(usize);

impl<T: Precision> Layer<T> for Softmax {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        (softmax(inputs[0], self.0), Saved::Nothing)
    }

    fn jvp_input(&self, at: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        softmax_tangent(tangent.clone(), self.0, at.output)
    }

    fn second_input(&self, at: &At<'_, T>, _: usize, tangents: &[Term<T>], c: &Array<T>) -> Term<T> {
        Some(softmax_second(tangents[0].as_ref()?, c, self.0, at.output))
    }
}

/// Multiplies by a constant.
pub(crate) fn prepare_scale<T: Precision>(factor: f64, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
    if !factor.is_finite() {
        return Err(format!("the factor {factor} is not finite"));
    }
    let flops = super::count(inputs[0]);
    Ok(Prepared { shape: inputs[0].to_vec(), parameters: vec![], flops, layer: Arc::new(Scaled(factor)) })
}

#[derive(Debug)]
struct Scaled(f64);

impl<T: Precision> Layer<T> for Scaled {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        (crate::array::scale(inputs[0].clone(), T::from_f64(self.0)), Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        crate::array::scale(tangent.clone(), T::from_f64(self.0))
    }
}

/// The product of two values of one shape.
pub(crate) fn prepare_multiply<T: Precision>(inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
    if inputs[0] != inputs[1] {
        return Err(format!(
            "factors of shapes {:?} and {:?} differ: broadcast one first",
            inputs[0], inputs[1]
        ));
    }
    let flops = super::count(inputs[0]);
    Ok(Prepared { shape: inputs[0].to_vec(), parameters: vec![], flops, layer: Arc::new(Multiplied) })
}

#[derive(Debug)]
struct Multiplied;

impl<T: Precision> Layer<T> for Multiplied {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        (multiply(inputs[0].clone(), inputs[1]), Saved::Nothing)
    }

    fn jvp_input(&self, at: &At<'_, T>, input: usize, tangent: &Array<T>) -> Array<T> {
        multiply(tangent.clone(), at.inputs[1 - input])
    }

    fn second_input(&self, _: &At<'_, T>, input: usize, tangents: &[Term<T>], c: &Array<T>) -> Term<T> {
        Some(multiply(c.clone(), tangents[1 - input].as_ref()?))
    }
}

/// The sum of two values of one shape.
pub(crate) fn prepare_add<T: Precision>(inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
    if inputs[0] != inputs[1] {
        return Err(format!(
            "terms of shapes {:?} and {:?} differ: broadcast one first",
            inputs[0], inputs[1]
        ));
    }
    let flops = super::count(inputs[0]);
    Ok(Prepared { shape: inputs[0].to_vec(), parameters: vec![], flops, layer: Arc::new(Added) })
}

#[derive(Debug)]
struct Added;

impl<T: Precision> Layer<T> for Added {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        (crate::array::add(inputs[0].clone(), inputs[1]), Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        tangent.clone()
    }
}
