//! Values and gradients of the bound.

use super::*;
use crate::GpError;
use crate::Posterior;
use crate::inducing::collapsed::collapsed_bound;
use faer::prelude::Solve;
use posterior_kernels::{cross, gram};
use posterior_optim::{Batches, Sampling, check};

#[test]
fn one_natural_step_on_all_rows_meets_the_collapsed_bound() {
    let (likelihood, data) = cases(40).swap_remove(0);
    let model = model("matern32(ard)", MeanForm::Linear, likelihood, 9);
    let expected = collapsed_bound(&collapsed(&model), &data).unwrap();
    let mut q = arbitrary(&model);
    let before = stochastic_bound(&model, &q, &data).unwrap();
    let evaluation = stochastic_bound_and_gradient(&model, &q, whole(&data), Wanted::DISTRIBUTION).unwrap();
    assert!((evaluation.value - before).abs() < 1e-9 * before.abs());
    assert_eq!(natural_step(&mut q, &evaluation.of_q, 1.0).unwrap(), 1.0);
    let after = stochastic_bound(&model, &q, &data).unwrap();
    assert!(
        before < expected - 1.0 && (after - expected).abs() < 1e-9 * expected.abs(),
        "{after} {expected}"
    );
    // The distribution is the optimal one, and so are predictions.
    let (optimal, _) = collapsed(&model).condition(&data).unwrap();
    assert!((q.mean() - optimal.distribution().mean()).norm_max() < 1e-8);
    assert!((&q.roots()[0] - &optimal.distribution().roots()[0]).norm_max() < 1e-8);
    let x = normal(5, 2, "new");
    let (a, b) = (model.posterior(q.clone()).unwrap(), optimal);
    assert!((a.predict(x.as_ref()).unwrap().mean - b.predict(x.as_ref()).unwrap().mean).norm_max() < 1e-8);
    // The gradient there is that of the collapsed bound: the optimum moves along without changing the value to first order.
    let there = stochastic_bound_and_gradient(&model, &q, whole(&data), Wanted::ALL).unwrap();
    let expected =
        crate::inducing::collapsed::collapsed_bound_and_gradient(&collapsed(&model), &data).unwrap();
    check::assert_close(&there.parameters, &expected.gradient, 1e-6, 1e-6);
}

#[test]
fn every_gradient_equals_finite_differences() {
    for (likelihood, data) in cases(23) {
        for (text, jitter) in [("matern52(ard) + linear", 1e-8), ("se + white", 1e-2)] {
            let mut start = model(text, MeanForm::Linear, likelihood.clone(), 5);
            start.jitter = jitter;
            let q = arbitrary(&start);
            let evaluation = stochastic_bound_and_gradient(&start, &q, whole(&data), Wanted::ALL).unwrap();
            let full = stochastic_bound(&start, &q, &data).unwrap();
            assert!((evaluation.value - full).abs() < 1e-10 * full.abs());
            let mut moved = start.clone();
            let numeric = check::gradient(
                |values| {
                    moved.set_values(values);
                    stochastic_bound(&moved, &q, &data).unwrap()
                },
                &start.values(),
            );
            check::assert_close(&evaluation.parameters, &numeric, 2e-6, 2e-6);

            let m = q.rank();
            let with = |mean: faer::MatRef<'_, f64>, roots: Vec<Mat<f64>>| {
                stochastic_bound(&start, &InducingDistribution::new(mean.to_owned(), roots).unwrap(), &data)
                    .unwrap()
            };
            let means: Vec<f64> = (0..q.latents()).flat_map(|c| q.mean_of(c).to_vec()).collect();
            let numeric = check::gradient(
                |values| {
                    let mean = faer::MatRef::from_column_major_slice(values, m, q.latents());
                    with(mean, q.roots().to_vec())
                },
                &means,
            );
            let gradient = evaluation.of_q.of_mean(&q, 1.0);
            let exact: Vec<f64> = (0..q.latents()).flat_map(|c| gradient.col_as_slice(c).to_vec()).collect();
            check::assert_close(&exact, &numeric, 2e-6, 2e-6);

            let gradients = evaluation.of_q.of_roots(&q, 1.0);
            for (index, gradient) in gradients.iter().enumerate() {
                let lower: Vec<(usize, usize)> = (0..m).flat_map(|j| (j..m).map(move |i| (i, j))).collect();
                let entries: Vec<f64> = lower.iter().map(|&(i, j)| q.roots()[index][(i, j)]).collect();
                let numeric = check::gradient(
                    |values| {
                        let mut roots = q.roots().to_vec();
                        lower.iter().zip(values).for_each(|(&(i, j), v)| roots[index][(i, j)] = *v);
                        with(q.mean(), roots)
                    },
                    &entries,
                );
                let exact: Vec<f64> = lower.iter().map(|&(i, j)| gradient[(i, j)]).collect();
                check::assert_close(&exact, &numeric, 2e-6, 2e-6);
            }
        }
    }
}

#[test]
fn a_weight_is_how_often_a_row_occurs() {
    for (likelihood, data) in cases(12) {
        let model = model("matern32(ard)", MeanForm::Constant, likelihood, 4);
        let q = arbitrary(&model);
        let weights: Vec<f64> = (0..12).map(|i| 1.0 + f64::from(u8::from(i % 3 == 0))).collect();
        let repeated: Vec<usize> = (0..12).chain((0..12).step_by(3)).collect();
        let repeated = data.select(&repeated).unwrap();
        let weighted = data.with_weights(weights).unwrap();
        let evaluate = |data| stochastic_bound_and_gradient(&model, &q, whole(data), Wanted::ALL).unwrap();
        let (a, b) = (evaluate(&weighted), evaluate(&repeated));
        assert!((a.value - b.value).abs() < 1e-10 * b.value.abs(), "{} {}", a.value, b.value);
        check::assert_close(&a.parameters, &b.parameters, 1e-9, 1e-9);
        assert!((&a.of_q.mean - &b.of_q.mean).norm_max() < 1e-9);
        assert!((&a.of_q.covariances[0] - &b.of_q.covariances[0]).norm_max() < 1e-9);
        assert!((stochastic_bound(&model, &q, &weighted).unwrap() - b.value).abs() < 1e-9 * b.value.abs());
    }
}

#[test]
fn an_offset_is_a_prior_mean_that_is_known() {
    for (likelihood, data) in cases(20) {
        let name = likelihood.name();
        if data.noise_variances().is_some() || likelihood.outputs() > 1 {
            continue;
        }
        let with_mean = model("matern32", MeanForm::Linear, likelihood.clone(), 5);
        let q = arbitrary(&with_mean);
        let offsets = with_mean.mean.evaluate(data.inputs()).col_as_slice(0).to_vec();
        assert!(offsets.iter().any(|o| o.abs() > 0.1), "{offsets:?}");
        let mut without = model("matern32", MeanForm::Zero, likelihood, 5);
        without.inducing.copy_from(&with_mean.inducing);
        let moved = data.clone().with_offsets(offsets).unwrap();
        let [expected, found] = [(&with_mean, &data), (&without, &moved)]
            .map(|(model, data)| stochastic_bound_and_gradient(model, &q, whole(data), Wanted::ALL).unwrap());
        assert!((found.value - expected.value).abs() < 1e-10 * expected.value.abs(), "{name}");
        let kernel = with_mean.kernel.values().len();
        check::assert_close(&found.parameters[..kernel], &expected.parameters[..kernel], 1e-10, 1e-10);
        assert!((&found.of_q.mean - &expected.of_q.mean).norm_max() < 1e-9, "{name}");
        let [expected, found] = [(&with_mean, &data), (&without, &moved)]
            .map(|(model, data)| stochastic_bound(model, &q, data).unwrap());
        assert!((found - expected).abs() < 1e-10 * expected.abs(), "{name}");
    }
}

#[test]
fn what_is_not_wanted_is_zero_and_the_rest_unchanged() {
    let (likelihood, data) = cases(20).swap_remove(3);
    let model = model("matern32(ard)", MeanForm::Constant, likelihood, 4);
    let q = arbitrary(&model);
    let evaluate =
        |wanted| stochastic_bound_and_gradient(&model, &q, whole(&data), wanted).unwrap().parameters;
    let all = evaluate(Wanted::ALL);
    let hyper = evaluate(Wanted { hyperparameters: true, inducing: false });
    let inducing = evaluate(Wanted { hyperparameters: false, inducing: true });
    let split = all.len() - 8;
    check::assert_close(&hyper[..split], &all[..split], 1e-12, 1e-12);
    check::assert_close(&inducing[split..], &all[split..], 1e-12, 1e-12);
    assert!(hyper[split..].iter().chain(&inducing[..split]).all(|g| *g == 0.0));
    assert!(evaluate(Wanted::DISTRIBUTION).iter().all(|g| *g == 0.0));
}

#[test]
fn batches_that_do_not_fit_are_refused() {
    let (likelihood, data) = cases(20).swap_remove(0);
    let model = model("se", MeanForm::Zero, likelihood, 4);
    let q = arbitrary(&model);
    let run = |batch| stochastic_bound_and_gradient(&model, &q, batch, Wanted::ALL).map(|_| ());
    let fine = whole(&data);
    assert!(run(fine).is_ok());
    let none = Batch { inputs: data.inputs().subrows(0, 0), targets: data.targets().subrows(0, 0), ..fine };
    assert!(matches!(run(Batch { noise: None, ..none }), Err(GpError::Empty { .. })));
    assert!(run(Batch { targets: data.targets().subrows(0, 3), ..fine }).is_err());
    assert!(run(Batch { noise: Some(&[0.1; 3]), ..fine }).is_err());
    assert!(run(Batch { inputs: data.inputs().subcols(0, 1), ..fine }).is_err());
}

#[test]
fn batches_are_unbiased_for_value_and_gradients() {
    for (likelihood, data) in cases(24) {
        let model = model("matern32(ard)", MeanForm::Constant, likelihood, 4);
        let q = arbitrary(&model);
        let full = stochastic_bound_and_gradient(&model, &q, whole(&data), Wanted::ALL).unwrap();
        // The mean over the batches of an epoch, all of one size, is the mean over equally likely batches.
        let mut batches = Batches::new(24, 6, Sampling::Permutation, 9, ["gp/epoch", "order"]);
        let (mut value, mut parameters) = (0.0, vec![0.0; full.parameters.len()]);
        let (mut mean, mut covariance) = (0.0 * &full.of_q.mean, 0.0 * &full.of_q.covariances[0]);
        for step in 0..4 {
            let rows = batches.batch(step);
            let x = Mat::from_fn(6, 2, |i, j| data.inputs()[(rows[i], j)]);
            let y = Mat::from_fn(6, data.targets().ncols(), |i, j| data.targets()[(rows[i], j)]);
            let noise: Option<Vec<f64>> =
                data.noise_variances().map(|v| rows.iter().map(|&i| v[i]).collect());
            let batch = Batch {
                inputs: x.as_ref(),
                targets: y.as_ref(),
                noise: noise.as_deref(),
                weights: None,
                offsets: None,
                rows: 24,
            };
            let part = stochastic_bound_and_gradient(&model, &q, batch, Wanted::ALL).unwrap();
            value += part.value / 4.0;
            parameters.iter_mut().zip(&part.parameters).for_each(|(t, p)| *t += p / 4.0);
            mean += 0.25 * &part.of_q.mean;
            covariance += 0.25 * &part.of_q.covariances[0];
        }
        assert!((value - full.value).abs() < 1e-10 * full.value.abs());
        check::assert_close(&parameters, &full.parameters, 1e-9, 1e-9);
        assert!((mean - &full.of_q.mean).norm_max() < 1e-9);
        assert!((covariance - &full.of_q.covariances[0]).norm_max() < 1e-9);
    }
}

#[test]
fn marginals_are_those_of_unwhitened_inducing_values() {
    let (likelihood, data) = cases(20).swap_remove(5);
    let mut model = model("matern32(ard)", MeanForm::Constant, likelihood, 6);
    model.jitter = 0.0;
    let q = arbitrary(&model);
    let posterior = model.posterior(q.clone()).unwrap();
    let found = posterior.latent(data.inputs()).unwrap();
    let kzz = gram(model.kernel(), model.inducing());
    let kzx = cross(model.kernel(), model.inducing(), data.inputs());
    let solved = kzz.partial_piv_lu().solve(&kzx);
    let l = posterior.factor().factor();
    let l = Mat::from_fn(6, 6, |i, j| if i >= j { l[(i, j)] } else { 0.0 });
    for c in 0..3 {
        let u = &l * q.mean().col(c);
        let s = &l * &q.roots()[c] * q.roots()[c].transpose() * l.transpose();
        for i in 0..20 {
            let a = solved.col(i);
            let mean = 0.2 - 0.1 * c as f64 + a.transpose() * &u;
            let variance = 1.0 - kzx.col(i).transpose() * a + a.transpose() * &s * a;
            assert!((found.mean[(i, c)] - mean).abs() < 1e-10);
            assert!((found.variance[(i, c)] - variance).abs() < 1e-10);
        }
    }
    assert!(matches!(posterior.predict(data.inputs()), Err(GpError::Inducing(_))));
}

#[test]
fn the_bound_of_two_events_is_below_their_evidence_and_close() {
    // log ∫ Π p(y_i | f_i) N(f; 0, K) df by a product trapezoid rule in whitened coordinates.
    let x = faer::mat![[0.0, 0.0], [0.5, 0.3]];
    let data = Observations::new(x.clone(), faer::mat![[1.0], [0.0]], None).unwrap();
    let likelihood = Box::new(Bernoulli::new(1, Link::Logit).unwrap());
    let mut model = StochasticGp::new(kernel("se"), MeanForm::Zero, likelihood, x.clone()).unwrap();
    model.jitter = 0.0;
    let k = gram(model.kernel(), x.as_ref());
    let (l10, l11) = (k[(1, 0)], (1.0 - k[(1, 0)] * k[(1, 0)]).sqrt());
    let h = 0.05;
    let mut evidence = 0.0;
    for i in -170..=170 {
        for j in -170..=170 {
            let (a, b) = (h * f64::from(i), h * f64::from(j));
            let weight = h * h * (-0.5 * (a * a + b * b)).exp() / (2.0 * std::f64::consts::PI);
            let p = Link::Logit.probability(a) * (1.0 - Link::Logit.probability(l10 * a + l11 * b));
            evidence += weight * p;
        }
    }
    let mut q = model.prior();
    for _ in 0..60 {
        let evaluation =
            stochastic_bound_and_gradient(&model, &q, whole(&data), Wanted::DISTRIBUTION).unwrap();
        natural_step(&mut q, &evaluation.of_q, 0.7).unwrap();
    }
    let bound = stochastic_bound(&model, &q, &data).unwrap();
    // With Z at the inputs the only gap is that the posterior is not quite Gaussian.
    assert!(bound < evidence.ln() && bound > evidence.ln() - 0.01, "{bound} {}", evidence.ln());
}
