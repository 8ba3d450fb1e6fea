//! Normalisation over segments, and softmax.

use super::layer::{At, Layer, Mode, Output, Prepared, Saved, Term};
use crate::array::{
    Array, Precision, Segments, normalise, normalise_second, normalise_tangent, softmax, softmax_second,
    softmax_tangent,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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

/// `x / sqrt(mean of squares + epsilon)` over segments: the part of RMS norms that has no parameters (a [`Gain`](super::Gain) follows).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RmsNormalise {
    /// What is normalised together.
    pub over: Over,
    /// Added to the mean of squares.
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
        self.over.prepare(self.epsilon, true, inputs[0])
    }
}

impl RmsNormalise {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        self.over.prepare(self.epsilon, false, inputs[0])
    }
}

impl Over {
    fn prepare<T: Precision>(
        self,
        epsilon: f64,
        centred: bool,
        shape: &[usize],
    ) -> Result<Prepared<T>, String> {
        super::check_epsilon(epsilon)?;
        let shape = shape.to_vec();
        let total: usize = shape.iter().product();
        let length = match self {
            Self::LastAxes(axes) if (1..=shape.len()).contains(&axes) => {
                shape[shape.len() - axes..].iter().product()
            }
            Self::LastAxes(axes) => {
                return Err(format!("cannot normalise over the last {axes} axes of {shape:?}"));
            }
            Self::Groups(groups) => {
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
        let layer = Arc::new(Standardised { segments: Segments { length, centred }, epsilon });
        Ok(Prepared { flops: 5 * super::count(&shape), shape, parameters: vec![], layer })
    }
}

#[derive(Debug)]
struct Standardised {
    segments: Segments,
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
        let (values, scales) = normalise(inputs[0], self.segments, self.epsilon);
        (values.clone(), Saved::Normalised { values, scales })
    }

    fn jvp_input(&self, at: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        let (z, r) = self.at(at);
        normalise_tangent(tangent.clone(), self.segments, z, r)
    }

    fn second_input(&self, at: &At<'_, T>, _: usize, tangents: &[Term<T>], c: &Array<T>) -> Term<T> {
        let (z, r) = self.at(at);
        Some(normalise_second(tangents[0].as_ref()?, c, self.segments, z, r))
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
