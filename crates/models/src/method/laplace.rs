//! Laplace's approximation: a Gaussian about the mode of all functions together.

use super::{Read, blocks_of_points, closed_form_rows, row_effort};
use crate::latent::by_rows;
use crate::predictor::{Samples, StreamOf};
use crate::{Batch, Cost, Latent, ModelError, Predictor, TableSource, Want};
use faer::MatRef;
use posterior_gp::laplace::{LaplaceGp, LaplaceParts, LaplacePosterior, LatentPrediction};
use posterior_optim::Parameters;
use posterior_store::{StoreError, Tensors};
use serde_json::Value;
use std::sync::Arc;

pub(crate) const KIND: &str = "mode";

impl Predictor for LaplacePosterior {
    fn latent(&self, x: Batch<'_>, want: &Want) -> Result<Latent, ModelError> {
        let x = closed_form_rows(x, want)?;
        let LatentPrediction { mean, covariance, clipped } = self.predict(x)?;
        let functions = mean.ncols();
        Ok(Latent { clipped, ..Latent::new(by_rows(&mean), covariance, functions) })
    }

    /// All functions are drawn together, by the first stream.
    fn samples(&self, x: MatRef<'_, f64>, count: usize, stream: StreamOf<'_>) -> Samples {
        Ok(self.sample(x, count, &mut stream(0))?.0)
    }

    fn support(&self) -> usize {
        self.inputs().nrows()
    }

    fn cost(&self, rows: usize) -> Cost {
        let n = self.support() as u64;
        blocks_of_points(rows, self.support(), self.latents() as f64 * (n * n) as f64)
    }

    fn effort(&self, inputs: usize) -> [f64; 2] {
        let (n, c) = (self.support() as f64, self.latents() as f64);
        let both = c * (row_effort(self.support(), inputs) + 3.0 * n * n);
        [both, both]
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    fn write(&self, out: &mut Tensors) -> Result<Value, StoreError> {
        let LaplaceParts { inputs, coefficients, roots, each, sum } = self.parts();
        out.insert_matrix("inputs", inputs.as_ref());
        out.insert_matrix("coefficients", coefficients.as_ref());
        out.insert_matrix("curvature_roots", roots.as_ref());
        for (k, factor) in each.iter().enumerate() {
            out.insert_triangle(format!("factor_{k}"), factor.as_ref());
        }
        if let Some(sum) = sum {
            out.insert_triangle("factor_sum", sum.as_ref());
        }
        Ok(Value::Null)
    }

    fn latents(&self) -> usize {
        self.model().latents()
    }

    fn is_coupled(&self) -> bool {
        true
    }

    fn training_inputs(&self) -> Option<MatRef<'_, f64>> {
        Some(self.inputs())
    }
}

pub(crate) fn read(_: Value, source: &TableSource, tensors: &mut Tensors) -> Read {
    let (rows, inputs) = (source.record.rows, source.inputs.schema.features.len());
    let (kernel, mean) = source.kernel_and_mean::<f64>().map_err(|e| tensors.corrupt(e))?;
    let Some(output) = source.output.likelihood() else {
        return Err(tensors.corrupt("it has no likelihood"));
    };
    let likelihood = output.likelihood.clone_box();
    let values = [kernel.values(), mean.values(), likelihood.values()].concat();
    let mut model = LaplaceGp::new(kernel, source.record.mean, likelihood, inputs);
    model.set_values(&values);
    Ok(Arc::new(read_process((rows, inputs), model, tensors)?))
}

/// The posterior of a model (with its hyperparameters) on so many rows of so many inputs.
pub(crate) fn read_process(
    (n, d): (usize, usize),
    model: LaplaceGp,
    tensors: &mut Tensors,
) -> Result<LaplacePosterior, StoreError> {
    let c = model.latents();
    let parts = LaplaceParts {
        inputs: tensors.matrix("inputs", n, d)?,
        coefficients: tensors.matrix("coefficients", n, c)?,
        roots: tensors.matrix("curvature_roots", n, c)?,
        each: (0..c).map(|k| tensors.factor(&format!("factor_{k}"), n)).collect::<Result<_, _>>()?,
        sum: match model.likelihood().is_diagonal() {
            true => None,
            false => Some(tensors.factor("factor_sum", n)?),
        },
    };
    LaplacePosterior::from_parts(model, parts).map_err(|e| tensors.corrupt(e))
}
