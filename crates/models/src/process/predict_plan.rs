//! What predictions take, counted before anything is computed.

use super::ProcessModel;
use crate::method::TILES;
use crate::predictor::{Cost, bytes_of};
use crate::speed::dense_rate;
use crate::{ModelError, PredictionPlan, Question};

/// Bytes of a number.
const NUMBER: u64 = 8;

impl ProcessModel {
    /// What predicting `rows` rows of a table of so many bytes takes beside the model itself; refuses what is above the question's memory, before anything is measured. `scored` models are scored
    /// on them, none where they are only predicted.
    pub(super) fn plan_of(
        &self,
        (rows, table): (usize, u64),
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError> {
        let Question { samples, into, .. } = *question;
        let variances = question.variances.unwrap_or_default();
        let (m, d) = (rows as u64, self.header.schema.features.len() as u64);
        // Columns, matrix, standardised matrix.
        let inputs = bytes_of(&[3, m, d]);
        // Means, variances, deviations, row numbers and what holds them; with truths, fingerprints, a constant prediction and sorted copies.
        let outputs = bytes_of(&[if scored > 0 { 60 * scored as u64 } else { 20 }, m]);
        let Cost { bytes: block, flops } = self.predictor.cost(rows);
        let columns = (3 + question.quantiles.len() as u64).saturating_add(samples as u64);
        let leaving = (NUMBER + into.bytes()).saturating_mul(m).saturating_mul(columns);
        let Cost { bytes: solves, flops: solve_flops } = self.predictor.variance_cost(rows, variances);
        let block = block
            .max(if solves > 0 { solves + TILES } else { 0 })
            .saturating_add(self.sample_bytes(rows, samples));
        let joint = if question.joint { self.predictor.joint_cost(rows) } else { Cost::default() };
        let block = block.saturating_add(joint.bytes);
        let drawn = if samples > 0 { self.predictor.sample_cost(rows, samples).flops } else { 0.0 };
        let (sampled, drawn) = (drawn, drawn + joint.flops);
        // Each training row from all others is one inverse, however many are asked about; they are found by their numbers.
        let (n, left_out) = (self.predictor.support(), question.leave_one_out);
        let block = block.saturating_add(if left_out { 64 * n as u64 } else { 0 });
        let flops = if left_out { (n as f64).powi(3) / 3.0 } else { flops };
        let noise = self.noise.as_ref().map_or(0, |own| own.bytes());
        let flops = flops + self.noise.as_ref().map_or(0.0, |own| own.flops_of_row() * rows as f64);
        let parts = [inputs, outputs, block, leaving, table, noise, question.beside];
        let mut plan = PredictionPlan {
            rows,
            samples,
            peak_bytes: parts.into_iter().fold(0, u64::saturating_add),
            data_bytes: table,
            kept_bytes: table,
            flops: flops + drawn + solve_flops,
            seconds: None,
        };
        plan.check(question.memory)?;
        if question.timed {
            let dense = |flops: f64| if flops > 0.0 { flops / dense_rate() } else { 0.0 };
            // Variances need all stored samples anyway.
            let sampled = if self.predictor.stored_samples().is_some() { 0.0 } else { sampled };
            plan.seconds = match left_out {
                true => Some(dense(flops)),
                false => {
                    let seconds = self.predictor.seconds(rows, variances);
                    seconds.map(|own| own + (dense(joint.flops) + dense(sampled)))
                }
            };
        }
        Ok(plan)
    }

    /// Bytes of so many joint draws.
    pub(super) fn sample_bytes(&self, rows: usize, count: usize) -> u64 {
        if count == 0 { 0 } else { self.predictor.sample_cost(rows, count).bytes }
    }
}
