//! Expectations, predictions and slopes of every likelihood against Monte Carlo, brute force, quadrature and finite differences.

use super::{Slopes, nodes, product};
use crate::predictive::student_t_log_mixture;
use crate::{
    Bernoulli, Categorical, FullGaussian, Gaussian, HeteroscedasticGaussian, Likelihood, Link,
    NegativeBinomial, OutputLikelihood, Poisson, Prediction, RobustMax, StudentT,
};
use posterior_linalg::random::Streams;
use posterior_optim::check;
use rand_distr::{Distribution, StandardNormal};

/// Every likelihood with a target.
pub(crate) fn cases() -> Vec<(OutputLikelihood, Vec<f64>)> {
    let bernoulli = |outputs, link| OutputLikelihood::Bernoulli(Bernoulli::new(outputs, link).unwrap());
    vec![
        (OutputLikelihood::Gaussian(Gaussian::new(0.3, 0.0).with_outputs(2)), vec![0.7, -1.0]),
        (bernoulli(1, Link::Logit), vec![1.0]),
        (bernoulli(2, Link::Probit), vec![0.0, 1.0]),
        (OutputLikelihood::Poisson(Poisson::new(1).unwrap()), vec![4.0]),
        (OutputLikelihood::StudentT(StudentT::new(0.2, 3.0).unwrap()), vec![1.9]),
        (OutputLikelihood::Categorical(Categorical::new(4).unwrap()), vec![2.0]),
        (OutputLikelihood::Gaussian(Gaussian::independent(vec![0.3, 0.8]).unwrap()), vec![0.7, -1.0]),
        (
            OutputLikelihood::FullGaussian(FullGaussian::new(2, vec![0.9, 0.4, 0.4, 0.6]).unwrap()),
            vec![0.7, -1.0],
        ),
        (OutputLikelihood::HeteroscedasticGaussian(HeteroscedasticGaussian::new(1).unwrap()), vec![0.7]),
        (OutputLikelihood::NegativeBinomial(NegativeBinomial::new(1.6).unwrap()), vec![4.0]),
        (
            OutputLikelihood::NegativeBinomial(NegativeBinomial::new(0.3).unwrap().with_outputs(2)),
            vec![0.0, 9.0],
        ),
        (OutputLikelihood::RobustMax(RobustMax::new(4, 0.03).unwrap()), vec![2.0]),
    ]
}

pub(crate) const MEAN: [f64; 4] = [0.4, -0.8, 1.3, 0.1];
pub(crate) const VARIANCE: [f64; 4] = [0.5, 1.4, 0.2, 2.5];

/// The expectation with its slopes in means, variances and parameters.
pub(crate) fn expect(
    likelihood: &dyn Likelihood,
    y: &[f64],
    mean: &[f64],
    variance: &[f64],
) -> (f64, Vec<f64>) {
    let (mut means, mut variances) = (vec![0.0; mean.len()], vec![0.0; mean.len()]);
    let mut parameters = vec![0.0; likelihood.values().len()];
    let gradient = Slopes { means: &mut means, variances: &mut variances, parameters: &mut parameters };
    let value = likelihood.expected_log_density(y, mean, variance, gradient);
    (value, [means, variances, parameters].concat())
}

#[test]
fn expectations_and_predictive_densities_agree_with_monte_carlo() {
    for (likelihood, y) in cases() {
        let latents = likelihood.outputs();
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
                likelihood.log_density(&y, &f)
            })
            .collect();
        let moments = |values: &dyn Fn(f64) -> f64| {
            let mean = draws.iter().map(|&d| values(d)).sum::<f64>() / f64::from(count);
            let variance = draws.iter().map(|&d| (values(d) - mean).powi(2)).sum::<f64>() / f64::from(count);
            (mean, (variance / f64::from(count)).sqrt())
        };
        let (mean, variance) = (&MEAN[..latents], &VARIANCE[..latents]);
        let (expected, error) = moments(&|d| d);
        let (found, _) = expect(&*likelihood, &y, mean, variance);
        assert!((found - expected).abs() < 5.0 * error, "{}: {found} for {expected}", likelihood.name());
        let (expected, error) = moments(&f64::exp);
        let found = likelihood.log_predictive_density(&y, mean, variance).exp();
        assert!((found - expected).abs() < 5.0 * error, "{}: {found} for {expected}", likelihood.name());
    }
}

#[test]
fn slopes_equal_finite_differences() {
    for (likelihood, y) in cases() {
        let latents = likelihood.outputs();
        let arguments = [&MEAN[..latents], &VARIANCE[..latents], &likelihood.values()].concat();
        let (_, slopes) = expect(&*likelihood, &y, &arguments[..latents], &arguments[latents..2 * latents]);
        let numeric = check::gradient(
            |a| {
                let mut moved = likelihood.clone_box();
                moved.set_values(&a[2 * latents..]);
                expect(&*moved, &y, &a[..latents], &a[latents..2 * latents]).0
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
    let logit = Bernoulli::new(1, Link::Logit).unwrap();
    let density = normal / variance.sqrt();
    let expected = -variance.sqrt() * normal - std::f64::consts::PI.powi(2) / 6.0 * density;
    let (found, _) = expect(&logit, &[1.0], &[0.0], &[variance]);
    assert!((found - expected).abs() < 2.0 * density / variance, "{found} for {expected}");
}

#[test]
fn predictions_are_exact() {
    let probit = Bernoulli::new(1, Link::Probit).unwrap();
    let Prediction::Events(p) = probit.predict(&[0.4], &[1.7]) else { panic!("events") };
    assert!((p[0] - Link::Probit.expected_probability(0.4, 1.7)).abs() < 1e-13);
    // A normal mixture of Student's t, integrated directly.
    let t = StudentT::new(0.2, 3.0).unwrap();
    let found = t.log_predictive_density(&[1.9], &[0.4], &[0.5]);
    let direct: f64 = nodes(0.4, 0.5, 0.004).map(|(f, w)| w * t.log_density(&[1.9], &[f]).exp()).sum();
    assert!((found - direct.ln()).abs() < 1e-9, "{found} for {}", direct.ln());
    // A narrow t far away from a wide normal and the reverse.
    for (residual, variance, scale, nu) in
        [(3.0, 4.0, 1e-3, 2.5), (50.0, 1e-4, 1.0, 4.0), (0.0, 0.0, 0.3, 9.0)]
    {
        let t = StudentT::new(scale, nu).unwrap();
        let found = student_t_log_mixture(residual, variance, scale, nu);
        let step = (0.1 * scale / f64::sqrt(variance).max(1e-9)).min(0.01);
        let direct: f64 = if variance == 0.0 {
            t.log_density(&[residual], &[0.0]).exp()
        } else {
            let n = (9.0 / step) as i64;
            (-n..=n)
                .map(|k| {
                    let x = step * k as f64;
                    let weight = step * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
                    weight * t.log_density(&[residual], &[x * f64::sqrt(variance)]).exp()
                })
                .sum()
        };
        assert!((found - direct.ln()).abs() < 1e-8, "{residual} {variance}: {found} for {}", direct.ln());
    }
}

#[test]
fn known_noise_of_a_row_adds_to_the_learned_one() {
    let noisier = Gaussian::new(0.3, 1e-6).with_row_noise(0.2).unwrap();
    let together = Gaussian::new(0.5, 1e-6);
    assert_eq!(expect(&*noisier, &[0.7], &[0.1], &[0.4]), expect(&together, &[0.7], &[0.1], &[0.4]));
    assert!(Poisson::new(1).unwrap().with_row_noise(0.2).is_none());
}

/// What any likelihood has without further work, for those whose integrands a Gauss-Hermite rule of 20 nodes resolves.
#[test]
fn quadrature_agrees_with_the_better_answers() {
    for (likelihood, y) in cases() {
        if matches!(likelihood, OutputLikelihood::StudentT(_)) || likelihood.outputs() > 2 {
            continue;
        }
        let n = likelihood.outputs();
        let (mean, variance) = (&MEAN[..n], &[0.05, 0.1][..n]);
        let (expected, slopes) = expect(&*likelihood, &y, mean, variance);
        let (mut means, mut variances) = (vec![0.0; n], vec![0.0; n]);
        if likelihood.values().is_empty() {
            let gradient = Slopes { means: &mut means, variances: &mut variances, parameters: &mut [] };
            let found = product::expected_log_density(&*likelihood, &y, mean, variance, gradient);
            check::assert_close(&[found], &[expected], 1e-9, 1e-9);
            check::assert_close(&[means, variances].concat(), &slopes, 1e-9, 1e-9);
        }
        let found = product::log_predictive_density(&*likelihood, &y, mean, variance);
        let expected = likelihood.log_predictive_density(&y, mean, variance);
        check::assert_close(&[found], &[expected], 1e-6, 1e-6);
        let width = likelihood.target_width();
        type Out<'a> = (&'a mut [f64], &'a mut [f64]);
        let moments = |write: &dyn Fn(Out<'_>)| {
            let (mut m, mut v) = (vec![0.0; width], vec![0.0; width]);
            write((&mut m, &mut v));
            [m, v].concat()
        };
        let found = moments(&|out| product::predictive_moments(&*likelihood, mean, variance, out));
        let expected = moments(&|out| likelihood.predictive_moments(mean, variance, out));
        check::assert_close(&found, &expected, 1e-9, 1e-9);
    }
}

#[test]
fn they_refuse_impossible_targets() {
    for (likelihood, y) in cases() {
        likelihood.check_target(&y).unwrap();
        let error = likelihood.check_target(&[f64::NAN]).unwrap_err().to_string();
        assert!(error.contains(likelihood.name()), "{error}");
    }
    assert!(cases()[3].0.check_target(&[1.5]).is_err());
    assert!(cases()[5].0.check_target(&[4.0]).is_err());
}
