//! Exact Gaussian processes against brute force, finite differences, and each other.

use super::*;
use crate::{Density, GpError, Hyperprior, MeanForm, Observations, Posterior};
use faer::prelude::Solve;
use faer::{Mat, MatRef};
use posterior_kernels::{KernelExpression, cross, diagonal, gram};
use posterior_likelihoods::Gaussian;
use posterior_linalg::random::Streams;
use posterior_optim::{Constraint, Parameters, Reason, Signal, check};
use rand_distr::{Distribution, StandardNormal};

const KERNEL: &str = "matern32(ard) + linear";

fn normal(n: usize, m: usize, name: &str) -> Mat<f64> {
    let mut rng = Streams::new(5).stream(name);
    Mat::from_fn(n, m, |_, _| StandardNormal.sample(&mut rng))
}

fn model(text: &str, mean: MeanForm, inputs: usize, targets: usize) -> ExactGp {
    let features: Vec<String> = (0..inputs).map(|i| format!("x{i}")).collect();
    let kernel = text.parse::<KernelExpression>().unwrap().build(&features).unwrap();
    ExactGp::new(kernel, mean, Gaussian::new(0.2, 1e-6), inputs, targets)
}

fn data(n: usize, targets: usize, noise: bool) -> Observations {
    let noise = noise.then(|| (0..n).map(|i| 0.05 + 0.01 * i as f64).collect());
    Observations::new(normal(n, 2, "x"), normal(n, targets, "y"), noise).unwrap()
}

/// `K̃` and its dense inverse, the naive way.
fn dense(model: &ExactGp, data: &Observations) -> (Mat<f64>, Mat<f64>) {
    let mut k = gram(model.kernel(), data.inputs());
    for i in 0..data.rows() {
        k[(i, i)] += model.noise().noise_variance() + data.noise_variances().map_or(0.0, |v| v[i]);
    }
    let inverse = k.partial_piv_lu().solve(Mat::<f64>::identity(data.rows(), data.rows()));
    (k, inverse)
}

fn residuals(model: &ExactGp, data: &Observations) -> Mat<f64> {
    data.targets() - model.mean().evaluate(data.inputs())
}

#[test]
fn the_evidence_is_the_density_of_a_multivariate_normal() {
    for (targets, noise) in [(1, false), (3, true)] {
        let (model, data) = (model(KERNEL, MeanForm::Constant, 2, targets), data(15, targets, noise));
        let (k, inverse) = dense(&model, &data);
        let log_det: f64 =
            k.self_adjoint_eigenvalues(faer::Side::Lower).unwrap().iter().map(|e| e.ln()).sum();
        let r = residuals(&model, &data);
        let quadratic: f64 = (0..targets).map(|t| r.col(t).transpose() * &inverse * r.col(t)).sum();
        let expected =
            -0.5 * (quadratic + targets as f64 * (log_det + 15.0 * (2.0 * std::f64::consts::PI).ln()));
        let value = log_evidence(&model, &data, None).unwrap().value;
        assert!((value - expected).abs() < 1e-10 * expected.abs());
        assert!(
            (log_evidence_and_gradient(&model, &data, None).unwrap().value - value).abs()
                < 1e-12 * value.abs()
        );
    }
}

#[test]
fn gradients_of_both_criteria_equal_finite_differences() {
    for kernel in [KERNEL, "se(ard) * periodic(x0) + rq + white", "(matern12 + constant) * polynomial(x1)"] {
        for mean in [MeanForm::Zero, MeanForm::Linear] {
            for (targets, noise) in [(1, true), (2, false)] {
                let (start, data) = (model(kernel, mean, 2, targets), data(12, targets, noise));
                let mut moved = start.clone();
                for objective in [log_evidence_and_gradient, leave_one_out_and_gradient] {
                    let exact = objective(&start, &data, None).unwrap().gradient;
                    let numeric = check::gradient(
                        |values| {
                            moved.set_values(values);
                            objective(&moved, &data, None).unwrap().value
                        },
                        &start.values(),
                    );
                    check::assert_close(&exact, &numeric, 1e-6, 1e-7);
                }
            }
        }
    }
}

#[test]
fn gradients_hold_beyond_one_tile() {
    let (start, data) = (model("matern32(ard)", MeanForm::Constant, 2, 1), data(300, 1, false));
    let exact = log_evidence_and_gradient(&start, &data, None).unwrap().gradient;
    let mut moved = start.clone();
    let numeric = check::gradient(
        |values| {
            moved.set_values(values);
            log_evidence(&moved, &data, None).unwrap().value
        },
        &start.values(),
    );
    check::assert_close(&exact, &numeric, 1e-6, 1e-5);
}

#[test]
fn predictions_equal_the_conditional_normal() {
    let (model, data) = (model(KERNEL, MeanForm::Linear, 2, 2), data(20, 2, true));
    let x = normal(700, 2, "new");
    let (_, inverse) = dense(&model, &data);
    let rectangle = cross(model.kernel(), x.as_ref(), data.inputs());
    let mean = model.mean().evaluate(x.as_ref()) + &rectangle * &inverse * residuals(&model, &data);
    let covariance = gram(model.kernel(), x.as_ref()) - &rectangle * &inverse * rectangle.transpose();
    let posterior = model.condition(data).unwrap();
    let prediction = posterior.predict(x.as_ref()).unwrap();
    assert!((&prediction.mean - &mean).norm_max() < 1e-10);
    let joint = posterior.joint(x.as_ref()).unwrap();
    assert!((&joint.mean - &mean).norm_max() < 1e-10 && (&joint.covariance - &covariance).norm_max() < 1e-10);
    for i in 0..700 {
        assert!((prediction.latent_variance[i] - covariance[(i, i)]).abs() < 1e-10);
        assert_eq!(prediction.observed_variance()[i], prediction.latent_variance[i] + 0.2);
    }
}

#[test]
fn leave_one_out_equals_leaving_one_out() {
    let (model, data) = (model(KERNEL, MeanForm::Constant, 2, 1), data(12, 1, true));
    let posterior = model.clone().condition(data.clone()).unwrap();
    let closed = posterior.leave_one_out();
    let mut score = 0.0;
    for i in 0..12 {
        let mut others = data.clone();
        others.remove(i);
        let without = model.clone().condition(others).unwrap();
        let prediction = without.predict(data.inputs().subrows(i, 1)).unwrap();
        let variance = prediction.observed_variance()[0] + data.noise_variances().unwrap()[i];
        assert!((closed.mean[(i, 0)] - prediction.mean[(0, 0)]).abs() < 1e-10);
        assert!((closed.variance[i] - variance).abs() < 1e-10);
        assert!((closed.latent_variance[i] - prediction.latent_variance[0]).abs() < 1e-10);
        let z = data.targets()[(i, 0)] - prediction.mean[(0, 0)];
        score -= 0.5 * ((2.0 * std::f64::consts::PI * variance).ln() + z * z / variance);
    }
    assert!((closed.log_score - score).abs() < 1e-9);
}

#[test]
fn rows_one_step_ahead_are_predicted_from_those_before() {
    let (model, data) = (model(KERNEL, MeanForm::Linear, 2, 1), data(12, 1, true));
    let whole = model.clone().condition(data.clone()).unwrap();
    let ahead = whole.one_step_ahead(5);
    assert_eq!((ahead.residuals.len(), ahead.log_densities.len()), (7, 7));
    for i in 5..12 {
        let before = data.select(&(0..i).collect::<Vec<_>>()).unwrap();
        let prediction =
            model.clone().condition(before).unwrap().predict(data.inputs().subrows(i, 1)).unwrap();
        let variance = prediction.observed_variance()[0] + data.noise_variances().unwrap()[i];
        let z = (data.targets()[(i, 0)] - prediction.mean[(0, 0)]) / variance.sqrt();
        let density = -0.5 * ((2.0 * std::f64::consts::PI * variance).ln() + z * z);
        assert!((ahead.residuals[i - 5] - z).abs() < 1e-10);
        assert!((ahead.log_densities[i - 5] - density).abs() < 1e-10);
    }
    // All of them together are the evidence.
    let sum: f64 = whole.one_step_ahead(0).log_densities.iter().sum();
    assert!((sum - whole.log_evidence()).abs() < 1e-10);
}

#[test]
fn appending_and_removing_equal_conditioning_afresh() {
    let (model, all) = (model(KERNEL, MeanForm::Constant, 2, 2), data(16, 2, true));
    let part = |range: std::ops::Range<usize>| {
        let take = |m: MatRef<'_, f64>| m.subrows(range.start, range.len()).to_owned();
        let noise = all.noise_variances().map(|v| v[range.clone()].to_vec());
        Observations::new(take(all.inputs()), take(all.targets()), noise).unwrap()
    };
    let x = normal(9, 2, "new");
    let whole = model.clone().condition(all.clone()).unwrap();
    let mut grown = model.clone().condition(part(0..11)).unwrap();
    grown.append(&part(11..16)).unwrap();
    let (a, b) = (whole.predict(x.as_ref()).unwrap(), grown.predict(x.as_ref()).unwrap());
    assert!((&a.mean - &b.mean).norm_max() < 1e-11);
    check::assert_close(&a.latent_variance, &b.latent_variance, 1e-10, 1e-12);
    for _ in 11..16 {
        grown.remove(11).unwrap();
    }
    let fewer = model.clone().condition(part(0..11)).unwrap().predict(x.as_ref()).unwrap();
    let b = grown.predict(x.as_ref()).unwrap();
    assert!((&fewer.mean - &b.mean).norm_max() < 1e-11);
    check::assert_close(&fewer.latent_variance, &b.latent_variance, 1e-10, 1e-12);
    assert!(matches!(grown.remove(11), Err(GpError::Shape { .. })));
}

#[test]
fn samples_have_the_joint_moments() {
    let (model, data) = (model("se", MeanForm::Zero, 2, 1), data(8, 1, false));
    let posterior = model.condition(data).unwrap();
    let x = normal(4, 2, "new");
    let joint = posterior.joint(x.as_ref()).unwrap();
    let count = 40_000;
    let mut rng = Streams::new(1).stream("samples");
    let (draws, jitter) = posterior.sample(x.as_ref(), 0, count, &mut rng).unwrap();
    assert!(jitter < 1e-8);
    for i in 0..4 {
        let mean = draws.row(i).iter().sum::<f64>() / count as f64;
        let variance = joint.covariance[(i, i)];
        // Five standard errors of a sample mean and of a sample covariance.
        assert!((mean - joint.mean[(i, 0)]).abs() < 5.0 * (variance / count as f64).sqrt());
        for j in 0..4 {
            let empirical: f64 = (0..count)
                .map(|s| (draws[(i, s)] - joint.mean[(i, 0)]) * (draws[(j, s)] - joint.mean[(j, 0)]))
                .sum::<f64>()
                / count as f64;
            let (a, b, c) = (variance, joint.covariance[(j, j)], joint.covariance[(i, j)]);
            assert!((empirical - c).abs() < 5.0 * ((a * b + c * c) / count as f64).sqrt());
        }
    }
}

/// Targets drawn from the model itself.
fn drawn(n: usize) -> Observations {
    let x = Mat::from_fn(n, 2, |i, j| 6.0 * ((i * (7 + 4 * j)) % n) as f64 / n as f64);
    let truth = model("matern32(ard, lengthscale=1.5, variance=2)", MeanForm::Zero, 2, 1);
    let mut k = gram(truth.kernel(), x.as_ref());
    for i in 0..n {
        k[(i, i)] += 0.01;
    }
    let factored = posterior_linalg::cholesky::Cholesky::of(k.as_ref(), Default::default()).unwrap();
    let y = factored.multiply_factor(normal(n, 1, "white").as_ref());
    Observations::new(x, y, None).unwrap()
}

#[test]
fn fitting_improves_on_the_truth_and_recovers_it_roughly() {
    let data = drawn(200);
    let mut truth = model("matern32(ard, lengthscale=1.5, variance=2)", MeanForm::Zero, 2, 1);
    let mut values = truth.values();
    *values.last_mut().unwrap() = 0.01;
    truth.set_values(&values);
    let at_truth = log_evidence(&truth, &data, None).unwrap().value;
    for optimizer in [Optimizer::Lbfgs, Optimizer::Adam { learning_rate: 0.1 }] {
        let options = FitOptions { optimizer, ..Default::default() };
        let start = model("matern32(ard)", MeanForm::Zero, 2, 1);
        let fit = fit(start, data.clone(), &options, &mut |_, _| Signal::Continue).unwrap();
        // The maximum is at least the value at the truth, and 2 (max - truth) is about chi-squared with 4 degrees of freedom.
        let gain = fit.log_evidence - at_truth;
        assert!((-0.05..12.0).contains(&gain), "{optimizer:?}: {gain}");
        let noise = fit.posterior.model().noise().noise_variance();
        assert!((0.004..0.025).contains(&noise), "{noise}");
        assert_eq!(fit.attempts.len(), 2);
        assert_eq!(fit.largest_jitter, 0.0);
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_and_restarts_never_hurt() {
    let data = drawn(80);
    let run = |restarts, seed| {
        let options = FitOptions { restarts, seed, ..Default::default() };
        fit(model("matern32(ard)", MeanForm::Constant, 2, 1), data.clone(), &options, &mut |_, _| {
            Signal::Continue
        })
        .unwrap()
    };
    let (a, b) = (run(3, 4), run(3, 4));
    assert_eq!(a.posterior.model().values(), b.posterior.model().values());
    assert_eq!(a.attempts.len(), 3);
    assert!(a.log_evidence >= run(1, 4).log_evidence);
}

#[test]
fn leave_one_out_fits_maximise_their_own_score() {
    let data = drawn(60);
    let run = |criterion| {
        let options = FitOptions { criterion, ..Default::default() };
        fit(model("matern32(ard)", MeanForm::Zero, 2, 1), data.clone(), &options, &mut |_, _| {
            Signal::Continue
        })
        .unwrap()
    };
    let (evidence, score) = (run(Criterion::Evidence), run(Criterion::LeaveOneOut));
    assert!((score.criterion - score.posterior.leave_one_out().log_score).abs() < 1e-8);
    assert!(score.criterion >= evidence.posterior.leave_one_out().log_score - 1e-6);
    assert!(evidence.log_evidence >= score.log_evidence - 1e-6);
}

#[test]
fn hyperpriors_pull_and_unknown_names_are_listed() {
    let data = drawn(60);
    let with_prior = |parameter: &str| {
        let density = Density::LogNormal { location: 5f64.ln(), scale: 0.01 };
        FitOptions {
            hyperpriors: vec![Hyperprior { parameter: parameter.into(), density }],
            ..Default::default()
        }
    };
    let start = || model("matern32", MeanForm::Zero, 2, 1);
    let options = with_prior("matern32.lengthscale");
    let pulled = fit(start(), data.clone(), &options, &mut |_, _| Signal::Continue).unwrap();
    assert!((pulled.posterior.model().values()[1] - 5.0).abs() < 0.2);
    let error = fit(start(), data, &with_prior("lengthscales"), &mut |_, _| Signal::Continue).unwrap_err();
    assert!(error.to_string().contains("matern32.variance, matern32.lengthscale, noise_variance"), "{error}");
}

#[test]
fn the_plan_refuses_before_allocating_and_interruption_returns_the_best() {
    let data = drawn(60);
    let options = FitOptions { memory_limit: 1_000, ..Default::default() };
    let start = || model("matern32", MeanForm::Zero, 2, 1);
    let error = fit(start(), data.clone(), &options, &mut |_, _| Signal::Continue).unwrap_err();
    assert!(error.to_string().starts_with("n = 60 needs"), "{error}");
    let mut seen = 0;
    let fit = fit(start(), data, &FitOptions::default(), &mut |progress, _| {
        seen = progress.step;
        if progress.step == 2 { Signal::Stop } else { Signal::Continue }
    })
    .unwrap();
    assert_eq!((fit.reason, seen), (Reason::Interrupted, 2));
}

#[test]
fn an_interruption_of_any_start_is_one() {
    let data = drawn(60);
    let mut starts = 0;
    let fitted =
        fit(model("matern32", MeanForm::Zero, 2, 1), data, &FitOptions::default(), &mut |progress, _| {
            starts = progress.part;
            // The first start, whose values are the best so far, had ended by itself.
            if progress.part == 1 { Signal::Stop } else { Signal::Continue }
        })
        .unwrap();
    assert_eq!((fitted.reason, starts), (Reason::Interrupted, 1));
}

#[test]
fn held_and_bounded_hyperparameters_stay_where_they_are_told() {
    let data = drawn(80);
    let run = |constraints: Vec<Constraint>| {
        let options = FitOptions { constraints, ..Default::default() };
        fit(model("matern32(ard)", MeanForm::Zero, 2, 1), data.clone(), &options, &mut |_, _| {
            Signal::Continue
        })
    };
    let free = run(Vec::new()).unwrap();
    let best = free.posterior.model().values();
    // Holding one parameter at its optimum leaves the others at theirs.
    let hold = |parameter: &str, value| Constraint::Fixed { parameter: parameter.into(), value };
    let noise = best[best.len() - 1];
    let held = run(vec![hold("noise_variance", Some(noise))]).unwrap();
    assert_eq!(held.posterior.model().noise().noise_variance(), noise);
    assert!(
        (held.log_evidence - free.log_evidence).abs() < 1e-3,
        "{} {}",
        held.log_evidence,
        free.log_evidence
    );
    // A bound that excludes the optimum is reached, said, and costs evidence.
    let bound = Constraint::Between { parameter: "noise_variance".into(), lower: 4.0 * noise, upper: 1.0 };
    let bounded = run(vec![bound]).unwrap();
    assert!(bounded.log_evidence < free.log_evidence - 1.0);
    assert!((bounded.posterior.model().noise().noise_variance() / (4.0 * noise) - 1.0).abs() < 0.02);
    assert_eq!(bounded.at_bounds, [("noise_variance".to_string(), 4.0 * noise)]);
    // With everything held the model is conditioned as it is.
    let all = vec![
        hold("matern32.variance", Some(2.0)),
        hold("matern32.lengthscale", Some(1.5)),
        hold("noise_variance", Some(0.01)),
    ];
    let held = run(all).unwrap();
    assert_eq!(held.posterior.model().values(), [2.0, 1.5, 1.5, 0.01]);
    assert_eq!((held.evaluations, held.steps), (0, 0));
    let wrong = run(vec![hold("scale", None)]).unwrap_err().to_string();
    assert!(wrong.contains("`scale`") && wrong.contains("matern32.lengthscale[1]"), "{wrong}");
}

#[test]
fn duplicates_one_row_and_noiseless_data_are_survived_and_reported() {
    let x = Mat::from_fn(6, 2, |i, j| ((i / 2) + j) as f64);
    let y = Mat::from_fn(6, 1, |i, _| (i / 2) as f64);
    let data = Observations::new(x, y, None).unwrap();
    let fit_of = |data| {
        fit(model("se", MeanForm::Constant, 2, 1), data, &FitOptions::default(), &mut |_, _| Signal::Continue)
    };
    let fitted = fit_of(data).unwrap();
    assert!(fitted.posterior.model().noise().noise_variance() >= 1e-6);
    let single = Observations::new(Mat::zeros(1, 2), Mat::from_fn(1, 1, |_, _| 3.0), None).unwrap();
    let fitted = fit_of(single).unwrap();
    let prediction = fitted.posterior.predict(Mat::zeros(1, 2).as_ref()).unwrap();
    assert!(prediction.mean[(0, 0)].is_finite() && prediction.latent_variance[0] >= 0.0);
    assert!(fitted.posterior.predict(Mat::zeros(1, 3).as_ref()).is_err());
    let bad = Mat::from_fn(1, 2, |_, _| f64::INFINITY);
    assert!(matches!(fitted.posterior.predict(bad.as_ref()), Err(GpError::NotFinite { .. })));
    assert!(diagonal(fitted.posterior.model().kernel(), Mat::<f64>::zeros(0, 2).as_ref()).is_empty());
    assert_eq!(fitted.posterior.predict(Mat::zeros(0, 2).as_ref()).unwrap().mean.nrows(), 0);
}

#[test]
fn averages_are_those_of_the_joint_prediction() {
    let (x, each) = (normal(12, 2, "points"), 4);
    for (targets, noise) in [(1, false), (2, true)] {
        let own = model(KERNEL, MeanForm::Linear, 2, targets).condition(data(15, targets, noise)).unwrap();
        let found = own.averages(x.as_ref(), each).unwrap();
        let joint = own.joint(x.as_ref()).unwrap();
        let means = own.mean_values(x.as_ref()).unwrap();
        for run in 0..3 {
            let rows = || run * each..(run + 1) * each;
            for t in 0..targets {
                let expected = rows().map(|i| joint.mean[(i, t)]).sum::<f64>() / 4.0;
                assert!((found.mean[(run, t)] - expected).abs() < 1e-12 * (1.0 + expected.abs()));
                assert!(rows().all(|i| (means[(i, t)] - joint.mean[(i, t)]).abs() < 1e-12));
            }
            // Every pair of the run, one by one.
            let pairs = rows().flat_map(|i| rows().map(move |j| (i, j)));
            let expected = pairs.map(|(i, j)| joint.covariance[(i, j)]).sum::<f64>() / 16.0;
            assert!((found.variance[run] - expected).abs() < 1e-10, "{} {expected}", found.variance[run]);
            // An average is surer than the points of it.
            assert!(found.variance[run] < rows().map(|i| joint.covariance[(i, i)]).sum::<f64>() / 4.0);
        }
        assert!(matches!(own.averages(x.as_ref(), 5), Err(GpError::Shape { expected: 15, actual: 12, .. })));
        assert!(own.averages(x.as_ref(), 0).is_err());
    }
}
