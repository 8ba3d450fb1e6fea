//! How a fit went.

use super::options::Space;
use posterior_linear::sampled::{EmStep, GradientVariances};
use posterior_optim::Reason;
use serde::{Deserialize, Serialize};

/// What was done on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledReport {
    /// Turn by turn.
    pub turns: Vec<EmStep>,
    /// Why the turns ended.
    pub turns_ended: Reason,
    /// Steps towards the samples for predictions.
    pub solver_steps: usize,
    /// Why these ended.
    pub solver_ended: Reason,
    /// Where optimum, samples and turns were worked on.
    pub space: Space,
    /// Directions of the weights that the examples move, in function space.
    pub span: Option<usize>,
    /// Leading directions of the curvature that conjugate gradients were preconditioned with, beside its diagonal.
    pub directions: usize,
    /// Whether the kernel of dual descent was stored.
    pub stored_kernel: Option<bool>,
    /// Under Gaussian noise, where its optimum was sought: root mean square over the training data of how far the linear model's outputs at its optimum are from the network's, `J (w* - v)`. Predictions stay the
    /// network's own, and the square counts as variance of each, as [`crate::fit::ModeSummary::displacement`] does.
    pub displacement: Option<f64>,
    /// Of descent under one precision: which of the two objectives has the less noisy gradients at the samples.
    pub gradient_variances: Option<GradientVariances>,
}
