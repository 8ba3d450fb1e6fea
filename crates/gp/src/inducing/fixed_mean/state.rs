//! Where a fit stands, as plain data.

use super::{FixedMeanError, FixedMeanModel};
use posterior_kernels::LearnedBlockKernel;
use serde::{Deserialize, Serialize};

/// The best score on held-out rows so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The step after which it was taken.
    pub step: usize,
    /// The score.
    pub score: f64,
    /// The parameters then.
    pub theta: Vec<f64>,
}

/// Everything that a fit changes: save it after any step and [`super::fit_fixed_mean`] goes on bit for bit. About `16 M²` bytes and 32 for each number of the inducing points, and
/// 8 for each number of the trajectory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FixedMeanState {
    /// Steps taken.
    pub step: usize,
    /// What is learned, as [`FixedMeanModel::unconstrained`].
    pub theta: Vec<f64>,
    /// Adam's first moments.
    pub first: Vec<f64>,
    /// Adam's second moments.
    pub second: Vec<f64>,
    /// The best score.
    pub best: Option<Best>,
    /// Scores since the best one.
    pub without_improvement: usize,
    /// Scores on held-out rows, each with its step.
    pub scores: Vec<(usize, f64)>,
    /// Losses of the process and of its companion averaged over each pass, each with its last step.
    pub losses: Vec<(usize, f64, f64)>,
    /// Sums of the pass under way.
    pub pass: (f64, f64),
    /// Numbers of the inducing points, each with its step.
    pub trajectory: Vec<(usize, Vec<f64>)>,
    /// Variances that were taken as zero.
    pub clipped: usize,
    /// The largest amount added to a diagonal, relative to its mean.
    pub jitter: f64,
    /// Seconds so far, which a limit of time counts.
    pub seconds: f64,
}

impl FixedMeanState {
    /// Before the first step.
    pub(super) fn begin<K: LearnedBlockKernel>(model: &FixedMeanModel<K>) -> Self {
        let theta = model.unconstrained();
        let moments = || vec![0.0; theta.len()];
        Self { first: moments(), second: moments(), theta, ..Self::default() }
    }

    /// Whether the state is one of this model.
    pub(super) fn check<K: LearnedBlockKernel>(
        &self,
        model: &FixedMeanModel<K>,
    ) -> Result<(), FixedMeanError> {
        let count = model.unconstrained().len();
        let best = self.best.iter().map(|best| &best.theta);
        for part in [&self.theta, &self.first, &self.second].into_iter().chain(best) {
            if part.len() != count {
                let problem = format!("it has {} parameters, not {count}", part.len());
                return Err(FixedMeanError::State(problem));
            }
            if part.iter().any(|v| !v.is_finite()) {
                return Err(FixedMeanError::State("a number is not finite".into()));
            }
        }
        if self.second.iter().any(|v| *v < 0.0) {
            return Err(FixedMeanError::State("a squared gradient is negative".into()));
        }
        if !(self.seconds >= 0.0 && self.seconds < 1e12) {
            return Err(FixedMeanError::State(format!("{} seconds are no time", self.seconds)));
        }
        Ok(())
    }
}
