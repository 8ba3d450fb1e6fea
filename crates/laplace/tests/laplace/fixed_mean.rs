//! Sparse processes whose mean is the network: against dense Jacobians, function space, and themselves after an interruption.

use crate::common::*;
use faer::Mat;
use posterior_gp::function_space::FunctionSpacePosterior;
use posterior_gp::inducing::fixed_mean::{
    Batch, FixedMeanData, FixedMeanModel, Learned, ProjectedCurvature, energy,
};
use posterior_kernels::BlockKernel;
use posterior_laplace::checkpointer::{Checkpointer, SavedState};
use posterior_laplace::fixed_mean::{
    FEW_ROWS, FixedMean, FixedMeanFit, FixedMeanKernel, FixedMeanOptions, FixedMeanReport, fit, plan,
};
use posterior_laplace::{Data, LaplaceError, Learned as _, Problem, Run, Size, Stage, Wanted};
use posterior_likelihoods::{Categorical, Gaussian, HeteroscedasticGaussian, Likelihood, OutputLikelihood};
use posterior_networks::train::{Examples, Tabular, Targets};
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_optim::{Reason, Signal, check};
use posterior_store::Tensors;
use posterior_tangent::TangentKernel;

const SINGLE: &str = "kind = \"perceptron\"\ninputs = 2\nhidden = [6, 5]\noutputs = 1\nactivation = \"tanh\"";

fn gaussian(noise: f64) -> OutputLikelihood {
    OutputLikelihood::Gaussian(Gaussian::new(noise, 0.0))
}

fn classes() -> OutputLikelihood {
    OutputLikelihood::Categorical(Categorical::new(3).unwrap())
}

fn short(options: FixedMeanOptions) -> FixedMeanOptions {
    FixedMeanOptions {
        inducing_points: Some(6),
        steps: 40,
        batch: 8,
        learning_rate: 0.01,
        val_every: 10,
        ..options
    }
}

fn learn<T: Precision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    validation: Option<&dyn Examples<T>>,
    likelihood: &OutputLikelihood,
    options: &FixedMeanOptions,
) -> Result<FixedMeanFit<T>, LaplaceError> {
    let data = Data { network, examples, validation, likelihood };
    let selection = &Selection::all(network.graph());
    fit(&Problem { data, selection, seed: 3, memory: u64::MAX }, options, &mut Run::default())
}

/// The loss of the method written with Jacobians, `A = L L^T` inverted and weights of a companion, and nothing else.
struct Dense<'a> {
    network: &'a Network<f64>,
    selection: &'a Selection,
    likelihood: &'a dyn Likelihood,
    x: &'a Array<f64>,
    targets: &'a [f64],
    labels: &'a [usize],
    rows: usize,
}

impl Dense<'_> {
    fn loss(&self, z: &Array<f64>, root: &Mat<f64>, amplitude: f64, companion: &[f64]) -> f64 {
        let c = self.likelihood.outputs();
        let all = jacobian(self.network, self.selection, z);
        let jz = Mat::from_fn(self.labels.len(), all.ncols(), |m, i| all[(m * c + self.labels[m], i)]);
        let jx = jacobian(self.network, self.selection, self.x);
        let times = |a: &Mat<f64>, b: &Mat<f64>| a * b.transpose() * faer::Scale(amplitude);
        let (kz, kx, kxx) = (times(&jz, &jz), times(&jx, &jz), times(&jx, &jx));
        let s = inverse(&(inverse(&(root * root.transpose())) + &kz));
        let v = kxx - &kx * &s * kx.transpose();
        let m = kz.nrows();
        let h = Mat::<f64>::identity(m, m) + root.transpose() * &kz * root;
        let log_det: f64 =
            h.self_adjoint_eigenvalues(faer::Side::Lower).unwrap().iter().map(|e| e.ln()).sum();
        let divergence = 0.5 * (log_det - (0..m).map(|i| (&kz * &s)[(i, i)]).sum::<f64>());
        let g = self.network.forward(self.x).unwrap();
        let ridge = 1e-8 * (0..m).map(|i| kz[(i, i)]).sum::<f64>() / m as f64;
        let mean = Mat::from_fn(m, 1, |i, _| companion[i]);
        let weights = inverse(&(&kz + Mat::<f64>::identity(m, m) * faer::Scale(ridge))) * &mean;
        let q = &kx * &weights;
        let scale = self.rows as f64 / self.x.rows() as f64;
        let data = |means: &[f64]| -> f64 {
            (0..self.x.rows())
                .map(|n| {
                    let variances: Vec<f64> = (0..c).map(|o| v[(n * c + o, n * c + o)]).collect();
                    let means = &means[n * c..(n + 1) * c];
                    let width = self.likelihood.target_width();
                    let y = &self.targets[n * width..(n + 1) * width];
                    match width == c {
                        // Minus the log density of a sum of two Gaussians.
                        true => -self.likelihood.log_predictive_density(y, means, &variances),
                        false => {
                            let t: Vec<f64> = (0..c)
                                .map(|o| means[o] / (1.0 + std::f64::consts::PI / 8.0 * variances[o]).sqrt())
                                .collect();
                            t.iter().map(|t| t.exp()).sum::<f64>().ln() - t[y[0] as usize]
                        }
                    }
                })
                .sum()
        };
        let penalty = 0.5 * (mean.transpose() * &weights)[(0, 0)];
        scale * (data(g.values()) + data(q.col_as_slice(0))) + 2.0 * divergence + penalty
    }
}

#[test]
fn with_the_tangent_kernel_loss_and_gradients_are_those_of_dense_jacobians() {
    for (text, likelihood) in [(SINGLE, gaussian(0.3)), (PERCEPTRON, classes())] {
        let network = network(text, 5);
        let selection = Selection::all(network.graph());
        let (c, width) = (likelihood.outputs(), likelihood.target_width());
        let (x, z) = (inputs(&network, 4, 8), inputs(&network, 5, 9));
        let labels: Vec<usize> = (0..5).map(|m| m % c).collect();
        let examples = Tabular::new(x.clone(), targets(&likelihood, 4, 10));
        let flat: Vec<f64> = (0..4).flat_map(|i| target(&examples, i)).collect();
        let kernel = TangentKernel::new(&network, &selection);
        let mut model =
            FixedMeanModel::new(kernel, likelihood.clone_box(), z, labels.clone(), 0.8, true).unwrap();
        let noise = normals(15 + 5, 11);
        let start: Vec<f64> = model
            .unconstrained()
            .iter()
            .enumerate()
            .map(|(i, t)| t + noise.get(i).map_or(0.0, |z| 0.3 * z))
            .collect();
        model.set_unconstrained(&start).unwrap();
        let g = network.forward(&x).unwrap();
        let batch = Batch { points: &x, means: g.values(), targets: &flat, rows: 40 };
        let found = energy(&model, batch, 1.0, None).unwrap();
        let brute = |theta: &[f64]| {
            let mut moved = model.clone();
            moved.set_unconstrained(theta).unwrap();
            let dense = Dense {
                network: &network,
                selection: &selection,
                likelihood: moved.likelihood(),
                x: &x,
                targets: &flat,
                labels: &labels,
                rows: 40,
            };
            let root = moved.root().to_owned();
            dense.loss(moved.points(), &root, moved.amplitude(), moved.companion().unwrap())
        };
        let expected = brute(&start);
        let loss = found.main + found.companion;
        assert!((loss - expected).abs() < 1e-10 * expected.abs(), "{loss} {expected}");
        let gradient = model.chain(&found.gradient);
        let numeric = check::gradient(brute, &start);
        let scale = numeric.iter().map(|v| v.abs()).fold(0.0, f64::max);
        check::assert_close(&gradient, &numeric, 1e-6, 1e-8 * scale);
        assert_eq!(
            gradient.len(),
            15 + 5 + 1 + model.likelihood().values().len() + model.points().values().len()
        );
        assert_eq!(width, flat.len() / 4);
    }
}

/// Spec `valla`, test T4: all outputs of all rows are inducing points, and the root is the closed form.
#[test]
fn at_all_outputs_of_all_rows_it_is_linearised_laplace() {
    let (network, likelihood) = (network(PERCEPTRON, 6), classes());
    let selection = Selection::all(network.graph());
    let kernel = TangentKernel::new(&network, &selection);
    let (n, c) = (5, 3);
    let x = inputs(&network, n, 8);
    let g = network.forward(&x).unwrap();
    // Each row stands c times in the data, so that there are as many rows as inducing points.
    let rows: Vec<usize> = (0..n * c).map(|k| k / c).collect();
    let at = |chosen: &[usize]| {
        let values = chosen.iter().flat_map(|i| x.row(rows[*i]).to_vec()).collect();
        Array::new(vec![chosen.len(), 3], values)
    };
    let all: Vec<usize> = (0..n * c).collect();
    let mut model = FixedMeanModel::new(
        kernel,
        likelihood.clone_box(),
        at(&all),
        all.iter().map(|k| k % c).collect(),
        0.6,
        false,
    )
    .unwrap();
    model.learned = Learned::NONE;
    let means = Mat::from_fn(n * c, c, |k, j| g.values()[k / c * c + j]);
    let labels = Mat::from_fn(n * c, 1, |k, _| (k % 3) as f64);
    let data = FixedMeanData { points: &at, means: means.as_ref(), targets: labels.as_ref() };
    let found = ProjectedCurvature::new(&model, data, 4, None, &mut |_, _| Signal::Continue)
        .unwrap()
        .unwrap()
        .condition(&mut model)
        .unwrap();
    let width = c - 1;
    let mut directions = Mat::<f64>::zeros(n * c * width, c);
    let mut root = vec![0.0; c * width];
    for k in 0..n * c {
        likelihood.root(&[0.0], &g.values()[k / c * c..k / c * c + c], &mut root);
        (0..c * width).for_each(|e| directions[(k * width + e % width, e / width)] = root[e]);
    }
    let every = at(&all);
    let gram = kernel.gram(&every, Some(directions.as_ref())).unwrap();
    let exact = FunctionSpacePosterior::new(gram.as_ref(), 1.0 / 0.6, 1.0).unwrap();
    let there = inputs(&network, 6, 30);
    let (expected, _) = exact.covariances(&kernel, (&every, directions.as_ref()), &there, true).unwrap();
    let inducing = model.prepared_points().unwrap();
    let scale = expected.iter().copied().fold(0.0, f64::max);
    for covariance in [&found.covariance, &model.covariance().unwrap()] {
        let (covariances, _) = covariance.covariances(&kernel, &inducing, (&there, 0..6), true).unwrap();
        for (found, expected) in covariances.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-6 * scale, "{found} {expected}");
        }
    }
}

/// Spec `valla`, appendix example T17: one mean inducing point holds a linear network with a bias.
#[test]
fn a_linear_network_is_one_point_of_its_tangent() {
    let text = "kind = \"perceptron\"\ninputs = 2\nhidden = []\noutputs = 1\nactivation = \"tanh\"";
    let network = network(text, 4);
    let selection = Selection::all(network.graph());
    let kernel = TangentKernel::new(&network, &selection);
    let flat = selection.flatten(network.parameters());
    let (w, b) = (&flat[..2], flat[2]);
    let z = Array::new(vec![1, 2], vec![w[0] / b, w[1] / b]);
    let x = inputs(&network, 7, 2);
    let k = kernel.cross((&x, None), (&z, None)).unwrap();
    let g = network.forward(&x).unwrap();
    assert!((0..7).all(|i| (b * k[(i, 0)] - g.values()[i]).abs() < 1e-12));
}

#[test]
fn few_rows_have_a_companion() {
    let options = FixedMeanOptions::default();
    assert!(options.with_companion(FEW_ROWS - 1) && !options.with_companion(FEW_ROWS));
    for companion in [true, false] {
        let options = FixedMeanOptions { companion: Some(companion), ..FixedMeanOptions::default() };
        assert!([1, FEW_ROWS, 100_000].into_iter().all(|rows| options.with_companion(rows) == companion));
    }
}

/// How many of [`kernels`] take steps; the others are in closed form.
const STEPPED: usize = 5;

fn kernels() -> Vec<FixedMeanOptions> {
    vec![
        short(FixedMeanOptions::fixed_mean_table()),
        short(FixedMeanOptions::fixed_mean_table_published()),
        short(FixedMeanOptions::fixed_mean_images()),
        short(FixedMeanOptions::fixed_mean_images_published()),
        short(FixedMeanOptions::valla()),
        FixedMeanOptions { closed_form: true, ..short(FixedMeanOptions::fixed_mean_images()) },
        FixedMeanOptions { closed_form: true, ..short(FixedMeanOptions::valla()) },
    ]
}

#[test]
fn means_are_the_network_and_files_predict_the_same() {
    for likelihood in [classes(), OutputLikelihood::Gaussian(Gaussian::new(0.4, 0.0).with_outputs(3))] {
        let network = network(PERCEPTRON, 2);
        let (examples, held) = (data(&network, &likelihood, 30, 4), data(&network, &likelihood, 12, 40));
        let x = inputs(&network, 150, 77);
        for options in kernels() {
            let fit = learn(&network, &examples, Some(&held), &likelihood, &options).unwrap();
            let full = fit.posterior.latent(&network, &x, Wanted::Full).unwrap();
            assert_eq!(full.mean, network.forward(&x).unwrap().values());
            let variances = fit.posterior.latent(&network, &x, Wanted::Diagonal).unwrap();
            let joint = fit.posterior.joint(&network, &x, u64::MAX).unwrap();
            let scale = joint.norm_max();
            for n in 0..150 {
                for (o, k) in (0..3).flat_map(|o| (0..3).map(move |k| (o, k))) {
                    let (found, expected) =
                        (full.covariance[n * 9 + o * 3 + k], joint[(n * 3 + o, n * 3 + k)]);
                    assert!((found - expected).abs() < 1e-9 * scale);
                }
                assert!((0..3).all(|o| variances.covariance[n * 3 + o] == full.covariance[n * 9 + o * 4]));
            }
            let mut tensors = Tensors::default();
            fit.posterior.write(&mut tensors);
            let selection = Selection::all(network.graph());
            let again = FixedMean::read(&network, &selection, &options, &mut tensors.clone()).unwrap();
            assert_eq!(again.latent(&network, &x, Wanted::Full).unwrap(), full);
            tensors.insert_vector("fixed_mean.labels", &[9.0; 6]);
            assert!(FixedMean::read(&network, &selection, &options, &mut tensors).is_err());
            let text = serde_json::to_string(&fit.report).unwrap();
            assert_eq!(fit.report, serde_json::from_str(&text).unwrap());
            let restored: FixedMeanOptions =
                serde_json::from_str(&serde_json::to_string(&options).unwrap()).unwrap();
            assert_eq!(restored, options);
            assert_eq!(fit.report.labels.iter().filter(|l| **l == 2).count(), 2);
        }
    }
}

/// What is learned lowers the score on rows that were not learned from, and the noise moves.
#[test]
fn early_stopping_keeps_the_best_score() {
    let (network, likelihood) = (network(SINGLE, 3), gaussian(0.4));
    let (examples, held) = (data(&network, &likelihood, 60, 4), data(&network, &likelihood, 40, 40));
    let options = FixedMeanOptions { steps: 400, patience: 4, ..short(FixedMeanOptions::fixed_mean_table()) };
    let fit = learn(&network, &examples, Some(&held), &likelihood, &options).unwrap();
    let report = &fit.report;
    let best = report.scores.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert_eq!(report.best_step, Some(best.0));
    assert!(best.1 < report.scores[0].1);
    let OutputLikelihood::Gaussian(learned) = &fit.likelihood else { panic!("gaussian") };
    assert_ne!(learned.noise_variance(), (-5f64).exp());
    assert_eq!(report.noise, [("noise_variance".to_string(), learned.noise_variance())]);
    // The score is that of the posterior that is returned.
    let (x, y) = held.batch(&(0..40).collect::<Vec<_>>(), None);
    let Targets::Values(y) = y else { panic!("numbers") };
    let latent = fit.posterior.latent(&network, &x, Wanted::Diagonal).unwrap();
    let score: f64 = (0..40)
        .map(|i| {
            -learned.log_predictive_density(
                &y.values()[i..=i],
                &latent.mean[i..=i],
                &latent.covariance[i..=i],
            )
        })
        .sum();
    assert!((score / 40.0 - best.1).abs() < 1e-9, "{score} {best:?}");
    let alone =
        learn(&network, &examples, None, &likelihood, &FixedMeanOptions { steps: 9, ..options }).unwrap();
    assert_eq!((alone.report.steps, alone.report.reason), (9, Some(Reason::Steps)));
    assert!(alone.notes[0].contains("no validation rows"));
}

/// A network that predicts the logarithm of its noise: large prior variances overflow the density, and are no candidates; the report stays one that a file can hold.
#[test]
fn prior_variances_without_a_score_are_left_out() {
    let text = "kind = \"perceptron\"\ninputs = 2\nhidden = [8]\noutputs = 2\nactivation = \"tanh\"";
    let (network, likelihood) = (
        network(text, 5),
        OutputLikelihood::HeteroscedasticGaussian(HeteroscedasticGaussian::new(1).unwrap()),
    );
    let (x, held) = (inputs(&network, 60, 6), inputs(&network, 30, 7));
    let targets = |x: &Array<f64>| Targets::Values(Array::new(vec![x.rows(), 1], vec![0.3; x.rows()]));
    let (examples, held) = (Tabular::new(x.clone(), targets(&x)), Tabular::new(held.clone(), targets(&held)));
    let options = FixedMeanOptions { initial_amplitude: 1e3, ..short(FixedMeanOptions::valla()) };
    let fit = learn(&network, &examples, Some(&held), &likelihood, &options).unwrap();
    let tried = &fit.report.amplitudes;
    assert!(!tried.is_empty() && tried.len() < 29, "{}", tried.len());
    assert!(tried.iter().all(|a| a.1.is_finite()));
    assert!(fit.report.plain_score.is_some_and(f64::is_finite));
    let text = serde_json::to_string(&fit.report).unwrap();
    assert_eq!(serde_json::from_str::<FixedMeanReport>(&text).unwrap(), fit.report);
}

#[test]
fn the_prior_variance_of_a_closed_form_is_chosen_on_held_out_rows() {
    let (network, likelihood) = (network(SINGLE, 3), gaussian(0.4));
    let (examples, held) = (data(&network, &likelihood, 60, 4), data(&network, &likelihood, 40, 40));
    for options in &kernels()[STEPPED..] {
        let fit = learn(&network, &examples, Some(&held), &likelihood, options).unwrap();
        let best = fit.report.amplitudes.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert_eq!((fit.report.amplitude, fit.report.amplitudes.len()), (best.0, 29));
        assert_eq!(fit.posterior.covariance().amplitude(), best.0);
    }
}

#[test]
fn an_interrupted_fit_goes_on_to_the_same_numbers() {
    let (network, likelihood) = (network(PERCEPTRON, 2), classes());
    let (examples, held) = (data(&network, &likelihood, 30, 4), data(&network, &likelihood, 12, 40));
    let x = inputs(&network, 9, 77);
    for options in &kernels()[..STEPPED] {
        let options = FixedMeanOptions { trajectory_every: Some(15), patience: 100, ..options.clone() };
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
            let mut seen = 0;
            let observer = |stage, done, _| {
                seen += 1;
                if stage == Stage::Process && done == 17 { Signal::Stop } else { Signal::Continue }
            };
            let error = fit(&problem, &options, &mut Run::new(observer).keeping(checkpointer)).unwrap_err();
            assert!(matches!(error, LaplaceError::Interrupted) && seen > 17);
        }
        let mut run = Run::default().keeping(Checkpointer::new(Some(kept.unwrap()), None));
        let rest = fit(&problem, &options, &mut run).unwrap();
        let latent = |fit: &FixedMeanFit<f64>| fit.posterior.latent(&network, &x, Wanted::Full).unwrap();
        assert_eq!(latent(&rest), latent(&whole));
        assert_eq!(
            (&rest.report.scores, &rest.report.trajectory),
            (&whole.report.scores, &whole.report.trajectory)
        );
        assert_eq!(rest.report.losses, whole.report.losses);
        assert_eq!(rest.report.amplitudes, whole.report.amplitudes);
    }
}

#[test]
fn single_precision_is_close_to_double() {
    let (wide, likelihood) = (network(PERCEPTRON, 2), classes());
    let narrow = wide.cast::<f32>().unwrap();
    let examples = data(&wide, &likelihood, 30, 4);
    let (x, y) = examples.batch(&(0..30).collect::<Vec<_>>(), None);
    let Targets::Classes(y) = y else { panic!("classes") };
    let single = Tabular::new(x.cast::<f32>(), Targets::Classes(y));
    for options in kernels() {
        let expected = learn(&wide, &examples, None, &likelihood, &options).unwrap();
        let found = learn(&narrow, &single, None, &likelihood, &options).unwrap();
        let expected = expected.posterior.latent(&wide, &x, Wanted::Full).unwrap();
        let found = found.posterior.latent(&narrow, &x.cast(), Wanted::Full).unwrap();
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
    let says =
        |network: &Network<f64>, examples: &dyn Examples<f64>, options: FixedMeanOptions, what: &str| {
            let error = learn(network, examples, None, &likelihood, &options).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
    let options = || short(FixedMeanOptions::fixed_mean_table());
    let many = FixedMeanOptions { inducing_points: Some(13), ..options() };
    says(&perceptron, &examples, many, "13 inducing points were asked for, but there are 12");
    says(&perceptron, &examples, FixedMeanOptions { inducing_points: Some(2), ..options() }, "3 outputs");
    let kernel = |text: &str| FixedMeanOptions { kernel: FixedMeanKernel::Inputs(text.into()), ..options() };
    says(&perceptron, &examples, kernel("rbf + white"), "belongs to the likelihood");
    says(&perceptron, &examples, kernel("rbff"), "rbff");
    let diverges = FixedMeanOptions { learning_rate: 1e200, ..options() };
    says(&perceptron, &examples, diverges, "step 2: the covariance of the inducing points is not finite");
    let pooled = "kind = \"layers\"\ninput = [2, 3, 3]\n[[layer]]\nname = \"sight\"\noperation = \"convolution\"\noutputs = 3\nkernel = [3, 3]\n\
                  [[layer]]\nname = \"pool\"\noperation = \"mean\"\naxes = [1, 2]";
    let pooled = network(pooled, 5);
    let features =
        FixedMeanOptions { inducing_points: Some(6), ..short(FixedMeanOptions::fixed_mean_images()) };
    says(&pooled, &data(&pooled, &likelihood, 12, 4), features, "the layers with weights are: sight");
    says(&perceptron, &examples, FixedMeanOptions { alpha: -1.0, ..options() }, "alpha");
    let lopsided = Tabular::new(inputs(&perceptron, 12, 4), Targets::Classes(vec![1; 12]));
    says(&perceptron, &lopsided, options(), "no example is of class 0");
    let spread =
        network("kind = \"perceptron\"\ninputs = 3\nhidden = [5]\noutputs = 3\nactivation = \"tanh\"", 1);
    let selection = Selection::all(spread.graph());
    let data = Data::new(&spread, &examples, &likelihood);
    let problem = Problem { data, selection: &selection, seed: 3, memory: 100 };
    let little = fit(&problem, &options(), &mut Run::default());
    assert!(matches!(little.unwrap_err(), LaplaceError::Memory { .. }));
    let (selection, likelihood) = (&selection, &likelihood);
    let size = Size { network: &spread, selection, examples: 1000, unseen: 0, likelihood };
    let plan = plan(&size, &options()).unwrap();
    assert!(plan.flops > 0.0 && plan.curvature_bytes > 8 * 1000 * 7);
}

/// ResNet-20 on ten classes, whose features are 270,000 numbers a row: the closed form and steps take rows in small pieces.
#[test]
fn a_residual_network_is_planned_within_two_gigabytes() {
    use posterior_networks::Architecture;
    use posterior_networks::architecture::Resnet;
    let graph = Architecture::Resnet(Resnet::cifar10(20)).graph().unwrap();
    let network = Network::<f32>::initialised(graph, posterior_linalg::random::Streams::new(0)).unwrap();
    let selection = Selection::all(network.graph());
    let likelihood = OutputLikelihood::Categorical(Categorical::new(10).unwrap());
    // The inducing points' features alone, in doubles; steps have as many directions to pull them back along.
    let least = 8 * 100 * selection.len() as u64;
    for (closed_form, least) in [(true, least), (false, 2 * least)] {
        let options = FixedMeanOptions { closed_form, ..FixedMeanOptions::valla() };
        let (network, selection, likelihood) = (&network, &selection, &likelihood);
        let size = Size { network, selection, examples: 10_000, unseen: 500, likelihood };
        let planned = plan(&size, &options).unwrap().bytes();
        assert!(least < planned && planned < 2_000_000_000, "{planned}");
    }
}
