//! The variational Gaussian of a Beta variable: references, steps, and extremes.

use super::super::logistic::Expectations;
use super::*;
use crate::special::normal_tail::distribution;
use crate::special::softmax::{sigmoid, softplus};

/// `(α, β, μ, s²)`: roots of both equations, with integrals of 25 digits.
const REFERENCE: [(f64, f64, f64, f64); 6] = [
    (0.1, 1.1, -8.28061872284658, 32.59252961003611),
    (0.01, 1.01, -87.54937403947727, 1404.0206574261715),
    (2.0, 40.0, -3.233762482622658, 0.5402150679435652),
    (0.5, 10.5, -4.026407588021646, 2.434551688860744),
    (0.1, 1_000_000.1, -21.122463300322373, 10.011500593458997),
    (0.01, 1_000_000.01, -98.2159624936459, 302.89127459794474),
];

#[test]
fn roots_with_twenty_five_digits() {
    for (a, b, mean, variance) in REFERENCE {
        assert_close(&pair(&beta(Matching::Variational, a, b).unwrap()), &[mean, variance], 1e-13, 0.0);
        let mirrored = beta(Matching::Variational, b, a).unwrap();
        assert_close(&pair(&mirrored), &[-mean, variance], 1e-13, 0.0);
    }
    let even = beta(Matching::Variational, 3.0, 3.0).unwrap();
    assert_close(&pair(&even), &[0.0, 0.7790447151437438], 1e-13, 0.0);
}

#[test]
fn five_steps_are_enough() {
    let steps = |a: f64, b: f64| {
        let fit = beta(Matching::Variational, a, b).unwrap();
        assert!(fit.newton_steps <= 5, "{a} {b}: {}", fit.newton_steps);
        let [m, v] = pair(&fit);
        // Both equations, and slopes with the signs that a pseudo-count has.
        let (low, high) = (a.min(b), a.max(b));
        let now = Expectations::new(-m.abs(), v.sqrt());
        assert!((now.log_probability - low.ln() + (low + high).ln()).abs() < 1e-11, "{a} {b}");
        assert!(((a + b).ln() + v.ln() + now.log_slope).abs() < 1e-11, "{a} {b}");
        assert!(fit.slopes[0].target > 0.0 && fit.slopes[1].target < 0.0);
    };
    for i in 0..=60 {
        let pseudo_count = 1e-3 * 5e4f64.powf(f64::from(i) / 60.0);
        // Events, and no event at all.
        steps(pseudo_count + 1.0, pseudo_count);
        steps(pseudo_count, pseudo_count);
        for trials in [2.0, 5.0, 30.0, 1e3, 1e4, 1e5, 1e6] {
            for share in [0.0, 0.003, 0.1, 0.5, 0.9, 1.0] {
                let successes = f64::floor(share * trials);
                steps(pseudo_count + successes, pseudo_count + trials - successes);
            }
        }
    }
}

#[test]
fn extreme_pairs_end_in_a_gaussian_or_an_error() {
    let mut refused = 0;
    for i in 0..=60 {
        for j in 0..=60 {
            let (a, b) = (10f64.powi(10 * i - 300), 10f64.powi(10 * j - 300));
            match beta(Matching::Variational, a, b) {
                Ok(fit) => {
                    assert!(fit.observation.variance > 0.0 && fit.observation.target.is_finite());
                    assert!(fit.slopes.iter().all(|s| s.target.is_finite() && s.variance.is_finite()));
                }
                Err(error) => {
                    refused += 1;
                    assert!(a.min(b) < 1e-99, "{a:e} {b:e}: {error}");
                }
            }
        }
    }
    assert!(refused > 0);
    // Where the closed form of large numbers begins.
    for ratio in [1.0, 3.0, 1e4] {
        let at = |first: f64| beta(Matching::Variational, first, ratio * first).unwrap();
        let (below, above) = (at(0.999e15), at(1.001e15));
        assert!(below.newton_steps > 0 && above.newton_steps == 0);
        let shrinks = 0.999 / 1.001;
        assert_close(&[above.observation.variance], &[shrinks * below.observation.variance], 1e-12, 0.0);
        assert_close(&[above.observation.target], &[below.observation.target], 1e-14, 1e-14);
        // Slopes of the variance are differences of numbers of the size of v / (α + β).
        let rounding = 1e-13 * above.observation.variance / (1e15 * (1.0 + ratio));
        for (a, b) in above.slopes.iter().zip(below.slopes) {
            assert_close(&[a.target], &[shrinks * b.target], 1e-12, 0.0);
            assert_close(&[a.variance], &[shrinks * shrinks * b.variance], 1e-12, rounding);
        }
    }
}

/// Sums on a fine grid that reaches to where all integrands are negligible.
#[test]
fn expectations_of_narrow_and_wide_gaussians_against_sums() {
    for deviation in [1e-3, 0.5, 2.999, 3.001, 12.0, 150.0] {
        for mean in [0.0, -1.0, -20.0, -60.0] {
            let step = f64::min(deviation / 40.0, 0.05);
            let furthest = f64::min(deviation * deviation, -mean) + 13.0 * deviation;
            let nodes = (0..).map(|k| step * f64::from(k) - 13.0 * deviation).take_while(|d| *d < furthest);
            let (mut value, mut slope, mut first, mut second) = (0.0, 0.0, 0.0, 0.0);
            for d in nodes {
                let (t, x) = (mean + d, d / deviation);
                let weight = step * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt() / deviation;
                let rise = weight * (-softplus(t) - softplus(-t)).exp();
                value += weight * sigmoid(t);
                slope += rise;
                first += rise * x;
                second += rise * x * x;
            }
            let found = Expectations::new(mean, deviation);
            let values = [found.log_probability.exp(), found.log_slope.exp()];
            assert_close(&values, &[value, slope], 1e-12, 0.0);
            assert_close(&[found.first, found.second], &[first / slope, second / slope], 1e-11, 1e-12);
        }
    }
    // Nearly a step: E φ = Φ(μ/s) + O(1/s²), and its slope is the density of the Gaussian at zero.
    let found = Expectations::new(-2e6, 1e6);
    assert_close(&[found.log_probability.exp()], &[distribution(-2.0)], 1e-11, 0.0);
    let density = (-2f64).exp() / (2.0 * std::f64::consts::PI).sqrt() / 1e6;
    assert_close(&[found.log_slope.exp(), found.first, found.second], &[density, 2.0, 4.0], 1e-11, 0.0);
}

/// The mass of `φ(ψ) N(ψ; μ, s²)` stands `s` deviations above the mean while that is below zero, so that a window of ten deviations about
/// the mean cuts off what lies `10 - s` deviations beyond it.
#[test]
fn a_window_of_ten_deviations_about_the_mean_loses_mass_where_successes_are_rare() {
    for (pseudo_count, failures, least, most) in [(0.1, 1e6, -1e-12, 1e-12), (0.02, 1e20, 1e-3, 1e-2)] {
        let (a, b) = (pseudo_count, failures + pseudo_count);
        let [mean, variance] = pair(&beta(Matching::Variational, a, b).unwrap());
        let deviation = variance.sqrt();
        let step = f64::min(0.5, deviation / 4.0);
        let side = (10.0 * deviation / step) as i64;
        let (mut total, mut value) = (0.0, 0.0);
        for k in -side..=side {
            let d = step * k as f64;
            let weight = (-0.5 * d * d / variance).exp();
            total += weight;
            value += weight * sigmoid(mean + d);
        }
        let share = a / (a + b);
        let lost = 1.0 - value / total / share;
        let whole = Expectations::new(mean, deviation).log_probability.exp();
        assert!((least..most).contains(&lost), "{mean} {variance} {lost:e}");
        assert_close(&[whole], &[share], 1e-12, 0.0);
    }
}
