//! Activations and multiplication by a constant.

use super::layer::{At, Layer, Mode, Output, Prepared, Saved, Term};
use crate::array::{
    Activation, Array, Precision, activate, activate_second, activate_tangent, multiply, scale,
};
use std::sync::Arc;

impl Activation {
    pub(crate) fn prepare<T: Precision>(self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        if let Some(wrong) = self.wrong_constants() {
            return Err(wrong);
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
        (scale(inputs[0].clone(), T::from_f64(self.0)), Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        scale(tangent.clone(), T::from_f64(self.0))
    }
}
