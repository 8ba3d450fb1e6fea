//! The least `KL(q ‖ p)` to the logit of a Beta variable by **Newton's method**.
//!
//! With `n = α + β` and `ψ ~ N(μ, s²)` the divergence is, up to a constant, `-½ log s² + β μ + n E log(1 + e^{-ψ})`: convex in `(μ, s)`. Its
//! slopes vanish where
//!
//! `n E φ = α`, `n s² E φ' = 1`.
//!
//! Both are solved in their logarithms, which are nearly linear over many orders of magnitude, for the steps `u = dμ / s` and
//! `w = d log s²`. With `a = n s² E φ'`, and `m₁`, `m₂` the moments of `x = (ψ - μ)/s` under the density `∝ φ'(ψ) N(ψ; μ, s²)`, Stein's lemma
//! (`s E φ'' = m₁ E φ'`, `s² E φ''' = (m₂ - 1) E φ'`) makes of their derivatives
//!
//! `[a, a m₁/2; m₁, (1 + m₂)/2] [u; w] = [-s n Eφ log(n Eφ / α); -log a]`,
//!
//! whose determinant `a (1 + m₂ - m₁²)/2` lies between `a/2` and `a`, because `φ'` is log-concave: no cancellation, however wide or narrow
//! the Gaussian. The same matrix gives the slopes in `α` and `β` by the implicit function theorem.
//!
//! The problem is solved for `α <= β`, where probabilities keep their relative accuracy; the other case is its mirror image.
//!
//! Source: spec `likelihood_approximations`, section 3.1, whose equations these are in other units.

use super::logistic::Expectations;
use super::{Fit, PseudoObservation, PseudoSlopes};
use crate::special::normal_tail::{inverse_mills, log_density, log_distribution};

/// The most steps; five are enough from 0.001 to 1e9.
const MOST_STEPS: usize = 60;
/// Steps, in deviations and in the logarithm of the variance, after which the next would be below rounding.
const SMALL: f64 = 1e-8;
/// From this pseudo-count on the closed form of large numbers is exact to rounding.
const ASYMPTOTIC: f64 = 1e15;
/// `log 5`: a step that would take the variance below a fifth of itself, or above the fivefold, is shortened.
const LARGEST: f64 = 1.6;

/// Mean, variance, slopes and the number of steps; NaN where the search did not end or left the numbers of the machine.
pub(super) fn fit(first: f64, second: f64) -> Fit<2> {
    if first > second {
        let Fit { mut observation, slopes: [mut b, mut a], newton_steps } = fit(second, first);
        for target in [&mut observation.target, &mut a.target, &mut b.target] {
            *target = -*target;
        }
        return Fit { observation, slopes: [a, b], newton_steps };
    }
    if first >= ASYMPTOTIC {
        return difference_of_log_gammas(first, second);
    }
    let total = first + second;
    let (mut mean, mut variance) = start(first, second);
    for newton_steps in 1..=MOST_STEPS {
        let now = Scaled::new(mean, variance, total);
        let excess = total.ln() + now.log_probability - first.ln();
        let right = (-now.deviation * first * excess.exp() * excess, -now.product.ln());
        let (mut u, mut w) = now.solve(right.0, right.1);
        let shorter = (LARGEST / w.abs()).min(1.0);
        (u, w) = (shorter * u, shorter * w);
        // The root is not positive; a step there would leave the range of the expectations.
        let moved = (mean + now.deviation * u).min(0.0);
        let still = u.abs() < SMALL || (moved - mean).abs() <= 1e-13 * mean.abs();
        (mean, variance) = (moved, variance * w.exp());
        if still && w.abs() < SMALL {
            let slopes = Scaled::new(mean, variance, total).slopes();
            // Newton's method leaves some 1e-16.
            let mean = if first == second { 0.0 } else { mean };
            return Fit { observation: PseudoObservation { target: mean, variance }, slopes, newton_steps };
        }
        if !(mean.is_finite() && variance.is_finite()) {
            break;
        }
    }
    Fit::closed((f64::NAN, [f64::NAN; 2]), (f64::NAN, [f64::NAN; 2]))
}

/// Where Newton's method begins: the Gaussian of a normal distribution function in the place of the logistic one where that is wide
/// enough to be nearly a step, else the difference of the variational Gaussians of two log-Gamma variables.
fn start(first: f64, second: f64) -> (f64, f64) {
    let total = first + second;
    let z = quantile(first.ln() - total.ln());
    let step_width = (-total.ln() - log_density(z)).exp();
    if step_width > 1.0 && first * z * z < 1.0 {
        let variance = step_width * step_width + 1.0;
        return (z * variance.sqrt(), variance);
    }
    let PseudoObservation { target, variance } = difference_of_log_gammas(first, second).observation;
    (target, variance)
}

/// `log ω - log (1 - ω)` as if both were independent logarithms of Gamma variables with shapes `α` and `β`, which have variational Gaussians
/// in closed form: right for large numbers, up to a share of `1/α` of the variance.
fn difference_of_log_gammas(first: f64, second: f64) -> Fit<2> {
    let (a, b) = (1.0 / first, 1.0 / second);
    let target = first.ln() - second.ln() - 0.5 * a + 0.5 * b;
    Fit::closed((target, [a + 0.5 * a * a, -b - 0.5 * b * b]), (a + b, [-a * a, -b * b]))
}

/// Roughly the z with `log Φ(z) = log_probability`, not above log ½. Newton's method on a concave function from the left: every step stays
/// there.
fn quantile(log_probability: f64) -> f64 {
    let mut z = -(-2.0 * (log_probability + std::f64::consts::LN_2)).max(0.0).sqrt();
    for _ in 0..6 {
        z += (log_probability - log_distribution(z)) / inverse_mills(z).0;
    }
    z.min(0.0)
}

/// The equations at one Gaussian, in units in which their derivatives are of the order of one.
struct Scaled {
    deviation: f64,
    total: f64,
    log_probability: f64,
    /// `a = n s² E φ'`.
    product: f64,
    first: f64,
    second: f64,
}

impl Scaled {
    fn new(mean: f64, variance: f64, total: f64) -> Self {
        let deviation = variance.sqrt();
        let Expectations { log_probability, log_slope, first, second } = Expectations::new(mean, deviation);
        let product = (total.ln() + variance.ln() + log_slope).exp();
        Self { deviation, total, log_probability, product, first, second }
    }

    /// `u` and `w` of the module text for any right-hand side.
    fn solve(&self, toward_mean: f64, toward_variance: f64) -> (f64, f64) {
        let (a, m) = (self.product, self.first);
        let determinant = 0.5 * a * (1.0 + self.second - m * m);
        let u = 0.5 * (1.0 + self.second) * toward_mean - 0.5 * a * m * toward_variance;
        let w = a * toward_variance - m * toward_mean;
        (u / determinant, w / determinant)
    }

    /// Slopes of mean and variance in `α` and `β`, at the root.
    fn slopes(&self) -> [PseudoSlopes; 2] {
        let (s, p) = (self.deviation, self.log_probability.exp());
        // d(n Eφ - α) is Eφ - 1 in α and Eφ in β; d log(n s² E φ') is 1/n in both.
        [s * (1.0 - p), -s * p].map(|right| {
            let (u, w) = self.solve(right, -1.0 / self.total);
            PseudoSlopes { target: s * u, variance: s * s * w }
        })
    }
}
