//! Conjugate gradients behind the common interface.

use super::problem::Problem;
use super::solver::{Budget, Clock, Ended, Event, Observer, Progress, Solution, Start};
use super::state::{SolverState, StateHeader};
use crate::GpError;
use posterior_linalg::Real;
use posterior_linalg::solve::{ConjugateGradientState, ConjugateGradients, PreconditionerChoice};
use posterior_optim::Signal;
use serde::{Deserialize, Serialize};

/// Settings of conjugate gradients. The tolerance is the budget's: 1e-2 for means and 1e-3 for samples are customary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConjugateGradientOptions {
    /// The preconditioner.
    pub preconditioner: PreconditionerChoice,
    /// Residual norm at which a column counts as solved, whatever its right-hand side.
    pub absolute_tolerance: f64,
}

const METHOD: &str = "conjugate-gradients";
const BLOCKS: [&str; 3] = ["solution", "residual", "direction"];

pub(super) fn solve_by_conjugate_gradients<T: Real>(
    options: &ConjugateGradientOptions,
    problem: &Problem<'_, T>,
    start: Start<T>,
    budget: &Budget,
    observer: &mut Observer<'_, T>,
) -> Result<Solution<T>, GpError> {
    let preconditioner = options.preconditioner.build(problem.system)?;
    let targets = problem.targets();
    let (tolerance, absolute) = (budget.tolerance, options.absolute_tolerance);
    let mut clock = Clock::after(0.0);
    let begin = |start| {
        ConjugateGradients::new(
            problem.system,
            &*preconditioner,
            targets.as_ref(),
            start,
            tolerance,
            absolute,
        )
    };
    let mut solver = match start {
        Start::Zero => begin(None)?,
        Start::Weights(weights) => begin(Some(weights.as_ref()))?,
        Start::Resume(state) => {
            let (header, state) = restore(state, problem.shape())?;
            clock = Clock::after(header.seconds);
            ConjugateGradients::resume(
                problem.system,
                &*preconditioner,
                targets.as_ref(),
                state,
                tolerance,
                absolute,
            )?
        }
    };
    loop {
        let residual = solver.relative_residuals().into_iter().fold(0.0, f64::max);
        let step = solver.state().iteration;
        let mut progress = Progress {
            step,
            steps_planned: budget.steps,
            elapsed: clock.elapsed(),
            residual,
            step_size: None,
            restarts: 0,
        };
        // The solver checks true residuals itself before it calls a column solved, so the estimate alone ends nothing.
        let ended = match clock.ends(budget, step, f64::INFINITY) {
            Some(ended) => Some(ended),
            None if solver.step()? => None,
            None if residual <= tolerance => Some(Ended::Tolerance),
            None => Some(Ended::Precision),
        };
        let signal = if ended.is_none() {
            progress.step = solver.state().iteration;
            progress.elapsed = clock.elapsed();
            progress.residual = solver.relative_residuals().into_iter().fold(0.0, f64::max);
            observer(&Event {
                progress,
                state: &|| save(solver.state(), clock.elapsed().as_secs_f64()),
                weights: &|| solver.state().solution.clone(),
            })
        } else {
            Signal::Continue
        };
        let ended = ended.or((signal == Signal::Stop).then_some(Ended::Interrupted));
        if let Some(ended) = ended {
            return Ok(Solution { weights: solver.into_state().solution, ended, progress });
        }
    }
}

fn save<T: Real>(state: &ConjugateGradientState<T>, seconds: f64) -> SolverState<T> {
    // Infinity, "not checked yet", has no place in some formats.
    let checked = state.checked.iter().map(|c| if c.is_finite() { *c } else { -1.0 });
    let header = StateHeader {
        method: METHOD.into(),
        step: state.iteration,
        seconds,
        scalars: state.inner.iter().copied().chain(checked).collect(),
        integers: state.active.iter().map(|&a| u64::from(a)).collect(),
        ..StateHeader::default()
    };
    let blocks = BLOCKS.into_iter().zip([&state.solution, &state.residual, &state.direction]);
    SolverState { header, blocks: blocks.map(|(name, block)| (name.into(), block.clone())).collect() }
}

fn restore<T: Real>(
    state: SolverState<T>,
    shape: (usize, usize),
) -> Result<(StateHeader, ConjugateGradientState<T>), GpError> {
    let (header, [solution, residual, direction]) = state.open(METHOD, BLOCKS, shape)?;
    if header.scalars.len() != 2 * shape.1 || header.integers.len() != shape.1 {
        return Err(GpError::State {
            problem: "its numbers are not those of as many right-hand sides".into(),
        });
    }
    let (inner, checked) = header.scalars.split_at(shape.1);
    let state = ConjugateGradientState {
        solution,
        residual,
        direction,
        inner: inner.to_vec(),
        active: header.integers.iter().map(|&a| a != 0).collect(),
        checked: checked.iter().map(|&c| if c < 0.0 { f64::INFINITY } else { c }).collect(),
        iteration: header.step,
    };
    Ok((header, state))
}
