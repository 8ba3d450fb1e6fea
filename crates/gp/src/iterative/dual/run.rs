//! The loop around the steps.

use super::state::{Decay, DualState};
use crate::GpError;
use crate::iterative::batches::{Batches, Sampling};
use crate::iterative::problem::Problem;
use crate::iterative::residual::ResidualMonitor;
use crate::iterative::solver::{Budget, Clock, Ended, Event, Observer, Progress, Solution, Start};
use crate::iterative::state::{SolverState, StateHeader};
use crate::iterative::step_size::{Curvature, StepSize};
use faer::Mat;
use posterior_linalg::Real;
use posterior_linalg::solve::SolveError;
use posterior_optim::Signal;
use serde::{Deserialize, Serialize};

/// Which iterate is returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DualAveraging {
    /// A geometric average of weight `100 / steps` (at most 1): a window of the last hundredth of the run.
    #[default]
    Planned,
    /// A geometric average of the given weight in (0, 1]; 1 is the last iterate.
    Weight(f64),
}

/// Settings of stochastic dual descent; the defaults are the published ones with the automatic step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DualDescentOptions {
    /// Rows of a batch, r.
    pub batch: usize,
    /// Nesterov momentum ρ in [0, 1).
    pub momentum: f64,
    /// The step size.
    pub step_size: StepSize,
    /// The average.
    pub averaging: DualAveraging,
    /// How batches are drawn.
    pub sampling: Sampling,
    /// Seed of the batches.
    pub seed: u64,
    /// Times that a diverging run may begin anew with half the step.
    pub restarts: usize,
}

impl Default for DualDescentOptions {
    fn default() -> Self {
        Self {
            batch: 512,
            momentum: 0.9,
            step_size: StepSize::Automatic,
            averaging: DualAveraging::Planned,
            sampling: Sampling::Permutation,
            seed: 0,
            restarts: 20,
        }
    }
}

const METHOD: &str = "dual-descent";
const BLOCKS: [&str; 3] = ["lookahead", "velocity", "average"];

impl DualDescentOptions {
    fn decay<T: Real>(&self, budget: &Budget) -> Result<Decay, GpError> {
        let range = |what, value, needed, holds: bool| {
            if holds { Ok(()) } else { Err(SolveError::Setting { what, value, needed }) }
        };
        let momentum = self.momentum;
        range("the momentum", momentum, "at least 0 and below 1", (0.0..1.0).contains(&momentum))?;
        let weight = match self.averaging {
            DualAveraging::Planned => (100.0 / budget.steps.max(1) as f64).min(1.0),
            DualAveraging::Weight(weight) => weight,
        };
        range("the averaging weight", weight, "above 0 and at most 1", weight > 0.0 && weight <= 1.0)?;
        range("the batch size", self.batch as f64, "at least 1", self.batch > 0)?;
        Ok(Decay::new::<T>(momentum, weight))
    }
}

pub(in crate::iterative) fn solve_by_dual_descent<T: Real>(
    options: &DualDescentOptions,
    problem: &Problem<'_, T>,
    start: Start<T>,
    budget: &Budget,
    observer: &mut Observer<'_, T>,
) -> Result<Solution<T>, GpError> {
    let (n, s) = problem.shape();
    let decay = options.decay::<T>(budget)?;
    let mut batches = Batches::new(n, options.batch, options.sampling, options.seed);
    let r = batches.size();
    let mut monitor = ResidualMonitor::new(&problem.target_norms());
    let mut clock = Clock::after(0.0);
    let (mut state, mut origin, mut restarts, mut times_rows) = (None, None, 0, 0.0);
    match start {
        Start::Zero => {}
        Start::Weights(weights) => origin = Some(weights),
        Start::Resume(saved) => {
            let (header, found) = restore(saved, (n, s))?;
            clock = Clock::after(header.seconds);
            (restarts, times_rows) = (header.restarts, header.step_size);
            monitor.first = header.scalars.first().copied();
            monitor.means.copy_from_slice(&header.scalars[1..=s]);
            state = Some(found);
        }
    }
    let mut state = match state {
        Some(state) => state,
        None => {
            times_rows = match options.step_size.fixed()? {
                Some(value) => value,
                None => n as f64 * Curvature::of(problem, options.seed)?.dual_step(r, options.momentum),
            };
            DualState::new((n, s), origin.as_ref().map(Mat::as_ref))
        }
    };
    let noise = problem.system.noise();
    let mut residuals = Mat::<T>::zeros(r, s);
    loop {
        let residual = monitor.largest();
        let progress = |step, residual| Progress {
            step,
            steps_planned: budget.steps,
            elapsed: clock.elapsed(),
            residual,
            step_size: Some(times_rows),
            restarts,
        };
        let solution = |ended| {
            let progress = progress(state.step(), residual);
            Ok(Solution { weights: state.average(&decay), ended, progress })
        };
        if let Some(ended) = clock.ends(budget, state.step(), residual) {
            return solution(ended);
        }
        let batch = batches.batch(state.step());
        problem.system.matrix().apply_rows(&batch, state.lookahead(), residuals.as_mut());
        let ahead = state.lookahead();
        for j in 0..s {
            let column = residuals.col_as_slice_mut(j);
            for (value, &i) in column.iter_mut().zip(&batch) {
                *value = noise[i].mul_add(ahead[(i, j)], *value) - problem.target(i, j);
            }
        }
        monitor.observe(n, &residuals);
        if monitor.diverged() {
            if restarts >= options.restarts {
                return Err(GpError::Diverged { step_size: times_rows, restarts });
            }
            (restarts, times_rows) = (restarts + 1, 0.5 * times_rows);
            state = DualState::new((n, s), origin.as_ref().map(Mat::as_ref));
            monitor = ResidualMonitor::new(&problem.target_norms());
            continue;
        }
        // β (n/r) with β = times_rows / n.
        state.advance(&decay, &batch, &residuals, times_rows / r as f64);
        let event = Event {
            progress: progress(state.step(), monitor.largest()),
            state: &|| save(&state, &monitor, times_rows, restarts, clock.elapsed().as_secs_f64()),
            weights: &|| state.average(&decay),
        };
        if observer(&event) == Signal::Stop {
            let progress = event.progress;
            return Ok(Solution { weights: state.average(&decay), ended: Ended::Interrupted, progress });
        }
    }
}

fn save<T: Real>(
    state: &DualState<T>,
    monitor: &ResidualMonitor,
    step_size: f64,
    restarts: usize,
    seconds: f64,
) -> SolverState<T> {
    let (blocks, touched, from_zero) = state.parts();
    let header = StateHeader {
        method: METHOD.into(),
        step: state.step(),
        seconds,
        step_size,
        restarts,
        scalars: monitor.first.into_iter().chain(monitor.means.iter().copied()).collect(),
        integers: touched.iter().map(|&t| t as u64).chain([u64::from(from_zero)]).collect(),
    };
    let blocks = BLOCKS.into_iter().zip(blocks).map(|(name, block)| (name.into(), block));
    SolverState { header, blocks: blocks.collect() }
}

fn restore<T: Real>(
    saved: SolverState<T>,
    shape: (usize, usize),
) -> Result<(StateHeader, DualState<T>), GpError> {
    let (header, blocks) = saved.open(METHOD, BLOCKS, shape)?;
    let wrong = |problem: &str| Err(GpError::State { problem: problem.into() });
    let Some((&from_zero, touched)) = header.integers.split_last() else {
        return wrong("it has no times at which rows were touched");
    };
    if touched.len() != shape.0 || header.scalars.len() != shape.1 + 1 {
        return wrong("its numbers are not those of as many rows and right-hand sides");
    }
    if touched.iter().any(|&t| t > header.step as u64) {
        return wrong("a row was touched after the last step");
    }
    let touched = touched.iter().map(|&t| t as usize).collect();
    let state = DualState::from_parts(blocks, touched, header.step, from_zero != 0);
    Ok((header, state))
}
