//! Expectations under a **tilted** density `exp(g) / ∫ exp(g)` on the line: what slopes of `log ∫ exp(g)` are made of.

use crate::predictive::significant;

/// Intervals of a round of the search, and the least number of the final rule.
const INTERVALS: (usize, usize) = (64, 128);
/// The largest step of the final rule; integrands are analytic for `|Im x| < π/2` at least, so that the error is below `exp(-π²/0.3)`.
const STEP: f64 = 0.3;
/// The most intervals of the final rule.
const MOST: f64 = 16_384.0;

/// A normalised rule for a tilted density.
pub(crate) struct Tilted {
    /// `log ∫ exp(g)`.
    pub(crate) log_integral: f64,
    nodes: Vec<(f64, f64)>,
}

impl Tilted {
    /// Of g over `[low, high]`, outside which it must be negligible. The trapezoid rule, which converges exponentially for analytic integrands that vanish at both ends
    /// (Trefethen and Weideman 2014), on the part that matters. Some 300 evaluations.
    pub(crate) fn new(low: f64, high: f64, g: impl Fn(f64) -> f64) -> Self {
        let (low, high) = match significant(low, high, INTERVALS.0, &g) {
            Ok(range) => range,
            Err(peak) => return Self { log_integral: peak, nodes: vec![(low, f64::NAN)] },
        };
        let n = ((high - low) / STEP).clamp(INTERVALS.1 as f64, MOST) as usize;
        let at = |i: usize| low + (high - low) * (i as f64 / n as f64);
        let mut nodes: Vec<(f64, f64)> = (0..=n).map(|i| (at(i), g(at(i)))).collect();
        let peak = nodes.iter().map(|node| node.1).fold(f64::NEG_INFINITY, f64::max);
        nodes.iter_mut().for_each(|node| node.1 = (node.1 - peak).exp());
        let total: f64 = nodes.iter().map(|node| node.1).sum();
        nodes.iter_mut().for_each(|node| node.1 /= total);
        Self { log_integral: peak + (total * (high - low) / n as f64).ln(), nodes }
    }

    /// Visits all nodes with weights that sum to one.
    pub(crate) fn visit(&self, mut each: impl FnMut(f64, f64)) {
        self.nodes.iter().for_each(|&(x, weight)| each(x, weight));
    }
}

/// The energy `-(1/α) log E[exp(α l(f))]` for one latent value `f ~ N(mean, variance)` with its slopes in both, α > 0; `each` gives l, its first derivative and the
/// negative of its second. `reach` are the least and the largest f between which the tilted density can have its peak; `also` is shown its nodes.
pub(crate) fn one_dimensional(
    alpha: f64,
    (mean, variance): (f64, f64),
    reach: (f64, f64),
    each: impl Fn(f64) -> (f64, f64, f64),
    mut also: impl FnMut(f64, f64),
) -> (f64, f64, f64) {
    /// Deviations beyond which the Gaussian weighs less than rounding.
    const DEVIATIONS: f64 = 9.5;
    if variance <= 0.0 {
        let (value, slope, bend) = each(mean);
        also(mean, 1.0);
        return (-value, -slope, 0.5 * (bend - alpha * slope * slope));
    }
    let deviation = variance.sqrt();
    // In deviations from the mean, so that narrow Gaussians far from zero do not lose their width.
    let x = |f: f64| (f - mean) / deviation;
    let rule = Tilted::new(x(reach.0.min(mean)) - DEVIATIONS, x(reach.1.max(mean)) + DEVIATIONS, |x| {
        alpha * each(mean + deviation * x).0 - 0.5 * x * x
    });
    let (mut toward_mean, mut toward_variance) = (0.0, 0.0);
    rule.visit(|x, weight| {
        let (_, slope, bend) = each(mean + deviation * x);
        also(mean + deviation * x, weight);
        toward_mean -= weight * slope;
        toward_variance += 0.5 * weight * (bend - alpha * slope * slope);
    });
    let log_expectation = rule.log_integral - 0.5 * (2.0 * std::f64::consts::PI).ln();
    (-log_expectation / alpha, toward_mean, toward_variance)
}
