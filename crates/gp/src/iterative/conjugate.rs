//! Conjugate gradients behind the common interface.

use super::problem::Problem;
use super::solver::{Budget, Iterate, Solution, SolveObserver, Start};
use super::state::{SolverState, StateHeader};
use crate::GpError;
use faer::Mat;
use posterior_linalg::Real;
use posterior_linalg::solve::{ConjugateGradientState, ConjugateGradients, PreconditionerChoice};
use posterior_optim::{Clock, Iteration, Progress, Reason, Run, Step, drive};
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
    observer: &mut SolveObserver<'_, T>,
) -> Result<Solution<T>, GpError> {
    let preconditioner = options.preconditioner.build(problem.system)?;
    let targets = problem.targets();
    let (system, right) = (problem.system, targets.as_ref());
    let (tolerance, absolute) = (budget.tolerance, options.absolute_tolerance);
    let mut clock = Clock::start();
    let begin = |start| ConjugateGradients::new(system, &*preconditioner, right, start, tolerance, absolute);
    let solver = match start {
        Start::Zero => begin(None)?,
        Start::Weights(weights) => begin(Some(weights.as_ref()))?,
        Start::Resume(state) => {
            let (header, state) = restore(state, problem.shape())?;
            clock = Clock::after(header.seconds);
            ConjugateGradients::resume(system, &*preconditioner, right, state, tolerance, absolute)?
        }
    };
    let mut descent = ConjugateDescent { residual: largest_residual(&solver), solver, tolerance };
    let (reason, progress) = drive(&mut descent, budget.limits(), clock, &mut |p, own| observer(p, own))?;
    Ok(Solution { weights: descent.solver.into_state().solution, reason, progress })
}

/// The solver with the largest relative residual after its last step.
struct ConjugateDescent<'a, T: Real> {
    solver: ConjugateGradients<'a, T>,
    residual: f64,
    tolerance: f64,
}

fn largest_residual<T: Real>(solver: &ConjugateGradients<'_, T>) -> f64 {
    solver.relative_residuals().into_iter().fold(0.0, f64::max)
}

impl<T: Real> Iteration for ConjugateDescent<'_, T> {
    type Error = GpError;

    fn progress(&self) -> Progress {
        let step = self.solver.state().iteration;
        Progress { step, residual: Some(self.residual), ..Progress::default() }
    }

    /// The solver checks true residuals itself before it calls a column solved, so the estimate alone ends nothing.
    fn step(&mut self, _: &mut Run<'_, Self>) -> Result<Step, GpError> {
        if self.solver.step()? {
            self.residual = largest_residual(&self.solver);
            return Ok(Step::Taken);
        }
        let within = self.residual <= self.tolerance;
        Ok(Step::Ended(if within { Reason::Tolerance } else { Reason::Precision }))
    }
}

impl<T: Real> Iterate<T> for ConjugateDescent<'_, T> {
    fn weights(&self) -> Mat<T> {
        self.solver.state().solution.clone()
    }

    fn state(&self, progress: &Progress) -> SolverState<T> {
        save(self.solver.state(), progress.elapsed.as_secs_f64())
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
