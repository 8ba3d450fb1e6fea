//! The loop: a solve, a gradient, a step of Adam.

use super::state::{SearchHeader, SearchState};
use super::{ProbeKind, SearchOptions};
use crate::exact::Plan;
use crate::hyperprior::log_prior;
use crate::iterative::evidence::{ProbeSolve, Probes};
use crate::iterative::inducing::TargetRows;
use crate::iterative::pathwise::{GeneratedTargets, narrow, prior_draws};
use crate::iterative::solver::{Ended, Event, Observer, Progress, Solution, Start};
use crate::iterative::{KernelFeatures, PathwiseModel, PathwiseSettings};
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_kernels::matrix::KernelMatrix;
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::System;
use posterior_optim::{Adam, ObjectiveError, OptimError, Parameters, Reason, Signal};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Progress, told to the observer after every step of a solver and after every step of the search.
#[derive(Debug)]
pub struct SearchProgress<'a, T: Real> {
    /// Steps of the search that are done.
    pub step: usize,
    /// Steps planned.
    pub steps_planned: usize,
    /// Steps of the solver so far, in all solves.
    pub solver_steps: usize,
    /// The solve under way, or the one that this step came from.
    pub solver: Progress,
    /// The norm that [`SearchStep`] has, after a step; none within a solve.
    pub gradient_norm: Option<f64>,
    /// Time since the search began, earlier runs included.
    pub elapsed: Duration,
    /// The model as it is now, not averaged.
    pub model: &'a PathwiseModel<T>,
    search: &'a Search<T>,
}

impl<T: Real> SearchProgress<'_, T> {
    /// What could be saved here: where the last finished step left everything. Copies `n (t + p)` numbers.
    pub fn state(&self) -> SearchState<T> {
        let Search { theta, adam, iterates, trace, solver_steps, last, .. } = self.search;
        let header = SearchHeader {
            theta: theta.clone(),
            adam: adam.clone(),
            iterates: iterates.clone(),
            trace: trace.clone(),
            solver_steps: *solver_steps,
            seconds: self.elapsed.as_secs_f64(),
        };
        SearchState { header, weights: last.as_ref().map(|solution| solution.weights.clone()) }
    }
}

/// One step, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchStep {
    /// Euclidean norm of the gradient estimate before the step, for each target value, in the unconstrained parameters.
    pub gradient_norm: f64,
    /// The largest relative residual that the solve ended with, if its method knows it.
    pub residual: Option<f64>,
    /// Steps of this solve.
    pub solver_steps: usize,
    /// Why this solve ended.
    pub ended: Ended,
}

/// What a search found.
#[derive(Debug)]
pub struct EvidenceSearch<T: Real> {
    /// The model at the mean of the last iterates; as it was given when there was no step.
    pub model: PathwiseModel<T>,
    /// The last solutions, n x (t + p): targets, then probes. None when this run solved nothing.
    pub solution: Option<Solution<T>>,
    /// Steps taken.
    pub steps: usize,
    /// Steps of the solver in all, those of an interrupted solve included.
    pub solver_steps: usize,
    /// Why it ended: steps, time, the observer, or [`Reason::Gradient`] when no parameter is free.
    pub reason: Reason,
    /// Each step taken.
    pub trace: Vec<SearchStep>,
    /// What was planned.
    pub plan: Plan,
}

/// What the steps change.
#[derive(Debug)]
struct Search<T: Real> {
    theta: Vec<f64>,
    adam: Adam,
    iterates: Vec<Vec<f64>>,
    trace: Vec<SearchStep>,
    solver_steps: usize,
    /// The solutions of the last finished step.
    last: Option<Solution<T>>,
    begun: Instant,
    /// Time of earlier runs.
    before: Duration,
}

impl<T: Real> Search<T> {
    fn new(
        model: &PathwiseModel<T>,
        data: &Observations,
        options: &SearchOptions,
        from: Option<SearchState<T>>,
    ) -> Result<Self, GpError> {
        let begun = Instant::now();
        let theta = model.unconstrained();
        let Some(state) = from else {
            let adam = Adam::new(options.learning_rate).scheduled(options.schedule);
            let (iterates, trace, before) = (Vec::new(), Vec::new(), Duration::ZERO);
            return Ok(Self { theta, adam, iterates, trace, solver_steps: 0, last: None, begun, before });
        };
        state.check(theta.len(), data, options)?;
        let SearchState { header, weights } = state;
        let SearchHeader { theta, adam, iterates, trace, solver_steps, seconds } = header;
        let last = weights.zip(trace.last()).map(|(weights, step)| Solution {
            weights,
            ended: step.ended,
            progress: Progress {
                step: step.solver_steps,
                steps_planned: options.solves.budget.steps,
                elapsed: Duration::ZERO,
                residual: step.residual.unwrap_or(f64::NAN),
                step_size: None,
                restarts: 0,
            },
        });
        let before = Duration::from_secs_f64(seconds);
        Ok(Self { theta, adam, iterates, trace, solver_steps, last, begun, before })
    }

    fn elapsed(&self) -> Duration {
        self.before + self.begun.elapsed()
    }
}

/// Maximises the log evidence of `data` (n x D inputs, n x t targets), summed over targets, plus hyperpriors, in the parameters of kernel, mean and noise,
/// from the values that `model` has or, given a saved state, on from there bit for bit. The observer can end it at any step of any solve (a direct
/// solve is one step); the result is then what the steps taken so far give.
///
/// Cost of a step: one solve with t + p right-hand sides, one pullback of `n²` entries. Memory: [`SearchOptions::plan`], about `13 n (t + p)`
/// numbers and the cache. The same seeds give the same result. Source: spec `stochastic_gaussian_processes`, section 9.5.
///
/// # Errors
/// [`GpError::Solve`] for options out of range; [`GpError::Memory`] before anything is allocated when the plan exceeds the limit;
/// [`GpError::State`] for a state of another search; [`GpError::Shape`] when widths differ; [`GpError::UnknownParameter`] for a hyperprior without
/// parameter; [`GpError::Features`] for pathwise probes of a kernel without random features; those of [`solve`](crate::iterative::solve) in the first step;
/// [`GpError::Optim`], with the step, for them later and for gradients that are not finite.
pub fn search_evidence<T: Real>(
    model: PathwiseModel<T>,
    data: &Observations,
    options: &SearchOptions,
    from: Option<SearchState<T>>,
    observer: &mut dyn FnMut(&SearchProgress<'_, T>) -> Signal,
) -> Result<EvidenceSearch<T>, GpError> {
    options.check()?;
    let plan = options.plan_of::<T>(data);
    if plan.peak_bytes > options.memory_limit {
        return Err(GpError::Memory { plan, limit: options.memory_limit });
    }
    log_prior(&options.hyperpriors, &model, &mut vec![0.0; model.values().len()])?;
    let mut model = model;
    let x = narrow::<T>(data.inputs());
    let mut search = Search::new(&model, data, options, from)?;
    model.set_unconstrained(&search.theta);
    let tell = &mut |model: &_, search: &Search<T>, solver: Progress, gradient_norm: Option<f64>| {
        // A solve under way is not counted yet.
        let under_way = if gradient_norm.is_none() { solver.step } else { 0 };
        observer(&SearchProgress {
            step: search.trace.len(),
            steps_planned: options.steps,
            solver_steps: search.solver_steps + under_way,
            solver,
            gradient_norm,
            elapsed: search.elapsed(),
            model,
            search,
        })
    };
    let reason = loop {
        let step = search.trace.len();
        if search.theta.is_empty() {
            break Reason::Gradient;
        }
        if step >= options.steps {
            break Reason::Steps;
        }
        if options.time.is_some_and(|limit| search.elapsed() >= limit) {
            break Reason::Time;
        }
        // A direct solve goes on after a stop; so the signal is kept here.
        let mut signal = Signal::Continue;
        let mut watch = |event: &Event<'_, T>| {
            signal = tell(&model, &search, event.progress, None);
            signal
        };
        let start = start(search.last.as_ref(), data.targets().ncols(), options);
        let solved = solve_at(&model, data, x.as_ref(), options, step, start, &mut watch)
            .map_err(|error| if step == 0 { error } else { failed(step, error.to_string()) })?;
        let (ended, solver) = (solved.solution.ended, solved.solution.progress);
        search.solver_steps += solver.step;
        if signal == Signal::Stop {
            search.last = Some(solved.solution);
            break Reason::Interrupted;
        }
        let (gradient, found) = gradient(&model, data, x.as_ref(), options, &search.theta, solved)?;
        search.last = Some(found);
        let gradient_norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        if !gradient_norm.is_finite() {
            return Err(failed(step, "the gradient is not finite".into()));
        }
        search.adam.step(&mut search.theta, &gradient, options.steps);
        model.set_unconstrained(&search.theta);
        search.iterates.push(search.theta.clone());
        let residual = solver.residual.is_finite().then_some(solver.residual);
        search.trace.push(SearchStep { gradient_norm, residual, solver_steps: solver.step, ended });
        tracing::debug!(
            step = step + 1,
            gradient_norm,
            residual = solver.residual,
            solver_steps = solver.step,
            "step"
        );
        if tell(&model, &search, solver, Some(gradient_norm)) == Signal::Stop {
            break Reason::Interrupted;
        }
    };
    let Search { iterates, trace, solver_steps, last, .. } = search;
    if let Some(average) = average(&iterates, options.averaged) {
        model.set_unconstrained(&average);
    }
    let steps = trace.len();
    Ok(EvidenceSearch { model, solution: last, steps, solver_steps, reason, trace, plan })
}

/// The error of a step, counted from 0.
fn failed(step: usize, problem: String) -> GpError {
    OptimError::Step { step: step + 1, error: ObjectiveError(problem) }.into()
}

/// Where the next solve begins. Fresh probes have nothing to do with the solutions of the old ones.
fn start<T: Real>(last: Option<&Solution<T>>, targets: usize, options: &SearchOptions) -> Start<T> {
    match last.filter(|_| options.warm_starts) {
        None => Start::Zero,
        Some(Solution { weights, .. }) => {
            let mut weights = weights.clone();
            if options.fresh_probes {
                weights.get_mut(.., targets..).fill(T::ZERO);
            }
            Start::Weights(weights)
        }
    }
}

/// Solves for targets and probes at the parameters of `model`.
fn solve_at<T: Real>(
    model: &PathwiseModel<T>,
    data: &Observations,
    x: MatRef<'_, T>,
    options: &SearchOptions,
    step: usize,
    start: Start<T>,
    observer: &mut Observer<'_, T>,
) -> Result<ProbeSolve<T>, GpError> {
    let mut streams = Streams::new(options.solves.seed);
    if options.fresh_probes {
        streams = streams.child("gp/search/probes", step as u64);
    }
    let samples = if options.probes == ProbeKind::Pathwise { options.solves.samples } else { 0 };
    let settings = PathwiseSettings { samples, seed: streams.seed(), ..options.solves.clone() };
    let draws = prior_draws(model, data, &settings)?;
    let variances = model.noise_variances(data);
    let matrix = KernelMatrix::with_budget(&*model.kernel, x, settings.cache_bytes);
    let system = System::new(&matrix, variances.iter().map(|&v| T::from_f64(v)).collect())?;
    let generated =
        GeneratedTargets { model, data, x, variances: &variances, draws: draws.as_ref(), streams };
    let (function, noise) = generated.rows(&(0..data.rows()).collect::<Vec<_>>());
    let t = data.targets().ncols();
    let probes = match options.probes {
        ProbeKind::Signs => Probes::Hutchinson { count: options.solves.samples, seed: settings.seed },
        ProbeKind::Pathwise => {
            Probes::Pathwise { function: function.get(.., t..), noise: noise.get(.., t..) }
        }
    };
    let features = KernelFeatures { kernel: &*model.kernel, points: x, settings: settings.features };
    let how = (&options.method, &settings.budget);
    ProbeSolve::run(&system, function.get(.., ..t), probes, Some(&features), how, start, observer)
}

/// Adam's gradient, of the negative log evidence and hyperpriors for each target value, and the solutions it came from.
fn gradient<T: Real>(
    model: &PathwiseModel<T>,
    data: &Observations,
    x: MatRef<'_, T>,
    options: &SearchOptions,
    theta: &[f64],
    solved: ProbeSolve<T>,
) -> Result<(Vec<f64>, Solution<T>), GpError> {
    let found = solved.gradient(&*model.kernel, x);
    let (n, t) = data.targets().shape();
    let weights = Mat::from_fn(n, t, |i, j| found.solution.weights[(i, j)].to_f64());
    let mean = model.mean.pullback(data.inputs(), weights.as_ref());
    let mut natural = [found.kernel, mean, vec![found.noise]].concat();
    log_prior(&options.hyperpriors, model, &mut natural)?;
    let scale = -1.0 / (n * t) as f64;
    let gradient = model.chain(theta, &natural).into_iter().map(|g| scale * g).collect();
    Ok((gradient, found.solution))
}

/// The mean of the last share of the iterates; none when there are none.
fn average(iterates: &[Vec<f64>], share: f64) -> Option<Vec<f64>> {
    let count = (share * iterates.len() as f64).ceil() as usize;
    let last = &iterates[iterates.len() - count.min(iterates.len())..];
    let sum = |i| last.iter().map(|iterate: &Vec<f64>| iterate[i]).sum::<f64>();
    Some((0..last.first()?.len()).map(|i| sum(i) / last.len() as f64).collect())
}
