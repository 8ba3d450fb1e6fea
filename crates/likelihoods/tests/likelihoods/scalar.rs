//! The trait from the side of someone who adds a likelihood, and the Gaussian against simulation.

use posterior_likelihoods::{GaussHermite, Gaussian, Likelihood, Moments};
use posterior_linalg::random::Streams;
use posterior_optim::{Parameters, Segment, Transform, check};
use rand_distr::{Distribution, Normal};

/// Counts: `y ~ Poisson(exp(f))`. What a new likelihood has to write; its expectation is the default one.
struct Poisson;

impl Parameters for Poisson {
    fn segments(&self) -> Vec<Segment> {
        Vec::new()
    }
    fn values(&self) -> Vec<f64> {
        Vec::new()
    }
    fn set_values(&mut self, _: &[f64]) {}
}

impl Likelihood for Poisson {
    fn log_density(&self, y: f64, f: f64) -> f64 {
        let log_factorial: f64 = (1..=y as u64).map(|k| (k as f64).ln()).sum();
        y * f - f.exp() - log_factorial
    }
    fn derivatives(&self, y: f64, f: f64) -> (f64, f64) {
        (y - f.exp(), -f.exp())
    }
    fn predictive(&self, mean: f64, variance: f64) -> Moments {
        // Moments of a log-normal rate, plus the scatter of the counts around it.
        let rate = (mean + 0.5 * variance).exp();
        Moments { mean: rate, variance: rate + rate * rate * variance.exp_m1() }
    }
}

#[test]
fn the_default_expectation_of_a_likelihood_without_noise_is_its_closed_form() {
    // E[y f - exp(f) - ln y!] = y m - exp(m + v/2) - ln y!
    for (y, mean, variance) in [(0.0, -0.3, 0.2), (4.0, 1.2, 0.6), (9.0, 0.5, 1.5)] {
        let closed = |m: f64, v: f64| y * m - (m + 0.5 * v).exp() + Poisson.log_density(y, 0.0) + 1.0;
        let found = Poisson.expected_log_density(y, mean, variance);
        check::assert_close(&[found.value], &[closed(mean, variance)], 1e-11, 1e-11);
        let slopes = check::gradient(|p| closed(p[0], p[1]), &[mean, variance]);
        check::assert_close(&[found.mean_slope, found.variance_slope], &slopes, 1e-8, 1e-8);
    }
}

#[test]
fn predictive_moments_match_quadrature_over_the_latent_value() {
    // Law of total variance with the conditional moments of each likelihood.
    let gaussian = Gaussian::new(0.4, 1e-6);
    let (mean, variance) = (0.7, 0.3);
    let moments = |conditional: &dyn Fn(f64) -> (f64, f64)| {
        let rule = GaussHermite::standard();
        let average =
            |g: &dyn Fn(f64) -> f64| -> f64 { rule.nodes(mean, variance).map(|(f, w)| w * g(f)).sum() };
        let first = average(&|f| conditional(f).0);
        let second = average(&|f| conditional(f).0.powi(2) + conditional(f).1);
        [first, second - first * first]
    };
    for (found, conditional) in [
        (gaussian.predictive(mean, variance), &(|f: f64| (f, 0.4)) as &dyn Fn(f64) -> (f64, f64)),
        (Poisson.predictive(mean, variance), &|f: f64| (f.exp(), f.exp())),
    ] {
        check::assert_close(&[found.mean, found.variance], &moments(conditional), 1e-10, 1e-10);
    }
}

#[test]
fn the_gaussian_agrees_with_simulation() {
    let gaussian = Gaussian::new(0.4, 1e-6);
    let (y, mean, variance, count) = (1.1, 0.3, 0.5, 200_000);
    let mut rng = Streams::new(11).stream("likelihoods/simulation");
    let latent = Normal::new(mean, f64::sqrt(variance)).unwrap();
    let noise = Normal::new(0.0, f64::sqrt(0.4)).unwrap();
    let draws: Vec<(f64, f64)> = (0..count)
        .map(|_| {
            let f = latent.sample(&mut rng);
            (gaussian.log_density(y, f), f + noise.sample(&mut rng))
        })
        .collect();
    // Five standard errors, estimated from the draws themselves; for a variance of normal draws v √(2/n).
    let summary = |pick: &dyn Fn(&(f64, f64)) -> f64| {
        let n = count as f64;
        let average = draws.iter().map(pick).sum::<f64>() / n;
        let spread = draws.iter().map(|d| (pick(d) - average).powi(2)).sum::<f64>() / (n - 1.0);
        (average, spread, 5.0 * (spread / n).sqrt())
    };
    let (average, _, tolerance) = summary(&|d| d.0);
    let expected = gaussian.expected_log_density(y, mean, variance).value;
    assert!((average - expected).abs() < tolerance, "{average} against {expected}, {tolerance}");
    let (average, spread, tolerance) = summary(&|d| d.1);
    let found = gaussian.predictive(mean, variance);
    assert!((average - found.mean).abs() < tolerance);
    assert!((spread - found.variance).abs() < 5.0 * found.variance * (2.0 / count as f64).sqrt());
}

#[test]
fn the_noise_is_trained_above_its_floor() {
    let mut gaussian = Gaussian::new(0.4, 0.1);
    assert_eq!(gaussian.segments()[0].transform, Transform::LogAbove { lower: 0.1 });
    let theta = gaussian.unconstrained();
    gaussian.set_unconstrained(&theta);
    assert!((gaussian.noise_variance() - 0.4).abs() < 1e-15);
    for far in [-50.0, -700.0] {
        gaussian.set_unconstrained(&[far]);
        assert!(
            gaussian.noise_variance() > 0.1,
            "the floor itself is not a value that can be stored and read again"
        );
        // So that a fitted noise can always be made into a likelihood again.
        let again = Gaussian::new(gaussian.noise_variance(), gaussian.floor());
        assert_eq!(again, gaussian);
    }
    let objective = |theta: &[f64]| {
        let mut moved = Gaussian::new(0.4, 0.1);
        moved.set_unconstrained(theta);
        moved.log_density(0.9, 0.2)
    };
    // d log N / dσ² = -1/(2σ²) + (y - f)²/(2σ⁴)
    let (s, r) = (0.4, 0.7);
    let natural = -0.5 / s + 0.5 * r * r / (s * s);
    let chained = Gaussian::new(0.4, 0.1).chain(&theta, &[natural]);
    check::assert_close(&chained, &check::gradient(objective, &theta), 1e-8, 1e-9);
}
