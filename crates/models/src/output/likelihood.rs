//! Classes, counts, events and numbers with outliers: observed through a likelihood.

use super::observing::Observing;
use super::target::{Target, baseline};
use crate::{Latent, ModelError, Predicted, Predictive, Truth};
use posterior_likelihoods::{Integration, Likelihood, OutputLikelihood};
use posterior_linear::low_rank::CoxRows;
use serde::{Deserialize, Serialize};

/// Classes whose probabilities have curves.
const MOST_CLASSES: usize = 8;

/// A likelihood with what its targets are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LikelihoodOutput {
    /// What the targets are.
    pub target: Target,
    /// Their likelihood, with what was learned of it.
    pub likelihood: OutputLikelihood,
    /// Share of each class; mean and variance of counts; 0 and 1 for numbers in standard units; 1 and 0 for events, each of which counts one.
    pub marginal: Vec<f64>,
}

impl LikelihoodOutput {
    /// Predictive distributions, with densities of truths as the likelihood takes them; `asked` is how expectations are taken.
    ///
    /// # Errors
    /// [`ModelError::Likelihood`] for an integration that the likelihood does not have.
    pub(crate) fn predictive(
        &self,
        latents: &Latent,
        truths: Option<&[f64]>,
        asked: Option<Integration>,
    ) -> Result<Predictive, ModelError> {
        Observing::new(&self.likelihood, &self.target, asked)?.predictive(latents, truths)
    }

    /// The likelihood that learned features are trained under.
    pub(crate) fn seen_in_training(&self) -> Box<dyn Likelihood> {
        match self.target {
            Target::Events { .. } => Box::new(CoxRows),
            _ => self.likelihood.clone_box(),
        }
    }

    /// Truths in the target's own units.
    pub(crate) fn truth(&self, targets: &[f64]) -> Truth {
        match &self.target {
            Target::Classes { .. } => Truth::Classes(targets.iter().map(|y| *y as usize).collect()),
            Target::Counts { .. } | Target::Events { .. } => {
                Truth::Values { values: targets.to_vec(), width: 1 }
            }
            Target::Numbers { mean, scale } => {
                Truth::Values { values: targets.iter().map(|y| mean + scale * y).collect(), width: 1 }
            }
        }
    }

    /// Standard deviation of the target in training.
    pub(crate) fn target_scale(&self) -> f64 {
        match &self.target {
            Target::Classes { .. } | Target::Events { .. } => 1.0,
            Target::Counts { .. } => self.marginal[1].sqrt(),
            Target::Numbers { scale, .. } => *scale,
        }
    }

    /// Always the distribution of the training targets, for n rows of these truths and offsets.
    pub(crate) fn baseline(
        &self,
        n: usize,
        truths: Option<&[f64]>,
        offsets: Option<&[f64]>,
    ) -> (&'static str, Predictive) {
        let marginal = &self.marginal;
        let log_density = truths.map(|truths| baseline(&self.target, marginal, truths, offsets));
        let exposure = |i: usize| offsets.map_or(1.0, |offsets| offsets[i].exp());
        let (name, mut out) = match &self.target {
            Target::Classes { .. } => {
                let all = (0..n).flat_map(|_| marginal.iter().copied()).collect();
                let width = marginal.len();
                ("shares of the classes", Predictive::empty(Predicted::Classes(all), false, width, width))
            }
            target => {
                let (mean, variance) = match target {
                    Target::Numbers { mean, scale } => (*mean, scale * scale),
                    _ => (marginal[0], marginal[1]),
                };
                // Of counts in an exposure the scatter of the rate grows with its square, that of the count itself with the exposure.
                let of_row = |i: usize| exposure(i) * (mean + exposure(i) * (variance - mean));
                let variance = |i: usize| match target {
                    Target::Counts { .. } => of_row(i),
                    _ => variance,
                };
                let predicted = Predicted::Moments {
                    mean: (0..n).map(|i| mean * exposure(i)).collect(),
                    variance: (0..n).map(|i| variance(i).max(f64::MIN_POSITIVE)).collect(),
                    latent_variance: vec![0.0; n],
                };
                ("always the training mean", Predictive::empty(predicted, false, 1, 1))
            }
        };
        out.latent_mean = vec![0.0; n * out.outputs];
        out.latent_deviation = vec![0.0; n * out.outputs];
        out.log_density = log_density;
        (name, out)
    }

    /// Of two classes of one function the second, of several the first eight.
    pub(crate) fn shown_classes(&self) -> Vec<usize> {
        match (&self.target, &self.likelihood) {
            (Target::Classes { .. }, OutputLikelihood::Bernoulli(_)) => vec![1],
            (Target::Classes { names }, _) => (0..names.count().min(MOST_CLASSES)).collect(),
            _ => Vec::new(),
        }
    }

    /// What is expected of latent values that are known: probabilities of the shown classes, a count for each unit of exposure, a number.
    pub(crate) fn expected(&self, classes: &[usize], f: &[f64]) -> Vec<f64> {
        match (&self.target, &self.likelihood) {
            // All classes from one sum; otherwise there would be one for each.
            (Target::Classes { .. }, OutputLikelihood::Categorical(_)) => {
                let peak = f.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = f.iter().map(|value| (value - peak).exp()).sum();
                classes.iter().map(|k| (f[*k] - peak).exp() / total).collect()
            }
            (Target::Classes { .. }, likelihood) => {
                classes.iter().map(|k| likelihood.log_density(&[*k as f64], f).exp()).collect()
            }
            (Target::Counts { rate }, _) => vec![rate * f[0].exp()],
            (Target::Events { .. }, _) => vec![f[0].exp()],
            (Target::Numbers { mean, scale }, _) => vec![mean + scale * f[0]],
        }
    }

    /// What its numbers must be for d features, whoever wrote them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn sound(&self, d: usize) -> Result<(), String> {
        let outputs = self.likelihood.outputs();
        let (functions, numbers) = match &self.target {
            Target::Classes { names } if names.count() == 2 && outputs == 1 => (1, 2),
            Target::Classes { names } => (names.count(), names.count()),
            Target::Counts { .. } => (1, 2),
            Target::Events { window, events } => {
                let sound = |[low, high]: &[f64; 2]| low.is_finite() && high.is_finite() && low < high;
                if window.len() != d || !window.iter().all(sound) || *events == 0 {
                    return Err("its window is not one of its features".into());
                }
                (1, 2)
            }
            Target::Numbers { mean, scale } if mean.is_finite() && *scale > 0.0 && scale.is_finite() => {
                (1, 2)
            }
            Target::Numbers { .. } => return Err("the units of its target are no units".into()),
        };
        if outputs != functions || self.marginal.len() != numbers {
            return Err("its likelihood is not that of its target".into());
        }
        Ok(())
    }
}
