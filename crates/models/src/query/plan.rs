//! What predictions take, counted before anything is computed.

use crate::method::TILES;
use crate::predictor::bytes_of;
use crate::speed::dense_rate;
use crate::{Cost, ModelError, Output, PredictedSets, PredictionPlan, Process, Question};

/// Bytes of a number.
const NUMBER: u64 = 8;

/// Bytes beside all rows under another likelihood than Gaussian noise.
const BESIDE: u64 = 32 << 20;

impl Process<'_> {
    /// What predicting `rows` rows of a table of so many bytes takes beside the model itself; refuses what is above the question's memory, before anything is measured. `scored` models are scored
    /// on them, none where they are only predicted.
    pub(crate) fn plan_of(
        &self,
        (rows, table): (usize, u64),
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError> {
        let (samples, gaussian) = (question.samples, self.output.gaussian().is_some());
        let variances = question.variances.unwrap_or_default();
        let (m, d) = (rows as u64, self.inputs.schema.features.len() as u64);
        // Columns, matrix, standardised matrix.
        let inputs = bytes_of(&[3, m, d]);
        let Cost { bytes: block, flops } = self.predictor.cost(rows);
        // Numbers that are held, and columns that leave.
        let (outputs, columns) = match &self.output {
            Output::Gaussian(_) => {
                // Means, variances, deviations, row numbers and what holds them; with truths, fingerprints, a constant prediction and sorted copies.
                let outputs = bytes_of(&[if scored > 0 { 60 * scored as u64 } else { 20 }, m]);
                (outputs, 3 + question.quantiles.len() as u64)
            }
            Output::Likelihood(own) => {
                let c = own.likelihood.outputs() as u64;
                let width = c.max(2);
                let covariance = if self.predictor.is_coupled() { c * c } else { c };
                let sets = PredictedSets::bytes((m, width), self.calibration.sets(), (question, scored));
                let outputs = bytes_of(&[m, (6 + 4 * scored as u64) * width + covariance + 20]);
                (outputs.saturating_add(sets).saturating_add(BESIDE), 5 + width)
            }
        };
        let columns = columns.saturating_add(samples as u64);
        let leaving = (NUMBER + question.into.bytes()).saturating_mul(m).saturating_mul(columns);
        let Cost { bytes: solves, flops: solve_flops } = self.predictor.variance_cost(rows, variances);
        let block = block
            .max(if solves > 0 { solves + TILES } else { 0 })
            .saturating_add(self.draw_bytes(rows, samples));
        let joint = if question.joint { self.predictor.joint_cost(rows) } else { Cost::default() };
        let block = block.saturating_add(joint.bytes);
        let drawn = samples > 0 && gaussian;
        let drawn = if drawn { self.predictor.sample_cost(rows, samples).flops } else { 0.0 };
        let (sampled, drawn) = (drawn, drawn + joint.flops);
        // Each training row from all others is one inverse, however many are asked about; they are found by their numbers.
        let (n, left_out) = (self.predictor.support(), question.leave_one_out);
        let block = block.saturating_add(if left_out { 64 * n as u64 } else { 0 });
        let flops = if left_out { (n as f64).powi(3) / 3.0 } else { flops };
        let noise = self.heteroscedastic_noise();
        let flops = flops + noise.map_or(0.0, |own| own.flops_of_row() * rows as f64);
        let noise = noise.map_or(0, |own| own.bytes());
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
        if question.timed && gaussian {
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

    /// Bytes of so many joint draws; of functions under a likelihood with what becomes of them.
    pub(crate) fn draw_bytes(&self, rows: usize, count: usize) -> u64 {
        if count == 0 {
            return 0;
        }
        let drawn = self.predictor.sample_cost(rows, count).bytes;
        match &self.output {
            Output::Gaussian(_) => drawn,
            Output::Likelihood(own) => {
                let c = own.likelihood.outputs() as u64;
                drawn.saturating_add(bytes_of(&[rows as u64, count as u64, c]))
            }
        }
    }
}
