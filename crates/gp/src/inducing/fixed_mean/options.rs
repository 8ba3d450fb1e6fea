//! What a fit is told.

use super::FixedMeanError;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a process whose mean is given is fitted. The defaults are the published ones for tables (spec `fixed_mean_gp`, section 4), with early stopping where there is a score to stop by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FixedMeanFitOptions {
    /// Steps in all.
    pub steps: usize,
    /// Rows of a batch.
    pub batch: usize,
    /// Adam's step size.
    pub learning_rate: f64,
    /// What it is multiplied by after each pass over the data.
    pub decay: f64,
    /// Order of the energy, 0 (the evidence lower bound) to 1 (predictive densities).
    pub alpha: f64,
    /// Pairs of draws for each row, where energies are estimated over the whole covariance of its outputs.
    pub monte_carlo: Option<usize>,
    /// Steps between two scores on held-out rows.
    pub val_every: usize,
    /// Scores in succession without a new best one after which the fit ends.
    pub patience: usize,
    /// Whether the parameters of the best score come back at the end, where there are scores.
    pub restore_best: bool,
    /// Steps between two records of where the inducing points are; None for none.
    pub trajectory_every: Option<usize>,
    /// Seed of batches and draws.
    pub seed: u64,
    /// Most wall-clock time.
    pub time: Option<Duration>,
}

impl Default for FixedMeanFitOptions {
    fn default() -> Self {
        Self {
            steps: 70_000,
            batch: 100,
            learning_rate: 1e-3,
            decay: 1.0,
            alpha: 1.0,
            monte_carlo: None,
            val_every: 1000,
            patience: 5,
            restore_best: true,
            trajectory_every: None,
            seed: 0,
            time: None,
        }
    }
}

impl FixedMeanFitOptions {
    /// Whether they can be used; `parameters` says whether the likelihood has some that are learned.
    pub(super) fn check(&self, parameters: bool) -> Result<(), FixedMeanError> {
        let error = |option, value: String, remedy| Err(FixedMeanError::Option { option, value, remedy });
        if self.batch == 0 {
            return error("batch", "0".into(), "give at least one row");
        }
        if !(self.learning_rate >= 0.0 && self.learning_rate.is_finite()) {
            return error(
                "learning_rate",
                self.learning_rate.to_string(),
                "give a number from 0, such as 0.001",
            );
        }
        if !(self.decay > 0.0 && self.decay <= 1.0) {
            return error("decay", self.decay.to_string(), "give a number above 0 and at most 1");
        }
        if !(0.0..=1.0).contains(&self.alpha) {
            return error("alpha", self.alpha.to_string(), "give a number from 0 to 1");
        }
        if self.val_every == 0 || self.patience == 0 || self.trajectory_every == Some(0) {
            let what = "val_every, patience or trajectory_every";
            return error(what, "0".into(), "count from 1, or leave the option out");
        }
        match self.monte_carlo {
            Some(0) => error("monte_carlo", "0".into(), "give at least one pair of draws"),
            Some(_) if self.alpha == 0.0 => {
                error("monte_carlo", "used at alpha 0".into(), "the lower bound needs no draws: leave it out")
            }
            Some(_) if parameters => error(
                "monte_carlo",
                "used with a likelihood that has parameters".into(),
                "its energy is known: leave the option out, or hold the noise",
            ),
            _ => Ok(()),
        }
    }
}
