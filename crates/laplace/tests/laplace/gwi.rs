//! Covariances around a network: against the process that they are, and themselves after a file and an interruption.

use crate::common::*;
use faer::Mat;
use posterior_gp::exact::ExactGp;
use posterior_gp::generalised::{
    Coordinates, Family, GeneralisedData, GeneralisedGp, GeneralisedOptions, JITTER, Mode, ReferenceProcess,
    Regulariser, VariationalMean, fit_generalised, generalised_objective,
};
use posterior_gp::{MeanForm, Observations};
use posterior_kernels::composite::Scaled;
use posterior_kernels::{Kernel, KernelExpression};
use posterior_laplace::checkpointer::{Checkpointer, SavedState};
use posterior_laplace::fixed_mean::FixedMeanKernel;
use posterior_laplace::gwi::{Gwi, GwiFit, GwiNoise, GwiOptions, GwiReport, PriorRows, fit, plan};
use posterior_laplace::{Data, LaplaceError, Learned, Problem, Run, Size, Stage, Wanted};
use posterior_likelihoods::{CloneLikelihood, Gaussian, OutputLikelihood, Poisson};
use posterior_linear::training::Patience;
use posterior_networks::train::{Examples, Tabular, Targets};
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_optim::{Parameters, Rule, Signal};
use posterior_store::Tensors;

const SINGLE: &str = "kind = \"perceptron\"\ninputs = 2\nhidden = [6, 5]\noutputs = 1\nactivation = \"tanh\"";

fn classes() -> OutputLikelihood {
    OutputLikelihood::Categorical(posterior_likelihoods::Categorical::new(3).unwrap())
}

fn gaussian(noise: f64) -> OutputLikelihood {
    OutputLikelihood::Gaussian(Gaussian::new(noise, 0.0))
}

/// A search that is over soon.
fn short() -> GwiOptions {
    let mut options = GwiOptions {
        inducing_points: Some(8),
        steps: 60,
        batch: 16,
        val_every: 10,
        learning_rate: 0.02,
        ..GwiOptions::table()
    };
    options.objective.rows_together = 8;
    options
}

fn features(options: GwiOptions) -> GwiOptions {
    GwiOptions { kernel: FixedMeanKernel::Features("rbf".into()), ..options }
}

fn learn<T: Precision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    validation: Option<&dyn Examples<T>>,
    likelihood: &OutputLikelihood,
    options: &GwiOptions,
) -> Result<GwiFit, LaplaceError> {
    let data = Data { network, examples, validation, likelihood };
    let selection = &Selection::all(network.graph());
    fit(&Problem { data, selection, seed: 3, memory: u64::MAX }, options, &mut Run::default())
}

/// Rows whose targets are the network's outputs, a wave of the first input that it does not know, and noise of deviation 0.1.
fn waves(network: &Network<f64>, count: usize, seed: u64) -> Tabular<f64> {
    let x = inputs(network, count, seed);
    let outputs = network.forward(&x).unwrap();
    let noise = normals(outputs.len(), seed + 1);
    let width = outputs.row_len();
    let value = |k: usize| outputs.values()[k] + 0.7 * (2.0 * x.row(k / width)[0]).sin() + 0.1 * noise[k];
    let y = (0..outputs.len()).map(value).collect();
    Tabular::new(x, Targets::Values(Array::new(vec![count, width], y)))
}

#[test]
fn means_are_the_network_and_files_predict_the_same() {
    let network = network(PERCEPTRON, 2);
    let x = inputs(&network, 150, 77);
    for likelihood in [classes(), OutputLikelihood::Gaussian(Gaussian::new(0.4, 0.0).with_outputs(3))] {
        let (examples, held) = (data(&network, &likelihood, 40, 4), data(&network, &likelihood, 60, 40));
        for family in Family::ALL {
            let mut options = GwiOptions { family, ..short() };
            if family == Family::FixedSparsePosterior {
                options.objective.regulariser = "wasserstein-partial".parse().unwrap();
            }
            if family == Family::Kernelised {
                // Deviations of biases that are 0 and stay so, of the prior and of the kernel of its own.
                options.kernel = FixedMeanKernel::Inputs("nngp(depth=1, relu, bias=0)".into());
            }
            if family == Family::Cholesky {
                options = GwiOptions { mode: Mode::Posterior, ..features(options) };
            }
            let fit = learn(&network, &examples, Some(&held), &likelihood, &options).unwrap();
            let full = fit.posterior.latent(&network, &x, Wanted::Full).unwrap();
            assert_eq!(full.mean, network.forward(&x).unwrap().values());
            let variances = fit.posterior.latent(&network, &x, Wanted::Diagonal).unwrap();
            assert!(variances.covariance.iter().all(|v| *v > 0.0 && v.is_finite()), "{family:?}");
            if family != Family::FixedSparsePosterior {
                let joint = fit.posterior.joint(&network, &x, u64::MAX).unwrap();
                let scale = joint.norm_max();
                for n in 0..150 {
                    for (o, k) in (0..3).flat_map(|o| (0..3).map(move |k| (o, k))) {
                        let found = full.covariance[n * 9 + o * 3 + k];
                        assert!((found - joint[(n * 3 + o, n * 3 + k)]).abs() < 1e-9 * scale, "{family:?}");
                    }
                    assert!(
                        (0..3).all(|o| variances.covariance[n * 3 + o] == full.covariance[n * 9 + o * 4])
                    );
                }
                assert!((&joint - joint.transpose()).norm_max() < 1e-12 * scale);
            }
            let mut tensors = Tensors::default();
            Learned::<f64>::write(&fit.posterior, &mut tensors);
            let again = Gwi::read(network.graph(), &options, &fit.likelihood, &mut tensors.clone()).unwrap();
            assert_eq!(again.latent(&network, &x, Wanted::Full).unwrap(), full, "{family:?}");
            tensors.insert_vector("gwi.tempering", &[-1.0; 3]);
            assert!(Gwi::read(network.graph(), &options, &fit.likelihood, &mut tensors).is_err());
            let text = serde_json::to_string(&fit.report).unwrap();
            assert_eq!(fit.report, serde_json::from_str::<GwiReport>(&text).unwrap());
            let text = serde_json::to_string(&options).unwrap();
            assert_eq!(options, serde_json::from_str::<GwiOptions>(&text).unwrap());
            assert_eq!((fit.report.judged, fit.report.prior.inducing), (60, 8));
        }
    }
}

/// The process of a report, made by hand from the kernel's text.
fn by_hand(fit: &GwiFit, text: &str, data: &Observations, given: &Mat<f64>, family: Family) -> GeneralisedGp {
    let report = &fit.report.prior;
    let columns: Vec<String> = (0..data.inputs().ncols()).map(|i| format!("x{i}")).collect();
    let mut inner: Box<dyn Kernel<f64>> = text.parse::<KernelExpression>().unwrap().build(&columns).unwrap();
    let values: Vec<f64> = report.kernel.iter().skip(1).map(|v| v.1).collect();
    inner.set_values(&values);
    let scaled = Box::new(Scaled::new("prior", report.amplitude, inner));
    let z = fit.posterior.process().reference(0).inducing();
    let row = |k: usize| {
        (0..data.rows()).find(|&i| (0..z.ncols()).all(|j| data.inputs()[(i, j)] == z[(k, j)])).unwrap()
    };
    let rows: Vec<usize> = (0..z.nrows()).map(row).collect();
    let residuals = Mat::from_fn(rows.len(), 1, |k, _| data.targets()[(rows[k], 0)] - given[(rows[k], 0)]);
    let points = Observations::new(z.to_owned(), residuals, None).unwrap();
    let exact = ExactGp::new(scaled, MeanForm::Zero, Gaussian::new(report.noise, 0.0), z.ncols(), 1);
    let reference =
        ReferenceProcess::new(exact.condition(points).unwrap(), Mode::Prior, false, JITTER).unwrap();
    let likelihood = Gaussian::new(report.noise, 0.0).clone_box();
    let parts = (family, Coordinates::Whitened);
    let mut model =
        GeneralisedGp::begin(vec![reference], parts, VariationalMean::Prior, likelihood, data.inputs())
            .unwrap();
    model.learn_likelihood = false;
    model
}

#[test]
fn what_is_trained_is_a_generalised_process_around_the_networks_outputs() {
    let network = network(SINGLE, 3);
    let examples = waves(&network, 80, 4);
    let (x, y) = examples.batch(&(0..80).collect::<Vec<_>>(), None);
    let Targets::Values(y) = y else { panic!("numbers") };
    let matrix = |a: &Array<f64>| Mat::from_fn(a.rows(), a.row_len(), |i, j| a.row(i)[j]);
    let outputs = matrix(&network.forward(&x).unwrap());
    let data = Observations::new(matrix(&x), matrix(&y), None).unwrap();
    for (family, regulariser) in [
        (Family::Cholesky, "wasserstein"),
        (Family::Diagonal, "projected-renyi=0.5"),
        (Family::Kernelised, "wasserstein-partial"),
    ] {
        let mut options = GwiOptions { family, tempering: false, ..short() };
        options.objective.regulariser = regulariser.parse().unwrap();
        // Nothing is held back: all steps are taken, and the prior is that of these rows.
        let found = learn(&network, &examples, None, &gaussian(0.3), &options).unwrap();
        let begun = by_hand(&found, "rbf(ard)", &data, &outputs, family);
        let told = GeneralisedOptions {
            objective: options.objective.clone(),
            steps: options.steps,
            batch: options.batch,
            patience: Patience {
                rule: Rule::adam(),
                learning_rate: options.learning_rate,
                check_every: options.val_every,
                patience: 100,
                rate_drops: 1,
                settles: true,
            },
            time: None,
            seed: 3,
            kept_bytes: 1 << 20,
        };
        let given = GeneralisedData { observations: &data, given: Some(outputs.as_ref()) };
        let value = |model: &GeneralisedGp| generalised_objective(model, &options.objective, &given).unwrap();
        let before = value(&begun).value;
        let expected =
            fit_generalised(begun, given, None, &told, None, &mut |_, _| Signal::Continue).unwrap().model;
        let own = found.posterior.process();
        let (own_value, expected_value) = (value(own), value(&expected));
        assert!(
            (own_value.value - expected_value.value).abs() < 1e-8,
            "{family:?}: {own_value:?} {expected_value:?}"
        );
        assert!(own_value.value < before, "{family:?}: {} {before}", own_value.value);
        let far = inputs(&network, 20, 99);
        let latent = found.posterior.latent(&network, &far, Wanted::Diagonal).unwrap();
        let there = expected.latent(matrix(&far).as_ref(), None).unwrap();
        for i in 0..20 {
            let (v, e) = (latent.covariance[i], there.variance[(i, 0)]);
            assert!((v - e).abs() < 1e-7 * e, "{family:?}: {v} {e}");
        }
        assert_eq!(found.report.prior.learned_from, PriorRows::Training);
        assert!(found.notes.iter().any(|note| note.contains("nothing was judged")), "{:?}", found.notes);
    }
}

/// Far from all rows a covariance of weights of inducing points is the prior's, times what tempering made of it.
#[test]
fn variances_grow_away_from_the_data_to_the_priors() {
    let network = network(SINGLE, 3);
    let (examples, held) = (waves(&network, 200, 4), waves(&network, 240, 40));
    let options = GwiOptions { inducing_points: Some(40), steps: 300, batch: 64, ..short() };
    let fit = learn(&network, &examples, Some(&held), &gaussian(0.3), &options).unwrap();
    let report = &fit.report;
    // Half of the unseen rows are what the prior is learned from, the others judge.
    assert_eq!((report.prior.learned_from, report.prior.rows, report.judged), (PriorRows::Unseen, 120, 120));
    let near = inputs(&network, 50, 4);
    let far = Array::new(vec![2, 2], vec![60.0, 0.0, -50.0, 70.0]);
    let of = |x: &Array<f64>| fit.posterior.latent(&network, x, Wanted::Diagonal).unwrap().covariance;
    let (near, far) = (of(&near), of(&far));
    let factor = report.tempering.as_ref().unwrap().factors[0];
    // One variance of a squared exponential: the prior's is the same everywhere.
    for v in &far {
        assert!((v - factor * report.prior.variance).abs() < 1e-9 * v, "{v} {factor} {report:?}");
    }
    let mean = near.iter().sum::<f64>() / near.len() as f64;
    assert!(far[0] > 3.0 * mean, "{} {mean}", far[0]);
    // What the network does not know is there in the prior (a wave of amplitude 0.7, half of whose square is its variance), and the noise is what is left.
    assert!((0.1..1.5).contains(&report.prior.variance), "{report:?}");
    let noise = report.prior.noise.sqrt();
    assert!((0.06..0.16).contains(&noise), "{noise}");
    assert!(report.score() < report.plain_score, "{report:?}");
}

#[test]
fn rows_that_are_too_few_to_part_judge_only() {
    let network = network(SINGLE, 3);
    let (examples, held) = (waves(&network, 60, 4), waves(&network, 70, 40));
    let fit = learn(&network, &examples, Some(&held), &gaussian(0.3), &short()).unwrap();
    assert_eq!((fit.report.prior.learned_from, fit.report.prior.rows), (PriorRows::Training, 60));
    assert_eq!(fit.report.judged, 70);
    assert!(fit.notes.iter().any(|note| note.contains("70 unseen rows are too few")), "{:?}", fit.notes);
    // What looks saw is what is kept, and what tempering began with.
    let best = fit.report.scores.iter().map(|s| s.1).fold(f64::INFINITY, f64::min);
    let tempered = fit.report.tempering.as_ref().unwrap();
    assert!((tempered.before - best).abs() < 1e-12 && tempered.after <= tempered.before);
    // Noise that is given stays, but for tempering; by itself it is the evidence's.
    let kept = GwiOptions { noise: GwiNoise::Given, tempering: false, ..short() };
    let held_noise = learn(&network, &examples, Some(&held), &gaussian(0.3), &kept).unwrap();
    assert_eq!(held_noise.likelihood, gaussian(0.3));
    assert!((held_noise.report.prior.noise - 0.3).abs() < 1e-12);
    let trained = GwiOptions { noise: GwiNoise::Trained, tempering: false, ..short() };
    let moved = learn(&network, &examples, Some(&held), &gaussian(0.3), &trained).unwrap();
    assert_ne!(moved.likelihood.values()[0], moved.report.prior.noise);
}

#[test]
fn classes_choose_the_prior_variance_by_unseen_rows() {
    let (network, likelihood) = (network(PERCEPTRON, 2), classes());
    let (examples, held) = (data(&network, &likelihood, 60, 4), data(&network, &likelihood, 80, 40));
    let fit = learn(&network, &examples, Some(&held), &likelihood, &short()).unwrap();
    let prior = &fit.report.prior;
    let best = prior.tried.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert_eq!((prior.amplitude, prior.tried.len(), prior.learned_from), (best.0, 29, PriorRows::Unseen));
    assert_eq!(prior.kernel[0], ("prior.variance".to_string(), prior.amplitude));
    let tempered = fit.report.tempering.as_ref().unwrap();
    assert!(tempered.factors.len() == 3 && tempered.after <= tempered.before);
    // Without such rows the text decides.
    let text = GwiOptions { kernel: FixedMeanKernel::Inputs("rbf(variance=2.5)".into()), ..short() };
    let alone = learn(&network, &examples, None, &likelihood, &text).unwrap();
    assert_eq!((alone.report.prior.amplitude, alone.report.prior.learned_from), (1.0, PriorRows::Nothing));
    assert!((alone.report.prior.variance - 2.5).abs() < 1e-12);
    assert!(alone.report.scores.is_empty() && alone.report.tempering.is_none());
    assert!(alone.notes.iter().any(|note| note.contains("what the kernel's text says")), "{:?}", alone.notes);
}

#[test]
fn an_interrupted_fit_goes_on_bit_for_bit() {
    let network = network(PERCEPTRON, 2);
    let x = inputs(&network, 30, 77);
    for likelihood in [classes(), OutputLikelihood::Poisson(Poisson::new(3).unwrap())] {
        let (examples, held) = (data(&network, &likelihood, 60, 4), data(&network, &likelihood, 60, 40));
        let options = short();
        let whole = learn(&network, &examples, Some(&held), &likelihood, &options).unwrap();
        let data = Data { validation: Some(&held), ..Data::new(&network, &examples, &likelihood) };
        let selection = &Selection::all(network.graph());
        let problem = Problem { data, selection, seed: 3, memory: u64::MAX };
        let mut kept: Option<SavedState> = None;
        {
            let mut write = |state: &SavedState| {
                kept = Some(state.clone());
                Ok(())
            };
            let checkpointer = Checkpointer::new(None, Some(&mut write));
            let stop = |stage, done, _| {
                if stage == Stage::Process && done == 17 { Signal::Stop } else { Signal::Continue }
            };
            let error = fit(&problem, &options, &mut Run::new(stop).keeping(checkpointer));
            assert!(matches!(error.unwrap_err(), LaplaceError::Interrupted));
        }
        let kept = kept.unwrap();
        assert!(kept.progress.contains("step 17"), "{}", kept.progress);
        let mut run = Run::default().keeping(Checkpointer::new(Some(kept.clone()), None));
        let rest = fit(&problem, &options, &mut run).unwrap();
        let latent = |fit: &GwiFit| fit.posterior.latent(&network, &x, Wanted::Full).unwrap();
        assert_eq!(latent(&rest), latent(&whole));
        assert_eq!(rest.likelihood, whole.likelihood);
        let without_time = |fit: &GwiFit| GwiReport { seconds: 0.0, ..fit.report.clone() };
        assert_eq!(without_time(&rest), without_time(&whole));
        // Another method's state is refused.
        let foreign = SavedState { method: "fixed-mean".into(), ..kept };
        let mut run = Run::default().keeping(Checkpointer::new(Some(foreign), None));
        let error = fit(&problem, &options, &mut run);
        assert!(error.unwrap_err().to_string().contains("fit by `fixed-mean`, not `gwi`"));
    }
}

#[test]
fn single_precision_is_close_to_double() {
    let (wide, likelihood) = (network(PERCEPTRON, 2), classes());
    let narrow = wide.cast::<f32>().unwrap();
    let examples = data(&wide, &likelihood, 40, 4);
    let (x, y) = examples.batch(&(0..40).collect::<Vec<_>>(), None);
    let Targets::Classes(y) = y else { panic!("classes") };
    let single = Tabular::new(x.cast::<f32>(), Targets::Classes(y));
    for options in [short(), features(short())] {
        let expected = learn(&wide, &examples, None, &likelihood, &options).unwrap();
        let found = learn(&narrow, &single, None, &likelihood, &options).unwrap();
        let expected = expected.posterior.latent(&wide, &x, Wanted::Diagonal).unwrap();
        let found = found.posterior.latent(&narrow, &x.cast(), Wanted::Diagonal).unwrap();
        let scale = expected.covariance.iter().copied().fold(0.0, f64::max);
        for (f, e) in found.covariance.iter().zip(&expected.covariance) {
            assert!((f - e).abs() < 2e-3 * scale, "{:?} {f} {e}", options.kernel);
        }
    }
}

#[test]
fn bad_requests_say_what_is_wrong() {
    let (perceptron, likelihood) = (network(PERCEPTRON, 2), classes());
    let examples = data(&perceptron, &likelihood, 12, 4);
    let says = |network: &Network<f64>, options: GwiOptions, what: &str| {
        let error = learn(network, &examples, None, &likelihood, &options).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    let objective = |change: &dyn Fn(&mut GwiOptions)| {
        let mut options = short();
        change(&mut options);
        options
    };
    says(&perceptron, GwiOptions { kernel: FixedMeanKernel::Tangent, ..short() }, "is `valla`");
    says(
        &perceptron,
        GwiOptions { inducing_points: Some(13), ..short() },
        "13 inducing points were asked for, but there are 12",
    );
    says(&perceptron, GwiOptions { inducing_points: Some(0), ..short() }, "at least one");
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let options = objective(&|own| own.objective.weight = weight);
        says(&perceptron, options, "take a positive finite number");
    }
    let regulariser = |name: &str| name.parse::<Regulariser>().unwrap();
    let infinite = objective(&|own| {
        (own.family, own.objective.regulariser) = (Family::Kernelised, regulariser("kl"));
    });
    says(&perceptron, infinite, "take a cholesky, diagonal or log kernel");
    let of_posterior =
        objective(&|own| (own.mode, own.objective.regulariser) = (Mode::Posterior, regulariser("kl")));
    says(&perceptron, of_posterior, "take the prior as reference");
    let indefinite = objective(&|own| own.family = Family::FixedSparsePosterior);
    says(&perceptron, indefinite, "wasserstein-symmetric-roots");
    let predicted = objective(&|own| own.objective.regulariser = regulariser("multinomial"));
    says(&perceptron, predicted, "those of the network under either process");
    let kernel = |text: &str| GwiOptions { kernel: FixedMeanKernel::Inputs(text.into()), ..short() };
    says(&perceptron, kernel("rbf + white"), "belongs to the likelihood");
    says(&perceptron, kernel("rbff"), "rbff");
    says(&perceptron, GwiOptions { learning_rate: 0.0, ..short() }, "learning rate");
    says(&perceptron, GwiOptions { val_every: 0, ..short() }, "steps between looks");
    let pooled = "kind = \"layers\"\ninput = [2, 3, 3]\n[[layer]]\nname = \"sight\"\noperation = \"convolution\"\noutputs = 3\nkernel = [3, 3]\n\
                  [[layer]]\nname = \"pool\"\noperation = \"mean\"\naxes = [1, 2]";
    says(&network(pooled, 5), features(short()), "the layers with weights are: sight");
    let data = Data::new(&perceptron, &examples, &likelihood);
    let selection = &Selection::all(perceptron.graph());
    let little = fit(&Problem { data, selection, seed: 3, memory: 100 }, &short(), &mut Run::default());
    assert!(matches!(little.unwrap_err(), LaplaceError::Memory { .. }));
    let likelihood = &likelihood;
    let size = Size { network: &perceptron, selection, examples: 1000, unseen: 0, likelihood };
    let planned = plan(&size, &short()).unwrap();
    assert!(planned.flops > 0.0 && planned.curvature_bytes > 8 * 1000 * 7);
}

/// `r₀ = c k` with `c > 1` has `r(z, z) < 0` (spec, erratum E13): variances are raised, but nothing makes a joint distribution of them.
#[test]
fn what_is_no_covariance_is_not_drawn_from() {
    let network = network(SINGLE, 3);
    let examples = waves(&network, 60, 4);
    let mut options = GwiOptions { family: Family::FixedSparsePosterior, steps: 200, ..short() };
    options.objective.regulariser = "projected-wasserstein".parse().unwrap();
    let fit = learn(&network, &examples, None, &gaussian(0.3), &options).unwrap();
    let mut tensors = Tensors::default();
    Learned::<f64>::write(&fit.posterior, &mut tensors);
    let mut own = fit.posterior.process().kernels()[0].values();
    // Three times the prior.
    own[0] = 3.0 * fit.report.prior.amplitude;
    own[1..].copy_from_slice(&fit.report.prior.kernel[1..].iter().map(|v| v.1).collect::<Vec<_>>());
    tensors.insert_vector("gwi.kernel.0", &own);
    let moved = Gwi::read(network.graph(), &options, &fit.likelihood, &mut tensors).unwrap();
    let x = inputs(&network, 60, 4);
    assert!(moved.latent(&network, &x, Wanted::Diagonal).unwrap().covariance.iter().all(|v| *v > 0.0));
    let error = moved.joint(&network, &x, u64::MAX).unwrap_err().to_string();
    assert!(error.contains("is no covariance at these 60 points"), "{error}");
}
