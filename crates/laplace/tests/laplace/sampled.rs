//! Laplace by samples against dense algebra, between its solvers, and through interruptions.

use crate::common::{brute_curvature, data, inputs, inverse, jacobian, network};
use faer::{Mat, Scale};
use posterior_gp::iterative::DualDescentOptions;
use posterior_laplace::checkpointer::{Checkpointer, SavedState};
use posterior_laplace::function_space::FunctionSpace;
use posterior_laplace::sampled::{
    ConjugateOptions, DescentOptions, DualOptions, ModeSolver, Sampled, SampledFit, SampledOptions, Solver,
    Space, Update, fit, plan,
};
use posterior_laplace::{
    Approximation, Data, FitOptions, Laplace, LaplaceError, Learned, ModeOptions, Problem, Run, Size, Stage,
    Wanted,
};
use posterior_likelihoods::{Categorical, Gaussian, Integration, OutputLikelihood};
use posterior_linalg::random::Streams;
use posterior_networks::train::{Examples, Tabular};
use posterior_networks::{Architecture, Network, Selection};
use posterior_optim::Signal;
use posterior_store::Tensors;

const SMALL: &str = "kind = \"perceptron\"\ninputs = 2\nhidden = [3]\noutputs = 3\nactivation = \"tanh\"";
/// More weights (243) than thirty examples have outputs.
const WIDE: &str = "kind = \"perceptron\"\ninputs = 2\nhidden = [40]\noutputs = 3\nactivation = \"tanh\"";
pub(crate) const MEMORY: u64 = 4 << 30;

pub(crate) struct Case {
    pub(crate) network: Network<f64>,
    pub(crate) selection: Selection,
    pub(crate) likelihood: OutputLikelihood,
    pub(crate) examples: Tabular<f64>,
}

pub(crate) fn case(softmax: bool) -> Case {
    case_of(SMALL, softmax)
}

fn case_of(text: &str, softmax: bool) -> Case {
    let network = network(text, 4);
    let likelihood = match softmax {
        true => OutputLikelihood::Categorical(Categorical::new(3).unwrap()),
        false => OutputLikelihood::Gaussian(Gaussian::independent(vec![0.5, 1.0, 2.0]).unwrap()),
    };
    let examples = data(&network, &likelihood, 30, 6);
    Case { selection: Selection::all(network.graph()), network, likelihood, examples }
}

fn tight() -> Solver {
    Solver::ConjugateGradients(ConjugateOptions { tolerance: 1e-10, steps: 1000 })
}

fn dual() -> Solver {
    let descent = DualDescentOptions { batch: 60, ..DualOptions::default().descent };
    Solver::DualDescent(DualOptions { steps: 30_000, tolerance: 1e-9, descent })
}

pub(crate) fn options() -> SampledOptions {
    SampledOptions {
        samples_em: 4,
        samples: 5,
        em_steps: 3,
        solver: tight(),
        space: Some(Space::Weights),
        tolerance: 0.0,
        mode: ModeSolver::Newton(ModeOptions {
            tolerance: 1e-12,
            inner_steps: 60,
            newton_steps: 40,
            ..Default::default()
        }),
        ..SampledOptions::default()
    }
}

impl Case {
    fn data(&self) -> Data<'_, f64> {
        Data::new(&self.network, &self.examples, &self.likelihood)
    }

    fn problem(&self, memory: u64) -> Problem<'_, f64> {
        Problem { data: self.data(), selection: &self.selection, seed: 11, memory }
    }

    pub(crate) fn run(
        &self,
        options: &SampledOptions,
        checkpointer: Checkpointer<'_>,
        stop: usize,
    ) -> Result<SampledFit<f64>, LaplaceError> {
        self.run_by(options, None, checkpointer, stop)
    }

    pub(crate) fn run_by(
        &self,
        options: &SampledOptions,
        validation: Option<&dyn Examples<f64>>,
        checkpointer: Checkpointer<'_>,
        stop: usize,
    ) -> Result<SampledFit<f64>, LaplaceError> {
        let mut told = 0;
        let observer = |_, _, _| {
            told += 1;
            if stop > 0 && told >= stop { Signal::Stop } else { Signal::Continue }
        };
        let data = Data { validation, ..self.data() };
        let problem = Problem { data, ..self.problem(MEMORY) };
        fit(&problem, options, Integration::Probit, &mut Run::new(observer).keeping(checkpointer))
    }

    pub(crate) fn fitted(&self, options: &SampledOptions) -> SampledFit<f64> {
        self.run(options, Checkpointer::default(), 0).unwrap()
    }
}

pub(crate) fn close(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    (a - b).norm_l2() / b.norm_l2()
}

#[test]
fn second_moments_are_those_of_the_dense_posterior_and_of_function_space() {
    let case = case(true);
    let count = 4000;
    for solver in [tight(), dual()] {
        let options = SampledOptions {
            em_steps: 0,
            samples: count,
            g_prior: false,
            initial_precision: 0.7,
            solver,
            ..options()
        };
        let found = case.fitted(&options);
        assert_eq!(found.precisions, [0.7]);
        let x = inputs(&case.network, 4, 50);
        let j = jacobian(&case.network, &case.selection, &x);
        let d = case.selection.len();
        let m = brute_curvature(&case.network, &case.selection, &case.likelihood, &case.examples);
        let expected = &j * inverse(&(m + Mat::<f64>::identity(d, d) * Scale(0.7))) * j.transpose();
        let joint = found.posterior.joint(&case.network, &x, MEMORY).unwrap();
        for i in 0..12 {
            for k in 0..12 {
                // A mean of products of normals.
                let spread = (expected[(i, i)] * expected[(k, k)] + expected[(i, k)].powi(2)) / count as f64;
                assert!((joint[(i, k)] - expected[(i, k)]).abs() < 5.0 * spread.sqrt());
            }
        }
        let latent = found.posterior.latent(&case.network, &x, Wanted::Full).unwrap();
        assert_eq!(latent.mean, case.network.forward(&x).unwrap().values());
        for i in 0..4 {
            for k in 0..9 {
                let own = joint[(3 * i + k / 3, 3 * i + k % 3)];
                assert!((latent.covariance[9 * i + k] - own).abs() < 1e-12);
            }
        }
        let (points, _) = FunctionSpace::new(&case.problem(MEMORY), None, &mut Run::default()).unwrap();
        let function_space =
            points.condition(&[(0.7, 1.0)]).unwrap().joint(&case.network, &x, MEMORY).unwrap();
        assert!(close(&function_space, &expected) < 1e-9);
        let draws = |count| found.posterior.function_samples(&case.network, &x, count, 0);
        let drawn = draws(3).unwrap().unwrap();
        let moved = &j * found.posterior.samples().subcols(1, 1);
        assert!((0..12).all(|i| (drawn[12 + i] - latent.mean[i] - moved[(i, 0)]).abs() < 1e-11));
        assert!(draws(count + 1).is_err());
    }
}

/// The same noise in both spaces, with the kernel stored and by products.
#[test]
fn dual_descent_draws_the_samples_of_weight_space() {
    for softmax in [true, false] {
        let case = case(softmax);
        for g_prior in [false, true] {
            let options = || SampledOptions { g_prior, learn_noise: Some(true), ..options() };
            let primal = case.fitted(&options());
            let other = case.fitted(&SampledOptions { solver: dual(), ..options() });
            assert_eq!(other.report.stored_kernel, Some(!g_prior));
            let ratio = other.precisions[0] / primal.precisions[0];
            assert!((ratio - 1.0).abs() < 1e-6, "{softmax} {g_prior}: {ratio}");
            assert!((other.noise_variance / primal.noise_variance - 1.0).abs() < 1e-6);
            assert_eq!(primal.noise_variance == 1.0, softmax);
            let given = case.fitted(&SampledOptions { learn_noise: Some(false), ..options() });
            assert_eq!(given.noise_variance, 1.0);
            let error = close(other.posterior.samples(), primal.posterior.samples());
            assert!(error < 1e-5, "{softmax} {g_prior}: {error}");
            // What function space knows of the effective dimension without a pass is what the pass finds.
            for (a, b) in primal.report.turns.iter().zip(&other.report.turns) {
                let (a, b) = (a.by_prediction.unwrap(), b.by_prediction.unwrap());
                assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
            }
        }
    }
}

/// The kernel's eigenvectors give what passes over the data give, on the same noise: turns, optimum, samples, and further ones.
#[test]
fn function_space_draws_the_samples_of_weight_space() {
    for softmax in [true, false] {
        let case = case_of(WIDE, softmax);
        for update in [Update::Mackay, Update::Evidence] {
            // Many random probes of the spectrum: the two spaces have their own.
            let options = || SampledOptions { update, spectrum_probes: 400, ..options() };
            let weights = case.fitted(&options());
            let asked = SampledOptions { space: Some(Space::Functions), ..options() };
            let found = case.fitted(&asked);
            assert_eq!((weights.report.space, weights.report.span), (Space::Weights, None));
            assert_eq!(found.report.space, Space::Functions);
            // As many directions as rows, or as rounding can tell.
            let span = found.report.span.unwrap();
            assert!((40..=90).contains(&span), "{span}");
            if update == Update::Evidence {
                // Some ten effective dimensions from 400 probes: 2 % of these, and what three turns make of it.
                let ratio = found.precisions[0] / weights.precisions[0];
                assert!((ratio - 1.0).abs() < 0.1, "{softmax}: {ratio}");
                continue;
            }
            let ratio = found.precisions[0] / weights.precisions[0];
            assert!((ratio - 1.0).abs() < 1e-5, "{softmax}: {ratio}");
            assert!((found.noise_variance / weights.noise_variance - 1.0).abs() < 1e-6);
            assert!(close(found.posterior.samples(), weights.posterior.samples()) < 1e-5);
            let column = |m: &Option<Vec<f64>>| Mat::from_fn(243, 1, |i, _| m.as_ref().unwrap()[i]);
            assert!(close(&column(&found.mode), &column(&weights.mode)) < 1e-5);
            for (a, b) in weights.report.turns.iter().zip(&found.report.turns) {
                let (a, b) = (a.by_prediction.unwrap(), b.by_prediction.unwrap());
                assert!((a / b - 1.0).abs() < 1e-5, "{a} {b}");
            }
            let more = found.posterior.extended(&case.data(), 3, &asked, MEMORY, &mut Run::default());
            let whole = case.fitted(&SampledOptions { samples: 8, ..asked });
            assert!(close(more.unwrap().samples(), whole.posterior.samples()) < 1e-6);
        }
    }
}

/// Few observed numbers and one precision of the weights as they are: function space, unless something else is asked for.
#[test]
fn the_space_is_what_costs_less() {
    let case = case_of(WIDE, true);
    let space = |options: SampledOptions| case.fitted(&options).report.space;
    let auto = || SampledOptions { space: None, ..options() };
    assert_eq!(space(auto()), Space::Functions);
    assert_eq!(space(SampledOptions { g_prior: true, ..auto() }), Space::Weights);
    assert_eq!(space(SampledOptions { layerwise: true, ..auto() }), Space::Weights);
    let descent = DescentOptions { epochs: 2, ..DescentOptions::default() };
    assert_eq!(space(SampledOptions { mode: ModeSolver::Descent(descent), ..auto() }), Space::Weights);
    let few = self::case(true);
    assert_eq!(few.fitted(&auto()).report.space, Space::Weights);
}

#[test]
fn an_interrupted_fit_goes_on_with_the_same_numbers() {
    let case = case(false);
    let descent = Solver::Descent(DescentOptions { epochs: 3, batch: 7, ..DescentOptions::default() });
    let short = DualDescentOptions { batch: 20, ..DualOptions::default().descent };
    let short = Solver::DualDescent(DualOptions { steps: 9, tolerance: 0.0, descent: short });
    let weights = [tight(), descent, short].map(|solver| (solver, Space::Weights));
    for (solver, space) in weights.into_iter().chain([(tight(), Space::Functions)]) {
        let mut options =
            SampledOptions { solver, space: Some(space), em_steps: 2, g_prior: false, ..options() };
        // There precisions rest after a turn.
        if space == Space::Functions {
            options.tolerance = 10.0;
        }
        let whole = case.fitted(&options);
        let compared = matches!(options.solver, Solver::Descent(_));
        assert_eq!(whole.report.gradient_variances.is_some(), compared);
        let (mut resumed, mut stop) = (0, 1);
        loop {
            let mut kept: Option<SavedState> = None;
            let mut write = |state: &SavedState| {
                // As a file would have it.
                let facts = serde_json::to_string(&state.facts).unwrap();
                kept = Some(SavedState { facts: serde_json::from_str(&facts).unwrap(), ..state.clone() });
                Ok(())
            };
            match case.run(&options, Checkpointer::new(None, Some(&mut write)), stop) {
                Ok(_) => break,
                Err(LaplaceError::Interrupted) => {}
                Err(other) => panic!("{other}"),
            }
            stop += 2;
            let Some(state) = kept else { continue };
            resumed += 1;
            let again = case.run(&options, Checkpointer::new(Some(state), None), 0).unwrap();
            assert_eq!(again.precisions, whole.precisions);
            assert_eq!(again.noise_variance, whole.noise_variance);
            assert_eq!(again.mode, whole.mode);
            assert_eq!(again.report.turns_ended, whole.report.turns_ended);
            assert_eq!(again.notes, whole.notes);
            assert_eq!(again.posterior.samples(), whole.posterior.samples());
            assert_eq!(again.report.gradient_variances, whole.report.gradient_variances);
        }
        assert!(resumed > 3, "{resumed}");
    }
    let foreign = SavedState::new("ella", &0, Tensors::default());
    let refused = case.run(&options(), Checkpointer::new(Some(foreign), None), 0).err().unwrap();
    assert!(refused.to_string().contains("`ella`"));
}

/// Coordinates of one space are not those of the other.
#[test]
fn a_state_of_the_other_space_is_refused() {
    let case = case(false);
    let asked = |space| SampledOptions { space: Some(space), em_steps: 1, ..options() };
    for (own, other, remedy) in [
        (Space::Functions, Space::Weights, "--set space=functions"),
        (Space::Weights, Space::Functions, "--set space=weights"),
    ] {
        let stopped_at = |stop| {
            let mut kept = None;
            let mut write = |state: &SavedState| {
                kept = Some(state.clone());
                Ok(())
            };
            let stopped = case.run(&asked(own), Checkpointer::new(None, Some(&mut write)), stop);
            assert!(matches!(stopped, Err(LaplaceError::Interrupted)));
            kept
        };
        let kept = (1..).find_map(stopped_at);
        let refused = case.run(&asked(other), Checkpointer::new(kept, None), 0).err().unwrap().to_string();
        assert!(refused.contains(remedy), "{refused}");
    }
}

/// Fewer further samples would be less work among the weights.
#[test]
fn further_samples_stay_in_the_space_of_the_fit() {
    let case = case_of(WIDE, true);
    let asked = SampledOptions { space: None, ..options() };
    let found = case.fitted(&asked);
    assert_eq!(found.report.space, Space::Functions);
    let mut stages = Vec::new();
    let observer = |stage, _, _| {
        stages.push(stage);
        Signal::Continue
    };
    let more = found.posterior.extended(&case.data(), 1, &asked, MEMORY, &mut Run::new(observer));
    assert_eq!(more.unwrap().samples().ncols(), asked.samples + 1);
    assert!(stages.contains(&Stage::Kernel));
}

#[test]
fn further_samples_and_files_change_nothing_of_those_before() {
    let case = case(true);
    let found = case.fitted(&options());
    let more = case.fitted(&SampledOptions { samples: 9, ..options() });
    assert_eq!(more.precisions, found.precisions);
    let mut tensors = Tensors::default();
    let header = found.posterior.header();
    found.posterior.write(&mut tensors);
    let read = Sampled::<f64>::read(&case.selection, &header, &mut tensors.clone()).unwrap();
    assert_eq!(read.samples(), found.posterior.samples());
    let extended = read.extended(&case.data(), 4, &options(), MEMORY, &mut Run::default()).unwrap();
    assert_eq!(extended.samples().subcols(0, 5), found.posterior.samples().as_ref());
    assert!(close(extended.samples(), more.posterior.samples()) < 1e-8);
    let other = Selection::last_layer(case.network.graph()).unwrap();
    assert!(Sampled::<f64>::read(&other, &header, &mut tensors).is_err());
}

/// Layers by weight space against the dense posterior, from many samples.
#[test]
fn layers_have_their_own_precisions() {
    let case = case(true);
    let options = SampledOptions {
        layerwise: true,
        g_prior: false,
        em_steps: 1,
        samples_em: 3000,
        initial_precision: 0.5,
        ..options()
    };
    let found = case.fitted(&options);
    let turn = &found.report.turns[0];
    let d = case.selection.len();
    let m = brute_curvature(&case.network, &case.selection, &case.likelihood, &case.examples);
    let covariance = inverse(&(m + Mat::<f64>::identity(d, d) * Scale(0.5)));
    // The first layer has 2 x 3 weights and 3 offsets, the second 3 x 3 and 3.
    let mut start = 0;
    for (group, size) in [9, 12].into_iter().enumerate() {
        let (mut trace, mut squares) = (0.0, 0.0);
        for i in start..start + size {
            trace += covariance[(i, i)];
            (start..start + size).for_each(|k| squares += 2.0 * covariance[(i, k)].powi(2));
        }
        let spread = 5.0 * (squares / 3000.0).sqrt();
        assert!((turn.traces[group] - trace).abs() < spread);
        let gamma = size as f64 - 0.5 * trace;
        assert!((turn.effective_dimensions[group] - gamma).abs() < 0.5 * spread);
        let norm: f64 = found.mode.as_ref().unwrap()[start..start + size].iter().map(|w| w * w).sum();
        assert!((turn.squared_norms[group] / norm - 1.0).abs() < 1e-9);
        let updated = turn.effective_dimensions[group].clamp(1.0, size as f64 - 1.0) / norm;
        assert!((found.precisions[group] / updated - 1.0).abs() < 1e-9);
        start += size;
    }
}

/// Nothing that the first layer does reaches an output: its precision would grow beyond all numbers.
#[test]
fn precisions_have_bounds_and_say_so() {
    let mut case = case(true);
    case.network.parameters_mut()[2].values_mut().fill(0.0);
    let options = SampledOptions { layerwise: true, em_steps: 4, ..options() };
    let found = case.fitted(&options);
    assert_eq!(found.precisions[0], 1e10);
    assert!(found.precisions[1] < 1e6);
    let said = found.notes.iter().filter(|n| n.contains("went to its bound of 1e10")).count();
    assert_eq!(said, 1, "{:?}", found.notes);
}

#[test]
fn bad_options_are_refused() {
    let case = case(true);
    let refused =
        |options: SampledOptions| case.run(&options, Checkpointer::default(), 0).err().unwrap().to_string();
    assert!(refused(SampledOptions { samples: 0, ..options() }).contains("at least one sample"));
    assert!(refused(SampledOptions { initial_precision: -1.0, ..options() }).contains("positive"));
    assert!(refused(SampledOptions { tolerance: f64::NAN, ..options() }).contains("tolerance"));
    assert!(
        refused(SampledOptions { layerwise: true, solver: dual(), ..options() }).contains("one precision")
    );
    assert!(
        refused(SampledOptions { layerwise: true, update: Update::Evidence, ..options() })
            .contains("one precision")
    );
    for own in [
        SampledOptions { layerwise: true, ..options() },
        SampledOptions { g_prior: true, ..options() },
        SampledOptions { solver: dual(), ..options() },
    ] {
        let asked = SampledOptions { space: Some(Space::Functions), ..own };
        assert!(refused(asked).contains("stay in weight space"));
    }
    let none = Solver::Descent(DescentOptions { epochs: 0, ..DescentOptions::default() });
    assert!(refused(SampledOptions { solver: none, ..options() }).contains("epochs"));
    let tight = fit(&case.problem(1000), &options(), Integration::Probit, &mut Run::default());
    assert!(matches!(tight, Err(LaplaceError::Memory { .. })));
}

/// Sixteen samples of the weights of a ResNet-20 are planned below 2 GB.
#[test]
fn a_resnet_fits() {
    let text = "kind = 'resnet'\ndepth = 20";
    let graph = Architecture::from_toml(text).unwrap().graph().unwrap();
    let network = Network::<f32>::initialised(graph, Streams::new(0)).unwrap();
    let selection = Selection::all(network.graph());
    assert!(selection.len() > 250_000 && selection.len() < 300_000, "{}", selection.len());
    let likelihood = OutputLikelihood::Categorical(Categorical::new(10).unwrap());
    let options = SampledOptions { samples: 16, samples_em: 16, ..SampledOptions::default() };
    let (network, selection, likelihood) = (&network, &selection, &likelihood);
    let size = Size { network, selection, examples: 50_000, unseen: 0, likelihood };
    let planned = plan(&size, &options);
    assert!(planned.bytes() < 2_000_000_000 && planned.flops > 1e14, "{planned:?}");
    // Few images in function space, in a tenth of the work.
    let few = |space| {
        let options = SampledOptions { space: Some(space), ..options.clone() };
        let planned = plan(&Size { examples: 500, ..size }, &options);
        assert!(planned.bytes() < 2_000_000_000, "{planned:?}");
        planned.flops
    };
    assert!(few(Space::Weights) > 10.0 * few(Space::Functions));
}

/// Predictions stay the network's; under Gaussian noise what the linear model would say instead counts as variance, as for a dense curvature.
#[test]
fn the_distance_of_the_optimum_counts_as_variance() {
    for softmax in [false, true] {
        let case = case(softmax);
        let (network, selection) = (&case.network, &case.selection);
        let draws = case.fitted(&options()).posterior;
        let approximation = Approximation::Sampled(options());
        let options = FitOptions { approximation, seed: 11, memory: MEMORY, ..FitOptions::default() };
        let run = &mut Run::default();
        let found = posterior_laplace::fit(&case.data(), &options, run).unwrap();
        let trained = selection.flatten(network.parameters());
        let away = Mat::from_fn(selection.len(), 1, |i, _| found.mode()[i] - trained[i]);
        assert!(away.norm_l2() > 0.1);
        let x = inputs(network, 4, 50);
        let moved = jacobian(network, selection, &x) * &away * Scale(if softmax { 0.0 } else { 1.0 });
        let latent = found.latent(network, &x, Wanted::Full).unwrap();
        let own = found.tangent_latent(network, &x, Wanted::Full).unwrap();
        assert_eq!(latent.mean, own.mean);
        let joint = found.joint(network, &x, MEMORY).unwrap();
        for (i, k) in (0..4).flat_map(|i| (0..9).map(move |k| (i, k))) {
            let (a, b) = (3 * i + k / 3, 3 * i + k % 3);
            let expected = own.covariance[9 * i + k] + moved[(a, 0)] * moved[(b, 0)];
            assert!((latent.covariance[9 * i + k] - expected).abs() < 1e-12);
            assert!((joint[(a, b)] - expected).abs() < 1e-12);
        }
        // Further samples change nothing of it.
        let more = SampledOptions { samples: 9, ..crate::sampled::options() };
        let more = FitOptions { approximation: Approximation::Sampled(more), ..options.clone() };
        let more = found.improved(network, &case.examples, &more, run).unwrap();
        let squares = |l: &Laplace<f64>| -> Vec<f64> {
            let all = l.latent(network, &x, Wanted::Full).unwrap().covariance;
            let own = l.tangent_latent(network, &x, Wanted::Full).unwrap().covariance;
            all.iter().zip(&own).map(|(a, o)| a - o).collect()
        };
        squares(&found).iter().zip(squares(&more)).for_each(|(a, b)| assert!((a - b).abs() < 1e-10));
        // Every function goes along it by a number of its own.
        let functions = found.function_samples(network, &x, 5, 3, MEMORY).unwrap();
        let (all, _) = case.examples.batch(&(0..30).collect::<Vec<_>>(), None);
        let distance = (jacobian(network, selection, &all) * &away).norm_l2() / 90f64.sqrt();
        let mut numbers = Vec::new();
        for (k, function) in functions.chunks_exact(12).enumerate() {
            let along = jacobian(network, selection, &x) * draws.samples().col(k);
            let plain: Vec<f64> = (0..12).map(|i| function[i] - latent.mean[i] - along[i]).collect();
            let normal = if softmax { 0.0 } else { plain[0] / moved[(0, 0)] };
            (0..12).for_each(|i| assert!((plain[i] - normal * moved[(i, 0)]).abs() < 1e-9));
            numbers.push(normal);
        }
        assert!(softmax || numbers.windows(2).all(|n| n[0] != n[1]));
        match found.summary.displacement() {
            Some(known) => assert!(!softmax && (known / distance - 1.0).abs() < 1e-10),
            None => assert!(softmax),
        }
    }
}
