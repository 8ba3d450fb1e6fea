//! How a fit went.

use posterior_gp::generalised::{Breakdown, Irregularities, Tempered};
use posterior_optim::Reason;
use serde::{Deserialize, Serialize};

/// Which rows the prior was learned from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorRows {
    /// Rows that the network has not seen.
    Unseen,
    /// Rows that it has learned from, whose residuals are too small.
    Training,
    /// None: it is as its text says.
    #[default]
    Nothing,
}

/// The process that regularises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GwiPrior {
    /// Which rows hyperparameters were learned from.
    pub learned_from: PriorRows,
    /// How many.
    pub rows: usize,
    /// The variance in front of the kernel, a.
    pub amplitude: f64,
    /// Prior variances that were tried with their scores on these rows (minus the mean log predictive density, nats); none under Gaussian noise, where the evidence chooses.
    pub tried: Vec<(f64, f64)>,
    /// The kernel's parameters by name.
    pub kernel: Vec<(String, f64)>,
    /// Mean prior variance of a function over rows that inducing points are chosen among.
    pub variance: f64,
    /// The noise variance of pseudo-targets.
    pub noise: f64,
    /// Inducing points.
    pub inducing: usize,
    /// What was added to the diagonal of their matrix, relative to its mean.
    pub jitter: f64,
}

/// What a fit says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GwiReport {
    /// The process that regularises.
    pub prior: GwiPrior,
    /// Steps taken.
    pub steps: usize,
    /// Why they ended.
    pub reason: Reason,
    /// Rows that the network has not seen which judged; 0 where there are none, and then nothing was judged.
    pub judged: usize,
    /// Scores on them (minus the mean log predictive density, nats) with the steps before.
    pub scores: Vec<(usize, f64)>,
    /// The step whose parameters were kept, where scores chose it.
    pub best_step: Option<usize>,
    /// The same score of the network alone, with the likelihood as it was given.
    pub plain_score: Option<f64>,
    /// What variances were multiplied by, and what that did.
    pub tempering: Option<Tempered>,
    /// What was minimised, every so many steps.
    pub history: Vec<Breakdown>,
    /// Floors, jitter of the regulariser and what else is no part of the formulas.
    #[serde(flatten)]
    pub irregularities: Irregularities,
    /// The largest amount added to a diagonal in training, relative to its mean.
    pub jitter: f64,
    /// The likelihood's parameters by name.
    pub noise: Vec<(String, f64)>,
    /// Seconds of prior and steps.
    pub seconds: f64,
}

impl GwiReport {
    /// The score of what was kept; None without rows that judge. Optimistic by as much as the choice of a step and a factor can be.
    pub fn score(&self) -> Option<f64> {
        let best = || self.scores.iter().map(|s| s.1).min_by(f64::total_cmp);
        self.tempering.as_ref().map(|tempered| tempered.after).or_else(best)
    }
}
