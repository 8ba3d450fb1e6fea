//! Expectations under a Gaussian by the **trapezoid rule**, which converges exponentially for analytic integrands.
//!
//! The error is of the order of `exp(-2π²/h²)` from the Gaussian, for a step of h deviations, and `exp(-2π d/H)` for a step of
//! H units where the integrand is analytic for `|Im f| < d` (Trefethen and Weideman 2014). Unlike Gauss-Hermite rules of fixed
//! size it stays accurate where the deviation is large beside the scale on which the integrand bends.

use std::f64::consts::PI;

/// Deviations on both sides: what lies beyond weighs 1e-16.
const REACH: f64 = 8.3;
/// The largest step in deviations: the error of the Gaussian itself is exp(-79).
const STEP: f64 = 0.5;
/// Most nodes on each side. Reached for deviations of thousands of steps only, where log densities are straight lines.
const MOST: f64 = 4096.0;

/// `(f, weight)` with steps of at most `step` units of f; the weights sum to one. A variance below zero, as rounding makes it,
/// counts as zero; NaN and infinities go through to the nodes.
pub(crate) fn nodes(mean: f64, variance: f64, step: f64) -> impl Iterator<Item = (f64, f64)> {
    nodes_reaching(mean, variance, step, mean)
}

/// As [`nodes`], with as many more to the right as lie between the mean and `furthest`: for integrands that grow so fast that the peak of
/// their product with the density is there.
pub(crate) fn nodes_reaching(
    mean: f64,
    variance: f64,
    step: f64,
    furthest: f64,
) -> impl Iterator<Item = (f64, f64)> {
    let deviation = if variance < 0.0 { 0.0 } else { variance.sqrt() };
    let wanted = if deviation * STEP > step { step / deviation } else { STEP };
    // A NaN or infinite deviation takes the coarse rule, and its nodes are not finite.
    let side = (REACH / wanted).ceil().min(MOST);
    let step = if side == MOST { REACH / MOST } else { wanted };
    // Without a deviation there is nowhere to go: NaN becomes 0.
    let further = ((furthest - mean) / (deviation * step)).ceil().clamp(0.0, MOST);
    (-(side as i64)..=side as i64 + further as i64).map(move |k| {
        let x = step * k as f64;
        (mean + deviation * x, step * (-0.5 * x * x).exp() / (2.0 * PI).sqrt())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_one_and_smooth_functions_are_integrated() {
        for variance in [0.0, 1e-9, 0.3, 1.0, 50.0, 1e6, 1e12] {
            let total: f64 = nodes(0.4, variance, 0.6).map(|(_, w)| w).sum();
            assert!((total - 1.0).abs() < 1e-13, "{variance}: {total}");
            let second: f64 = nodes(0.4, variance, 0.6).map(|(f, w)| w * (f - 0.4) * (f - 0.4)).sum();
            assert!((second - variance).abs() <= 1e-12 * variance, "{variance}: {second}");
        }
        let value: f64 = nodes(0.3, 0.7, 0.6).map(|(f, w)| w * f.exp()).sum();
        assert!((value - (0.3f64 + 0.35).exp()).abs() < 1e-13);
    }

    #[test]
    fn growing_functions_need_nodes_at_their_peak() {
        // The peak of exp(f) times the density is at mean + variance.
        for variance in [0.3, 4.0, 100.0] {
            let exact = (-0.7f64 + 0.5 * variance).exp();
            let sum = |furthest| -> f64 {
                nodes_reaching(-0.7, variance, 0.6, furthest).map(|(f, w)| w * f.exp()).sum()
            };
            assert!((sum(-0.7 + variance) / exact - 1.0).abs() < 1e-13, "{variance}");
        }
        assert!(nodes_reaching(1.5, 0.0, 0.6, 2.0).all(|(f, _)| f == 1.5));
        assert_eq!(nodes_reaching(1.5, 1.0, 0.6, 0.0).count(), nodes(1.5, 1.0, 0.6).count());
    }

    #[test]
    fn hostile_arguments_end() {
        assert!(nodes(1.5, -1e-18, 0.6).all(|(f, _)| f == 1.5));
        assert!(nodes(1.5, f64::NAN, 0.6).any(|(f, _)| f.is_nan()));
        assert!(nodes(1.5, f64::INFINITY, 0.6).count() < 10_000);
    }
}
