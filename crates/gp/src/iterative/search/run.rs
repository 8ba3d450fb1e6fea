//! A step: a solve, a gradient, a step of Adam.

use super::state::{SearchHeader, SearchState};
use super::{ProbeKind, SearchOptions};
use crate::exact::Plan;
use crate::hyperprior::log_prior;
use crate::iterative::evidence::{ProbeSolve, Probes};
use crate::iterative::inducing::TargetRows;
use crate::iterative::pathwise::{GeneratedTargets, narrow, prior_draws};
use crate::iterative::solver::{Solution, SolveObserver, Start};
use crate::iterative::{KernelFeatures, PathwiseModel, PathwiseSettings};
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_kernels::matrix::KernelMatrix;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::System;
use posterior_linalg::{PerPrecision, Real, compiled_here};
use posterior_optim::{
    Adaptive, Clock, Constrained, Iteration, Limits, ObjectiveError, Observer, OptimError, Parameters,
    Progress, Reason, Run, Signal, Step, drive,
};
use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// A solve that leaves more than this of its right-hand sides is gone on with before its gradient is believed: hyperparameters that move by what unsolved systems say make the next ones harder
/// to solve, and run away.
const MOST_LEFT: f64 = 0.5;

/// How often it is, at most.
const MOST_MORE: usize = 4;

/// One step, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchStep {
    /// Euclidean norm of the gradient estimate before the step, for each target value, in the unconstrained parameters.
    pub gradient_norm: f64,
    /// The largest relative residual that the solve ended with, if its method knows it.
    pub residual: Option<f64>,
    /// Steps of its solve, or of its solves where the first left more than half of its right-hand sides.
    pub solver_steps: usize,
    /// Why this solve ended.
    pub ended: Reason,
    /// What the step gains for each target value, in nats, as far as its gradient tells: how far from its end a search is shows in those of the last steps.
    pub gain: f64,
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
    /// Parameters at a bound that was set for them, with the bound.
    pub at_bounds: Vec<(String, f64)>,
    /// What was planned.
    pub plan: Plan,
}

/// A search under way: what its observer is shown, after every step of a solver and after every step of the search.
#[derive(Debug)]
pub struct SearchIterate<'a, T: Real> {
    model: PathwiseModel<T>,
    data: &'a Observations,
    /// The inputs in precision T.
    x: Mat<T>,
    options: &'a SearchOptions,
    /// Where its parameters may go.
    map: Constrained,
    theta: Vec<f64>,
    adam: Adaptive,
    iterates: Vec<Vec<f64>>,
    trace: Vec<SearchStep>,
    solver_steps: usize,
    /// The solutions of the last finished step.
    last: Option<Solution<T>>,
    /// The solve of a step that is not finished.
    under_way: Cell<Option<Progress>>,
    /// Steps of the solves before it that this step made.
    unfinished_steps: usize,
}

impl<'a, T: Real> SearchIterate<'a, T> {
    /// With the seconds of earlier runs.
    fn new(
        mut model: PathwiseModel<T>,
        data: &'a Observations,
        options: &'a SearchOptions,
        from: Option<SearchState<T>>,
    ) -> Result<(Self, f64), GpError> {
        let (x, under_way) = (narrow::<T>(data.inputs()), Cell::new(None));
        let map = Constrained::new(&mut model, &options.constraints)?;
        let theta = map.unconstrained(&model.values());
        let mut search = Self {
            model,
            data,
            x,
            options,
            map,
            theta,
            adam: Adaptive::adam(options.learning_rate).scheduled(options.schedule),
            iterates: Vec::new(),
            trace: Vec::new(),
            solver_steps: 0,
            last: None,
            under_way,
            unfinished_steps: 0,
        };
        let mut before = 0.0;
        if let Some(state) = from {
            state.check(search.theta.len(), data, options)?;
            let SearchState { header, weights } = state;
            let SearchHeader { theta, adam, iterates, trace, solver_steps, seconds } = header;
            search.last = weights.zip(trace.last()).map(|(weights, step)| Solution {
                weights,
                reason: step.ended,
                progress: Progress {
                    step: step.solver_steps,
                    steps_planned: options.solves.budget.steps,
                    residual: step.residual,
                    ..Progress::default()
                },
            });
            (search.theta, search.adam, search.iterates) = (theta, adam, iterates);
            (search.trace, search.solver_steps, before) = (trace, solver_steps, seconds);
        }
        search.map.set(&mut search.model, &search.theta);
        Ok((search, before))
    }

    /// The model as it is now, not averaged.
    pub fn model(&self) -> &PathwiseModel<T> {
        &self.model
    }

    /// The solve under way; none after a step.
    pub fn solve(&self) -> Option<Progress> {
        self.under_way.get()
    }

    /// What could be saved here, `progress` being what the observer was told: where the last finished step left everything. Copies `n (t + p)` numbers.
    pub fn state(&self, progress: &Progress) -> SearchState<T> {
        let header = SearchHeader {
            theta: self.theta.clone(),
            adam: self.adam.clone(),
            iterates: self.iterates.clone(),
            trace: self.trace.clone(),
            solver_steps: self.solver_steps,
            seconds: progress.elapsed.as_secs_f64(),
        };
        SearchState { header, weights: self.last.as_ref().map(|solution| solution.weights.clone()) }
    }
}

impl<T: Real> Iteration for SearchIterate<'_, T> {
    type Error = GpError;

    fn progress(&self) -> Progress {
        let done = Progress { step: self.trace.len(), evaluations: self.solver_steps, ..Progress::default() };
        match (self.under_way.get(), self.trace.last()) {
            // A solve under way is not counted yet.
            (Some(solve), _) => {
                Progress { evaluations: self.solver_steps + self.unfinished_steps + solve.step, ..done }
            }
            (None, Some(step)) => {
                Progress { gradient_norm: Some(step.gradient_norm), residual: step.residual, ..done }
            }
            (None, None) => done,
        }
    }

    fn converged(&self) -> Option<Reason> {
        self.theta.is_empty().then_some(Reason::Gradient)
    }

    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, GpError> {
        let step = self.trace.len();
        let mut start = start(self.last.as_ref(), self.data.targets().ncols(), self.options);
        self.unfinished_steps = 0;
        let mut more = 0;
        let solved = loop {
            // A direct solve goes on after a stop; so the signal is kept here.
            let mut signal = Signal::Continue;
            let this = &*self;
            let at = (step, more);
            let solved =
                solve_at(&this.model, this.data, this.x.as_ref(), this.options, at, start, &mut |p, _| {
                    this.under_way.set(Some(*p));
                    signal = run.tell(this);
                    signal
                })
                .map_err(|error| if step == 0 { error } else { failed(step, error.to_string()) })?;
            self.under_way.set(None);
            let solver = solved.solution.progress;
            self.unfinished_steps += solver.step;
            if signal == Signal::Stop {
                self.solver_steps += self.unfinished_steps;
                self.last = Some(solved.solution);
                return Ok(Step::Ended(Reason::Interrupted));
            }
            // What is not finite is no start, and the time is the run's.
            let unsolved = solver.residual.is_some_and(|left| left.is_finite() && left > MOST_LEFT);
            if !unsolved || more == MOST_MORE || run.share(step) >= 1.0 {
                break solved;
            }
            more += 1;
            start = Start::Weights(solved.solution.weights);
        };
        let (ended, residual) = (solved.solution.reason, solved.solution.progress.residual);
        let solver_steps = std::mem::take(&mut self.unfinished_steps);
        self.solver_steps += solver_steps;
        let (natural, found) = gradient(&self.model, self.data, self.x.as_ref(), self.options, solved)?;
        // Adam's, of the negative log evidence and hyperpriors for each target value.
        let scale = -1.0 / (self.data.rows() * self.data.targets().ncols()) as f64;
        let gradient: Vec<f64> =
            self.map.chain(&self.theta, &natural).into_iter().map(|g| scale * g).collect();
        self.last = Some(found);
        let gradient_norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        if !gradient_norm.is_finite() {
            return Err(failed(step, "the gradient is not finite".into()));
        }
        let before = self.theta.clone();
        self.adam.step(&mut self.theta, &gradient, run.steps_planned());
        let gain = gradient.iter().zip(before.iter().zip(&self.theta)).map(|(g, (b, a))| g * (b - a)).sum();
        self.map.set(&mut self.model, &self.theta);
        self.iterates.push(self.theta.clone());
        let residual = residual.filter(|r| r.is_finite());
        self.trace.push(SearchStep { gradient_norm, residual, solver_steps, ended, gain });
        Ok(Step::Taken)
    }
}

/// Maximises the log evidence of `data` (n x D inputs, n x t targets), summed over targets, plus hyperpriors, in the parameters of kernel, mean and noise,
/// from the values that `model` has or, given a saved state, on from there bit for bit. The observer can end it at any step of any solve (a direct
/// solve is one step); of its progress, evaluations are steps of the solver in all solves, and the gradient's norm, that of [`SearchStep`], is known after a step and not
/// within a solve. The result is then what the steps taken so far give.
///
/// Cost of a step: one solve with t + p right-hand sides (up to five while more than half of these is left), one pullback of `n²` entries. Memory: [`SearchOptions::plan`], about `13 n (t + p)`
/// numbers and the cache. The same seeds give the same result. Source: spec `stochastic_gaussian_processes`, section 9.5.
///
/// # Errors
/// [`GpError::Solve`] for options out of range; [`GpError::Memory`] before anything is allocated when the plan exceeds the limit;
/// [`GpError::Optim`] for constraints that do not fit; [`GpError::State`] for a state of another search; [`GpError::Shape`] when widths differ; [`GpError::UnknownParameter`] for a hyperprior without
/// parameter; [`GpError::Features`] for pathwise probes of a kernel without random features; those of [`solve`](crate::iterative::solve) in the first step;
/// [`GpError::Optim`], with the step, for them later and for gradients that are not finite.
pub fn search_evidence<'a, T: Real>(
    model: PathwiseModel<T>,
    data: &'a Observations,
    options: &'a SearchOptions,
    from: Option<SearchState<T>>,
    observer: &mut Observer<'_, SearchIterate<'a, T>>,
) -> Result<EvidenceSearch<T>, GpError> {
    compiled_here!(T: Real, PerPrecision; ['a: 'b, 'b, 'c: 'b] search, (
        model: PathwiseModel<T> = model,
        data: &'a Observations = data,
        options: &'a SearchOptions = options,
        from: Option<SearchState<T>> = from,
        observer: &'b mut Observer<'c, SearchIterate<'a, T>> = observer,
    ) -> Result<EvidenceSearch<T>, GpError>)
}

fn search<'a, T: Real>(
    model: PathwiseModel<T>,
    data: &'a Observations,
    options: &'a SearchOptions,
    from: Option<SearchState<T>>,
    observer: &mut Observer<'_, SearchIterate<'a, T>>,
) -> Result<EvidenceSearch<T>, GpError> {
    options.check()?;
    let plan = options.plan_of::<T>(data);
    if plan.peak_bytes > options.memory_limit {
        return Err(GpError::Memory { plan, limit: options.memory_limit });
    }
    log_prior(&options.hyperpriors, &model, &mut vec![0.0; model.values().len()])?;
    let (mut search, seconds) = SearchIterate::new(model, data, options, from)?;
    let limits = Limits { steps: options.steps, time: options.time };
    let (reason, _) = drive(&mut search, limits, Clock::after(seconds), observer)?;
    let SearchIterate { mut model, map, iterates, trace, solver_steps, last, .. } = search;
    if let Some(average) = average(&iterates, options.averaged) {
        map.set(&mut model, &average);
    }
    let (steps, at_bounds) = (trace.len(), map.at_bounds(&model.values()));
    Ok(EvidenceSearch { model, solution: last, steps, solver_steps, reason, trace, at_bounds, plan })
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
    (step, more): (usize, usize),
    start: Start<T>,
    observer: &mut SolveObserver<'_, T>,
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
    // Other batches at every step, or what a pass leaves would be left by all of them.
    let mut solver = Streams::new(options.solves.seed).child("gp/search/solver", step as u64);
    if more > 0 {
        solver = solver.child("gp/search/more", more as u64);
    }
    let method = options.method.reseeded(solver);
    let how = (&method, &settings.budget);
    ProbeSolve::run(&system, function.get(.., ..t), probes, Some(&features), how, start, observer)
}

/// The gradient of log evidence and hyperpriors in all natural values, and the solutions it came from.
fn gradient<T: Real>(
    model: &PathwiseModel<T>,
    data: &Observations,
    x: MatRef<'_, T>,
    options: &SearchOptions,
    solved: ProbeSolve<T>,
) -> Result<(Vec<f64>, Solution<T>), GpError> {
    let found = solved.gradient(&*model.kernel, x);
    let (n, t) = data.targets().shape();
    let weights = Mat::from_fn(n, t, |i, j| found.solution.weights[(i, j)].to_f64());
    let mean = model.mean.pullback(data.inputs(), weights.as_ref());
    let mut natural = [found.kernel, mean, vec![found.noise]].concat();
    log_prior(&options.hyperpriors, model, &mut natural)?;
    Ok((natural, found.solution))
}

/// The mean of the last share of the iterates; none when there are none.
fn average(iterates: &[Vec<f64>], share: f64) -> Option<Vec<f64>> {
    let count = (share * iterates.len() as f64).ceil() as usize;
    let last = &iterates[iterates.len() - count.min(iterates.len())..];
    let sum = |i| last.iter().map(|iterate: &Vec<f64>| iterate[i]).sum::<f64>();
    Some((0..last.first()?.len()).map(|i| sum(i) / last.len() as f64).collect())
}
