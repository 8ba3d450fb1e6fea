//! What predictions of a network's model take, counted before they are made.

use super::LaplaceModel;
use super::model::in_precision;
use super::predict::{PIECE, moments_need};
use crate::{ModelData, PredictedInto, PredictionPlan};
use posterior_laplace::scores::wanted;
use posterior_likelihoods::Integration;

/// Bytes of a number.
const NUMBER: u64 = 8;

/// Multiplications and additions a second that a plan counts on.
const RATE: f64 = 3e10;

impl LaplaceModel {
    /// What it takes to predict `data` with and without error bars, `times` times in all, and to give `columns` numbers of each example away.
    pub fn plan_prediction(
        &self,
        data: &ModelData,
        integration: Option<Integration>,
        times: usize,
        (columns, into): (usize, PredictedInto),
    ) -> PredictionPlan {
        let (n, piece) = (data.len() as u64, data.len().min(PIECE));
        let (outputs, width) =
            (self.outputs() as u64, self.likelihood().target_width().max(self.outputs()) as u64);
        in_precision!(&self.numbers, fitted => {
            let integration = integration.unwrap_or(fitted.laplace.integration());
            let need = match &data.truth {
                Some(_) => wanted(integration, fitted.laplace.likelihood()),
                None => moments_need(integration, fitted.laplace.likelihood()),
            };
            let latent = fitted.laplace.latent_bytes(&fitted.network, piece, need);
            // A piece as it is cut out and as it is prepared, with what is predicted of it.
            let inputs: u64 = self.graph().input_shape().iter().product::<usize>() as u64;
            let cut = piece as u64 * (3 * inputs + 4 * width) * NUMBER;
            // Probabilities or moments, means and deviations of outputs, densities; they grow by doubling.
            let kept = 2 * NUMBER * n.saturating_mul(3 * width + 2 * outputs + 1).saturating_mul(times as u64);
            let leaving = n.saturating_mul(columns as u64).saturating_mul(NUMBER + into.bytes());
            // Draws that are common to all examples, in antithetic pairs.
            let draws = match integration {
                Integration::MonteCarlo { samples, .. } => (samples as u64).saturating_mul(outputs * NUMBER),
                _ => 0,
            };
            // A table is kept as it was read, beside the numbers made of it, and copied once more for an output.
            let copies = data.table.as_ref().map_or(0, |(table, _)| table.memory());
            let parts = [data.memory(), copies, latent, cut, kept, draws, leaving];
            let peak = parts.into_iter().fold(0, u64::saturating_add);
            let flops = times as f64 * fitted.laplace.latent_flops(&fitted.network, data.len());
            PredictionPlan {
                rows: data.len(),
                samples: 0,
                peak_bytes: peak,
                data_bytes: data.memory(),
                kept_bytes: data.memory().saturating_add(kept),
                flops,
                seconds: Some(flops / RATE),
            }
        })
    }

    /// Bytes of `samples` functions at so many examples, and of their joint covariance where that is asked for, each with a copy for its file.
    pub fn joint_bytes(&self, examples: usize, samples: usize, covariance: bool) -> u64 {
        let rows = (examples as u64).saturating_mul(self.outputs() as u64);
        let matrix = if covariance { rows.saturating_mul(rows) } else { 0 };
        rows.saturating_mul(samples as u64).saturating_add(matrix).saturating_mul(2 * NUMBER)
    }

    /// Outputs of its network for each example.
    fn outputs(&self) -> usize {
        self.graph().output_shape().iter().product()
    }
}
