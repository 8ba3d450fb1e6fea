//! What predictions of networks take, counted before they are made.

use crate::method::PIECE;
use crate::model::Networks;
use crate::{Cost, ModelData, PredictedSets, PredictionPlan, Question, Want};
use posterior_likelihoods::Integration;

/// Bytes of a number.
const NUMBER: u64 = 8;

/// Multiplications and additions a second that a plan counts on.
const RATE: f64 = 3e10;

impl Networks<'_> {
    /// What it takes to answer with one network; or, where it is not 0, to score `scored` models of this kind.
    pub(crate) fn plan_alone(&self, data: &ModelData, question: &Question, scored: usize) -> PredictionPlan {
        let (n, outputs) = (data.len() as u64, self.output.outputs() as u64);
        let (latents, samples) = (self.output.likelihood.outputs(), question.samples);
        // With and without error bars where they are scored; else named columns, what most models have of them.
        let (times, columns) = match scored {
            0 => (1, latents * 3 + question.quantiles.len() + 2 * question.top.unwrap_or(0)),
            models => (2 * models, 0),
        };
        let integration = question.integration;
        let want = Want { integration, scored: data.truth.is_some(), ..Want::default() };
        let network = self.predictor.network();
        let latent = network.map_or(Cost::default(), |own| own.latent_cost(data.len(), &want));
        // A piece as it is cut out and as it is prepared, with what is predicted of it.
        let inputs: u64 = self.inputs.shape.iter().product::<usize>() as u64;
        let width = (self.output.likelihood.target_width() as u64).max(outputs);
        let cut = data.len().min(PIECE) as u64 * (3 * inputs + 4 * width) * NUMBER;
        // Probabilities or moments, means and deviations of outputs, densities; they grow by doubling.
        let kept = 2 * NUMBER * n.saturating_mul(3 * width + 2 * outputs + 1).saturating_mul(times as u64);
        let leaving = n.saturating_mul(columns as u64).saturating_mul(NUMBER + question.into.bytes());
        // Draws that are common to all examples, in antithetic pairs.
        let draws = match integration.unwrap_or(self.output.integration) {
            Integration::MonteCarlo { samples, .. } => (samples as u64).saturating_mul(outputs * NUMBER),
            _ => 0,
        };
        // A table is kept as it was read, beside the numbers made of it, and copied once more for an output.
        let copies = data.table.as_ref().map_or(0, |(table, _)| table.memory());
        // Functions, and their joint covariance where that is asked for, each with a copy for its file.
        let rows = n.saturating_mul(outputs);
        let matrix = if question.joint { rows.saturating_mul(rows) } else { 0 };
        let joint = rows.saturating_mul(samples as u64).saturating_add(matrix).saturating_mul(2 * NUMBER);
        let sets = PredictedSets::bytes((n, latents as u64), self.calibration.sets(), (question, scored));
        let parts = [latent.bytes, copies, cut, kept, draws, leaving, joint, question.beside, sets];
        let flops = times as f64 * latent.flops;
        PredictionPlan {
            rows: data.len(),
            samples,
            peak_bytes: parts.into_iter().fold(data.memory(), u64::saturating_add),
            data_bytes: data.memory(),
            kept_bytes: data.memory().saturating_add(kept),
            flops,
            seconds: Some(flops / RATE),
        }
    }
}
