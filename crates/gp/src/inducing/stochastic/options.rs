//! How to fit.

use crate::hyperprior::Hyperprior;
use crate::inducing::InducingError;
use posterior_optim::{Constraint, Schedule};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What moves the distribution of inducing values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "method")]
pub enum VariationalOptimizer {
    /// Natural gradients: far fewer steps than Adam; exact in one step of length 1 on all rows when noise is Gaussian.
    NaturalGradient {
        /// Length of a step, in (0, 1]. 0.1 suits mini-batches of any likelihood, 1 all rows with Gaussian noise.
        length: f64,
        /// Steps over which the length rises from a hundredth, geometrically; 0 for none. Likelihoods far from Gaussian need it.
        warm_up: usize,
    },
    /// Adam on means and roots, with the learning rate of everything else.
    Adam,
}

/// How to fit. `Default` are good settings; [`StochasticOptions::published`] are those of the thesis' baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StochasticOptions {
    /// Steps in all.
    pub steps: usize,
    /// Rows of a batch.
    pub batch: usize,
    /// What moves the distribution of inducing values.
    pub variational: VariationalOptimizer,
    /// Adam's step size, in the unconstrained parameters.
    pub learning_rate: f64,
    /// How it changes over the steps.
    pub schedule: Schedule,
    /// Seed of the batches.
    pub seed: u64,
    /// Most wall-clock time.
    pub time: Option<Duration>,
    /// Priors on hyperparameters.
    pub hyperpriors: Vec<Hyperprior>,
    /// Parameters that are held or bounded.
    #[serde(default)]
    pub constraints: Vec<Constraint>,
    /// Most memory that the plan may need, in bytes.
    pub memory_limit: u64,
}

impl Default for StochasticOptions {
    fn default() -> Self {
        Self {
            steps: 2000,
            batch: 1024,
            variational: VariationalOptimizer::NaturalGradient { length: 0.1, warm_up: 20 },
            learning_rate: 0.01,
            schedule: Schedule::Constant,
            seed: 0,
            time: None,
            hyperpriors: Vec::new(),
            constraints: Vec::new(),
            memory_limit: 8 << 30,
        }
    }
}

impl StochasticOptions {
    /// The baseline of the thesis' regression benchmark: Adam with step size 1e-3 on everything, 10,000 batches of 100. There
    /// hyperparameters are frozen ([`super::StochasticGp::learn_hyperparameters`]).
    pub fn published() -> Self {
        Self {
            steps: 10_000,
            batch: 100,
            variational: VariationalOptimizer::Adam,
            learning_rate: 1e-3,
            ..Self::default()
        }
    }

    pub(super) fn check(&self) -> Result<(), InducingError> {
        let error = |option, value: String, remedy| Err(InducingError::Option { option, value, remedy });
        if self.batch == 0 {
            return error("batch", self.batch.to_string(), "give at least one row");
        }
        if !(self.learning_rate >= 0.0 && self.learning_rate.is_finite()) {
            return error(
                "learning_rate",
                self.learning_rate.to_string(),
                "give a number from 0, such as 0.01",
            );
        }
        match self.variational {
            VariationalOptimizer::NaturalGradient { length, .. } if !(length > 0.0 && length <= 1.0) => {
                error("length", length.to_string(), "give a number above 0 and at most 1, such as 0.1")
            }
            _ => Ok(()),
        }
    }

    /// The natural-gradient length of step `step`, from 0; `None` for Adam.
    pub(super) fn length(&self, step: usize) -> Option<f64> {
        match self.variational {
            VariationalOptimizer::NaturalGradient { length, warm_up } => {
                let progress = if warm_up == 0 { 1.0 } else { (step as f64 / warm_up as f64).min(1.0) };
                Some(length * 0.01f64.powf(1.0 - progress))
            }
            VariationalOptimizer::Adam => None,
        }
    }
}
