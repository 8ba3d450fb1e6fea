//! **The posterior mode** of a linear model under any log-concave likelihood: the minimum of `- sum_i log p(y_i | f0_i + phi(x_i) w) + 1/2 |w|²_A`.
//!
//! | method | for |
//! |---|---|
//! | [`newton`] | problems whose feature matrix fits in memory: a handful of factorisations, in the smaller of the two dual forms |
//! | [`newton_cg`] | feature maps known only by products: Newton steps solved by conjugate gradients, whole passes over the data |
//! | [`descend`] | large data: Adam or momentum over mini-batches, optionally averaged; L-BFGS on whole passes |
//!
//! All three share one [`ModeProblem`] and report the objective, the remaining gradient and whether they converged. With a positive prior
//! precision and a log-concave likelihood the minimum is unique, so that they agree.
//!
//! Source: Antorán (2024), algorithm 2; spec `linearised_laplace`, sections 4.6 and 5.7.

mod conjugate;
mod dense;
mod descent;
mod problem;

pub use conjugate::{NewtonCgOptions, newton_cg};
pub use dense::{NewtonOptions, newton};
pub use descent::{DescentOptions, descend};
pub use problem::{ModeProblem, curvature_at};

/// A mode, or how near to it a method came.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// The weights (d).
    pub weights: Vec<f64>,
    /// `-log p(y | w) + 1/2 |w|²_A`, over all data.
    pub objective: f64,
    /// The Euclidean norm of the objective's gradient, over all data.
    pub gradient_norm: f64,
    /// Steps taken.
    pub steps: usize,
    /// Whether the method's tolerance was met.
    pub converged: bool,
}

/// Backtracks along a descent direction until the objective falls by a fair share of what its slope promises (Armijo, 1e-4); the new
/// point and value, or `None` when no step of at least 2^-40 does.
fn backtrack(
    weights: &[f64],
    direction: &[f64],
    slope: f64,
    value: f64,
    mut objective: impl FnMut(&[f64]) -> Result<f64, crate::LinearError>,
) -> Result<Option<(Vec<f64>, f64)>, crate::LinearError> {
    let mut length = 1.0;
    // Below this the change drowns in the rounding of the value, and a full Newton step is the better judge.
    let resolution = 64.0 * f64::EPSILON * value.abs().max(f64::MIN_POSITIVE);
    while length > 2f64.powi(-40) {
        let trial: Vec<f64> = weights.iter().zip(direction).map(|(w, s)| w + length * s).collect();
        let new = objective(&trial)?;
        if new <= value + 1e-4 * length * slope + resolution {
            return Ok(Some((trial, new)));
        }
        length *= 0.5;
    }
    Ok(None)
}
