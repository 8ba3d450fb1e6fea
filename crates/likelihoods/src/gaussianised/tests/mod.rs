//! Gaussians of conjugate posteriors against printed tables, brute force, quadrature and finite differences.

use super::*;
use posterior_optim::check::{assert_close, gradient};

mod families;
mod newton;
mod observations;
mod tables;

const ALL: [Matching; 4] =
    [Matching::MomentOriginal, Matching::Moment, Matching::Laplace, Matching::Variational];
/// Those that every family has.
const COMMON: [Matching; 3] = [Matching::Moment, Matching::Laplace, Matching::Variational];

/// Mean and variance.
fn pair<const N: usize>(fit: &Fit<N>) -> [f64; 2] {
    [fit.observation.target, fit.observation.variance]
}

/// `Σ weight g(x)` over a standard normal x, from -16 to 16 deviations: a Riemann sum, exact to rounding for smooth g.
fn average(step: f64, g: impl Fn(f64) -> f64) -> f64 {
    let side = (16.0 / step) as i64;
    (-side..=side)
        .map(|k| step * k as f64)
        .map(|x| step * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt() * g(x))
        .sum()
}
