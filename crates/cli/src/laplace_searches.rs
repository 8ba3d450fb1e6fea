//! From the flags of curvatures that are found by a search of their own to what is asked of it; a flag that a curvature does not have is wrong usage.

use crate::args::CurvatureArg::{Ella, FixedMean, Gwi, MeanField, Sampled, Temperature, Valla};
use crate::args::{
    Cli, CurvatureArg, FreezeArg, KernelInputsArg, LaplaceArgs, SETTINGS, SolverArg, SwitchArg, TuneArg,
};
use crate::laplace_effects;
use crate::output::Failure;
use posterior::laplace::LikelihoodKind;
use posterior::linearised::fixed_mean::{FixedMeanKernel, FixedMeanOptions};
use posterior::linearised::gwi::{GwiNoise, GwiOptions};
use posterior::linearised::sampled::{ConjugateOptions, DescentOptions, DualOptions, SampledOptions, Solver};
use posterior::linearised::{Approximation, EllaOptions, MeanFieldOptions, Mode, NoiseModel, PriorKind};
use posterior::network::is_table;

/// Whether a curvature chooses precisions, noise and mode itself.
pub(crate) fn is_search(method: CurvatureArg) -> bool {
    matches!(method, FixedMean | Valla | Gwi | Sampled | MeanField | Temperature)
}

/// Refuses settings that the method does not have.
pub(crate) fn check(cli: &Cli, a: &LaplaceArgs, method: CurvatureArg) -> Result<(), Failure> {
    let s = &a.searches;
    for (flags, owners) in SETTINGS {
        let names: Vec<String> = owners.iter().map(ToString::to_string).collect();
        cli.only(flags, owners.contains(&method), &format!("--method {}", names.join(", ")))?;
    }
    let descends = method != Sampled || s.solver == Some(SolverArg::Descent);
    cli.only(&["epochs", "batch", "learning-rate"], descends, "--set solver=descent")?;
    if s.closed_form && (s.steps.is_some() || s.learning_rate.is_some()) {
        let problem = "--set steps and --set learning-rate have no meaning beside --set closed-form, which learns nothing by steps";
        return Err(Failure::usage(problem.into()));
    }
    let of_steps = ["alpha", "energy-draws", "batch", "companion", "validate-every", "patience"];
    let closed = "has no meaning beside --set closed-form, which learns nothing by steps";
    cli.refuse(&of_steps, s.closed_form, closed)?;
    let other = s.freeze.iter().any(|what| *what != FreezeArg::Prior);
    if s.closed_form && other {
        let problem = "beside --set closed-form, which holds everything else, --set freeze has the meaning `prior` only";
        return Err(Failure::usage(problem.into()));
    }
    let classes = a.likelihood == LikelihoodKind::Categorical;
    let energies = "--likelihood categorical: the energies of others are computed";
    cli.only(&["energy-draws"], classes, energies)?;
    let unlearned = a.tune == Some(TuneArg::None);
    let kept = "has no meaning beside --tune none, which learns no precision";
    cli.refuse(&["em-samples", "em-steps", "update"], unlearned, kept)?;
    let either = s.solver.is_none_or(|solver| solver == SolverArg::ConjugateGradients);
    let places =
        "--set solver=conjugate-gradients: descent works among the weights, dual-descent with the kernel";
    cli.only(&["space"], either, places)?;
    laplace_effects::check(a, method)?;
    if !is_search(method) {
        return Ok(());
    }
    let own = method == Sampled;
    let scales = own || matches!(method, FixedMean | Valla);
    let prior = match a.prior {
        PriorKind::Auto => false,
        PriorKind::Scalar | PriorKind::Layerwise | PriorKind::GPrior => !own,
        _ => true,
    };
    let noise = match a.noise {
        None | Some(NoiseModel::Scale) => false,
        Some(NoiseModel::Fixed) => method == Temperature,
        _ => true,
    };
    let beside = [
        (prior, "set prior"),
        (a.precision.is_some() && !scales, "set precision"),
        (a.tune.is_some_and(|t| !(own && t != TuneArg::CrossValidation)), "tune"),
        (noise, "set noise"),
        (a.mode != Mode::Auto, "set mode"),
    ];
    match beside.iter().find(|b| b.0) {
        None => Ok(()),
        Some((_, flag)) => Err(Failure::usage(format!(
            "--{flag} has no such meaning beside --method {method}, which finds what it needs by a search of its own"
        ))),
    }
}

/// What is asked of the search.
pub(crate) fn approximation(a: &LaplaceArgs, method: CurvatureArg) -> Result<Approximation, Failure> {
    Ok(match method {
        FixedMean | Valla => Approximation::FixedMean(process(a, method == Valla)?),
        Gwi => Approximation::Gwi(gwi(a)),
        Ella => Approximation::Ella(ella(a)),
        Sampled => Approximation::Sampled(sampled(a)),
        MeanField => Approximation::MeanField(mean_field(a)),
        Temperature => Approximation::Temperature,
        other => return Err(Failure::usage(format!("--method {other} is no search of its own"))),
    })
}

/// Whether the kernel of a process around the network looks at the network's inputs.
pub(crate) fn on_inputs(a: &LaplaceArgs) -> bool {
    match a.searches.kernel_inputs {
        Some(chosen) => chosen == KernelInputsArg::Inputs,
        None => a.data.first().is_some_and(|path| is_table(path)) && a.head.is_none(),
    }
}

fn process(a: &LaplaceArgs, tangent: bool) -> Result<FixedMeanOptions, Failure> {
    let s = &a.searches;
    let inputs = on_inputs(a);
    let mut own = match (tangent, inputs) {
        (true, _) if s.closed_form => FixedMeanOptions::valla_in_closed_form(),
        (true, _) => FixedMeanOptions::valla(),
        (false, true) => FixedMeanOptions::fixed_mean_table(),
        (false, false) => FixedMeanOptions::fixed_mean_images(),
    };
    if let Some(text) = &s.kernel {
        let text = text.clone();
        own.kernel = if inputs { FixedMeanKernel::Inputs(text) } else { FixedMeanKernel::Features(text) };
    }
    let frozen = |what| s.freeze.contains(&what);
    own.learn_inducing &= !frozen(FreezeArg::InducingPoints);
    own.learn_amplitude &= !frozen(FreezeArg::Prior);
    own.learn_noise &= !frozen(FreezeArg::Noise) && a.noise != Some(NoiseModel::Fixed);
    own.learn_kernel &= !frozen(FreezeArg::Kernel);
    own.output_covariance &= !frozen(FreezeArg::Outputs);
    own.companion = s.companion.map(|switch| switch == SwitchArg::On).or(own.companion);
    own.closed_form = s.closed_form;
    // The closed form learns no noise: it begins with what the network leaves in training, or what was given.
    if a.initial_noise.is_some() || s.closed_form {
        own.initial_noise = None;
    }
    own.initial_amplitude = a.precision.map_or(own.initial_amplitude, |precision| 1.0 / precision);
    if s.inducing_points.is_some() {
        own.inducing_points = s.inducing_points;
    }
    set(&mut own.alpha, s.alpha);
    own.monte_carlo = s.energy_draws.or(own.monte_carlo);
    set(&mut own.val_every, s.validate_every);
    set(&mut own.patience, s.patience);
    set(&mut own.steps, s.steps);
    set(&mut own.batch, s.batch);
    set(&mut own.learning_rate, s.learning_rate);
    own.trajectory_every = s.trajectory_every;
    match s.trajectory_every.filter(|every| *every > own.steps) {
        None => Ok(own),
        Some(every) => Err(Failure::usage(format!(
            "--set trajectory-every={every} records nothing in {} steps: give a smaller number",
            own.steps
        ))),
    }
}

fn gwi(a: &LaplaceArgs) -> GwiOptions {
    let s = &a.searches;
    let inputs = on_inputs(a);
    let mut own = if inputs { GwiOptions::table() } else { GwiOptions::images() };
    if let Some(text) = &s.kernel {
        let kernel = text.clone();
        own.kernel = match (text.trim(), inputs) {
            // Refused by the fit, which says who has it.
            ("tangent", _) => FixedMeanKernel::Tangent,
            (_, true) => FixedMeanKernel::Inputs(kernel),
            (_, false) => FixedMeanKernel::Features(kernel),
        };
    }
    own.inducing_points = s.inducing_points;
    set(&mut own.family, s.variational_kernel);
    set(&mut own.objective.regulariser, s.regulariser);
    set(&mut own.objective.weight, s.regulariser_weight);
    set(&mut own.mode, s.regulariser_mode);
    set(&mut own.rule, s.update_rule);
    if a.noise == Some(NoiseModel::Fixed) {
        own.noise = GwiNoise::Given;
    }
    set(&mut own.steps, s.steps);
    set(&mut own.batch, s.batch);
    set(&mut own.learning_rate, s.learning_rate);
    set(&mut own.val_every, s.validate_every);
    set(&mut own.patience, s.patience);
    own
}

fn ella(a: &LaplaceArgs) -> EllaOptions {
    let s = &a.searches;
    let mut own =
        EllaOptions { landmarks: s.landmarks, val_every: s.validate_every, ..EllaOptions::default() };
    set(&mut own.features, a.rank);
    set(&mut own.patience, a.searches.patience);
    set(&mut own.val_precision, a.precision);
    own
}

/// Settings that `--tune validation` tries for samples at most: precisions up to six decades from those of the turns.
const TRIES: usize = 12;

fn sampled(a: &LaplaceArgs) -> SampledOptions {
    let s = &a.searches;
    let mut own = SampledOptions {
        solver: match s.solver {
            Some(SolverArg::Descent) => {
                let mut descent =
                    DescentOptions { seed: a.seed, step_size: s.learning_rate, ..DescentOptions::default() };
                set(&mut descent.epochs, s.epochs);
                set(&mut descent.batch, s.batch);
                Solver::Descent(descent)
            }
            Some(SolverArg::DualDescent) => Solver::DualDescent(DualOptions::default()),
            Some(SolverArg::ConjugateGradients) => Solver::ConjugateGradients(ConjugateOptions::default()),
            None => SampledOptions::default().solver,
        },
        space: s.space,
        update: s.update.unwrap_or_default(),
        g_prior: a.prior == PriorKind::GPrior,
        layerwise: a.prior == PriorKind::Layerwise,
        learn_noise: a.noise.map(|noise| noise != NoiseModel::Fixed),
        ..SampledOptions::default()
    };
    set(&mut own.samples, s.samples);
    set(&mut own.samples_em, s.em_samples);
    set(&mut own.em_steps, s.em_steps);
    match a.tune {
        Some(TuneArg::None) => own.em_steps = 0,
        Some(TuneArg::Validation) => own.validation_tries = TRIES,
        _ => {}
    }
    set(&mut own.initial_precision, a.precision);
    own
}

fn mean_field(a: &LaplaceArgs) -> MeanFieldOptions {
    let s = &a.searches;
    let mut own =
        MeanFieldOptions { learn_noise: a.noise != Some(NoiseModel::Fixed), ..MeanFieldOptions::default() };
    set(&mut own.epochs, s.epochs);
    set(&mut own.batch, s.batch);
    set(&mut own.mean_rate, s.learning_rate);
    set(&mut own.samples, s.samples);
    // A network that was trained without any still needs a prior.
    set(&mut own.weight_decay, a.weight_decay.filter(|w| *w > 0.0));
    own
}

/// Takes what was given.
fn set<V>(option: &mut V, given: Option<V>) {
    if let Some(value) = given {
        *option = value;
    }
}
