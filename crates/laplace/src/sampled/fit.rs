//! The turns, and the samples for predictions.

use super::em::EmProblem;
use super::held_out::Search;
use super::options::{SampledOptions, Solver};
use super::plan::chosen;
use super::posterior::{Sampled, check_samples, narrowed};
use super::report::SampledReport;
use super::saved;
use super::setting::{Setting, Solving};
use super::space_solver::SpaceSolver;
use crate::learned::{Found, Learned};
use crate::predict::between;
use crate::prior::scaled;
use crate::problem::{Data, Problem};
use crate::run::{Run, Stage};
use crate::scores::{HeldOutReport, Scored, plain_nll, plain_noise, scaled_noise, strength};
use crate::{LaplaceError, PriorKind};
use posterior_likelihoods::Integration;
use posterior_linalg::compiled_here;
use posterior_linalg::random::Streams;
use posterior_linear::curvature::is_gaussian;
use posterior_linear::evidence::{EvidenceOptions, MOST_FITTED};
use posterior_linear::sampled::{Drawn, EmState, EmStep, SampledModel, Span};
use posterior_networks::{PerNetworkPrecision, Precision, Selection};
use posterior_optim::{Reason, Signal};
use posterior_tangent::{Tangent, doubles};

/// What a fit returns; it has no mode without turns.
pub type SampledFit<T> = Found<Sampled<T>, SampledReport>;

/// Fits samples to a trained network. An interrupted call keeps where it stands, from which the same call goes on with the same numbers.
///
/// Only [`SampledOptions::validation_tries`] needs validation examples; they have no effect without it. `integration` makes their predictive distributions of latent ones.
///
/// Cost: for each turn the products of the mode and of `samples_em` samples with all data until they are solved, and one more; in the end, and for each setting that is tried, those of `samples` further ones. In function space the tangent kernel and its
/// eigenvectors in place of all of these; they are not kept, so that an interrupted call makes them again. [`super::plan()`] says how much memory.
///
/// # Errors
/// [`LaplaceError`]: options out of range, bad targets or inputs, more than `memory` bytes, solvers that diverge, interruption.
pub fn fit<T: Precision>(
    problem: &Problem<'_, T>,
    options: &SampledOptions,
    integration: Integration,
    run: &mut Run<'_>,
) -> Result<SampledFit<T>, LaplaceError> {
    compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'r: 'a] search, (
        problem: &'a Problem<'a, T> = problem,
        options: &'a SampledOptions = options,
        integration: Integration = integration,
        run: &'a mut Run<'r> = run,
    ) -> Result<SampledFit<T>, LaplaceError>)
}

fn search<T: Precision>(
    problem: &Problem<'_, T>,
    options: &SampledOptions,
    integration: Integration,
    run: &mut Run<'_>,
) -> Result<SampledFit<T>, LaplaceError> {
    let &Problem { data: Data { network, examples, validation, likelihood }, selection, seed, memory } =
        problem;
    problem.check()?;
    options.check()?;
    if examples.is_empty() {
        return Err(LaplaceError::Request("there are no examples to learn from".into()));
    }
    let (space, needs) = chosen(&problem.size(selection), options);
    check_samples(options.samples.max(options.samples_em), needs, memory)?;
    let (tangent, observed) = (Tangent::new(network, selection), problem.observed());
    let plain = SampledModel::new(&tangent, &observed, likelihood);
    let (diagonal, fit) =
        plain.curvature_diagonal(options.samples_em.max(1), seed, &mut run.stage(Stage::Curvature))?;
    let kind = if options.layerwise { PriorKind::Layerwise } else { PriorKind::Scalar };
    let prior = kind.prior(network.graph(), selection, options.initial_precision)?;
    let streams = Streams::new(seed);
    let mut setting = Setting {
        prior: prior.clone(),
        strength: 1.0,
        g_prior: options.g_prior,
        seed: streams.child("laplace/sampled/prediction", 0).seed(),
    };
    let model = setting.model(&tangent, &observed, likelihood, &diagonal)?;
    // Before the kernel, which takes minutes.
    let (over, mut scored, mut state) = match run.checkpointer.earlier() {
        Some(earlier) => saved::open(earlier, space)?,
        None => (None, Vec::new(), EmState::begin(&prior, 1.0)),
    };
    let left = Problem { memory: memory - needs.bytes(), ..*problem };
    let way = SpaceSolver::of(&left, &model, (space, &options.solver), run)?;
    saved::check_dimension(&state, way.dimension(&model))?;
    // Once the turns are over no mode is sought.
    let rows = examples.len() * likelihood.root_width();
    let conjugate = matches!(options.solver, Solver::ConjugateGradients(_));
    let directions =
        if over.is_some() && !conjugate { 0 } else { options.directions(way.dimension(&model), rows) };
    let curvature = way.curvature(&model, &diagonal, directions, seed, &mut run.stage(Stage::Curvature))?;
    let by = Solving { way, curvature, objective: options.objective };
    let (way, found) = (&by.way, by.curvature.directions());
    let whole = selection.len() == Selection::all(network.graph()).len();
    let over = if options.em_steps == 0 { Some(Reason::Steps) } else { over };
    let saved = if over.is_some() { state.solving.take() } else { None };
    let (state, turns_ended) = if let Some(reason) = over {
        (state, reason)
    } else {
        let seed = streams.child("laplace/sampled/turns", 0).seed();
        let course = EmProblem { curvature: &by.curvature, fit, options, whole, seed, space };
        course.run(&model, way, &prior, state, run)?
    };
    let found_prior = prior.with_precisions(&state.precisions)?;
    let strength = |noise: f64| strength(likelihood, noise);
    let bare = EmState { samples: None, solving: None, ..state.clone() };
    let mode = match &state.mode {
        Some(mode) => Some(way.own_weights(&model, mode.weights.clone())?),
        None => None,
    };
    let mut noise_variance = state.noise_variance;
    setting.prior = found_prior.clone();
    let mut held_out = None;
    if let Some(examples) = validation.filter(|_| options.validation_tries > 0) {
        let trained = doubles(&selection.flatten(network.parameters()));
        let away = mode.as_ref().filter(|_| is_gaussian(likelihood)).map(|mode| between(&trained, mode));
        let displacement = away.as_ref().map(|away| (selection, &away[..]));
        let (data, count) = (Data { examples, ..problem.data }, examples.len());
        let score = Scored { data, integration, displacement };
        let learn_noise = is_gaussian(likelihood) && options.learn_noise.unwrap_or(whole);
        let mut search =
            Search { tries: options.validation_tries, noise_variance, learn_noise, scored: &mut scored };
        let (best, at_edge) = search.run(&mut |point, scored| {
            let mut tried = setting.clone();
            tried.prior = scaled(&found_prior, point.precision_factor)?;
            tried.strength = strength(point.noise_variance);
            let solved = tried.solve(&model, &by, 0..options.samples, None, &mut |progress, _| {
                let done = (Stage::Samples, progress.step, progress.steps_planned);
                run.save(done, || saved::save(space, (Some(turns_ended), scored), &bare))
            });
            let samples = narrowed(&model, &run.ended(solved)?.samples);
            let posterior =
                Sampled { selection: selection.clone(), samples, setting: tried, diagonal: diagonal.clone() };
            let mut sums = [Ok(0.0)];
            let added = score.add(
                &mut |x, wanted| posterior.latents(network, x, wanted),
                &[point.noise_variance],
                &mut sums,
                &mut |range| {
                    let done = (Stage::Validation, range.end, count);
                    match run.save(done, || saved::save(space, (Some(turns_ended), scored), &bare)) {
                        Signal::Continue => Ok(()),
                        Signal::Stop => Err(LaplaceError::Interrupted),
                    }
                },
            );
            run.ended(added)?;
            let [sum] = sums;
            Ok(sum? / count as f64)
        })?;
        let plain = scaled_noise(likelihood, plain_noise(&fit, likelihood, learn_noise))?;
        held_out = Some(HeldOutReport {
            examples: count,
            grid: scored.clone(),
            best,
            plain_nll: plain_nll(network, &[examples], &plain)?,
            at_edge,
            not_finite: 0,
        });
        noise_variance = best.noise_variance;
        setting.prior = scaled(&found_prior, best.precision_factor)?;
    }
    setting.strength = strength(noise_variance);
    let solved = setting.solve(&model, &by, 0..options.samples, saved, &mut |progress, solving| {
        run.save((Stage::Samples, progress.step, progress.steps_planned), || {
            let state = EmState { solving: Some(solving()), ..bare.clone() };
            saved::save(space, (Some(turns_ended), &scored), &state)
        })
    });
    let drawn = run.ended(solved)?;
    let (samples, solver) = (drawn.samples.as_ref(), &options.solver);
    let gradient_variances =
        setting.gradient_variances(&model, samples, solver, &mut run.stage(Stage::Samples))?;
    let mut notes = notes(&state.turns, turns_ended, &drawn, (&diagonal, way.dimension(&model)), options);
    if found < directions {
        notes.push(format!(
            "{found} of {directions} leading directions of the curvature could be told from rounding: conjugate gradients are preconditioned with them and the diagonal"
        ));
    }
    let fitted = state.turns.last().map_or(0.0, |t| t.by_prediction.unwrap_or(t.by_weight));
    if is_gaussian(likelihood) && fitted > MOST_FITTED * rows as f64 {
        notes.push(format!(
            "the linearised model fits what it learned from almost exactly ({fitted:.0} effective dimensions of {rows} observed numbers): its noise was left as it was"
        ));
    }
    let (least, largest) = EvidenceOptions::default().precisions;
    for (name, a) in setting.prior.names().iter().zip(&state.precisions) {
        if options.em_steps > 0 && (*a >= largest || *a <= least) {
            notes.push(format!(
                "the prior precision of {name} went to its bound of {a:.0e}: its evidence knows no end"
            ));
        }
    }
    let report = SampledReport {
        turns: state.turns,
        turns_ended,
        solver_steps: drawn.steps,
        solver_ended: drawn.reason,
        space,
        span: way.span().map(Span::rank),
        directions: found,
        stored_kernel: way.stored_kernel(),
        displacement: None,
        gradient_variances,
    };
    let samples = narrowed(&model, &drawn.samples);
    Ok(Found {
        likelihood: likelihood.clone(),
        precisions: setting.prior.precisions().to_vec(),
        noise_variance,
        posterior: Sampled { selection: selection.clone(), samples, setting, diagonal },
        mode,
        report,
        held_out,
        notes,
    })
}

/// What a reader should know.
fn notes(
    turns: &[EmStep],
    ended: Reason,
    drawn: &Drawn,
    (diagonal, dimension): (&[f64], usize),
    options: &SampledOptions,
) -> Vec<String> {
    let mut notes = Vec::new();
    let dropped = diagonal.iter().filter(|m| **m <= 0.0).count();
    if options.g_prior && dropped > 0 {
        notes.push(format!(
            "{dropped} weights move no output of a training example: the g-prior leaves them out"
        ));
    }
    if let (Reason::Steps, Some(last)) = (ended, turns.last())
        && options.em_steps > 0
    {
        notes.push(format!(
            "precisions were still moving after {} turns (the last began at {:.3e}): allow more for the optimum",
            turns.len(),
            last.precisions[0]
        ));
    }
    if turns.last().is_some_and(|turn| turn.mode_converged == Some(false)) {
        notes.push(
            "the linearised model's optimum had not come to rest in the last turn: its norm is too small, and the precision that follows from it too large"
                .into(),
        );
    }
    // Five standard deviations of what solved samples have.
    let far = |t: &EmStep| {
        t.convergence
            .filter(|c| (c - 1.0).abs() > 0.1 + 5.0 * (2.0 / (dimension * options.samples_em) as f64).sqrt())
    };
    if let Some(convergence) = turns.last().and_then(far) {
        notes.push(format!(
            "the samples of the last turn are not solved: their mean of zeta' H zeta is {convergence:.2} of the number of weights: allow the solver more steps"
        ));
    }
    if matches!(drawn.reason, Reason::Steps) && !matches!(options.solver, Solver::Descent(_)) {
        notes.push(format!(
            "the samples for predictions had not reached their tolerance after {} steps",
            drawn.steps
        ));
    }
    notes
}
