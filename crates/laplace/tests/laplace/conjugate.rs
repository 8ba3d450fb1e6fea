//! Gaussian noise and one precision: optimum, evidence and predictions of the linearised model against dense algebra.

use crate::common::*;
use faer::Mat;
use posterior_laplace::{
    Approximation, Data, FitOptions, Laplace, LaplaceError, Mode, PriorKind, Run, Stage, Tune, Wanted, fit,
};
use posterior_likelihoods::{FullGaussian, OutputLikelihood, PredictiveWorkspace};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_networks::train::{Examples, Tabular, Targets};
use posterior_networks::{Array, Network, Selection};
use posterior_optim::Signal;
use posterior_optim::check::assert_close;

/// Roots of the precisions 2, 1 and 1/2 of [`likelihoods`]' Gaussian.
fn root(row: usize) -> f64 {
    [2f64.sqrt(), 1.0, 0.5f64.sqrt()][row % 3]
}

fn options(approximation: Approximation) -> FitOptions {
    FitOptions { approximation, prior: PriorKind::Scalar, ..FitOptions::default() }
}

const DUAL: Approximation = Approximation::FunctionSpace { points: None };

/// Targets that weights a little off the trained ones explain, with noise.
fn moved(network: &Network<f64>, examples: usize, noise: f64) -> Tabular<f64> {
    let x = inputs(network, examples, 21);
    let selection = Selection::all(network.graph());
    let j = jacobian(network, &selection, &x);
    let step = normals(selection.len(), 22);
    let moved = &j * Mat::from_fn(step.len(), 1, |i, _| 0.3 * step[i]);
    let g = network.forward(&x).unwrap();
    let z = normals(g.len(), 23);
    let y = (0..g.len()).map(|r| g.values()[r] + moved[(r, 0)] + noise * z[r] / root(r)).collect();
    Tabular::new(x, Targets::Values(Array::new(vec![examples, 3], y)))
}

/// The model by its definition.
struct Dense {
    jacobian: Mat<f64>,
    trained: Vec<f64>,
    /// `R^T (y - g + J v)`.
    targets: Mat<f64>,
    /// `R^T J`.
    features: Mat<f64>,
}

impl Dense {
    fn new(network: &Network<f64>, examples: &dyn Examples<f64>) -> Self {
        let selection = Selection::all(network.graph());
        let (x, y) = examples.batch(&(0..examples.len()).collect::<Vec<_>>(), None);
        let Targets::Values(y) = y else { panic!() };
        let jacobian = jacobian(network, &selection, &x);
        let trained = selection.flatten(network.parameters());
        let through = &jacobian * Mat::from_fn(trained.len(), 1, |i, _| trained[i]);
        let g = network.forward(&x).unwrap();
        let target = |r: usize| root(r) * (y.values()[r] - g.values()[r] + through[(r, 0)]);
        let features = Mat::from_fn(jacobian.nrows(), jacobian.ncols(), |r, i| root(r) * jacobian[(r, i)]);
        Self { targets: Mat::from_fn(g.len(), 1, |r, _| target(r)), jacobian, trained, features }
    }

    /// The marginal likelihood of the targets.
    fn log_evidence(&self, a: f64, s: f64) -> f64 {
        let n = self.targets.nrows();
        let k = &self.features * self.features.transpose();
        let c = Mat::from_fn(n, n, |i, j| k[(i, j)] / a + if i == j { s } else { 0.0 });
        let factor = Cholesky::of(c.as_ref(), JitterPolicy::default()).unwrap();
        let mut white = self.targets.clone();
        factor.solve_factor_in_place(white.as_mut());
        let roots: f64 = (0..n).map(|r| root(r).ln()).sum();
        let constant = n as f64 * (2.0 * std::f64::consts::PI).ln();
        roots - 0.5 * (white.squared_norm_l2() + factor.log_determinant() + constant)
    }

    /// Covariance of the weights and their mean by ridge regression.
    fn posterior(&self, a: f64, s: f64) -> (Mat<f64>, Mat<f64>) {
        let mut h = self.features.transpose() * &self.features * faer::Scale(1.0 / s);
        (0..h.nrows()).for_each(|i| h[(i, i)] += a);
        let covariance = inverse(&h);
        let mean = &covariance * (self.features.transpose() * &self.targets) * faer::Scale(1.0 / s);
        (covariance, mean)
    }
}

fn hyperparameters(laplace: &Laplace<f64>) -> (f64, f64) {
    (laplace.prior().precisions()[0], laplace.noise_variance())
}

#[test]
fn the_default_is_the_largest_evidence_of_the_linearised_model() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[1];
    let examples = moved(&network, 40, 0.4);
    let dense = Dense::new(&network, &examples);
    let mut found = Vec::new();
    for approximation in [Approximation::Full, DUAL] {
        let laplace = quiet(&network, &examples, likelihood, &options(approximation.clone())).unwrap();
        let (a, s) = hyperparameters(&laplace);
        let largest = dense.log_evidence(a, s);
        let evidence = laplace.summary.evidence.as_ref().unwrap().log_evidence;
        assert!((evidence - largest).abs() < 1e-6, "{approximation:?}: {evidence}, {largest}");
        for (i, j) in (-12..=12).flat_map(|i| (-12..=12).map(move |j| (i, j))) {
            let factor = |k: i32| 10f64.powf(f64::from(k) * 0.25);
            assert!(dense.log_evidence(a * factor(i), s * factor(j)) <= largest + 1e-6, "{i} {j}");
        }
        // The noise was of deviation 0.4 and 120 numbers tell it: five standard errors.
        assert!((s.sqrt() / 0.4 - 1.0).abs() < 5.0 / (2.0f64 * (120.0 - 59.0)).sqrt(), "{s}");
        let (_, mean) = dense.posterior(a, s);
        assert_close(laplace.mode(), mean.col_as_slice(0), 1e-6, 1e-6);
        let summary = laplace.summary.mode.as_ref().unwrap();
        assert!(summary.converged);
        let difference = Mat::from_fn(59, 1, |i, _| laplace.mode()[i] - dense.trained[i]);
        let displacement = (&dense.jacobian * difference).norm_l2() / 120f64.sqrt();
        assert!((summary.displacement.unwrap() / displacement - 1.0).abs() < 1e-10);
        found.push((a, s));
    }
    let [(a, s), (b, t)] = found[..] else { panic!() };
    // Where the evidence is largest it is flat: 1e-6 of a logarithm is what the searches end at.
    assert!((a / b - 1.0).abs() < 1e-4 && (s / t - 1.0).abs() < 1e-4, "{found:?}");
}

#[test]
fn predictions_are_mean_squares_about_the_network() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[1];
    let examples = moved(&network, 40, 0.4);
    let dense = Dense::new(&network, &examples);
    let x = inputs(&network, 6, 31);
    for approximation in [Approximation::Full, DUAL] {
        let laplace = quiet(&network, &examples, likelihood, &options(approximation.clone())).unwrap();
        let (a, s) = hyperparameters(&laplace);
        let (covariance, _) = dense.posterior(a, s);
        let j = jacobian(&network, laplace.selection(), &x);
        let off = &j * Mat::from_fn(59, 1, |i, _| laplace.mode()[i] - dense.trained[i]);
        let expected = &j * covariance * j.transpose() + &off * off.transpose();
        assert!(off.norm_l2() > 0.1, "nothing is tested");
        assert!(difference(&laplace.joint(&network, &x, u64::MAX).unwrap(), &expected) < 1e-9);
        let full = laplace.latent(&network, &x, Wanted::Full).unwrap();
        let variances = laplace.latent(&network, &x, Wanted::Diagonal).unwrap();
        assert_close(&full.mean, network.forward(&x).unwrap().values(), 1e-13, 1e-13);
        for n in 0..6 {
            for c in 0..3 {
                let row = 3 * n + c;
                assert_close(&[variances.covariance[row]], &[expected[(row, row)]], 1e-9, 1e-9);
                let own = &full.covariance[9 * n + 3 * c..][..3];
                let wanted: Vec<f64> = (0..3).map(|k| expected[(row, 3 * n + k)]).collect();
                assert_close(own, &wanted, 1e-9, 1e-9);
            }
        }
        if approximation == Approximation::Full {
            // Mean squares of draws, whose own relative deviation is the root of 2 / draws.
            let (draws, g) = (4000, network.forward(&x).unwrap());
            let functions = laplace.function_samples(&network, &x, draws, 3, 1 << 30).unwrap();
            for row in 0..18 {
                let squares = functions.chunks_exact(18).map(|f| (f[row] - g.values()[row]).powi(2));
                let ratio = squares.sum::<f64>() / draws as f64 / expected[(row, row)];
                assert!((ratio - 1.0).abs() < 5.0 * (2.0 / draws as f64).sqrt(), "{row}: {ratio}");
            }
        }
    }
}

#[test]
fn single_precision_finds_the_same() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[1];
    let examples = moved(&network, 40, 0.4);
    let narrow: Network<f32> = network.cast().unwrap();
    let (x, y) = examples.batch(&(0..40).collect::<Vec<_>>(), None);
    let Targets::Values(y) = y else { panic!() };
    let single = Tabular::new(x.cast::<f32>(), Targets::Values(y.cast::<f32>()));
    for approximation in [Approximation::Full, DUAL] {
        let o = options(approximation);
        let wide = quiet(&network, &examples, likelihood, &o).unwrap();
        let found = fit(&Data::new(&narrow, &single, likelihood), &o, &mut Run::default()).unwrap();
        let (a, s) = hyperparameters(&wide);
        let (b, t) = (found.prior().precisions()[0], found.noise_variance());
        // Single precision is 1e-7 of sums that are some thousand times the residuals'.
        assert!((a / b - 1.0).abs() < 1e-3 && (s / t - 1.0).abs() < 1e-3, "{a} {b}, {s} {t}");
    }
}

#[test]
fn half_of_the_numbers_are_left_to_the_noise_where_all_could_be_fitted() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[1];
    // 45 numbers without noise, 59 weights: everything can be fitted.
    let examples = moved(&network, 15, 0.0);
    let dense = Dense::new(&network, &examples);
    for approximation in [Approximation::Full, DUAL] {
        let laplace = quiet(&network, &examples, likelihood, &options(approximation.clone())).unwrap();
        let remark =
            |l: &Laplace<f64>| l.summary.notes.iter().any(|n| n.contains("fit what it learned from"));
        assert!(remark(&laplace), "{:?}", laplace.summary.notes);
        let evidence = laplace.summary.evidence.as_ref().unwrap();
        assert!((evidence.effective_dimensions[0] - 22.5).abs() < 1e-3, "{evidence:?}");
        // The largest evidence of those: none on the curve `gamma = 22.5`, along which only a s stays, is larger.
        let (a, s) = hyperparameters(&laplace);
        assert!((evidence.log_evidence - dense.log_evidence(a, s)).abs() < 1e-6);
        for factor in [0.5, 0.9, 1.1, 2.0] {
            assert!(dense.log_evidence(a / factor, s * factor) < evidence.log_evidence);
        }
        let (_, mean) = dense.posterior(a, s);
        assert_close(laplace.mode(), mean.col_as_slice(0), 1e-6, 1e-6);
        assert!(laplace.summary.mode.as_ref().unwrap().displacement.is_some());
        // Who asks for the optimum gets it, with the remark.
        let asked = FitOptions { mode: Mode::Linearised, ..options(approximation.clone()) };
        let asked = quiet(&network, &examples, likelihood, &asked).unwrap();
        assert!(asked.summary.mode.as_ref().unwrap().displacement.is_some() && remark(&asked));
        assert!(asked.noise_variance() < 1e-3 * laplace.noise_variance());
        if approximation == Approximation::Full {
            // Further data, of which it knows as much: as all at once.
            let o = options(approximation);
            let first = quiet(&network, &rows(&examples, 0..8), likelihood, &o).unwrap();
            let both = first.extended(&network, &rows(&examples, 8..15), &o, &mut Run::default()).unwrap();
            assert!(remark(&both));
            let (b, t) = hyperparameters(&both);
            assert!((a / b - 1.0).abs() < 1e-4 && (s / t - 1.0).abs() < 1e-4, "{a} {b}, {s} {t}");
        }
    }
}

/// Some of the examples.
fn rows(examples: &Tabular<f64>, range: std::ops::Range<usize>) -> Tabular<f64> {
    let (x, y) = examples.batch(&range.collect::<Vec<_>>(), None);
    Tabular::new(x, y)
}

#[test]
fn further_data_make_the_optimum_of_all() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[1];
    let examples = moved(&network, 60, 0.4);
    let o = options(Approximation::Full);
    let whole = quiet(&network, &examples, likelihood, &o).unwrap();
    let more = |l: &Laplace<f64>, range| {
        l.extended(&network, &rows(&examples, range), &o, &mut Run::default()).unwrap()
    };
    let first = quiet(&network, &rows(&examples, 0..30), likelihood, &o).unwrap();
    assert!(first.summary.mode.is_some());
    let twice = more(&more(&first, 30..45), 45..60);
    let (a, s) = hyperparameters(&whole);
    let (b, t) = hyperparameters(&twice);
    assert!((a / b - 1.0).abs() < 1e-4 && (s / t - 1.0).abs() < 1e-4, "{a} {b}, {s} {t}");
    assert!(twice.summary.mode.as_ref().unwrap().displacement.unwrap() > 0.1);
    let evidence = |l: &Laplace<f64>| l.summary.evidence.as_ref().unwrap().log_evidence;
    assert!((evidence(&whole) - evidence(&twice)).abs() < 1e-6);
    let x = inputs(&network, 6, 31);
    let [wide, narrow] = [&whole, &twice].map(|l| l.latent(&network, &x, Wanted::Diagonal).unwrap());
    assert_close(&narrow.covariance, &wide.covariance, 1e-3, 1e-3);
    // What nobody tunes is only conditioned: exactly so.
    let fixed = FitOptions { tune: Tune::None, ..o.clone() };
    let same = first.extended(&network, &rows(&examples, 30..60), &fixed, &mut Run::default());
    let same = same.unwrap();
    let (a, s) = hyperparameters(&same);
    assert_eq!((a, s), hyperparameters(&first));
    let (_, mean) = Dense::new(&network, &examples).posterior(a, s);
    assert_close(same.mode(), mean.col_as_slice(0), 1e-6, 1e-6);
    // In single precision, with little noise: sums of squares are differences of much larger ones.
    let quiet_examples = moved(&network, 60, 1e-3);
    let cast = |range: std::ops::Range<usize>| {
        let (x, y) = quiet_examples.batch(&range.collect::<Vec<_>>(), None);
        let Targets::Values(y) = y else { panic!() };
        Tabular::new(x.cast::<f32>(), Targets::Values(y.cast::<f32>()))
    };
    let narrow: Network<f32> = network.cast().unwrap();
    let run = &mut Run::default();
    let first = fit(&Data::new(&narrow, &cast(0..30), likelihood), &o, run).unwrap();
    let both = first.extended(&narrow, &cast(30..60), &o, run).unwrap();
    let whole = fit(&Data::new(&narrow, &cast(0..60), likelihood), &o, run).unwrap();
    assert!(first.summary.mode.is_some() && both.summary.mode.is_some());
    let ratio = both.noise_variance() / whole.noise_variance();
    assert!((ratio - 1.0).abs() < 1e-2, "{ratio}");
    // Hyperparameters that were changed after the optimum was found do not tell what the targets said.
    let held = FitOptions { mode: Mode::Linearised, tune: Tune::Validation, ..o.clone() };
    let validation = moved(&network, 60, 0.4);
    let some = rows(&examples, 0..30);
    let data = Data { validation: Some(&validation), ..Data::new(&network, &some, likelihood) };
    let tuned = fit(&data, &held, run).unwrap();
    assert!(tuned.summary.mode.as_ref().unwrap().displacement.is_some());
    let refused = tuned.extended(&network, &examples, &o, run);
    assert!(refused.err().unwrap().to_string().contains("depends on all data"));
    // A mode that was found in turns with several precisions does need all data.
    let layers = FitOptions { prior: PriorKind::Layerwise, mode: Mode::Linearised, ..o.clone() };
    let layered = quiet(&network, &rows(&examples, 0..30), likelihood, &layers).unwrap();
    let refused = layered.extended(&network, &examples, &layers, run);
    assert!(refused.err().unwrap().to_string().contains("depends on all data"));
}

#[test]
fn tuning_by_held_out_data_scores_what_will_be_predicted() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[1];
    let (examples, validation) = (moved(&network, 40, 0.4), moved(&network, 60, 0.4));
    let o = FitOptions { mode: Mode::Linearised, tune: Tune::Validation, ..options(Approximation::Full) };
    let data = Data { validation: Some(&validation), ..Data::new(&network, &examples, likelihood) };
    let laplace = fit(&data, &o, &mut Run::default()).unwrap();
    let x = validation.batch(&(0..60).collect::<Vec<_>>(), None).0;
    let latent = laplace.latent(&network, &x, Wanted::Full).unwrap();
    let rule = laplace.rule(laplace.integration()).unwrap();
    let mut workspace = PredictiveWorkspace::default();
    let nll: f64 = (0..60)
        .map(|i| {
            let y = target(&validation, i);
            -rule.log_predictive_density_with(&y, latent.example(i), &mut workspace).unwrap()
        })
        .sum();
    let report = laplace.summary.held_out.as_ref().unwrap();
    assert!((nll / 60.0 - report.best.nll).abs() < 1e-9, "{} {}", nll / 60.0, report.best.nll);
    // The displacement is part of it.
    let bare = laplace.tangent_latent(&network, &x, Wanted::Full).unwrap();
    assert!(bare.covariance[0] < latent.covariance[0]);
}

#[test]
fn noise_with_correlations_has_the_same_optimum() {
    // The Gaussian of the other tests, written as a full covariance.
    let network = network(PERCEPTRON, 4);
    let examples = moved(&network, 40, 0.4);
    let full = FullGaussian::new(3, vec![0.5, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0]).unwrap();
    for approximation in [Approximation::Full, DUAL] {
        let o = options(approximation);
        let one = quiet(&network, &examples, &likelihoods()[1], &o).unwrap();
        let other = quiet(&network, &examples, &OutputLikelihood::FullGaussian(full.clone()), &o).unwrap();
        let ((a, s), (b, t)) = (hyperparameters(&one), hyperparameters(&other));
        // The searches end when no logarithm moves by 1e-6.
        assert_close(&[b, t], &[a, s], 1e-5, 1e-5);
        assert_close(other.mode(), one.mode(), 1e-5, 1e-5);
    }
}

#[test]
fn next_to_nothing_to_learn_from_is_no_error() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[1];
    let one = moved(&network, 1, 0.4);
    let x = inputs(&network, 20, 3);
    let constant = Tabular::new(x.clone(), Targets::Values(Array::new(vec![20, 3], vec![2.5; 60])));
    let exact = Tabular::new(x.clone(), Targets::Values(network.forward(&x).unwrap()));
    let mut silent = network.clone();
    silent.parameters_mut().iter_mut().for_each(|p| p.values_mut().fill(0.0));
    for approximation in [Approximation::Full, DUAL] {
        for (network, examples) in
            [(&network, &one), (&network, &constant), (&network, &exact), (&silent, &constant)]
        {
            let laplace = quiet(network, examples, likelihood, &options(approximation.clone())).unwrap();
            let latent = laplace.latent(network, &x, Wanted::Diagonal).unwrap();
            assert!(latent.covariance.iter().all(|v| v.is_finite() && *v >= 0.0), "{approximation:?}");
        }
    }
}

#[test]
fn an_interrupted_optimum_keeps_the_sums() {
    let network = network(PERCEPTRON, 4);
    let likelihood = &likelihoods()[1];
    let examples = moved(&network, 40, 0.4);
    let o = options(Approximation::Full);
    let data = Data::new(&network, &examples, likelihood);
    let (stopped, left) = keeping(None, |checkpointer| {
        let stop = |stage, _, _| if stage == Stage::Mode { Signal::Stop } else { Signal::Continue };
        fit(&data, &o, &mut Run::new(stop).keeping(checkpointer))
    });
    assert!(matches!(stopped.err().unwrap(), LaplaceError::Interrupted));
    assert_eq!(left.as_ref().unwrap().progress, "after example 40");
    let (resumed, _) =
        keeping(left, |checkpointer| fit(&data, &o, &mut Run::default().keeping(checkpointer)));
    let resumed = resumed.unwrap();
    let whole = quiet(&network, &examples, likelihood, &o).unwrap();
    assert_eq!(hyperparameters(&resumed), hyperparameters(&whole));
}

#[test]
fn the_default_in_function_space_is_what_there_is() {
    // Normalised weights ask for the linearised model's optimum, which function space knows under Gaussian noise only.
    let network = network(NORMALISED, 2);
    for likelihood in &likelihoods()[..2] {
        let examples = data(&network, likelihood, 12, 5);
        let laplace = quiet(&network, &examples, likelihood, &options(DUAL)).unwrap();
        assert_eq!(laplace.summary.mode.is_some(), matches!(likelihood, OutputLikelihood::Gaussian(_)));
    }
}

#[test]
fn function_space_knows_no_other_optimum() {
    let network = network(PERCEPTRON, 4);
    let (classes, gaussian) = (&likelihoods()[0], &likelihoods()[1]);
    let refused = |likelihood: &OutputLikelihood, points, mode| {
        let examples = data(&network, likelihood, 12, 5);
        let o = FitOptions { mode, ..options(Approximation::FunctionSpace { points }) };
        quiet(&network, &examples, likelihood, &o).err().map(|e| e.to_string())
    };
    assert!(refused(classes, None, Mode::Linearised).unwrap().contains("under Gaussian noise"));
    assert!(refused(gaussian, Some(6), Mode::Linearised).unwrap().contains("from all examples only"));
    assert!(refused(gaussian, None, Mode::LinearisedSimple).is_some());
    for (likelihood, points) in [(classes, None), (gaussian, Some(6)), (gaussian, None)] {
        assert_eq!(refused(likelihood, points, Mode::Auto), None);
    }
}
