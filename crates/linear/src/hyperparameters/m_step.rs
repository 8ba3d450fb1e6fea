//! Updates of a precision, as formulas.

use crate::{LinearError, check};
use serde::{Deserialize, Serialize};

/// How precisions move once the weights are known. All four rest at the same points when each is repeated with the weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MStep {
    /// `a <- gamma(a) / |w|²` (MacKay 1992): closed form, and the fastest in practice.
    MacKay,
    /// The maximum over `A` of the bound `M(w, A)` with the weights held: never lowers the evidence of a conjugate model.
    MaximiseBound,
    /// `a <- d / (|w|² + Tr H^-1)`, classical expectation maximisation: never lowers the evidence, and slow, since the covariance is held too.
    DecoupledElbo,
    /// `log a <- log a + rate (gamma - a |w|²) / 2`, a step of gradient ascent on the evidence.
    Gradient {
        /// The step size, positive. The slope is of the order of the effective dimension, so a rate of `1/gamma` is bold already.
        rate: f64,
    },
}

/// MacKay's update `a = gamma / |w|²` (Antorán 2024, equation 6.4); infinite for `w = 0`.
pub fn mackay(effective_dimension: f64, squared_norm: f64) -> f64 {
    effective_dimension / squared_norm
}

/// The classical update `a = d / (|w|² + Tr H^-1)` over `d` parameters.
pub fn decoupled_elbo(dimension: usize, squared_norm: f64, covariance_trace: f64) -> f64 {
    dimension as f64 / (squared_norm + covariance_trace)
}

/// The slope `(gamma - a |u|²) / 2` of the evidence in `log a` (spec `linearised_laplace`, section 3.3).
pub fn log_precision_gradient(effective_dimension: f64, precision: f64, squared_norm: f64) -> f64 {
    0.5 * (effective_dimension - precision * squared_norm)
}

/// `-1/2 a |w|² - 1/2 sum log(1 + l_i / a)`: the bound `M(w, a)` (equation 6.2) less what does not depend on `a`.
pub fn bound(eigenvalues: &[f64], squared_norm: f64, precision: f64) -> f64 {
    let log_determinant: f64 = eigenvalues.iter().map(|l| (l / precision).ln_1p()).sum();
    -0.5 * (precision * squared_norm + log_determinant)
}

/// The precision that maximises [`bound`], within `range`: the root of `a |w|² = sum l_i / (l_i + a)`, by bisection on `log a` to
/// rounding. The left side rises and the right one falls, so there is one root; a root outside the range gives its nearer end.
///
/// # Errors
/// [`LinearError::NotFinite`] for the eigenvalues or the norm; [`LinearError::NotPositive`] for the range.
pub fn maximise_bound(eigenvalues: &[f64], squared_norm: f64, range: (f64, f64)) -> Result<f64, LinearError> {
    check::finite("eigenvalue", eigenvalues)?;
    check::finite("squared norm", &[squared_norm])?;
    check::positive("end of the range", &[range.0, range.1])?;
    // Rounding makes tiny eigenvalues negative; they count as zero.
    let excess = |log_a: f64| {
        let a = log_a.exp();
        let gamma: f64 = eigenvalues.iter().map(|l| l.max(0.0)).map(|l| l / (l + a)).sum();
        a * squared_norm - gamma
    };
    let (mut low, mut high) = (range.0.ln(), range.1.ln());
    if excess(low) >= 0.0 {
        return Ok(range.0);
    }
    if excess(high) <= 0.0 {
        return Ok(range.1);
    }
    // 60 halvings of at most e^1420 leave less than 1e-15.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if excess(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok((0.5 * (low + high)).exp())
}
