//! **The posterior mode** of a linear model under any log-concave likelihood: the minimum of
//! `- s sum_n log p(y_n | f(x_n)) + 1/2 |w|²_A` with `f(x) = g(x) + phi(x) (w - v)`.
//!
//! The problem is convex. Newton's steps are solved by conjugate gradients, whose products need one pass over the data each and no matrix; the factored
//! posterior precision of a structured curvature is the preconditioner, so that a few products do what plain gradients need thousands for.
//!
//! Source: Antorán (2024), sections 5.2 and 5.4; spec `linearised_laplace`, sections 4.1 to 4.6.

mod newton;
mod problem;

pub use problem::{ModeProblem, Predictor};

use serde::{Deserialize, Serialize};

/// How far the mode is pursued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeOptions {
    /// Newton steps at most.
    pub newton_steps: usize,
    /// Conjugate-gradient steps for each of them at most.
    pub inner_steps: usize,
    /// The search ends when a Newton step promises to lower the loss by less, nats. An error e of the loss leaves one of about `√(2e / a)` in the weights, and of
    /// `2 √(2e / a |w|²)` relative in the norm that the evidence charges for: 1e-6 is 0.1 % of it for a |w|² of 10.
    pub tolerance: f64,
    /// Or when what it promises is an error of the weights' norm under the prior precisions `A` that is relatively smaller: `2 √(2e / w'Aw)`. 0: only nats count. Where nothing but a precision is learned from the
    /// mode, nats are no measure: a millionth of one is more than single precision and hundreds of thousands of weights may have, and asks for far more products than one percent of the norm.
    pub norm_tolerance: f64,
}

impl Default for ModeOptions {
    fn default() -> Self {
        Self { newton_steps: 20, inner_steps: 20, tolerance: 1e-6, norm_tolerance: 0.0 }
    }
}

/// The mode that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// The weights (d).
    pub weights: Vec<f64>,
    /// `sum log p(y | f)`.
    pub log_likelihood: f64,
    /// The loss, prior included.
    pub loss: f64,
    /// Newton steps taken.
    pub newton_steps: usize,
    /// Products with the Hessian.
    pub products: usize,
    /// What the last step promised to gain, nats.
    pub remaining: f64,
    /// Whether that was within the tolerance.
    pub converged: bool,
    /// `max |f0| / max |g|` with `f0 = g - phi v`: how much of the outputs at the expansion point the offset carries.
    pub offset: f64,
}
