//! How to train.

use crate::LinearError;
use crate::training::Patience;
use posterior_likelihoods::Likelihood;
use posterior_optim::Rule;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a step looks at, and what it maximises.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Training {
    /// The evidence of all rows, with the weights integrated out: Gaussian noise, one target.
    Evidence,
    /// `Σ (1/α) log E_q[p(y | f)^α] - β KL(q ‖ prior)` as batches estimate it, with a free Gaussian q over the weights.
    Batches {
        /// Rows of a batch.
        size: usize,
        /// α: 0 for the bound on the evidence, 1 for predictive training.
        power: f64,
        /// β: 1 for the bound.
        divergence_weight: f64,
    },
    /// The log density of batches at one value of the weights: a network alone with a learned noise, which every other way has to beat.
    Point {
        /// Rows of a batch.
        size: usize,
    },
}

/// What a step on a batch is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnBatches {
    /// Rows of a batch.
    pub size: usize,
    /// α and β; of a single value of the weights neither matters.
    pub power_and_weight: (f64, f64),
}

impl Training {
    /// What steps on batches are told; None where each step looks at all rows.
    pub fn on_batches(self) -> Option<OnBatches> {
        match self {
            Self::Evidence => None,
            Self::Batches { size, power, divergence_weight } => {
                Some(OnBatches { size, power_and_weight: (power, divergence_weight) })
            }
            Self::Point { size } => Some(OnBatches { size, power_and_weight: (0.0, 0.0) }),
        }
    }
}

/// What the process knows beyond its features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Correction {
    /// Nothing: the kernel is that of the features.
    None,
    /// Variance is the same everywhere: what `|a(x)|²` is short of its largest value is a rest.
    Uniform,
    /// The process's own variance is known: `k(x, x) - |a(x)|²` is a rest.
    Own,
}

/// How to train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LowRankOptions {
    /// What is maximised.
    pub training: Training,
    /// Where the rest comes from.
    pub correction: Correction,
    /// The share of the rest that training is told of: 1 for the bound on the corrected process's evidence, 0 for none.
    pub trace_weight: f64,
    /// Whether rests count as noise of their rows in the evidence, so that their sum is no penalty (FITC; with the uniform correction, the corrected process itself).
    pub rest_as_noise: bool,
    /// Whether predictions have the rest.
    pub corrected: bool,
    /// Step size of Adam.
    pub learning_rate: f64,
    /// Times the weights of a network, added to the gradient of the objective for each row.
    pub weight_decay: f64,
    /// Steps at most.
    pub steps: usize,
    /// Steps between looks at the rows held back.
    pub check_every: usize,
    /// Steps without a better look after which training goes back to the best parameters with a smaller step size, or ends.
    pub patience: usize,
    /// How often the step size is divided by five before it ends.
    pub rate_drops: usize,
    /// Whether the step size falls to nothing at the end of `steps` or `time`: not where another run goes on from this one.
    pub settles: bool,
    /// Most time.
    pub time: Option<Duration>,
    /// Where batches come from.
    pub seed: u64,
    /// Whether all functions share one covariance of their weights, which makes a step on C functions cost little more than on one; each has its own otherwise. Single values of the weights need none.
    #[serde(default)]
    pub shared_root: bool,
    /// Standard deviation of the weights that training on batches begins with: 1 is that of their prior. Where the logarithm of an intensity is learned, less keeps the expected intensity from beginning at `exp(½ k(x, x))`.
    pub first_deviation: f64,
    /// Bytes that may be kept of rows between the two passes of the evidence; rows beyond are computed twice.
    pub kept_bytes: usize,
}

impl Default for LowRankOptions {
    fn default() -> Self {
        Self {
            training: Training::Evidence,
            correction: Correction::None,
            trace_weight: 0.0,
            rest_as_noise: false,
            corrected: false,
            learning_rate: 1e-3,
            weight_decay: 1e-5,
            steps: 10_000,
            check_every: 100,
            patience: 2_000,
            rate_drops: 2,
            settles: true,
            time: None,
            seed: 0,
            shared_root: false,
            first_deviation: 1.0,
            kept_bytes: 1 << 29,
        }
    }
}

impl LowRankOptions {
    pub(super) fn check(&self, likelihood: &dyn Likelihood) -> Result<(), LinearError> {
        let option = |name, value, expected| Err(LinearError::Option { name, value, expected });
        let shared = likelihood.shared_noise_variance().is_some();
        match self.training {
            Training::Evidence if !shared || likelihood.outputs() != 1 => {
                return option(
                    "likelihood",
                    f64::NAN,
                    "Gaussian noise of one target, for the exact evidence",
                );
            }
            Training::Point { .. } if likelihood.is_flat() => {
                return option(
                    "likelihood",
                    f64::NAN,
                    "one whose density has slopes, for single values of the weights: one that is flat between jumps is trained on batches",
                );
            }
            Training::Batches { power, .. } if !(0.0..=1.0).contains(&power) => {
                return option("power", power, "between 0 and 1");
            }
            Training::Batches { divergence_weight, .. }
                if divergence_weight.is_nan() || divergence_weight < 0.0 =>
            {
                return option("divergence weight", divergence_weight, "0 or above");
            }
            Training::Batches { .. } | Training::Point { .. } if self.rest_as_noise => {
                return option(
                    "rest as noise",
                    1.0,
                    "0 on batches: rests are noise in the exact evidence only",
                );
            }
            Training::Batches { size: 0, .. } | Training::Point { size: 0 } => {
                return option("batch", 0.0, "at least 1");
            }
            _ => {}
        }
        if !(self.first_deviation > 0.0 && self.first_deviation.is_finite()) {
            return option("first deviation of the weights", self.first_deviation, "above 0");
        }
        for (name, value) in [("trace weight", self.trace_weight), ("weight decay", self.weight_decay)] {
            if !(value >= 0.0 && value.is_finite()) {
                return option(name, value, "0 or above");
            }
        }
        self.patience().check()
    }

    /// When to look at the rows held back, and when to go back.
    pub fn patience(&self) -> Patience {
        let Self { learning_rate, check_every, patience, rate_drops, settles, .. } = *self;
        Patience { rule: Rule::adam(), learning_rate, check_every, patience, rate_drops, settles }
    }
}
