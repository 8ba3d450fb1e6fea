//! Weights by iterative solvers.

use super::Fitting;
use super::hyperparameters::{Searched, pathwise_model, signal};
use super::judge::{EarlyStopping, HeldBack, Outlook};
use crate::method::training::{Allowance, EVIDENCE_PROBES, Saved, ScalableFit, Stage};
use crate::options::{IterativeOptions, KernelPrecision};
use crate::record::unsolved_in_words;
use crate::{FitRequest, FitStage, Method, ModelError, ScalableSummary, Solver, SolverPrecision};
use faer::Mat;
use posterior_gp::Observations;
use posterior_gp::iterative::{
    Budget, Method as SolveMethod, PathwiseModel, PathwisePosterior, PathwiseSettings, Solution, Start,
    Support,
};
use posterior_kernels::inducing::ChosenPoints;
use posterior_linalg::random::Streams;
use posterior_notes::fixes::{BOUND, PRECISION_F64, SVGP};
use posterior_optim::{Progress, Reason, Signal};
use std::time::Instant;

/// A noise that was raised by this factor and more is another model, of which a user must know.
const MUCH: f64 = 10.0;

/// Steps that their solve may have, however few the weights took.
const LEAST_STEPS: usize = 100;

/// What a solve is told beside the request.
pub(crate) struct Judging {
    /// The score of something simpler, below which going on is pointless; none where the method was asked for.
    pub(crate) to_beat: Option<f64>,
    /// Most seconds of the solve, those of earlier runs included.
    pub(crate) seconds: Option<f64>,
}

/// As [`fit`], in the method's precision, whatever the search was in; `options` are those of the search.
pub(crate) fn fit_in_its_precision<T: SolverPrecision>(
    fitting: &mut Fitting<'_, '_>,
    options: &IterativeOptions,
    method: &Method,
    (searched, saved): (Searched<T>, Option<Saved>),
    judging: &Judging,
) -> Result<ScalableFit, ModelError> {
    let prepared = fitting.prepared;
    match method.precision() {
        KernelPrecision::Single => {
            let state = (searched.in_precision::<f32>(prepared, options), saved);
            fit(fitting, method, state, judging)
        }
        KernelPrecision::Double => {
            let state = (searched.in_precision::<f64>(prepared, options), saved);
            fit(fitting, method, state, judging)
        }
    }
}

/// Conditions on all rows, or on inducing inputs, by an iterative solver. Where neither steps nor a tolerance were asked for, it ends when predictions of
/// the held-back rows stay where they are.
fn fit<T: SolverPrecision>(
    fitting: &mut Fitting<'_, '_>,
    method: &Method,
    (searched, saved): (Searched<T>, Option<Saved>),
    judging: &Judging,
) -> Result<ScalableFit, ModelError> {
    let Fitting { prepared, request, held, .. } = *fitting;
    let options = method.requires(method.iterative())?;
    let mut saved = saved;
    let Searched { model, found, source, hyperpriors, solutions } = searched;
    let seed = request.seed;
    let process = pathwise_model::<T>(prepared, request, &model)?;
    let rows = prepared.data.rows();
    // Systems of samples have prior functions on their right-hand sides.
    let noise_share = model.noise().noise_variance() / signal(&model, prepared).max(1.0);
    let budget = method.budget(rows, Allowance::duration(judging.seconds), noise_share);
    let conditioning = options.conditioning(budget, seed);
    let mut inducing_radius = None;
    let solver = method.requires(method.solver(rows, seed))?;
    let support = match (&solver, method.inducing()) {
        (Solver::Inducing(options), Some(asked)) => {
            let streams = Streams::new(seed);
            let ChosenPoints { points, radius } =
                asked.choice().choose(model.kernel(), prepared.data.inputs(), asked.points(), streams)?;
            inducing_radius = radius;
            Support::Inducing(points, options.clone())
        }
        (Solver::Rows(solver), _) => Support::Rows(solver.clone()),
        _ => return method.requires(None),
    };
    let inducing = if let Support::Inducing(z, _) = &support { z.nrows() } else { 0 };
    let state = match &mut saved {
        Some(saved) => saved.solver::<T>()?,
        None => None,
    };
    let resumed_from = state.as_ref().map_or(0, |s| s.header.step);
    // Those of a damaged checkpoint are left out: they are only where a solve begins.
    let solutions = solutions.filter(|known| inducing == 0 && known.nrows() == rows);
    let start = match (state, solutions) {
        (Some(state), _) => Start::Resume(state),
        // Samples that the search had no probes for begin at zero.
        (None, Some(known)) => Start::Weights(Mat::from_fn(rows, 1 + conditioning.samples, |i, j| {
            if j < known.ncols() { known[(i, j)] } else { T::from_f64(0.0) }
        })),
        (None, None) => Start::Zero,
    };
    let started = Instant::now();
    let adaptive = options.large.iterations.is_none() && method.settings().tolerance().is_none();
    let looking = Looking {
        request,
        process: process.clone(),
        data: &prepared.data,
        support: support.clone(),
        conditioning: &conditioning,
        harmless: (inducing == 0).then(|| harmless(model.noise().noise_variance())),
    };
    let mut stopping = EarlyStopping::new(method.settings().first_look(rows));
    let mut stopped = Outlook::Open;
    let mut failed = None;
    let posterior = process.condition(
        prepared.data.clone(),
        support,
        conditioning.clone(),
        start,
        &mut |progress, iterate| {
            let signal = (fitting.observer)(progress, &FitStage::Solve);
            if let Some(held) = held.filter(|_| signal == Signal::Continue && stopping.is_due(progress.step))
            {
                match looking.observe(progress, iterate.weights(), held, &mut stopping, judging) {
                    Ok(outlook) if adaptive => stopped = outlook,
                    Ok(_) => {}
                    Err(error) => failed = Some(error),
                }
            }
            if stopped != Outlook::Open || failed.is_some() {
                return Signal::Stop;
            }
            fitting.checkpoints.observe(signal, &found, || Ok(Stage::Solver(iterate.state(progress))))
        },
    )?;
    fitting.checkpoints.finish()?;
    if let Some(error) = failed {
        return Err(error);
    }
    let solution = posterior.solution();
    let (mut reason, progress) = (solution.reason, solution.progress);
    let interrupted = reason == Reason::Interrupted && stopped == Outlook::Open;
    let residual = progress.residual.filter(|r| r.is_finite());
    // Blocks that are solved exactly diverge by rounding alone, of which the rest of the system suffers as well.
    let rounded = method.settings().solves_blocks() && progress.restarts > 0;
    let left = residual.zip(looking.harmless.map(|own| if rounded { own - SLACK } else { own }));
    let mut warnings = Vec::new();
    if held.is_none() && !interrupted {
        let unsolved = left.filter(|(residual, harmless)| residual > harmless);
        warnings.extend(
            unsolved.map(|(residual, harmless)| unsolved_in_words(residual, harmless, size_of::<T>() == 4)),
        );
    }
    let check = match held.filter(|_| !interrupted) {
        Some(held) => {
            let end = held.predictions(&posterior)?;
            let drift = stopping.final_drift(progress.step, &end);
            // A system that is solved is solved, however far predictions of almost no deviation moved on the way.
            let solved = residual.is_some_and(|residual| residual <= conditioning.budget.tolerance);
            let moving = drift.filter(|_| !solved);
            let mut check = held.check(&end, moving)?;
            if solved {
                (check.drift, check.converged) = (drift, drift.map(|_| true));
            }
            check.reached_seconds = stopping.reached(&end);
            if let Some((residual, harmless)) = left {
                check = check.with_residual(residual, harmless, size_of::<T>() == 4);
            }
            let noise = model.noise().noise_variance();
            if let Some(wanted) = found.noise_raised_from.filter(|wanted| noise > MUCH * wanted) {
                let precision = match size_of::<T>() > 4 {
                    true => String::new(),
                    false => format!(", solve in double precision ({PRECISION_F64})"),
                };
                check.warnings.push(format!(
                    "the noise variance that the evidence wanted, {wanted:.1e}, is {noise:.1e} here, because the system could not be solved with less: what is finer than that is taken for noise. Bound the kernel's variance ({BOUND}){precision}, \
                     or take {SVGP}"
                ));
            }
            check.variance_error = posterior.variance_and_error(held.inputs().as_ref())?.1;
            Some(check)
        }
        None => None,
    };
    let time = judging.seconds.map(|most| most - progress.elapsed.as_secs_f64());
    let mut evidence_failed = None;
    let log_evidence = match (&solver, interrupted) {
        (Solver::Rows(SolveMethod::ConjugateGradients(solver)), false)
            if time.is_none_or(|left| left > 0.0) =>
        {
            // No longer than the weights took, where those ended early: the quadrature has converged long before the last digits of a solve.
            let steps = conditioning.budget.steps.min(progress.step.max(LEAST_STEPS));
            let budget = Budget { steps, time: Allowance::duration(time), ..conditioning.budget };
            let probes = (EVIDENCE_PROBES, seed);
            let observer = &mut |progress: &Progress| (fitting.observer)(progress, &FitStage::Solve);
            let found = posterior.log_evidence(solver.preconditioner, probes, &budget, observer);
            found.unwrap_or_else(|error| {
                evidence_failed = Some(error.to_string());
                None
            })
        }
        _ => None,
    };
    let summary = ScalableSummary {
        settings: Some(conditioning),
        blocks: found.blocks.iter().map(|(fit, _)| fit.clone()).collect(),
        noise_raised_from: found.noise_raised_from,
        neighbourhood_evidences: found.neighbourhoods.iter().map(|f| f.log_evidence).collect(),
        search: found.search.clone(),
        inducing,
        inducing_radius,
        steps: progress.step,
        ended: match stopped {
            Outlook::Open => reason.to_string(),
            Outlook::Steady => STEADY.into(),
            Outlook::Hopeless => HOPELESS.into(),
        },
        residual,
        step_size: progress.step_size,
        restarts: progress.restarts,
        log_evidence,
        evidence_failed,
        warnings,
        seconds: [found.seconds, started.elapsed().as_secs_f64()],
        resumed_from,
        ..ScalableSummary::new(solver, options.system.precision(), source)
    };
    if stopped != Outlook::Open {
        reason = Reason::Value;
    }
    let (predictor, ended) = (T::predictor(posterior), (reason, found.largest_jitter));
    let fit = ScalableFit::new(method.name(), predictor, found.hyperparameters, ended);
    Ok(ScalableFit { check, hyperpriors, summary: Some(summary), ..fit })
}

/// Ended because predictions of the held-back rows stayed where they were.
const STEADY: &str = "steady predictions";

/// Ended because it would not have become as good as something simpler.
const HOPELESS: &str = "too slow to be of use";

/// What a solve that is under way needs to be looked at.
struct Looking<'a, T: SolverPrecision> {
    request: &'a FitRequest,
    process: PathwiseModel<T>,
    data: &'a Observations,
    support: Support,
    conditioning: &'a PathwiseSettings,
    /// The relative residual below which what is left does not matter; none for inducing inputs, whose misfit keeps the noise.
    harmless: Option<f64>,
}

/// The noise of the targets is solved for last, in directions that predictions hardly see: its share of a relative residual is its standard deviation, in
/// units of the target's. A quarter on top of it is left to the rest.
fn harmless(noise_variance: f64) -> f64 {
    noise_variance.min(1.0).sqrt() + SLACK
}

/// What is left to the rest.
const SLACK: f64 = 0.25;

impl<T: SolverPrecision> Looking<'_, T> {
    /// Predicts the held-back rows with the weights of now. Cost: a product with `held x n` entries; memory: a copy of the weights.
    fn observe(
        &self,
        progress: &Progress,
        weights: Mat<T>,
        held: &HeldBack,
        stopping: &mut EarlyStopping,
        judging: &Judging,
    ) -> Result<Outlook, ModelError> {
        let solution = Solution { weights, reason: Reason::Steps, progress: *progress };
        let posterior = PathwisePosterior::from_parts(
            self.process.clone(),
            self.data.clone(),
            self.support.clone(),
            self.conditioning.clone(),
            solution,
        )?;
        let now = held.predictions(&posterior)?;
        let nll = match held.recalibrated_nll(self.request, &now)? {
            Some(nll) => nll,
            None => held.scores(&now)?.nll,
        };
        let of_steps = progress.step as f64 / progress.steps_planned.max(1) as f64;
        let of_time = judging.seconds.map_or(0.0, |s| progress.elapsed.as_secs_f64() / s.max(1e-9));
        let settled = self.harmless.is_none_or(|h| progress.residual.is_some_and(|residual| residual <= h));
        Ok(stopping.observe(
            (progress.step, progress.elapsed.as_secs_f64()),
            now,
            nll,
            of_steps.max(of_time).clamp(1e-6, 1.0),
            (judging.to_beat, settled),
        ))
    }
}
