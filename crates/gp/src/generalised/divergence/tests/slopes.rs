//! Slopes of single points by finite differences.

use super::{all, near, normal, slope, value};
use crate::generalised::divergence::Divergence;

#[test]
fn slopes_are_those_of_the_values() {
    for divergence in all().into_iter().chain([0.3, 2.5].map(|order| Divergence::Renyi { order })) {
        for prior in [(0.4, 2.25), (-1.0, 0.07)] {
            for (mean, variance) in
                [(-0.3, 0.49), (0.41, 2.2), (0.9, 0.08), (-1.0, 0.05), (2.0, 3.3), (0.1, 0.01)]
            {
                let found = divergence.between(normal(prior), normal((mean, variance)));
                if variance >= divergence.largest_variance(prior.1) {
                    assert_eq!((found.value, found.mean, found.variance), (f64::INFINITY, 0.0, 0.0));
                    continue;
                }
                // The values are exact to the last digits, so steps balance ε against the fourth order.
                // Nor may they come near a kink.
                let share = if divergence == Divergence::SymmetricKullbackLeibler { 2.5e-5 } else { 5e-4 };
                let room = divergence.largest_variance(prior.1) - variance;
                let step = share * variance.min(room);
                let numeric = slope(step, |t| value(divergence, prior, (mean, variance + t)));
                let scale = found.value / variance;
                let name = format!("{divergence} at {prior:?}, {mean}, {variance}");
                near(&format!("variance, {name}"), found.variance / scale, numeric / scale, 1e-10);
                let step = share * variance.sqrt();
                let numeric = slope(step, |t| value(divergence, prior, (mean + t, variance)));
                let scale = found.value / variance.sqrt();
                near(&format!("mean, {name}"), found.mean / scale, numeric / scale, 1e-10);
            }
        }
    }
}

#[test]
fn the_largest_variance_is_where_the_divergence_ends() {
    let divergence = Divergence::Renyi { order: 1.4 };
    let largest = divergence.largest_variance(2.25);
    assert!((largest - 7.875).abs() < 1e-14);
    let inside = divergence.between(normal((0.0, 2.25)), normal((0.1, largest * (1.0 - 1e-12))));
    assert!(inside.value.is_finite() && inside.mean.is_finite() && inside.variance > 0.0);
    let outside = divergence.between(normal((0.0, 2.25)), normal((0.1, largest * (1.0 + 1e-12))));
    assert_eq!((outside.value, outside.mean, outside.variance), (f64::INFINITY, 0.0, 0.0));
    assert_eq!(Divergence::Renyi { order: 0.9 }.largest_variance(1.0), f64::INFINITY);
    assert_eq!(Divergence::Hellinger.largest_variance(1.0), f64::INFINITY);
}
