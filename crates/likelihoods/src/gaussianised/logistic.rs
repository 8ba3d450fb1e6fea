//! Expectations of the logistic function `φ` and of its slope under a Gaussian, with relative accuracy near rounding however small they
//! are and however wide the Gaussian.
//!
//! All are integrals of log-concave functions by the trapezoid rule, over the part that matters. Windows of fixed size about the mean or
//! Gauss-Hermite rules are for moderate cases: where `φ` grows as `e^ψ`, the mass of `φ(ψ) N(ψ; μ, s²)` is `s` deviations from the mean, and
//! where the Gaussian is wide, `φ'` is a narrow peak somewhere in it. There, by parts,
//!
//! `E φ = ∫ φ'(t) Φ((μ - t)/s) dt`.

use crate::expectation::Tilted;
use crate::special::normal_tail::{inverse_mills, log_distribution};
use crate::special::softmax::{sigmoid, softplus};
use std::f64::consts::PI;

/// Up to this deviation nodes are spaced in deviations, beyond it in units of `ψ`.
const NARROW: f64 = 3.0;
/// Deviations that are kept.
const REACH: f64 = 9.5;
/// `φ'` falls as `e^{-|ψ|}` beyond 10: nats that are kept of it.
const DEPTH: f64 = 50.0;

/// Under `ψ ~ N(μ, s²)`, `μ <= 0`, with `x = (ψ - μ)/s`.
pub(super) struct Expectations {
    /// `log E φ`.
    pub(super) log_probability: f64,
    /// `log E φ'`.
    pub(super) log_slope: f64,
    /// The mean of `x` under the density `∝ φ'(ψ) N(ψ; μ, s²)`.
    pub(super) first: f64,
    /// The mean of `x²` under that density.
    pub(super) second: f64,
}

impl Expectations {
    /// About 800 evaluations of the integrands.
    pub(super) fn new(mean: f64, deviation: f64) -> Self {
        let (mut first, mut second) = (0.0, 0.0);
        if deviation <= NARROW {
            // In deviations, so that narrow Gaussians far from zero keep their width. A slope of one moves the peak by s deviations.
            let high = deviation + REACH;
            let at = |x: f64| mean + deviation * x;
            let slope = Tilted::new(-REACH, high, |x| log_slope(at(x)) - 0.5 * x * x);
            let value = Tilted::new(-REACH, high, |x| -softplus(-at(x)) - 0.5 * x * x);
            // By Stein's lemma: sums of x and x² - 1 themselves would cancel where φ' hardly bends.
            slope.visit(|x, weight| {
                let p = sigmoid(at(x));
                first += weight * deviation * (1.0 - 2.0 * p);
                second += weight * deviation * deviation * (1.0 - 6.0 * p * (1.0 - p));
            });
            second += 1.0;
            let normaliser = 0.5 * (2.0 * PI).ln();
            let log_probability = value.log_integral - normaliser;
            return Self { log_probability, log_slope: slope.log_integral - normaliser, first, second };
        }
        let x = |t: f64| (t - mean) / deviation;
        let peak = (mean + deviation * deviation).min(0.0);
        let high = (peak + REACH * deviation).min(10.0 + DEPTH);
        let low = left_end(-mean / (deviation * deviation)).max(mean - REACH * deviation);
        let slope = Tilted::new(low, high, |t| log_slope(t) - 0.5 * x(t) * x(t));
        slope.visit(|t, weight| {
            first += weight * x(t);
            second += weight * x(t) * x(t);
        });
        // Left of the mean the distribution function falls by less than 0.8 / s < 0.3 nats in a unit.
        let low = left_end(inverse_mills(mean / deviation).0 / deviation).max(mean - 10.0 - 1.5 * DEPTH);
        let value = Tilted::new(low, 10.0 + DEPTH, |t| log_slope(t) + log_distribution(-x(t)));
        Self {
            log_probability: value.log_integral,
            log_slope: slope.log_integral - 0.5 * (2.0 * PI).ln() - deviation.ln(),
            first,
            second,
        }
    }
}

/// `log φ'(t)`.
fn log_slope(t: f64) -> f64 {
    -softplus(t) - softplus(-t)
}

/// Where `φ'(t)` times a log-concave, falling function may be neglected to the left, when the latter falls by `fall` nats in a unit at
/// zero: the peak is right of where `φ'` rises by as much, and 10 units further the product rises by at least `1 - fall`. Minus
/// infinity where it may not rise.
fn left_end(fall: f64) -> f64 {
    let rise = 1.0 - fall;
    if rise > 0.0 { -((1.0 + fall) / rise).ln() - 10.0 - DEPTH / rise } else { f64::NEG_INFINITY }
}
