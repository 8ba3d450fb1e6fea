//! The trait from the side of someone who adds a likelihood, and the Gaussian against simulation.

use posterior_likelihoods::{GaussHermite, Gaussian, Likelihood, Slopes};
use posterior_linalg::random::Streams;
use posterior_optim::{Parameters, Segment, Transform, check};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Normal};

/// Counts: `y ~ Poisson(exp(f))`. What a new likelihood has to write; its expectation is the default one.
#[derive(Clone, Debug)]
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
    fn outputs(&self) -> usize {
        1
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        let log_factorial: f64 = (1..=y[0] as u64).map(|k| (k as f64).ln()).sum();
        y[0] * f[0] - f[0].exp() - log_factorial
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        out[0] = y[0] - f[0].exp();
    }
    fn curvature_entries(&self, _: &[f64], f: &[f64], out: &mut [f64]) {
        out[0] = f[0].exp();
    }
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        (mean[0], variance[0]) = (f[0].exp(), f[0].exp());
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        let (mut left, mut count) = (f[0].exp(), 0.0);
        while left > 0.0 {
            left += rng.random::<f64>().ln();
            count += 1.0;
        }
        out[0] = count - 1.0;
    }
}

/// Two latent values that are not independent: `y ~ N(f_1 + f_2, 1)`.
#[derive(Clone, Debug)]
struct Sum;

impl Parameters for Sum {
    fn segments(&self) -> Vec<Segment> {
        Vec::new()
    }
    fn values(&self) -> Vec<f64> {
        Vec::new()
    }
    fn set_values(&mut self, _: &[f64]) {}
}

impl Likelihood for Sum {
    fn outputs(&self) -> usize {
        2
    }
    fn target_width(&self) -> usize {
        1
    }
    fn is_diagonal(&self) -> bool {
        false
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        Gaussian::new(1.0, 0.0).log_density(y, &[f[0] + f[1]])
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        out.fill(y[0] - f[0] - f[1]);
    }
    fn curvature_entries(&self, _: &[f64], _: &[f64], out: &mut [f64]) {
        out.fill(1.0);
    }
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        (mean[0], variance[0]) = (f[0] + f[1], 1.0);
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        Gaussian::new(1.0, 0.0).sample(&[f[0] + f[1]], rng, out);
    }
}

/// The expectation with its slopes in mean and variance.
fn expect(likelihood: &dyn Likelihood, y: f64, mean: &[f64], variance: &[f64]) -> (f64, Vec<f64>) {
    let (mut means, mut variances) = (vec![0.0; mean.len()], vec![0.0; mean.len()]);
    let mut parameters = vec![0.0; likelihood.values().len()];
    let gradient = Slopes { means: &mut means, variances: &mut variances, parameters: &mut parameters };
    let value = likelihood.expected_log_density(&[y], mean, variance, gradient);
    (value, [means, variances].concat())
}

/// Mean and variance of one number.
fn moments(likelihood: &dyn Likelihood, mean: &[f64], variance: &[f64]) -> [f64; 2] {
    let (mut m, mut v) = ([0.0], [0.0]);
    likelihood.predictive_moments(mean, variance, (&mut m, &mut v));
    [m[0], v[0]]
}

#[test]
fn the_default_expectation_of_a_likelihood_without_noise_is_its_closed_form() {
    // E[y f - exp(f) - ln y!] = y m - exp(m + v/2) - ln y!
    for (y, mean, variance) in [(0.0, -0.3, 0.2), (4.0, 1.2, 0.6), (9.0, 0.5, 1.5)] {
        let closed = |m: f64, v: f64| y * m - (m + 0.5 * v).exp() + Poisson.log_density(&[y], &[0.0]) + 1.0;
        let (value, slopes) = expect(&Poisson, y, &[mean], &[variance]);
        check::assert_close(&[value], &[closed(mean, variance)], 1e-11, 1e-11);
        let numeric = check::gradient(|p| closed(p[0], p[1]), &[mean, variance]);
        check::assert_close(&slopes, &numeric, 1e-8, 1e-8);
    }
}

#[test]
fn predictive_moments_match_quadrature_over_the_latent_value() {
    // Law of total variance with the conditional moments of each likelihood.
    let gaussian = Gaussian::new(0.4, 1e-6);
    let (mean, variance) = (0.7, 0.3);
    let by_quadrature = |conditional: &dyn Fn(f64) -> (f64, f64)| {
        let rule = GaussHermite::standard();
        let average =
            |g: &dyn Fn(f64) -> f64| -> f64 { rule.nodes(mean, variance).map(|(f, w)| w * g(f)).sum() };
        let first = average(&|f| conditional(f).0);
        let second = average(&|f| conditional(f).0.powi(2) + conditional(f).1);
        [first, second - first * first]
    };
    let counts = posterior_likelihoods::Poisson::new(1).unwrap();
    for (likelihood, conditional) in [
        (&gaussian as &dyn Likelihood, &(|f: f64| (f, 0.4)) as &dyn Fn(f64) -> (f64, f64)),
        (&Poisson, &|f: f64| (f.exp(), f.exp())),
        (&counts, &|f: f64| (f.exp(), f.exp())),
    ] {
        let found = moments(likelihood, &[mean], &[variance]);
        check::assert_close(&found, &by_quadrature(conditional), 1e-10, 1e-10);
    }
}

#[test]
fn latent_values_that_meet_in_one_number() {
    let (mean, variance) = ([0.4, -0.9], [0.5, 1.3]);
    // A Gaussian with the sum of means and variances.
    let (value, slopes) = expect(&Sum, 1.1, &mean, &variance);
    let (expected, one) = expect(&Gaussian::new(1.0, 0.0), 1.1, &[-0.5], &[1.8]);
    check::assert_close(&[value], &[expected], 1e-11, 0.0);
    check::assert_close(&slopes, &[one[0], one[0], one[1], one[1]], 1e-11, 0.0);
    check::assert_close(&moments(&Sum, &mean, &variance), &[-0.5, 2.8], 1e-11, 0.0);
    let found = Sum.log_predictive_density(&[1.1], &mean, &variance);
    let expected = Gaussian::new(2.8, 0.0).log_density(&[1.1], &[-0.5]);
    check::assert_close(&[found], &[expected], 1e-6, 0.0);
    // Its curvature has rank one; products and root follow from its entries.
    let (mut product, mut root) = ([0.0; 2], [0.0; 4]);
    Sum.curvature_product(&[1.1], &mean, &[2.0, 5.0], &mut product);
    assert_eq!(product, [7.0; 2]);
    Sum.root(&[1.1], &mean, &mut root);
    let square: Vec<f64> = (0..4)
        .map(|k| root[k / 2 * 2] * root[k % 2 * 2] + root[k / 2 * 2 + 1] * root[k % 2 * 2 + 1])
        .collect();
    check::assert_close(&square, &[1.0; 4], 1e-12, 0.0);
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
            (gaussian.log_density(&[y], &[f]), f + noise.sample(&mut rng))
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
    let expected = expect(&gaussian, y, &[mean], &[variance]).0;
    assert!((average - expected).abs() < tolerance, "{average} against {expected}, {tolerance}");
    let (average, spread, tolerance) = summary(&|d| d.1);
    let found = moments(&gaussian, &[mean], &[variance]);
    assert!((average - found[0]).abs() < tolerance);
    assert!((spread - found[1]).abs() < 5.0 * found[1] * (2.0 / count as f64).sqrt());
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
        moved.log_density(&[0.9], &[0.2])
    };
    // d log N / dσ² = -1/(2σ²) + (y - f)²/(2σ⁴)
    let (s, r) = (0.4, 0.7);
    let natural = -0.5 / s + 0.5 * r * r / (s * s);
    let chained = Gaussian::new(0.4, 0.1).chain(&theta, &[natural]);
    check::assert_close(&chained, &check::gradient(objective, &theta), 1e-8, 1e-9);
}
