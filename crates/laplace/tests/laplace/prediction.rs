//! Predictions, evidence, modes and tuning against dense algebra.

use crate::common::*;
use faer::Mat;
use posterior_laplace::{
    Approximation, Choice, Data, FisherEstimate, FitOptions, Laplace, Mode, PriorKind, Run, Tune, Wanted,
    Weights,
};
use posterior_likelihoods::{Integration, OutputLikelihood};
use posterior_networks::train::{Examples, Tabular, Targets};
use posterior_networks::{Array, Network};
use posterior_optim::check::assert_close;

fn all_forms() -> Vec<Approximation> {
    vec![
        Approximation::Full,
        Approximation::Block,
        Approximation::Diagonal,
        Approximation::Kronecker(FisherEstimate::Exact),
        Approximation::LowRank { rank: 6, iterations: 4 },
    ]
}

fn options(approximation: Approximation) -> FitOptions {
    FitOptions {
        approximation,
        prior: PriorKind::Scalar,
        mode: Mode::Trained,
        tune: Tune::None,
        initial_precision: 0.7,
        ..FitOptions::default()
    }
}

/// `J H^-1 J^T` with the dense matrix of the fit's own structure.
fn dense_covariance(laplace: &Laplace<f64>, network: &Network<f64>, x: &Array<f64>) -> Mat<f64> {
    let structure = laplace.structure().unwrap();
    let scales = structure.scales();
    let d = structure.dimension();
    let a = laplace.prior().precision_of_each(0..d);
    let strength = match laplace.likelihood() {
        OutputLikelihood::Gaussian(_) => 1.0 / laplace.noise_variance(),
        _ => 1.0,
    };
    let m = dense(structure);
    let h = Mat::from_fn(d, d, |i, j| strength * m[(i, j)] + if i == j { a[i] } else { 0.0 });
    let j = jacobian(network, laplace.selection(), x);
    let j = Mat::from_fn(j.nrows(), d, |r, i| j[(r, i)] * scales[i]);
    &j * inverse(&h) * j.transpose()
}

fn check_prediction(laplace: &Laplace<f64>, network: &Network<f64>, what: &str) {
    let x = inputs(network, 5, 77);
    let expected = dense_covariance(laplace, network, &x);
    let c = laplace.likelihood().outputs();
    let full = laplace.latent(network, &x, Wanted::Full).unwrap();
    let variances = laplace.latent(network, &x, Wanted::Diagonal).unwrap();
    assert_close(&full.mean, network.forward(&x).unwrap().values(), 1e-13, 1e-13);
    let scale = expected.norm_max();
    for n in 0..5 {
        for (o, k) in (0..c).flat_map(|o| (0..c).map(move |k| (o, k))) {
            let found = full.covariance[n * c * c + o * c + k];
            assert!((found - expected[(n * c + o, n * c + k)]).abs() <= 1e-10 * scale, "{what} {n} {o} {k}");
        }
        for (o, v) in variances.variances(n).enumerate() {
            assert!((v - expected[(n * c + o, n * c + o)]).abs() <= 1e-10 * scale, "{what} variance {n} {o}");
        }
    }
    let joint = laplace.joint(network, &x, u64::MAX).unwrap();
    assert!(difference(&joint, &expected) < 1e-10, "{what} joint");
}

#[test]
fn every_form_predicts_as_its_dense_matrix_does() {
    for (name, network) in networks() {
        for likelihood in &likelihoods()[..2] {
            let examples = data(&network, likelihood, 9, 7);
            for form in all_forms() {
                for prior in [PriorKind::Scalar, PriorKind::Layerwise, PriorKind::GPrior] {
                    let what = format!("{name} {} {form:?} {prior:?}", likelihood.name());
                    let o = FitOptions { prior, ..options(form.clone()) };
                    check_prediction(&quiet(&network, &examples, likelihood, &o).unwrap(), &network, &what);
                }
            }
            for form in [
                Approximation::Full,
                Approximation::Diagonal,
                Approximation::Kronecker(FisherEstimate::Exact),
            ] {
                let o = FitOptions { weights: Weights::LastLayer, ..options(form.clone()) };
                check_prediction(
                    &quiet(&network, &examples, likelihood, &o).unwrap(),
                    &network,
                    &format!("{name} last layer {form:?}"),
                );
            }
            for choice in [Choice::Variance, Choice::Magnitude, Choice::Random] {
                for form in [Approximation::Full, Approximation::Diagonal] {
                    let weights = Weights::Subnetwork { size: 17, choice };
                    let laplace = quiet(
                        &network,
                        &examples,
                        likelihood,
                        &FitOptions { weights, ..options(form.clone()) },
                    )
                    .unwrap();
                    assert_eq!(laplace.selection().len(), 17);
                    check_prediction(&laplace, &network, &format!("{name} sub-network {choice:?} {form:?}"));
                }
            }
            let weights = Weights::Matching(vec!["*bias".into()]);
            let laplace = quiet(
                &network,
                &examples,
                likelihood,
                &FitOptions { weights, ..options(Approximation::Full) },
            )
            .unwrap();
            check_prediction(&laplace, &network, &format!("{name} biases"));
        }
    }
}

#[test]
fn function_space_is_weight_space() {
    for (name, network) in networks() {
        for likelihood in &likelihoods()[..2] {
            let examples = data(&network, likelihood, 6, 7);
            let weight = quiet(
                &network,
                &examples,
                likelihood,
                &FitOptions { tune: Tune::Evidence, ..options(Approximation::Full) },
            )
            .unwrap();
            let o =
                FitOptions { tune: Tune::Evidence, ..options(Approximation::FunctionSpace { points: None }) };
            let function = quiet(&network, &examples, likelihood, &o).unwrap();
            let (a, b) =
                (weight.summary.evidence.as_ref().unwrap(), function.summary.evidence.as_ref().unwrap());
            assert_close(
                &[a.log_evidence, a.log_determinant],
                &[b.log_evidence, b.log_determinant],
                1e-6,
                1e-6,
            );
            assert_close(weight.prior().precisions(), function.prior().precisions(), 1e-4, 0.0);
            // The same hyperparameters to the last digit, so that predictions can be compared to the last digit.
            let o = FitOptions { initial_precision: 0.9, tune: Tune::None, ..o };
            let function = quiet(&network, &examples, likelihood, &o).unwrap();
            let weight = quiet(
                &network,
                &examples,
                likelihood,
                &FitOptions { initial_precision: 0.9, ..options(Approximation::Full) },
            )
            .unwrap();
            let e = |l: &Laplace<f64>| l.summary.evidence.as_ref().unwrap().log_evidence;
            assert_close(&[e(&function)], &[e(&weight)], 1e-10, 1e-10);
            let x = inputs(&network, 5, 77);
            let (f, w) = (
                function.latent(&network, &x, Wanted::Full).unwrap(),
                weight.latent(&network, &x, Wanted::Full).unwrap(),
            );
            let scale = w.covariance.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            assert_close(&f.covariance, &w.covariance, 1e-9, 1e-9 * scale);
            let (f, w) = (
                function.joint(&network, &x, u64::MAX).unwrap(),
                weight.joint(&network, &x, u64::MAX).unwrap(),
            );
            assert!(difference(&f, &w) < 1e-9, "{name}");
            let subset = FitOptions { approximation: Approximation::FunctionSpace { points: Some(4) }, ..o };
            let subset = quiet(&network, &examples, likelihood, &subset).unwrap();
            assert_eq!(subset.summary.points, Some((4, 6)));
            let s = subset.latent(&network, &x, Wanted::Diagonal).unwrap();
            let w = weight.latent(&network, &x, Wanted::Diagonal).unwrap();
            // Fewer observations never say more.
            assert!(s.covariance.iter().zip(&w.covariance).all(|(s, w)| *s >= w - 1e-12));
        }
    }
}

#[test]
fn samples_have_the_posterior_covariance() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[0];
    let examples = data(&network, likelihood, 9, 7);
    let x = inputs(&network, 2, 77);
    for form in [all_forms(), vec![Approximation::FunctionSpace { points: None }]].concat() {
        let laplace = quiet(&network, &examples, likelihood, &options(form.clone())).unwrap();
        let of_functions = matches!(form, Approximation::FunctionSpace { .. });
        let samples = 20_000;
        let functions = laplace.function_samples(&network, &x, samples, 5, 1 << 30).unwrap();
        let mean = network.forward(&x).unwrap();
        let expected = match of_functions {
            true => laplace.joint(&network, &x, 1 << 30).unwrap(),
            false => dense_covariance(&laplace, &network, &x),
        };
        for (i, k) in (0..6).flat_map(|i| (0..6).map(move |k| (i, k))) {
            let found: f64 = functions
                .chunks_exact(6)
                .map(|f| (f[i] - mean.values()[i]) * (f[k] - mean.values()[k]) / samples as f64)
                .sum();
            // The variance of a product of Gaussians is v_i v_k + c_ik^2: five standard errors.
            let error =
                ((expected[(i, i)] * expected[(k, k)] + expected[(i, k)].powi(2)) / samples as f64).sqrt();
            assert!((found - expected[(i, k)]).abs() < 5.0 * error, "{form:?} {i} {k}");
        }
        if of_functions {
            continue;
        }
        // The same seed gives the same functions, whatever the inputs are asked for together with.
        let again = laplace.function_samples(&network, &x.slice_rows(1..2), 3, 5, 1 << 30).unwrap();
        assert_close(&again[..3], &functions[3..6], 1e-12, 1e-12);
        let nn = laplace.network_samples(&network, &x, 2, 5).unwrap();
        assert_eq!(nn.len(), 12);
    }
}

/// The covariance of copies of an input is singular but for rounding, and its factor would be rounding divided by rounding.
#[test]
fn draws_at_copies_of_an_input_are_alike() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[0];
    let examples = data(&network, likelihood, 9, 7);
    let few = inputs(&network, 3, 77);
    let copies = Array::new(vec![120, few.row(0).len()], few.values().repeat(40));
    let options = options(Approximation::FunctionSpace { points: None });
    let laplace = quiet(&network, &examples, likelihood, &options).unwrap();
    let (samples, outputs) = (200, 3);
    let latent = laplace.latent(&network, &copies, Wanted::Diagonal).unwrap();
    let draws = laplace.function_samples(&network, &copies, samples, 5, 1 << 30).unwrap();
    for i in 0..120 * outputs {
        let moved = |s: usize, i: usize| draws[s * 120 * outputs + i] - latent.mean[i];
        let first = i % (3 * outputs);
        let apart = (0..samples).map(|s| (moved(s, i) - moved(s, first)).powi(2)).sum::<f64>();
        let scatter = (0..samples).map(|s| moved(s, i).powi(2)).sum::<f64>();
        // The chance of a variance over 200 draws.
        let ratio = scatter / samples as f64 / latent.covariance[i];
        assert!((ratio - 1.0).abs() < 0.5, "{i}: {ratio}");
        assert!(apart < 0.01 * scatter, "{i}: {apart} of {scatter}");
    }
}

/// With Gaussian noise the linearised model is conjugate: its mode has a closed form, and the evidence there is the marginal likelihood of the tangent.
#[test]
fn the_linearised_mode_of_a_gaussian_model_is_ridge_regression() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[1];
    let examples = data(&network, likelihood, 9, 7);
    let mode_options = posterior_laplace::ModeOptions {
        tolerance: 1e-14,
        inner_steps: 200,
        newton_steps: 5,
        ..Default::default()
    };
    for (mode, simple) in [(Mode::Linearised, false), (Mode::LinearisedSimple, true)] {
        let o = FitOptions {
            mode,
            mode_options,
            alternations: 1,
            ..options(Approximation::Kronecker(FisherEstimate::Exact))
        };
        let laplace = quiet(&network, &examples, likelihood, &o).unwrap();
        let indices: Vec<usize> = (0..9).collect();
        let (x, y) = examples.batch(&indices, None);
        let posterior_networks::train::Targets::Values(y) = y else { panic!() };
        let j = jacobian(&network, laplace.selection(), &x);
        let trained = laplace.selection().flatten(network.parameters());
        let g = network.forward(&x).unwrap();
        let through = &j * Mat::from_fn(j.ncols(), 1, |i, _| trained[i]);
        // y - f0, weighted by the precisions 2, 1, 0.5 of the outputs.
        let precision = |r: usize| [2.0, 1.0, 0.5][r % 3];
        let target = Mat::from_fn(27, 1, |r, _| {
            y.values()[r] - if simple { 0.0 } else { g.values()[r] - through[(r, 0)] }
        });
        let weighted = Mat::from_fn(27, j.ncols(), |r, i| precision(r) * j[(r, i)]);
        let mut h = j.transpose() * &weighted;
        (0..h.nrows()).for_each(|i| h[(i, i)] += 0.7);
        let expected = inverse(&h) * (weighted.transpose() * target);
        let summary = laplace.summary.mode.as_ref().unwrap();
        // The loss is at least 0.35 |w - w*|^2 above its minimum, and the search ended within 1e-14 of that (a safe factor of 10 for the estimate).
        let distance: f64 =
            laplace.mode().iter().zip(expected.col_as_slice(0)).map(|(a, b)| (a - b) * (a - b)).sum();
        assert!(distance < 10.0 * 1e-14 / 0.35, "{distance}");
        assert!(summary.converged && summary.newton_steps >= 1);
    }
}

/// At the mode of a softmax model the gradient of the regularised loss vanishes, whether kernels between few examples or products with Jacobians have found it.
#[test]
fn the_linearised_mode_of_a_classifier_is_stationary_and_better_than_the_trained_weights() {
    let network = network(NORMALISED, 2);
    let likelihood = &likelihoods()[0];
    let mode_options = posterior_laplace::ModeOptions { tolerance: 1e-12, ..Default::default() };
    let mode_options = posterior_laplace::ModeOptions { norm_tolerance: 0.0, ..mode_options };
    let few = [(30, PriorKind::Scalar), (30, PriorKind::Layerwise)];
    let cases = few.into_iter().flat_map(|c| [(c.clone(), false), (c, true)]);
    for ((count, prior), simple) in cases.chain([((1001, PriorKind::Layerwise), false)]) {
        let examples = data(&network, likelihood, count, 7);
        let mode = if simple { Mode::LinearisedSimple } else { Mode::Linearised };
        let o = FitOptions { mode, prior, mode_options, alternations: 1, ..options(Approximation::Full) };
        let laplace = quiet(&network, &examples, likelihood, &o).unwrap();
        let summary = laplace.summary.mode.as_ref().unwrap();
        assert_eq!(summary.products == 0, count == 30, "{summary:?}");
        let (x, _) = examples.batch(&(0..count).collect::<Vec<_>>(), None);
        let j = jacobian(&network, laplace.selection(), &x);
        let trained = laplace.selection().flatten(network.parameters());
        let g = network.forward(&x).unwrap();
        let from = |k: usize| if simple { (0.0, 0.0) } else { (g.values()[k], 1.0) };
        let value = |w: &[f64]| {
            let step = &j * Mat::from_fn(j.ncols(), 1, |i, _| w[i] - from(0).1 * trained[i]);
            let mut gradient = Mat::from_fn(j.ncols(), 1, |i, _| 0.7 * w[i]);
            let mut loss = 0.35 * w.iter().map(|w| w * w).sum::<f64>();
            for i in 0..count {
                let f: Vec<f64> = (0..3).map(|c| from(3 * i + c).0 + step[(3 * i + c, 0)]).collect();
                let y = target(&examples, i);
                loss -= likelihood.log_density(&y, &f);
                let mut slope = vec![0.0; 3];
                likelihood.gradient(&y, &f, &mut slope);
                (0..3)
                    .for_each(|c| gradient -= j.row(3 * i + c).transpose().as_mat() * faer::Scale(slope[c]));
            }
            (loss, gradient.norm_max())
        };
        let (loss, slope) = value(laplace.mode());
        assert!(slope < 1e-5, "{slope}");
        assert!(loss < value(&trained).0);
        let norm = laplace.mode().iter().map(|w| w * w).sum::<f64>();
        assert!((summary.log_likelihood + loss - 0.35 * norm).abs() < 1e-8);
    }
}

/// Thesis proposition 8 and figure 5.5: multiplying normalised weights by 3.7 changes nothing under the g-prior, and predictions under one shared precision.
#[test]
fn the_g_prior_does_not_see_the_scale_of_normalised_weights() {
    let network = network(
        "kind = \"perceptron\"\ninputs = 2\nhidden = [6, 5]\noutputs = 3\nactivation = \"relu\"\nlayer_norm = true\nlayer_norm_affine = false",
        2,
    );
    let layers = posterior_laplace::normalisation::scale_invariant_layers(network.graph());
    assert_eq!(layers.len(), 2, "{layers:?}");
    let mut scaled = network.clone();
    for layer in &layers {
        for &p in &layer.parameters {
            scaled.parameters_mut()[p].values_mut().iter_mut().for_each(|v| *v *= 3.7);
        }
    }
    let likelihood = &likelihoods()[0];
    let examples = data(&network, likelihood, 20, 7);
    let x = inputs(&network, 5, 77);
    // The epsilon of the norm breaks the invariance by about epsilon / variance.
    assert_close(network.forward(&x).unwrap().values(), scaled.forward(&x).unwrap().values(), 1e-3, 1e-4);
    for form in
        [Approximation::Full, Approximation::Diagonal, Approximation::Kronecker(FisherEstimate::Exact)]
    {
        let covariance = |network: &Network<f64>, prior| {
            let o = FitOptions { prior, ..options(form.clone()) };
            quiet(network, &examples, likelihood, &o)
                .unwrap()
                .latent(network, &x, Wanted::Full)
                .unwrap()
                .covariance
        };
        let (a, b) = (covariance(&network, PriorKind::GPrior), covariance(&scaled, PriorKind::GPrior));
        let largest = |v: &[f64]| v.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let change = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / largest(a)
        };
        assert!(change(&a, &b) < 2e-3, "{form:?} {}", change(&a, &b));
        let (a, b) = (covariance(&network, PriorKind::Scalar), covariance(&scaled, PriorKind::Scalar));
        assert!(change(&a, &b) > 0.1, "{form:?}");
    }
    // The defaults notice, say so and choose the repair.
    let laplace = quiet(&network, &examples, likelihood, &FitOptions::default()).unwrap();
    assert!(
        laplace.summary.notes.iter().any(|n| n.contains("removed by normalisation")),
        "{:?}",
        laplace.summary.notes
    );
    assert!(laplace.summary.mode.is_some() && laplace.summary.evidence_at_trained.is_some());
    assert!(laplace.prior().precisions().len() == 3);
}

#[test]
fn held_out_data_choose_what_scores_best_under_the_predictive_in_use() {
    let network = network(PERCEPTRON, 4);
    for likelihood in &likelihoods()[..2] {
        let (train, held_out) = (data(&network, likelihood, 40, 7), data(&network, likelihood, 60, 17));
        for integration in [Integration::Probit, Integration::MonteCarlo { samples: 64, seed: 1 }] {
            if matches!(likelihood, OutputLikelihood::Gaussian(_)) && integration != Integration::Probit {
                continue;
            }
            let o = FitOptions {
                tune: Tune::Validation,
                integration,
                ..options(Approximation::Kronecker(FisherEstimate::Exact))
            };
            let data = Data { validation: Some(&held_out), ..Data::new(&network, &train, likelihood) };
            let laplace = posterior_laplace::fit(&data, &o, &mut Run::default()).unwrap();
            let report = laplace.summary.held_out.clone().unwrap();
            assert!(report.grid.iter().all(|p| p.nll.is_nan() || p.nll >= report.best.nll));
            assert_eq!(report.examples, 60);
            // Scored again from the finished posterior.
            let rule = laplace.rule(integration).unwrap();
            let indices: Vec<usize> = (0..60).collect();
            let (x, _) = held_out.batch(&indices, None);
            let latent = laplace.latent(&network, &x, Wanted::Full).unwrap();
            let nll: f64 = (0..60)
                .map(|i| {
                    -rule.log_predictive_density(&target(&held_out, i), latent.example(i)).unwrap() / 60.0
                })
                .sum();
            assert!((nll - report.best.nll).abs() < 1e-8, "{nll} {}", report.best.nll);
        }
        let o = FitOptions { tune: Tune::CrossValidation { folds: 4 }, ..options(Approximation::Diagonal) };
        // The network has seen these rows, whatever part is left out.
        let text = quiet(&network, &train, likelihood, &o).map(|_| ()).unwrap_err().to_string();
        assert!(text.contains("rows that the network was trained on"), "{text}");
        let o = FitOptions { seen_by_network: true, ..o };
        let laplace = quiet(&network, &train, likelihood, &o).unwrap();
        assert!(
            laplace
                .summary
                .notes
                .iter()
                .any(|n| n.starts_with("WARNING: hyperparameters were chosen on rows"))
        );
        assert_eq!(laplace.summary.held_out.unwrap().examples, 40);
        let few = data(&network, likelihood, 30, 17);
        let o = FitOptions { tune: Tune::Validation, ..options(Approximation::Diagonal) };
        let data = Data { validation: Some(&few), ..Data::new(&network, &train, likelihood) };
        let fitted = posterior_laplace::fit(&data, &o, &mut Run::default());
        let text = fitted.map(|_| ()).unwrap_err().to_string();
        assert!(text.contains("30 held-out examples are too few") && text.contains("at least 50"), "{text}");
    }
}

#[test]
fn noise_is_learned_for_each_output_or_with_its_correlations() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[1];
    let count = 600;
    let x = inputs(&network, count, 7);
    let f = network.forward(&x).unwrap();
    // Noise with standard deviations 0.2, 0.5, 1 and a correlation of 0.8 between the first two.
    let z = normals(3 * count, 9);
    let y: Vec<f64> = (0..count)
        .flat_map(|i| {
            let z = &z[3 * i..3 * i + 3];
            let f = f.row(i);
            [f[0] + 0.2 * z[0], f[1] + 0.5 * (0.8 * z[0] + 0.6 * z[1]), f[2] + z[2]]
        })
        .collect();
    let examples = posterior_networks::train::Tabular::new(
        x,
        posterior_networks::train::Targets::Values(Array::new(vec![count, 3], y)),
    );
    let fit = |noise| {
        let o = FitOptions {
            noise,
            tune: Tune::Evidence,
            ..options(Approximation::Kronecker(FisherEstimate::Exact))
        };
        quiet(&network, &examples, likelihood, &o).unwrap()
    };
    // The relative error of a variance from 600 residuals is sqrt(2/600) = 5.8 %; four of those.
    let near = |found: f64, truth: f64| assert!((found / truth - 1.0).abs() < 0.23, "{found} {truth}");
    let OutputLikelihood::Gaussian(each) =
        fit(posterior_laplace::fit::NoiseModel::PerOutput).likelihood().clone()
    else {
        panic!()
    };
    each.noise_variances().iter().zip([0.04, 0.25, 1.0]).for_each(|(v, t)| near(*v, t));
    let OutputLikelihood::FullGaussian(full) =
        fit(posterior_laplace::fit::NoiseModel::Full).likelihood().clone()
    else {
        panic!()
    };
    let c = full.covariance();
    [c[0], c[4], c[8], c[1]].iter().zip([0.04, 0.25, 1.0, 0.08]).for_each(|(v, t)| near(*v, t));
}

/// In single precision the kernel's rounding alone would make variances negative: they are differences of large numbers.
#[test]
fn function_space_predicts_in_single_precision() {
    let wide = network(PERCEPTRON, 4);
    let network = wide.cast::<f32>().unwrap();
    let likelihood = &likelihoods()[1];
    let x: Array<f32> = inputs(&wide, 25, 7).cast();
    let f = wide.forward(&inputs(&wide, 25, 7)).unwrap();
    let y = Targets::Values(Array::new(vec![25, 3], f.values().iter().map(|v| *v as f32 + 0.1).collect()));
    let data = Tabular::new(x.clone(), y);
    for (precision, noise) in [(1e-3, 1e-4), (1e-4, 1e-6)] {
        let o = FitOptions {
            tune: Tune::None,
            initial_precision: precision,
            noise: posterior_laplace::NoiseModel::Fixed,
            ..options(Approximation::FunctionSpace { points: None })
        };
        let quieter = posterior_laplace::scores::scaled_noise(likelihood, noise).unwrap();
        let run = &mut Run::default();
        let laplace = posterior_laplace::fit(&Data::new(&network, &data, &quieter), &o, run).unwrap();
        laplace.check_predictions(&network, &data).unwrap();
        let latent = laplace.latent(&network, &x, Wanted::Full).unwrap();
        // Against the same in double precision, relative to the noise that the data were seen through.
        let wide_data = Tabular::new(inputs(&wide, 25, 7), Targets::Values(f.clone()));
        let exact = posterior_laplace::fit(&Data::new(&wide, &wide_data, &quieter), &o, run).unwrap();
        let expected = exact.latent(&wide, &inputs(&wide, 25, 7), Wanted::Full).unwrap();
        for i in 0..25 {
            for (a, b) in latent.variances(i).zip(expected.variances(i)) {
                assert!(a >= 0.0 && (a - b).abs() < 1e-2 * b + 1e-3 * noise, "{precision}: {a} {b}");
            }
        }
    }
}
