//! What can be asked of a mean-field fit, and what it takes.

use super::MeanField;
use crate::LaplaceError;
use crate::plan::needs::Needs;
use crate::problem::Size;
use posterior_networks::Precision;
use posterior_optim::{Rule, Schedule};
use serde::{Deserialize, Serialize};

/// How means and deviations are trained. The defaults are the published settings (spec `valla`, section 7.4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MeanFieldOptions {
    /// Weight decay that the network was trained with: the prior precision of each weight divided by the number of examples.
    pub weight_decay: f64,
    /// Passes over the examples.
    pub epochs: usize,
    /// Examples of a step.
    pub batch: usize,
    /// Groups of a batch, each with weights drawn for it; at most one for each example.
    pub groups: usize,
    /// What a step does to means and deviations; its weight decay must be zero, since the prior has it.
    pub rule: Rule,
    /// Step size of the means.
    pub mean_rate: f64,
    /// Step size of the logarithms of the deviations, at the beginning and at the end of half a cosine.
    pub deviation_rates: (f64, f64),
    /// Logarithms of the deviations at the start lie evenly between these.
    pub initial_log_deviations: (f64, f64),
    /// Whether one factor on Gaussian noise variances is learned: after each epoch it becomes the mean square of the epoch's residuals, which maximises their expected log likelihood.
    pub learn_noise: bool,
    /// Draws of the weights that predict.
    pub samples: usize,
}

impl Default for MeanFieldOptions {
    fn default() -> Self {
        Self {
            weight_decay: 5e-4,
            epochs: 12,
            batch: 256,
            groups: 8,
            rule: Rule::Sgd { momentum: 0.9, nesterov: false, weight_decay: 0.0 },
            mean_rate: 1e-4,
            deviation_rates: (1e-3, 1e-4),
            initial_log_deviations: (-6.0, -5.0),
            learn_noise: true,
            samples: 20,
        }
    }
}

impl MeanFieldOptions {
    /// Refuses what has no meaning.
    pub(super) fn check(&self) -> Result<(), LaplaceError> {
        let positive = |v: f64| v.is_finite() && v > 0.0;
        let (low, high) = self.initial_log_deviations;
        let problem = if self.epochs == 0 || self.batch == 0 || self.groups == 0 {
            "epochs, batch and groups of a batch must be at least 1"
        } else if self.samples < 2 {
            "a covariance of outputs needs at least 2 draws of the weights"
        } else if !positive(self.weight_decay) {
            "the weight decay is the prior of the weights: it must be positive (with none, deviations grow without limit)"
        } else if !(positive(self.mean_rate)
            && positive(self.deviation_rates.0)
            && positive(self.deviation_rates.1))
        {
            "step sizes must be positive"
        } else if !(low.is_finite() && high.is_finite() && low <= high && high <= 0.0) {
            "logarithms of deviations begin between two numbers of at most 0, the smaller first"
        } else if self.rule.weight_decay().0 != 0.0 {
            "the prior's weight decay is `weight_decay`: leave that of the rule at 0"
        } else if let Some(problem) = self.rule.problem() {
            problem
        } else {
            return Ok(());
        };
        Err(LaplaceError::Request(format!("mean-field fine-tuning: {problem}")))
    }

    /// Step size of the deviations at a step.
    pub(super) fn deviation_rate(&self, step: usize, steps: usize) -> f64 {
        let (first, last) = self.deviation_rates;
        last + (first - last) * Schedule::Cosine.factor(step, steps)
    }
}

impl<T: Precision> MeanField<T> {
    /// Memory and work of a fit: means, deviations, their gradients and moments, draws; activations of a group.
    pub fn plan(size: &Size<'_, T>, options: &MeanFieldOptions) -> Needs {
        let &Size { network, selection, examples, .. } = size;
        let (graph, number) = (network.graph(), size_of::<T>() as u64);
        let d = selection.len() as u64;
        let moments = if options.rule.moments()[1] { 4 } else { 2 };
        // Means, deviations and their gradients; draws, drawn weights, a group's gradient; the draws that predict; a copy where a state is written; the copy of the network.
        let numbers = 4 + moments + 3 + options.samples as u64 + (2 + moments);
        let group = options.batch.min(examples.max(1)).div_ceil(options.groups.max(1)) as u64;
        let (passes, steps) = (
            (options.epochs * examples) as f64,
            (options.epochs * examples.div_ceil(options.batch.max(1))) as f64,
        );
        Needs {
            curvature_bytes: d.saturating_mul(numbers * number).saturating_add(d * number),
            // Values, what layers keep, and what comes back.
            batch_bytes: group.saturating_mul(graph.activations() as u64).saturating_mul(3 * number),
            flops: passes * 3.0 * graph.flops() as f64
                + steps * d as f64 * (40.0 * options.groups.min(options.batch) as f64 + 20.0),
        }
    }
}
