//! Draws of functions, and the covariance of all outputs of several inputs.

use super::model::in_precision;
use super::{Fitted, LaplaceModel, ModelData, SavedPrecision};
use crate::ModelError;
use faer::Mat;
use posterior_laplace::LaplaceError;
use posterior_notes::fixes::MEMORY;

impl LaplaceModel {
    /// `count` functions drawn from the posterior of the linearised network at all inputs, without noise: `[count, examples, outputs]`, regression in the target's units. The same
    /// functions for every call with the same seed, except for posteriors of functions (function space, inducing points), where values are drawn from their joint distribution at these inputs.
    ///
    /// # Errors
    /// When they would pass `memory` bytes, or inputs do not fit.
    pub fn function_samples(
        &self,
        data: &ModelData,
        count: usize,
        seed: u64,
        memory: u64,
    ) -> Result<Vec<f64>, ModelError> {
        let outputs: usize = self.graph().output_shape().iter().product();
        let values = (count as u64).saturating_mul((data.len() * outputs) as u64);
        check(format!("{count} functions at {} inputs", data.len()), values.saturating_mul(16), memory)?;
        let mut draws =
            in_precision!(&self.numbers, fitted => self.draw_in(fitted, data, count, seed, memory))?;
        let (centre, scale) = self.header.data.target_scale();
        if outputs == 1 {
            draws.iter_mut().for_each(|v| *v = centre + scale * *v);
        }
        Ok(draws)
    }

    fn draw_in<T: SavedPrecision>(
        &self,
        fitted: &Fitted<T>,
        data: &ModelData,
        count: usize,
        seed: u64,
        memory: u64,
    ) -> Result<Vec<f64>, ModelError> {
        let x = self.prepared::<T>(data, 0..data.len())?;
        Ok(fitted.laplace.function_samples(&fitted.network, &x, count, seed, memory)?)
    }

    /// Covariance of all outputs of all inputs, `[examples * outputs, examples * outputs]`, without noise; regression in the target's units.
    ///
    /// # Errors
    /// When it would pass `memory` bytes, or inputs do not fit.
    pub fn joint_covariance(&self, data: &ModelData, memory: u64) -> Result<Mat<f64>, ModelError> {
        let outputs: usize = self.graph().output_shape().iter().product();
        let rows = (data.len() * outputs) as u64;
        check(
            format!("the joint covariance of {} inputs", data.len()),
            rows.saturating_mul(rows).saturating_mul(16),
            memory,
        )?;
        let mut joint = in_precision!(&self.numbers, fitted => {
            let x = self.prepared(data, 0..data.len())?;
            fitted.laplace.joint(&fitted.network, &x, memory)
        })?;
        let (_, scale) = self.header.data.target_scale();
        if outputs == 1 && scale != 1.0 {
            joint *= faer::Scale(scale * scale);
        }
        Ok(joint)
    }
}

fn check(what: String, needed: u64, allowed: u64) -> Result<(), ModelError> {
    if needed <= allowed {
        return Ok(());
    }
    let remedy = format!("ask for fewer inputs or samples at a time, or allow more ({MEMORY})");
    Err(LaplaceError::Memory { what, needed, allowed, remedy }.into())
}
