//! From the flags of curvatures that are found by a search of their own to what is asked of it; a flag that a curvature does not have is wrong usage.

use crate::args::CurvatureArg::{Ella, FixedMean, Gwi, MeanField, Sampled, Temperature, Valla};
use crate::args::{
    CurvatureArg, FreezeArg, KernelInputsArg, LaplaceArgs, SolverArg, SpaceArg, SwitchArg, TuneArg, UpdateArg,
};
use crate::laplace_effects;
use crate::output::Failure;
use posterior::laplace::LikelihoodKind;
use posterior::linearised::fixed_mean::{FixedMeanKernel, FixedMeanOptions};
use posterior::linearised::gwi::{GwiNoise, GwiOptions};
use posterior::linearised::sampled::{
    ConjugateOptions, DescentOptions, DualOptions, SampledOptions, Solver, Space, Update,
};
use posterior::linearised::{Approximation, EllaOptions, MeanFieldOptions, Mode, NoiseModel, PriorKind};
use posterior::network::is_table;

/// Whether a curvature chooses precisions, noise and mode itself.
pub(crate) fn is_search(asked: CurvatureArg) -> bool {
    matches!(asked, FixedMean | Valla | Gwi | Sampled | MeanField | Temperature)
}

/// Refuses flags that the curvature does not have.
pub(crate) fn check(a: &LaplaceArgs, asked: CurvatureArg) -> Result<(), Failure> {
    let s = &a.searches;
    let processes: &[CurvatureArg] = &[FixedMean, Valla];
    let flags: &[(bool, &str, &[CurvatureArg])] = &[
        (s.kernel.is_some(), "kernel", &[FixedMean, Gwi]),
        (s.kernel_inputs.is_some(), "kernel-inputs", &[FixedMean, Gwi]),
        (s.inducing_points.is_some(), "inducing-points", &[FixedMean, Valla, Gwi]),
        (s.regulariser.is_some(), "regulariser", &[Gwi]),
        (s.regulariser_weight.is_some(), "regulariser-weight", &[Gwi]),
        (s.regulariser_mode.is_some(), "regulariser-mode", &[Gwi]),
        (s.variational_kernel.is_some(), "variational-kernel", &[Gwi]),
        (s.update_rule.is_some(), "update-rule", &[Gwi]),
        (s.alpha.is_some(), "alpha", processes),
        (s.energy_draws.is_some(), "energy-draws", processes),
        (s.companion.is_some(), "companion", &[FixedMean]),
        (!s.freeze.is_empty(), "freeze", processes),
        (s.closed_form, "closed-form", processes),
        (s.trajectory_every.is_some(), "trajectory-every", processes),
        (s.validate_every.is_some(), "validate-every", &[FixedMean, Valla, Gwi, Ella]),
        (s.patience.is_some(), "patience", &[FixedMean, Valla, Gwi, Ella]),
        (s.steps.is_some(), "steps", &[FixedMean, Valla, Gwi]),
        (s.landmarks.is_some(), "landmarks", &[Ella]),
        (s.samples.is_some(), "samples", &[Sampled, MeanField]),
        (s.em_samples.is_some(), "em-samples", &[Sampled]),
        (s.em_steps.is_some(), "em-steps", &[Sampled]),
        (s.solver.is_some(), "solver", &[Sampled]),
        (s.space.is_some(), "space", &[Sampled]),
        (s.update.is_some(), "update", &[Sampled]),
        (s.epochs.is_some(), "epochs", &[Sampled, MeanField]),
        (s.batch.is_some(), "batch", &[FixedMean, Valla, Gwi, Sampled, MeanField]),
        (s.learning_rate.is_some(), "learning-rate", &[FixedMean, Valla, Gwi, Sampled, MeanField]),
    ];
    let name = |curvature: &CurvatureArg| curvature.to_string();
    for (given, flag, owners) in flags {
        if *given && !owners.contains(&asked) {
            let owners: Vec<String> = owners.iter().map(name).collect();
            return Err(Failure::usage(format!("--{flag} belongs to --curvature {}", owners.join(", "))));
        }
    }
    let descends = s.solver == Some(SolverArg::Descent);
    let of_descent = [
        (s.epochs.is_some(), "epochs"),
        (s.batch.is_some(), "batch"),
        (s.learning_rate.is_some(), "learning-rate"),
    ];
    if let Some((_, flag)) = of_descent.iter().find(|f| f.0 && asked == Sampled && !descends) {
        return Err(Failure::usage(format!("--{flag} belongs to --solver descent")));
    }
    if s.closed_form && (s.steps.is_some() || s.learning_rate.is_some()) {
        let problem =
            "--steps and --learning-rate have no meaning beside --closed-form, which learns nothing by steps";
        return Err(Failure::usage(problem.into()));
    }
    let of_steps = [
        (s.alpha.is_some(), "alpha"),
        (s.energy_draws.is_some(), "energy-draws"),
        (s.batch.is_some(), "batch"),
        (s.companion.is_some(), "companion"),
        (s.validate_every.is_some(), "validate-every"),
        (s.patience.is_some(), "patience"),
    ];
    if let Some((_, flag)) = of_steps.iter().find(|f| f.0 && s.closed_form) {
        return Err(Failure::usage(format!(
            "--{flag} has no meaning beside --closed-form, which learns nothing by steps"
        )));
    }
    let other = s.freeze.iter().any(|what| *what != FreezeArg::Prior);
    if s.closed_form && other {
        let problem =
            "beside --closed-form, which holds everything else, --freeze has the meaning `prior` only";
        return Err(Failure::usage(problem.into()));
    }
    let classes = matches!(a.likelihood, None | Some(LikelihoodKind::Categorical));
    if s.energy_draws.is_some() && !classes {
        let problem =
            "--energy-draws belongs to --likelihood categorical: the energies of others are computed";
        return Err(Failure::usage(problem.into()));
    }
    let of_turns = [
        (s.em_samples.is_some(), "em-samples"),
        (s.em_steps.is_some(), "em-steps"),
        (s.update.is_some(), "update"),
    ];
    if let Some((_, flag)) = of_turns.iter().find(|f| f.0 && a.tune == Some(TuneArg::None)) {
        return Err(Failure::usage(format!(
            "--{flag} has no meaning beside --tune none, which learns no precision"
        )));
    }
    let of_weights = s.solver.is_some_and(|solver| solver != SolverArg::ConjugateGradients);
    if of_weights && s.space.is_some() {
        return Err(Failure::usage(
            "--space belongs to --solver conjugate-gradients: descent works among the weights, dual-descent with the kernel".into(),
        ));
    }
    laplace_effects::check(a, asked)?;
    if !is_search(asked) {
        return Ok(());
    }
    let own = asked == Sampled;
    let scales = own || processes.contains(&asked);
    let prior = match a.prior {
        PriorKind::Auto => false,
        PriorKind::Scalar | PriorKind::Layerwise | PriorKind::GPrior => !own,
        _ => true,
    };
    let noise = match a.noise {
        None | Some(NoiseModel::Scale) => false,
        Some(NoiseModel::Fixed) => asked == Temperature,
        _ => true,
    };
    let beside = [
        (prior, "prior"),
        (a.precision.is_some() && !scales, "precision"),
        (a.tune.is_some_and(|t| !(own && t != TuneArg::CrossValidation)), "tune"),
        (noise, "noise"),
        (a.mode != Mode::Auto, "mode"),
    ];
    match beside.iter().find(|b| b.0) {
        None => Ok(()),
        Some((_, flag)) => Err(Failure::usage(format!(
            "--{flag} has no such meaning beside --curvature {asked}, which finds what it needs by a search of its own"
        ))),
    }
}

/// What is asked of the search.
pub(crate) fn approximation(a: &LaplaceArgs, asked: CurvatureArg) -> Result<Approximation, Failure> {
    Ok(match asked {
        FixedMean | Valla => Approximation::FixedMean(process(a, asked == Valla)?),
        Gwi => Approximation::Gwi(gwi(a)),
        Ella => Approximation::Ella(ella(a)),
        Sampled => Approximation::Sampled(sampled(a)),
        MeanField => Approximation::MeanField(mean_field(a)),
        Temperature => Approximation::Temperature,
        other => return Err(Failure::usage(format!("--curvature {other} is no search of its own"))),
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
            "--trajectory-every {every} records nothing in {} steps: give a smaller number",
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
        space: s.space.map(|space| match space {
            SpaceArg::Weights => Space::Weights,
            SpaceArg::Functions => Space::Functions,
        }),
        update: match s.update {
            Some(UpdateArg::Evidence) => Update::Evidence,
            Some(UpdateArg::DecoupledElbo) => Update::DecoupledElbo,
            Some(UpdateArg::Mackay) | None => Update::Mackay,
        },
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
