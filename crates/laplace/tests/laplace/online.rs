//! Hyperparameters learned while training: against exact Gaussian evidences, by their effect, and through interruptions.

use crate::common::{network, normals};
use faer::Mat;
use posterior_laplace::online::{HyperparameterRule, Select, TangentEvidence};
use posterior_laplace::{
    Accumulator, Approximation, Data, FisherEstimate, Form, LaplaceError, OnlineOptions, OnlineReport,
    PriorKind, Run, Weights, train_online,
};
use posterior_likelihoods::{Gaussian, OutputLikelihood};
use posterior_linear::Prior;
use posterior_linear::evidence::DataFit;
use posterior_networks::train::{
    Examples, Loss, Tabular, Targets, TrainOptions, TrainState, Trained, evaluate,
};
use posterior_networks::{Array, Network, Selection};
use posterior_optim::{Reason, Rule, Schedule, Signal};

const LINE: &str =
    "kind = \"layers\"\ninput = [3]\n[[layer]]\nname = \"line\"\noperation = \"linear\"\noutputs = 1";
const CURVE: &str = "kind = \"perceptron\"\ninputs = 1\nhidden = [12]\noutputs = 1\nactivation = \"tanh\"";

/// A linear function of three inputs, one of which does not matter, plus noise of deviation 0.3.
fn linear_data(count: usize) -> (Mat<f64>, Vec<f64>, Tabular<f64>) {
    let x = normals(3 * count, 1);
    let noise = normals(count, 2);
    let y: Vec<f64> = x.chunks(3).zip(noise).map(|(x, e)| 1.5 * x[0] - 0.7 * x[1] + 0.4 + 0.3 * e).collect();
    let features = Mat::from_fn(count, 4, |i, j| if j < 3 { x[3 * i + j] } else { 1.0 });
    let data =
        Tabular::new(Array::new(vec![count, 3], x), Targets::Values(Array::new(vec![count, 1], y.clone())));
    (features, y, data)
}

fn curve_data(count: usize, seed: u64) -> Tabular<f64> {
    noisy_curve(count, seed, 0.2)
}

fn noisy_curve(count: usize, seed: u64, deviation: f64) -> Tabular<f64> {
    let x: Vec<f64> = normals(count, seed);
    let noise = normals(count, seed + 1);
    let y = x.iter().zip(noise).map(|(x, e)| (2.0 * x).sin() + deviation * e).collect();
    Tabular::new(Array::new(vec![count, 1], x), Targets::Values(Array::new(vec![count, 1], y)))
}

/// `log N(y; 0, F A^-1 F^T + s^2 I)`, by the dense covariance.
fn exact_evidence(features: &Mat<f64>, y: &[f64], precisions: &[f64], noise: f64) -> f64 {
    let n = y.len();
    let covariance = Mat::from_fn(n, n, |i, j| {
        let own = if i == j { noise } else { 0.0 };
        own + (0..features.ncols()).map(|k| features[(i, k)] * features[(j, k)] / precisions[k]).sum::<f64>()
    });
    let factor = covariance.llt(faer::Side::Lower).unwrap();
    let y = Mat::from_fn(n, 1, |i, _| y[i]);
    let solved = faer::linalg::solvers::Solve::solve(&factor, &y);
    let quadratic = (y.transpose() * solved)[(0, 0)];
    let log_determinant: f64 = (0..n).map(|i| 2.0 * factor.L()[(i, i)].ln()).sum();
    -0.5 * (n as f64 * (2.0 * std::f64::consts::PI).ln() + log_determinant + quadratic)
}

fn training(loss: Loss, epochs: usize, batch: usize, learning_rate: f64) -> TrainOptions {
    TrainOptions {
        loss,
        epochs,
        batch,
        rule: Rule::Sgd { momentum: 0.9, nesterov: true, weight_decay: 0.0 },
        learning_rate,
        schedule: Schedule::Constant,
        clip: None,
        patience: None,
        seed: 1,
    }
}

fn online() -> OnlineOptions {
    OnlineOptions { approximation: Approximation::Full, burn_in: 5, every: 2, steps: 3, ..Default::default() }
}

fn run(
    network: &Network<f64>,
    data: &Tabular<f64>,
    options: &TrainOptions,
    online: &OnlineOptions,
) -> Result<(Trained<f64>, OnlineReport), LaplaceError> {
    let network = network.clone();
    train_online(network, data, None, options, online, None, &mut |_, _| Signal::Continue, &mut |_, _, _| {
        Signal::Continue
    })
}

/// At the end the exact marginal likelihood has no slope in any hyperparameter and falls to all sides.
fn is_at_the_maximum(report: &OnlineReport, features: &Mat<f64>, y: &[f64], tolerance: f64) {
    // Weight and bias are parameters of their own.
    let at = |shift: [f64; 3]| {
        let [w, b] = [report.precisions[0] * shift[0].exp(), report.precisions[1] * shift[1].exp()];
        exact_evidence(features, y, &[w, w, w, b], report.noise_variances[0] * shift[2].exp())
    };
    let here = at([0.0; 3]);
    for i in 0..3 {
        let moved = |h: f64| {
            let mut shift = [0.0; 3];
            shift[i] = h;
            at(shift)
        };
        let slope = (moved(1e-4) - moved(-1e-4)) / 2e-4;
        assert!(slope.abs() < tolerance, "slope {slope} in hyperparameter {i}");
        assert!(moved(0.5) < here && moved(-0.5) < here);
    }
    let last = report.trace.last().unwrap();
    assert!((last.log_evidence - here).abs() < tolerance, "{} {here}", last.log_evidence);
}

/// The tangent of a linear network is the network: online Laplace must end at the maximum of the marginal likelihood of linear regression.
#[test]
fn a_linear_network_finds_the_exact_maximum_of_the_evidence() {
    let (features, y, data) = linear_data(40);
    let start = network(LINE, 3);
    // Each loss and each rule once: neither knows of the other.
    for (loss, rate, rule, tolerance) in [
        (Loss::Mse, 0.05, HyperparameterRule::Mackay, 1e-6),
        (Loss::Gaussian, 0.01, HyperparameterRule::Adam { learning_rate: 0.05 }, 1e-3),
    ] {
        let online = OnlineOptions { rule, prior: PriorKind::Parameter, ..online() };
        let (trained, report) = run(&start, &data, &training(loss, 3000, 40, rate), &online).unwrap();
        assert_eq!(report.groups, ["line.weight", "line.bias"]);
        is_at_the_maximum(&report, &features, &y, tolerance);
        // The trained weights are the posterior mean.
        let a = &report.precisions;
        let s = 1.0 / report.noise_variances[0];
        let h = Mat::from_fn(4, 4, |i, j| {
            let m = (0..40).map(|n| features[(n, i)] * features[(n, j)]).sum::<f64>();
            s * m + if i == j { a[usize::from(i == 3)] } else { 0.0 }
        });
        let right = Mat::from_fn(4, 1, |i, _| s * (0..40).map(|n| features[(n, i)] * y[n]).sum::<f64>());
        let mean = crate::common::inverse(&h) * right;
        let all = Selection::all(trained.network.graph());
        for (i, w) in all.flatten(trained.network.parameters()).iter().enumerate() {
            assert!((w - mean[(i, 0)]).abs() < tolerance, "weight {i}: {w} {}", mean[(i, 0)]);
        }
        if loss == Loss::Gaussian {
            assert_eq!(trained.noise_variance, report.noise_variances);
        }
    }
}

/// The evidence of the tangent model, at weights that are no minimum, by the dense covariance of the observations: `y - g + J v = J w + noise`.
#[test]
fn the_first_order_term_makes_the_evidence_of_the_tangent_model_exact() {
    let network = network(CURVE, 4);
    let data = curve_data(17, 5);
    let selection = Selection::all(network.graph());
    let likelihood = OutputLikelihood::Gaussian(Gaussian::independent(vec![1.0]).unwrap());
    let mut sums = Accumulator::new(&network, &selection, Form::Full, FisherEstimate::Exact).unwrap();
    sums.extend(&Data::new(&network, &data, &likelihood), 0, &mut Run::default()).unwrap();
    let structure = sums.finish().unwrap();
    let weights = selection.flatten(network.parameters());
    let indices: Vec<usize> = (0..17).collect();
    let (x, Targets::Values(y)) = data.batch(&indices, None) else { panic!() };
    let j = crate::common::jacobian(&network, &selection, &x);
    let g = network.forward(&x).unwrap();
    let d = weights.len();
    let dot = |i: usize| (0..d).map(|k| j[(i, k)] * weights[k]).sum::<f64>();
    let targets: Vec<f64> = (0..17).map(|i| y.values()[i] - g.values()[i] + dot(i)).collect();
    let gradient: Vec<f64> =
        (0..d).map(|k| (0..17).map(|i| j[(i, k)] * (g.values()[i] - y.values()[i])).sum()).collect();
    let prior = Prior::grouped(&[(24, 0), (13, 1)], vec!["a".into(), "b".into()], vec![1.0, 1.0]).unwrap();
    let fit = sums.fit().data_fit(&likelihood);
    let evidence = TangentEvidence::new(&structure, prior.clone(), &weights, Some(&gradient), fit).unwrap();
    let plain = TangentEvidence::new(&structure, prior, &weights, None, fit).unwrap();
    let exact = |t: &[f64]| {
        let each: Vec<f64> = (0..d).map(|k| t[usize::from(k >= 24)].exp()).collect();
        exact_evidence(&j, &targets, &each, t[2].exp())
    };
    for theta in [[0.3f64, -0.8, -1.5], [1.0, 2.0, 0.5], [-2.0, 0.0, -3.0]] {
        let precisions = [theta[0].exp(), theta[1].exp()];
        let (value, term) = evidence.at(&precisions, theta[2].exp()).unwrap();
        assert!((value.log_evidence / exact(&theta) - 1.0).abs() < 1e-10);
        // Without the term it is a bound, and here not a tight one.
        let bound = plain.at(&precisions, theta[2].exp()).unwrap().0.log_evidence;
        assert!(term > 1.0 && (bound + term - value.log_evidence).abs() < 1e-9 * value.log_evidence.abs());
        for (i, slope) in value.slopes.iter().chain([&value.noise_slope]).enumerate() {
            let at = |h: f64| {
                let mut t = theta;
                t[i] += h;
                exact(&t)
            };
            let difference = (at(1e-4) - at(-1e-4)) / 2e-4;
            assert!((slope - difference).abs() < 1e-5 * (1.0 + difference.abs()), "{slope} {difference}");
        }
    }
    let classes = DataFit::LogLikelihood { value: -1.0 };
    let prior = Prior::scalar(d, 1.0).unwrap();
    let refused = TangentEvidence::new(&structure, prior, &weights, Some(&gradient), classes);
    assert!(refused.err().unwrap().to_string().contains("Gaussian"));
}

#[test]
fn the_evidence_of_a_network_rises_and_the_best_is_kept() {
    let data = curve_data(60, 6);
    let network = network(CURVE, 7);
    let options = TrainOptions { rule: Rule::adam(), ..training(Loss::Gaussian, 200, 20, 1e-2) };
    let kronecker = |e| Approximation::Kronecker(e);
    let forms = [
        (Weights::All, kronecker(FisherEstimate::Exact)),
        (Weights::All, kronecker(FisherEstimate::Empirical)),
        (Weights::All, kronecker(FisherEstimate::MonteCarlo { samples: 1, seed: 3 })),
        (Weights::All, Approximation::Diagonal),
        (Weights::LastLayer, Approximation::Full),
        (Weights::All, Approximation::Full),
    ];
    for (weights, approximation) in forms {
        for first_order in [false, approximation == Approximation::Full] {
            let online = OnlineOptions {
                weights: weights.clone(),
                approximation: approximation.clone(),
                first_order,
                select: Select::Evidence,
                steps: 10,
                every: 5,
                burn_in: 10,
                ..Default::default()
            };
            let (trained, report) = run(&network, &data, &options, &online).unwrap();
            let trace = &report.trace;
            assert_eq!(trace[0].epoch, 15);
            assert_eq!(trace.last().unwrap().epoch, 200);
            let (first, best) = (
                trace[0].log_evidence_before,
                trace.iter().map(|s| s.log_evidence).fold(f64::NEG_INFINITY, f64::max),
            );
            // The noise alone is worth dozens of nats: from a deviation near 1 to 0.2.
            assert!(best > first + 10.0, "{approximation:?} {first_order}: {first} to {best}");
            let chosen = trace.iter().find(|s| s.epoch == report.epoch).unwrap();
            assert_eq!((chosen.log_evidence, Some(report.epoch)), (best, trained.best_epoch));
            assert_eq!(chosen.precisions, report.precisions);
            // A determinant is at most the product of its diagonal: the diagonal charges too much for every weight, and leaves more of the curve to the noise.
            let largest = if approximation == Approximation::Diagonal { 0.7 } else { 0.4 };
            assert!(
                (0.1..largest).contains(&report.noise_variances[0].sqrt()),
                "{approximation:?} {first_order}: {:?}",
                report.noise_variances
            );
            assert_eq!(chosen.first_order.is_some(), first_order);
            assert!(chosen.first_order.is_none_or(|t| t >= 0.0));
            assert!(chosen.effective_dimension > 0.5 && chosen.effective_dimension < 37.0);
        }
    }
}

/// Where data are few, noisy, and weights many, what the evidence learns predicts better than no prior. The full curvature finds noise and network; Kronecker factors charge more for every
/// weight, and on 25 points explain everything by noise, which is still better than fitting that noise.
#[test]
fn learned_decay_generalises_better_than_none() {
    let noisy = |count, seed| noisy_curve(count, seed, 0.5);
    let (data, fresh) = (noisy(25, 8), noisy(1000, 9));
    let network = network(&CURVE.replace("[12]", "[20, 20]"), 7);
    let options = TrainOptions { rule: Rule::adam(), ..training(Loss::Mse, 1500, 25, 1e-2) };
    let error = |n: &Network<f64>| evaluate(n, &fresh, Loss::Mse, &[]).unwrap().loss;
    let learn = |approximation| {
        let online = OnlineOptions { approximation, burn_in: 100, every: 100, ..Default::default() };
        let (trained, report) = run(&network, &data, &options, &online).unwrap();
        (error(&trained.network), report.noise_variances[0])
    };
    let plain =
        posterior_networks::train::train(network.clone(), &data, None, &options, None, &mut |_, _| {
            Signal::Continue
        })
        .unwrap();
    let none = error(&plain.network);
    let (full, noise) = learn(Approximation::Full);
    // The noise alone makes 0.25 of the error; one standard error of a variance of 25 residuals is 0.07.
    assert!(full < 0.8 * none && (0.25f64 - 0.14..0.25 + 0.14).contains(&noise), "{full} {none} {noise}");
    let (kronecker, noise) = learn(Approximation::Kronecker(FisherEstimate::Exact));
    assert!(kronecker < none && noise > 0.25, "{kronecker} {none} {noise}");
}

#[test]
fn classes_and_several_outputs() {
    let count = 60;
    let x = normals(3 * count, 11);
    let classes = x
        .chunks(3)
        .map(|x| if x[0] > x[1] && x[0] > x[2] { 0 } else { 1 + u32::from(x[2] > x[1]) })
        .collect();
    let inputs = Array::new(vec![count, 3], x.clone());
    let network = network(crate::common::PERCEPTRON, 12);
    let options = TrainOptions { rule: Rule::adam(), ..training(Loss::CrossEntropy, 60, 20, 1e-2) };
    let online = OnlineOptions {
        approximation: Approximation::Kronecker(FisherEstimate::Exact),
        ..OnlineOptions::default()
    };
    let data = Tabular::new(inputs.clone(), Targets::Classes(classes));
    let (trained, report) = run(&network, &data, &options, &online).unwrap();
    assert!(report.noise_variances.is_empty());
    let first = &report.trace[0];
    assert!(report.trace.last().unwrap().log_evidence > first.log_evidence_before + 5.0);
    // Weight decay is the precision over the number of examples, layer by layer.
    let hook = trained.state.hook.as_ref().unwrap();
    assert_eq!(hook.weight_decay.len(), 6);
    for (i, decay) in hook.weight_decay.iter().enumerate() {
        assert!((decay * count as f64 / report.precisions[i / 2] - 1.0).abs() < 1e-12);
    }
    let refused = run(
        &network,
        &data,
        &options,
        &OnlineOptions { first_order: true, approximation: Approximation::Full, ..online.clone() },
    );
    assert!(refused.err().unwrap().to_string().contains("Gaussian"));

    // Three outputs with noise of deviations 0.1, 0.3 and 0.9.
    let noise = normals(3 * count, 13);
    let y =
        x.iter().zip(noise).enumerate().map(|(i, (x, e))| x + 0.1 * 3f64.powi(i as i32 % 3) * e).collect();
    let data = Tabular::new(inputs, Targets::Values(Array::new(vec![count, 3], y)));
    let options = TrainOptions { loss: Loss::Gaussian, epochs: 300, ..options };
    let (_, report) = run(&network, &data, &options, &online).unwrap();
    let deviations: Vec<f64> = report.noise_variances.iter().map(|v| v.sqrt()).collect();
    assert!(deviations.len() == 3 && deviations[0] < deviations[1] && deviations[1] < deviations[2]);
    assert!((0.6..1.3).contains(&deviations[2]), "{deviations:?}");
    // A mean-square loss has one noise for all.
    let options = TrainOptions { loss: Loss::Mse, epochs: 20, ..options };
    let (trained, report) = run(&network, &data, &options, &online).unwrap();
    assert!(report.noise_variances.iter().all(|v| *v == report.noise_variances[0]));
    let hook = trained.state.hook.as_ref().unwrap();
    let unit = 2.0 * report.noise_variances[0] / (3 * count) as f64;
    assert!((hook.weight_decay[0] / (unit * report.precisions[0]) - 1.0).abs() < 1e-12);
}

#[test]
fn interrupted_runs_end_as_if_they_had_not_been() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.checkpoint");
    let data = curve_data(40, 6);
    let network = network(CURVE, 7);
    let options = TrainOptions { rule: Rule::adam(), ..training(Loss::Gaussian, 12, 10, 1e-2) };
    let online = OnlineOptions {
        burn_in: 2,
        every: 3,
        approximation: Approximation::Kronecker(FisherEstimate::MonteCarlo { samples: 1, seed: 3 }),
        select: Select::Evidence,
        ..Default::default()
    };
    let (whole, report) = run(&network, &data, &options, &online).unwrap();
    assert_eq!(report.trace.iter().map(|s| s.epoch).collect::<Vec<_>>(), [5, 8, 11, 12]);
    // Four steps make an epoch; 20 ends one with a move, 48 the run.
    for stop in [7, 20, 23, 48] {
        let (part, _) = train_online(
            network.clone(),
            &data,
            None,
            &options,
            &online,
            None,
            &mut |p, _| if p.step == stop { Signal::Stop } else { Signal::Continue },
            &mut |_, _, _| Signal::Continue,
        )
        .unwrap();
        assert!(part.reason == Reason::Interrupted);
        let graph = network.graph();
        part.state.save(&path, graph, &options, "curve").unwrap();
        let state = TrainState::load(&path, graph, &options, "curve").unwrap();
        let (resumed, again) = train_online(
            network.clone(),
            &data,
            None,
            &options,
            &online,
            Some(state),
            &mut |_, _| Signal::Continue,
            &mut |_, _, _| Signal::Continue,
        )
        .unwrap();
        assert_eq!(resumed.state, whole.state);
        assert_eq!(resumed.network.parameters(), whole.network.parameters());
        assert_eq!(again, report);
    }
}

/// Enough examples for several batches, so that a pass can be stopped in the middle.
#[test]
fn a_move_that_was_stopped_is_made_again() {
    // A round of batches is as long as there are threads: two, wherever this runs.
    rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap().install(stopped_moves);
}

fn stopped_moves() {
    let data = curve_data(40_000, 6);
    let network = network(CURVE, 7);
    let options = TrainOptions { rule: Rule::adam(), ..training(Loss::Gaussian, 3, 4_000, 1e-2) };
    for first_order in [false, true] {
        let approximation = Approximation::Full;
        let online = OnlineOptions { approximation, burn_in: 0, every: 1, first_order, ..Default::default() };
        let (whole, report) = run(&network, &data, &options, &online).unwrap();
        let mut passes = 0;
        let stages = &mut |stage, done: usize, _: usize| {
            // The second epoch's pass, before its end.
            passes += usize::from(done == 40_000);
            let own = if first_order {
                posterior_laplace::Stage::Mode
            } else {
                posterior_laplace::Stage::Curvature
            };
            let epochs = if first_order { 3 } else { 1 };
            if passes >= epochs && stage == own && done < 40_000 { Signal::Stop } else { Signal::Continue }
        };
        let (part, so_far) = train_online(
            network.clone(),
            &data,
            None,
            &options,
            &online,
            None,
            &mut |_, _| Signal::Continue,
            stages,
        )
        .unwrap();
        assert!(part.reason == Reason::Interrupted && part.state.hook.as_ref().unwrap().due, "{first_order}");
        assert_eq!(so_far.trace.len(), 1);
        let (resumed, again) = train_online(
            network.clone(),
            &data,
            None,
            &options,
            &online,
            Some(part.state),
            &mut |_, _| Signal::Continue,
            &mut |_, _, _| Signal::Continue,
        )
        .unwrap();
        assert_eq!((resumed.state, again), (whole.state, report));
    }
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let data = curve_data(20, 6);
    let network = network(CURVE, 7);
    let options = training(Loss::Gaussian, 10, 10, 1e-2);
    let text = |options: &TrainOptions, online: OnlineOptions| {
        run(&network, &data, options, &online).map(|_| ()).unwrap_err().to_string()
    };
    let base = OnlineOptions::default;
    let decoupled = TrainOptions { rule: Rule::adamw(0.1), ..options };
    assert!(text(&decoupled, base()).contains("decoupled"));
    let cases = [
        (OnlineOptions { burn_in: 10, ..base() }, "burn-in"),
        (OnlineOptions { every: 0, ..base() }, "at least one step"),
        (OnlineOptions { steps: 0, ..base() }, "at least one step"),
        (OnlineOptions { prior: PriorKind::GPrior, ..base() }, "each parameter tensor"),
        (OnlineOptions { prior: PriorKind::Diagonal, ..base() }, "each parameter tensor"),
        (OnlineOptions { initial_precision: Some(-1.0), ..base() }, "positive"),
        (OnlineOptions { initial_noise: f64::NAN, ..base() }, "positive"),
        (OnlineOptions { rule: HyperparameterRule::Adam { learning_rate: 0.0 }, ..base() }, "step size"),
        (OnlineOptions { select: Select::Validation, ..base() }, "validation"),
        (OnlineOptions { first_order: true, ..base() }, "full curvature"),
        (OnlineOptions { memory: 1000, ..base() }, "above the limit"),
        (
            OnlineOptions { approximation: Approximation::FunctionSpace { points: None }, ..base() },
            "made of sums",
        ),
        (
            OnlineOptions {
                weights: Weights::Subnetwork { size: 3, choice: Default::default() },
                approximation: Approximation::Full,
                ..base()
            },
            "sub-network",
        ),
        (OnlineOptions { weights: Weights::Matching(vec!["nothing*".into()]), ..base() }, "nothing"),
    ];
    for (online, part) in cases {
        let message = text(&options, online);
        assert!(message.contains(part), "{message}");
    }
    let patient = TrainOptions { patience: Some(2), ..options };
    let message = train_online(
        network.clone(),
        &data,
        Some(&data),
        &patient,
        &base(),
        None,
        &mut |_, _| Signal::Continue,
        &mut |_, _, _| Signal::Continue,
    )
    .map(|_| ())
    .unwrap_err()
    .to_string();
    assert!(message.contains("patience"), "{message}");
    let bad = Tabular::new(
        Array::new(vec![2, 1], vec![0.0, 1.0]),
        Targets::Values(Array::new(vec![2, 1], vec![0.0, f64::NAN])),
    );
    assert!(run(&network, &bad, &training(Loss::Mse, 10, 10, 1e-2), &base()).is_err());
}
