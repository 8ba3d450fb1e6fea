//! The collapsed bound against the exact evidence, dense formulas, finite differences and itself.

use super::shared_inputs::SharedInputs;
use super::*;
use crate::exact::{ExactGp, log_evidence};
use crate::inducing::InducingPosterior;
use crate::rows::reversed::ReversedRows;
use crate::{GpError, MeanForm, Observations, Posterior, RowSource};
use faer::prelude::Solve;
use faer::{Mat, MatRef};
use posterior_kernels::{Kernel, KernelExpression, cross, gram};
use posterior_likelihoods::Gaussian;
use posterior_linalg::random::Streams;
use posterior_optim::{Constraint, LoopOptions, Parameters, Reason, Signal, check};
use rand_distr::{Distribution, StandardNormal};

fn normal(n: usize, m: usize, name: &str) -> Mat<f64> {
    let mut rng = Streams::new(11).stream(name);
    Mat::from_fn(n, m, |_, _| StandardNormal.sample(&mut rng))
}

fn kernel(text: &str) -> Box<dyn Kernel<f64>> {
    text.parse::<KernelExpression>().unwrap().build(&["x0".into(), "x1".into()]).unwrap()
}

fn data(n: usize, targets: usize, noise: bool) -> Observations {
    let noise = noise.then(|| (0..n).map(|i| 0.05 + 0.01 * (i % 7) as f64).collect());
    Observations::new(normal(n, 2, "x"), normal(n, targets, "y"), noise).unwrap()
}

fn model(text: &str, mean: MeanForm, inducing: Mat<f64>, targets: usize) -> CollapsedGp {
    let mut model =
        CollapsedGp::new(kernel(text), mean, Gaussian::new(0.2, 1e-6), inducing, targets).unwrap();
    // A mean that matters.
    let values: Vec<f64> = (0..model.mean.values().len()).map(|i| 0.3 - 0.2 * i as f64).collect();
    model.mean.set_values(&values);
    model
}

fn exact(model: &CollapsedGp) -> ExactGp {
    let (form, inputs) = (model.mean.form(), model.inducing.ncols());
    let mut exact = ExactGp::new(
        model.kernel.clone_box(),
        form,
        model.likelihood.clone(),
        inputs,
        model.mean.target_count(),
    );
    let values = [model.kernel.values(), model.mean.values(), model.likelihood.values()].concat();
    exact.set_values(&values);
    exact
}

#[test]
fn parts_of_one_noise_are_searched_as_their_targets_together() {
    let (whole, z) = (data(30, 2, true), normal(6, 2, "z"));
    let noise = whole.noise_variances().map(<[f64]>::to_vec);
    let part = |t: usize| {
        let targets = Mat::from_fn(30, 1, |i, _| whole.targets()[(i, t)]);
        Observations::new(whole.inputs().to_owned(), targets, noise.clone()).unwrap()
    };
    let options =
        CollapsedOptions { steps: LoopOptions { steps: 8, ..Default::default() }, ..Default::default() };
    // No mean, which the parts would share.
    let search = |targets, parts: &[Observations]| {
        let mut model = model("matern32(ard)", MeanForm::Zero, z.clone(), targets);
        model.learn_inducing = false;
        search_collapsed(model, parts, &options, None, &mut |_, _| Signal::Continue).unwrap()
    };
    let (apart, together) = (search(1, &[part(0), part(1)]), search(2, std::slice::from_ref(&whole)));
    check::assert_close(&apart.model.values(), &together.model.values(), 1e-6, 1e-6);
    assert!(
        search_collapsed(model("se", MeanForm::Zero, z.clone(), 1), &[], &options, None, &mut |_, _| {
            Signal::Continue
        })
        .is_err()
    );
}

/// Pseudo-targets of three classes: a noise where a row is of the class, another where it is not, and a few rows whose noise is anything.
fn classes(n: usize) -> Vec<Observations> {
    let (x, y) = (normal(n, 2, "x"), normal(n, 3, "y"));
    let noise = |i: usize, k: usize| match (i % 11, i % 3 == k) {
        (0, _) => 0.1 + 0.07 * k as f64,
        (_, true) => 0.2 + 0.001 * i as f64,
        (_, false) => 0.9 + 0.002 * i as f64,
    };
    (0..3)
        .map(|k| {
            let targets = Mat::from_fn(n, 1, |i, _| y[(i, k)]);
            Observations::new(x.clone(), targets, Some((0..n).map(|i| noise(i, k)).collect())).unwrap()
        })
        .collect()
}

#[test]
fn functions_together_have_the_bounds_and_gradients_of_each() {
    // One block of rows, and two.
    for n in [40, 4_500] {
        let parts = classes(n);
        let mut model = model("linear + matern32(ard)", MeanForm::Linear, normal(7, 2, "z"), 1);
        assert!(SharedInputs::new(&model, &parts).is_none(), "the noise is learned");
        model.learn_likelihood = false;
        let together = SharedInputs::new(&model, &parts).expect("two of three agree in most rows");
        let found = together.bound_and_gradient(&model).unwrap();
        let each: Vec<_> = parts.iter().map(|p| collapsed_bound_and_gradient(&model, p).unwrap()).collect();
        let value: f64 = each.iter().map(|e| e.value).sum();
        assert!((found.value - value).abs() < 1e-11 * value.abs(), "{} {value}", found.value);
        let noise = model.kernel.values().len() + model.mean.values().len();
        for (i, g) in found.gradient.iter().enumerate() {
            let sum: f64 = each.iter().map(|e| e.gradient[i]).sum();
            let scale: f64 = each.iter().map(|e| e.gradient[i].abs()).sum();
            let expected = if i == noise { 0.0 } else { sum };
            assert!((g - expected).abs() < 1e-8 * (1.0 + scale), "parameter {i} of {n} rows: {g} {expected}");
        }
        assert_eq!(found.relative_jitter, each[0].relative_jitter);
    }
    // Nothing in common, or other rows.
    let mut parts = classes(40);
    let mut model = model("rbf", MeanForm::Zero, normal(7, 2, "z"), 1);
    model.learn_likelihood = false;
    parts[1] = data(39, 1, true);
    assert!(SharedInputs::new(&model, &parts).is_none());
    let apart: Vec<_> = (0..3)
        .map(|k| {
            let noise = (0..40).map(|i| 0.1 + 0.01 * (3 * i + k) as f64).collect();
            Observations::new(normal(40, 2, "x"), normal(40, 1, "y"), Some(noise)).unwrap()
        })
        .collect();
    // Each row is one function's, and the others differ: three passes for three.
    assert!(SharedInputs::new(&model, &apart).is_none());
}

#[test]
fn the_bound_is_below_the_evidence_and_meets_it_at_the_inputs() {
    for (targets, noise) in [(1, false), (2, true)] {
        let data = data(40, targets, noise);
        let mut model = model("matern32(ard)", MeanForm::Linear, data.inputs().to_owned(), targets);
        let evidence = log_evidence(&exact(&model), &data, None).unwrap().value;
        model.jitter = 0.0;
        let bound = collapsed_bound(&model, &data).unwrap();
        assert!((bound - evidence).abs() < 1e-8, "{bound} against {evidence}");
        // Any others, better and better as points are added, never above.
        let all = normal(30, 2, "inducing");
        let mut before = f64::NEG_INFINITY;
        for m in [1, 2, 5, 15, 30] {
            let some = all.as_ref().subrows(0, m).to_owned();
            model.inducing = some;
            let bound = collapsed_bound(&model, &data).unwrap();
            assert!(bound < evidence && bound >= before - 1e-9, "{m}: {before} {bound} {evidence}");
            before = bound;
        }
        // Jitter keeps it a bound.
        model.inducing = data.inputs().to_owned();
        for jitter in [1e-6, 1e-3, 1e-1] {
            model.jitter = jitter;
            assert!(collapsed_bound(&model, &data).unwrap() < evidence);
        }
    }
}

#[test]
fn the_bound_is_the_dense_formula() {
    let (data, targets) = (data(25, 2, true), 2);
    let mut model = model("se(ard) + linear", MeanForm::Constant, normal(6, 2, "z"), targets);
    model.jitter = 0.0;
    let z = model.inducing();
    let kzx = cross(model.kernel(), z, data.inputs());
    let q = kzx.transpose() * gram(model.kernel(), z).partial_piv_lu().solve(&kzx);
    let full = gram(model.kernel(), data.inputs());
    let noise = |i: usize| 0.2 + data.noise_variances().unwrap()[i];
    let covariance = Mat::from_fn(25, 25, |i, j| q[(i, j)] + if i == j { noise(i) } else { 0.0 });
    let log_det: f64 =
        covariance.self_adjoint_eigenvalues(faer::Side::Lower).unwrap().iter().map(|e| e.ln()).sum();
    let residuals = data.targets() - model.mean.evaluate(data.inputs());
    let solved = covariance.partial_piv_lu().solve(&residuals);
    let trace: f64 = (0..25).map(|i| (full[(i, i)] - q[(i, i)]) / noise(i)).sum();
    let expected: f64 = (0..targets)
        .map(|t| {
            let quadratic = residuals.col(t).transpose() * solved.col(t);
            -0.5 * (25.0 * (2.0 * std::f64::consts::PI).ln() + log_det + quadratic + trace)
        })
        .sum();
    assert!((collapsed_bound(&model, &data).unwrap() - expected).abs() < 1e-8);
}

#[test]
fn gradients_equal_finite_differences() {
    for (text, jitter) in
        [("matern32(ard) + linear", 0.0), ("rq * matern52 + white", 1e-2), ("se(ard)", 1e-4)]
    {
        for (mean, targets, noise) in [(MeanForm::Linear, 1, true), (MeanForm::Constant, 2, false)] {
            let data = data(20, targets, noise);
            let mut start = model(text, mean, normal(5, 2, "z"), targets);
            start.jitter = jitter;
            let evaluation = collapsed_bound_and_gradient(&start, &data).unwrap();
            assert!((evaluation.value - collapsed_bound(&start, &data).unwrap()).abs() < 1e-10);
            let mut moved = start.clone();
            let numeric = check::gradient(
                |values| {
                    moved.set_values(values);
                    collapsed_bound(&moved, &data).unwrap()
                },
                &start.values(),
            );
            check::assert_close(&evaluation.gradient, &numeric, 1e-6, 1e-6);
        }
    }
}

#[test]
fn blocks_of_rows_do_not_show() {
    // More rows than a block and more inducing points than a tile.
    let n = 4096 + 300;
    let x = normal(n, 2, "many");
    let y = Mat::from_fn(n, 1, |i, _| (x[(i, 0)] * 2.0).sin());
    let data = Observations::new(x, y, None).unwrap();
    let start = model("matern32(ard)", MeanForm::Constant, normal(7, 2, "z"), 1);
    assert!(start.blocks(data.rows()).count() > 1);
    let evaluation = collapsed_bound_and_gradient(&start, &data).unwrap();
    let mut moved = start.clone();
    let numeric = check::gradient(
        |values| {
            moved.set_values(values);
            collapsed_bound(&moved, &data).unwrap()
        },
        &start.values(),
    );
    check::assert_close(&evaluation.gradient, &numeric, 1e-5, 1e-3);
}

/// The predictive formulas of the specification, with `Λ = K_ZZ + K_ZX B K_XZ`.
fn dense_prediction(model: &CollapsedGp, data: &Observations, x: MatRef<'_, f64>) -> (Mat<f64>, Mat<f64>) {
    let z = model.inducing();
    let kzx = cross(model.kernel(), z, data.inputs());
    let weighted = Mat::from_fn(kzx.nrows(), kzx.ncols(), |i, j| {
        kzx[(i, j)] / (0.2 + data.noise_variances().map_or(0.0, |v| v[j]))
    });
    let kzz = gram(model.kernel(), z);
    let lambda = &kzz + &weighted * kzx.transpose();
    let kzt = cross(model.kernel(), z, x);
    let (first, second) = (kzz.partial_piv_lu().solve(&kzt), lambda.partial_piv_lu().solve(&kzt));
    let residuals = data.targets() - model.mean.evaluate(data.inputs());
    let mean = model.mean.evaluate(x) + second.transpose() * (weighted * residuals);
    let covariance = gram(model.kernel(), x) - kzt.transpose() * (first - second);
    (mean, covariance)
}

#[test]
fn predictions_equal_the_dense_formulas_and_survive_storage() {
    let data = data(60, 2, true);
    let mut model = model("matern52(ard)", MeanForm::Linear, normal(8, 2, "z"), 2);
    model.jitter = 0.0;
    let x = normal(1100, 2, "new");
    let (posterior, bound) = model.clone().condition(&data).unwrap();
    assert_eq!(bound, collapsed_bound(&model, &data).unwrap());
    let some = x.as_ref().subrows(0, 30);
    let (mean, covariance) = dense_prediction(&model, &data, some);
    let joint = posterior.joint(some).unwrap();
    assert!((&joint.mean - &mean).norm_max() < 1e-9 && (&joint.covariance - &covariance).norm_max() < 1e-9);
    let prediction = posterior.predict(x.as_ref()).unwrap();
    for i in 0..30 {
        assert!((prediction.latent_variance[i] - covariance[(i, i)]).abs() < 1e-9);
        assert!((prediction.mean[(i, 1)] - mean[(i, 1)]).abs() < 1e-9);
    }
    assert_eq!(prediction.noise_variance, 0.2);
    let restored = InducingPosterior::from_parts(
        posterior.kernel().clone_box(),
        posterior.mean().clone(),
        posterior.likelihood().clone_box(),
        posterior.inducing().to_owned(),
        posterior.factor().clone(),
        posterior.distribution().clone(),
    )
    .unwrap();
    assert_eq!(restored.predict(x.as_ref()).unwrap(), prediction);
}

#[test]
fn at_the_inputs_it_is_the_exact_posterior_and_samples_follow_it() {
    let data = data(15, 1, false);
    let mut model = model("matern32(ard)", MeanForm::Constant, data.inputs().to_owned(), 1);
    model.jitter = 0.0;
    let exact = exact(&model).condition(data.clone()).unwrap();
    let (posterior, _) = model.condition(&data).unwrap();
    let x = normal(3, 2, "new");
    let (a, b) = (exact.joint(x.as_ref()).unwrap(), posterior.joint(x.as_ref()).unwrap());
    assert!((&a.mean - &b.mean).norm_max() < 1e-8 && (&a.covariance - &b.covariance).norm_max() < 1e-8);
    let count = 40_000;
    let mut rng = Streams::new(1).stream("draws");
    let (draws, jitter) = posterior.sample(x.as_ref(), 0, count, &mut rng).unwrap();
    assert_eq!(jitter, 0.0);
    let n = count as f64;
    for i in 0..3 {
        let mean = draws.row(i).iter().sum::<f64>() / n;
        assert!((mean - a.mean[(i, 0)]).abs() < 5.0 * (a.covariance[(i, i)] / n).sqrt());
        for j in 0..=i {
            let pairs = draws.row(i).iter().zip(draws.row(j).iter());
            let found = pairs.map(|(p, q)| (p - a.mean[(i, 0)]) * (q - a.mean[(j, 0)])).sum::<f64>() / n;
            let spread = (a.covariance[(i, i)] * a.covariance[(j, j)] + a.covariance[(i, j)].powi(2)) / n;
            assert!((found - a.covariance[(i, j)]).abs() < 5.0 * spread.sqrt());
        }
    }
}

fn wave() -> Observations {
    let x = normal(200, 2, "wave");
    let noise = normal(200, 1, "wave noise");
    let y = Mat::from_fn(200, 1, |i, _| (2.0 * x[(i, 0)]).sin() + 0.1 * noise[(i, 0)]);
    Observations::new(x, y, None).unwrap()
}

#[test]
fn a_fit_raises_the_bound_finds_the_noise_and_resumes_bit_for_bit() {
    let data = wave();
    let start = model("matern32(ard)", MeanForm::Zero, data.inputs().subrows(0, 20).to_owned(), 1);
    let before = collapsed_bound(&start, &data).unwrap();
    let mut options = CollapsedOptions::default();
    options.steps.steps = 60;
    let mut saved = None;
    let fit = fit_collapsed(start.clone(), &data, &options, None, &mut |event, state| {
        if event.step == 10 {
            saved = Some(state.clone());
        }
        Signal::Continue
    })
    .unwrap();
    assert!(fit.bound > before + 50.0, "{before} -> {}", fit.bound);
    assert!(fit.model.likelihood().noise_variance() < 0.05, "{}", fit.model.likelihood().noise_variance());
    assert!((fit.model.inducing() - start.inducing()).norm_max() > 1e-3, "inducing inputs move");
    let resumed = fit_collapsed(start.clone(), &data, &options, saved, &mut |_, _| Signal::Continue).unwrap();
    assert_eq!(resumed.bound.to_bits(), fit.bound.to_bits());
    // Fixed inducing inputs stay, and an observer's word is obeyed.
    let mut fixed = start.clone();
    fixed.learn_inducing = false;
    let stopped = fit_collapsed(fixed, &data, &options, None, &mut |event, _| {
        if event.step == 3 { Signal::Stop } else { Signal::Continue }
    })
    .unwrap();
    assert_eq!((stopped.reason, stopped.steps), (Reason::Interrupted, 3));
    assert_eq!((stopped.model.inducing() - start.inducing()).norm_max(), 0.0);
    assert!(stopped.bound > before);
}

#[test]
fn rows_from_elsewhere_give_the_bound_of_rows_in_memory() {
    // Several blocks of rows, and a number that the block does not divide.
    let data = data(5_000, 1, true);
    let start = model("matern32(ard)", MeanForm::Constant, normal(12, 2, "z"), 1);
    let mut source = ReversedRows::new(&data);
    let [own, other] =
        [&data as &dyn RowSource, &source].map(|rows| collapsed_bound_and_gradient(&start, rows).unwrap());
    assert_eq!(own, other);
    assert!(source.most_at_once() < 5_000, "{} rows at once", source.most_at_once());
    let mut options = CollapsedOptions::default();
    options.steps.steps = 3;
    let [own, other] = [&data as &dyn RowSource, &source].map(|rows| {
        fit_collapsed(start.clone(), rows, &options, None, &mut |_, _| Signal::Continue).unwrap()
    });
    assert_eq!(own.bound.to_bits(), other.bound.to_bits());
    assert_eq!(own.model.unconstrained(), other.model.unconstrained());
    assert_eq!(own.plan.peak_bytes - other.plan.peak_bytes, 5_000 * 4 * 16);
    source.fails = true;
    let failed =
        fit_collapsed(start.clone(), &source, &options, None, &mut |_, _| Signal::Continue).unwrap_err();
    assert!(failed.to_string().contains("the disk is gone"), "{failed}");
    // A pass that is watched, and one that is ended.
    let mut seen = Vec::new();
    let watched = start.clone().condition_watched(&data, &mut |rows| {
        seen.push(rows);
        Signal::Continue
    });
    let (posterior, bound) = watched.unwrap().unwrap();
    assert_eq!(bound.to_bits(), collapsed_bound(&start, &data).unwrap().to_bits());
    assert_eq!(
        posterior.distribution().mean(),
        start.clone().condition(&data).unwrap().0.distribution().mean()
    );
    assert!(seen.len() > 1 && seen.last() == Some(&5_000) && seen.is_sorted(), "{seen:?}");
    assert!(start.clone().condition_watched(&data, &mut |_| Signal::Stop).unwrap().is_none());
    // Weights are refused wherever rows are, and however many parts.
    let weighted = data.with_weights(vec![2.0; 5_000]).unwrap();
    let two = [weighted.clone(), weighted.clone()];
    let refused = search_collapsed(start.clone(), &two, &options, None, &mut |_, _| Signal::Continue);
    assert!(matches!(refused, Err(GpError::Weighted)));
    let model = model("se", MeanForm::Zero, normal(3, 2, "z"), 1);
    for rows in [&weighted as &dyn RowSource, &ReversedRows::new(&weighted)] {
        assert!(matches!(collapsed_bound(&model, rows), Err(GpError::Weighted)));
    }
}

/// What is held stays, what is bounded stays inside and is named at its bound, and the best of the rest is no better than the best of all.
#[test]
fn held_and_bounded_parameters_stay_where_they_are_told() {
    let (x, noise) = (normal(60, 2, "x"), normal(60, 1, "noise"));
    let targets = Mat::from_fn(60, 1, |i, _| (1.3 * x[(i, 0)]).sin() + 0.5 * x[(i, 1)] + 0.3 * noise[(i, 0)]);
    let (data, z) = (Observations::new(x, targets, None).unwrap(), normal(8, 2, "z"));
    let run = |constraints: Vec<Constraint>| {
        let options = CollapsedOptions { constraints, ..CollapsedOptions::default() };
        let mut model = model("matern32(ard)", MeanForm::Zero, z.clone(), 1);
        model.learn_inducing = false;
        fit_collapsed(model, &data, &options, None, &mut |_, _| Signal::Continue)
    };
    let hold = |parameter: &str, value| Constraint::Fixed { parameter: parameter.into(), value };
    let noise = |fit: &CollapsedFit| fit.model.likelihood.noise_variance();
    let free = run(Vec::new()).unwrap();
    let at_best = run(vec![hold("noise_variance", Some(noise(&free)))]).unwrap();
    assert_eq!(noise(&at_best), noise(&free));
    assert!((at_best.bound - free.bound).abs() < 1e-3, "{} {}", at_best.bound, free.bound);
    let twice = 2.0 * noise(&free);
    let bound = Constraint::Between { parameter: "noise_variance".into(), lower: twice, upper: 10.0 * twice };
    let bounded = run(vec![bound]).unwrap();
    assert_eq!(bounded.at_bounds, [("noise_variance".to_string(), twice)]);
    assert!(noise(&bounded) >= twice && bounded.bound < free.bound, "{} {}", bounded.bound, free.bound);
    // With everything held nothing is searched for.
    let all = ["matern32.variance", "lengthscale", "noise_variance"].map(|name| hold(name, Some(0.7)));
    let held = run(all.to_vec()).unwrap();
    assert_eq!(held.model.kernel.values(), [0.7; 3]);
    let there = collapsed_bound(&held.model, &data).unwrap();
    assert!(held.steps == 0 && (held.bound - there).abs() < 1e-12 * there.abs());
    assert!(run(vec![hold("scale", None)]).unwrap_err().to_string().contains("no such parameter"));
}

#[test]
fn bad_requests_are_answered() {
    let data = data(10, 1, false);
    let model = |z: Mat<f64>| CollapsedGp::new(kernel("se"), MeanForm::Zero, Gaussian::new(0.1, 1e-6), z, 1);
    assert!(matches!(model(Mat::zeros(0, 2)), Err(GpError::Empty { .. })));
    assert!(matches!(model(Mat::from_fn(1, 2, |_, _| f64::NAN)), Err(GpError::NotFinite { .. })));
    let narrow = model(Mat::zeros(2, 1)).unwrap();
    assert!(matches!(collapsed_bound(&narrow, &data), Err(GpError::Shape { .. })));
    // Inducing points that coincide are what jitter is for.
    assert!(collapsed_bound(&model(Mat::zeros(4, 2)).unwrap(), &data).unwrap().is_finite());
    let options =
        CollapsedOptions { memory_limit: 1000, steps: LoopOptions::default(), ..Default::default() };
    let fine = model(normal(3, 2, "z")).unwrap();
    let error = fit_collapsed(fine.clone(), &data, &options, None, &mut |_, _| Signal::Continue).unwrap_err();
    assert!(error.to_string().contains("3 inducing points"), "{error}");
    let (posterior, _) = fine.condition(&data).unwrap();
    assert!(posterior.predict(Mat::zeros(2, 3).as_ref()).is_err());
    assert!(posterior.sample(Mat::zeros(2, 2).as_ref(), 1, 1, &mut Streams::new(0).stream("s")).is_err());
}
