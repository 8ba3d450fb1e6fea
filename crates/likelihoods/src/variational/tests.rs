//! Expectations, predictions and slopes of every likelihood against Monte Carlo, brute force and finite differences.

use super::*;
use crate::Link;
use posterior_linalg::random::Streams;
use posterior_optim::check;
use rand_distr::{Distribution, StandardNormal};

/// Every likelihood with a target and as many latent values as it needs.
fn cases() -> Vec<(VariationalLikelihood, Vec<f64>, usize)> {
    vec![
        (VariationalLikelihood::Gaussian(Gaussian::new(0.3, 0.0)), vec![0.7, -1.0], 2),
        (VariationalLikelihood::Bernoulli(ScalarBernoulli { link: Link::Logit }), vec![1.0], 1),
        (VariationalLikelihood::Bernoulli(ScalarBernoulli { link: Link::Probit }), vec![0.0, 1.0], 2),
        (VariationalLikelihood::Poisson(ScalarPoisson), vec![4.0], 1),
        (VariationalLikelihood::StudentT(StudentT::new(0.2, 3.0).unwrap()), vec![1.9], 1),
        (VariationalLikelihood::Softmax(Categorical::new(4).unwrap()), vec![2.0], 4),
    ]
}

const MEAN: [f64; 4] = [0.4, -0.8, 1.3, 0.1];
const VARIANCE: [f64; 4] = [0.5, 1.4, 0.2, 2.5];

fn expect(likelihood: &VariationalLikelihood, y: &[f64], mean: &[f64], variance: &[f64]) -> (f64, Vec<f64>) {
    let (mut m, mut v) = (vec![0.0; mean.len()], vec![0.0; mean.len()]);
    let mut own = vec![0.0; likelihood.values().len()];
    let mut workspace = VariationalWorkspace::default();
    let value =
        likelihood.expected_log_density(y, 0.0, mean, variance, &mut m, &mut v, &mut own, &mut workspace);
    (value, [m, v, own].concat())
}

/// `log p(y | f)` by the point likelihoods.
fn log_density(likelihood: &VariationalLikelihood, y: &[f64], f: &[f64]) -> f64 {
    let sum = |l: &dyn Likelihood| y.iter().zip(f).map(|(&y, &f)| l.log_density(y, f)).sum();
    match likelihood {
        VariationalLikelihood::Gaussian(l) => sum(l),
        VariationalLikelihood::Bernoulli(l) => sum(l),
        VariationalLikelihood::Poisson(l) => sum(l),
        VariationalLikelihood::StudentT(l) => sum(l),
        VariationalLikelihood::Softmax(l) => l.log_density(y, f),
    }
}

#[test]
fn expectations_and_predictive_densities_agree_with_monte_carlo() {
    for (likelihood, y, latents) in cases() {
        let mut rng = Streams::new(3).stream(likelihood.name());
        let count = 200_000;
        let draws: Vec<f64> = (0..count)
            .map(|_| {
                let f: Vec<f64> = (0..latents)
                    .map(|c| {
                        let z: f64 = StandardNormal.sample(&mut rng);
                        MEAN[c] + VARIANCE[c].sqrt() * z
                    })
                    .collect();
                log_density(&likelihood, &y, &f)
            })
            .collect();
        let moments = |values: &dyn Fn(f64) -> f64| {
            let mean = draws.iter().map(|&d| values(d)).sum::<f64>() / f64::from(count);
            let variance = draws.iter().map(|&d| (values(d) - mean).powi(2)).sum::<f64>() / f64::from(count);
            (mean, (variance / f64::from(count)).sqrt())
        };
        let (mean, variance) = (&MEAN[..latents], &VARIANCE[..latents]);
        let (expected, error) = moments(&|d| d);
        let (found, _) = expect(&likelihood, &y, mean, variance);
        assert!((found - expected).abs() < 5.0 * error, "{}: {found} for {expected}", likelihood.name());
        let (expected, error) = moments(&f64::exp);
        let mut workspace = VariationalWorkspace::default();
        let found = likelihood.log_predictive_density(&y, 0.0, mean, variance, &mut workspace).exp();
        assert!((found - expected).abs() < 5.0 * error, "{}: {found} for {expected}", likelihood.name());
    }
}

#[test]
fn slopes_equal_finite_differences() {
    for (likelihood, y, latents) in cases() {
        let arguments = [&MEAN[..latents], &VARIANCE[..latents], &likelihood.values()].concat();
        let (_, slopes) = expect(&likelihood, &y, &arguments[..latents], &arguments[latents..2 * latents]);
        let numeric = check::gradient(
            |a| {
                let mut moved = likelihood;
                moved.set_values(&a[2 * latents..]);
                expect(&moved, &y, &a[..latents], &a[latents..2 * latents]).0
            },
            &arguments,
        );
        check::assert_close(&slopes, &numeric, 1e-7, 1e-8);
    }
}

#[test]
fn events_are_exact_where_the_deviation_is_large() {
    // log σ(f) is min(f, 0) less log(1 + exp(-|f|)), whose integral over the line is π²/6 and whose second moment is 3.79, so at mean
    // zero the expectation is -deviation · φ(0) - π²/6 · density + 1.9 · density / variance + ...
    let (variance, normal): (f64, f64) = (1e4, 1.0 / (2.0 * std::f64::consts::PI).sqrt());
    let logit = VariationalLikelihood::Bernoulli(ScalarBernoulli { link: Link::Logit });
    let density = normal / variance.sqrt();
    let expected = -variance.sqrt() * normal - std::f64::consts::PI.powi(2) / 6.0 * density;
    let (found, _) = expect(&logit, &[1.0], &[0.0], &[variance]);
    assert!((found - expected).abs() < 2.0 * density / variance, "{found} for {expected}");
}

#[test]
fn predictions_are_exact() {
    let mut workspace = VariationalWorkspace::default();
    let probit = VariationalLikelihood::Bernoulli(ScalarBernoulli { link: Link::Probit });
    let Prediction::Events(p) = probit.predict(&[0.4], &[1.7], &mut workspace) else { panic!("events") };
    assert!((p[0] - Link::Probit.expected_probability(0.4, 1.7)).abs() < 1e-13);
    // A normal mixture of Student's t, integrated directly.
    let t = StudentT::new(0.2, 3.0).unwrap();
    let found = VariationalLikelihood::StudentT(t).log_predictive_density(
        &[1.9],
        0.0,
        &[0.4],
        &[0.5],
        &mut workspace,
    );
    let direct: f64 = nodes(0.4, 0.5, 0.004).map(|(f, w)| w * t.log_density(1.9, f).exp()).sum();
    assert!((found - direct.ln()).abs() < 1e-9, "{found} for {}", direct.ln());
    // A narrow t far away from a wide normal and the reverse.
    for (residual, variance, scale, nu) in
        [(3.0, 4.0, 1e-3, 2.5), (50.0, 1e-4, 1.0, 4.0), (0.0, 0.0, 0.3, 9.0)]
    {
        let t = StudentT::new(scale, nu).unwrap();
        let found = log_student_t_mixture(residual, variance, scale, nu);
        let step = (0.1 * scale / f64::sqrt(variance).max(1e-9)).min(0.01);
        let direct: f64 = if variance == 0.0 {
            t.log_density(residual, 0.0).exp()
        } else {
            let n = (9.0 / step) as i64;
            (-n..=n)
                .map(|k| {
                    let x = step * k as f64;
                    let weight = step * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
                    weight * t.log_density(residual, x * f64::sqrt(variance)).exp()
                })
                .sum()
        };
        assert!((found - direct.ln()).abs() < 1e-8, "{residual} {variance}: {found} for {}", direct.ln());
    }
}

#[test]
fn known_noise_of_a_row_adds_to_the_learned_one() {
    let likelihood = VariationalLikelihood::Gaussian(Gaussian::new(0.3, 1e-6));
    let together = VariationalLikelihood::Gaussian(Gaussian::new(0.5, 1e-6));
    let (mut m, mut v, mut own) = ([0.0], [0.0], [0.0]);
    let value = likelihood.expected_log_density(
        &[0.7],
        0.2,
        &[0.1],
        &[0.4],
        &mut m,
        &mut v,
        &mut own,
        &mut VariationalWorkspace::default(),
    );
    let (expected, slopes) = expect(&together, &[0.7], &[0.1], &[0.4]);
    assert_eq!(value, expected);
    assert_eq!([m[0], v[0], own[0]], slopes[..]);
}

#[test]
fn they_are_written_by_kind_and_refuse_impossible_targets() {
    for (likelihood, y, _) in cases() {
        let text = serde_json::to_string(&likelihood).unwrap();
        assert!(text.contains(likelihood.name()), "{text}");
        assert_eq!(serde_json::from_str::<VariationalLikelihood>(&text).unwrap(), likelihood);
        likelihood.check_target(&y).unwrap();
        let error = likelihood.check_target(&[f64::NAN]).unwrap_err().to_string();
        assert!(error.contains(likelihood.name()) || error.contains("categorical"), "{error}");
    }
    assert!(cases()[3].0.check_target(&[1.5]).is_err());
    assert!(cases()[5].0.check_target(&[4.0]).is_err());
}
