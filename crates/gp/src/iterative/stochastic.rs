//! What all stochastic solvers share: residuals of batches, by which divergence is seen and convergence judged, and beginning anew with half the step.

use super::residual::ResidualMonitor;
use super::solver::{Budget, Iterate, Solution, SolveObserver};
use super::state::{SolverState, StateHeader};
use crate::GpError;
use faer::Mat;
use posterior_linalg::Real;
use posterior_optim::{Batches, Clock, Iteration, Progress, Reason, Run, Sampling, Step, drive};

/// Batches of rows for a solver, in ascending order, which tiles of the kernel matrix like.
pub(super) fn row_batches(rows: usize, size: usize, sampling: Sampling, seed: u64) -> Batches {
    let names = match sampling {
        Sampling::Permutation => ["gp/epoch", "permutation"],
        Sampling::Independent => ["gp/batch", "rows"],
    };
    Batches::new(rows, size, sampling, seed, names).full().ascending()
}

/// A method that steps along gradients of random batches.
pub(super) trait StochasticMethod<T: Real> {
    /// Its name in saved states.
    fn name(&self) -> &'static str;

    /// Steps taken.
    fn steps(&self) -> usize;

    /// Computes the gradient on the next batch and keeps it. Returns the batch's residuals, r x s.
    fn gradient(&mut self) -> Result<&Mat<T>, GpError>;

    /// Steps along the gradient that was computed; the step size is `times_rows / n`.
    fn descend(&mut self, times_rows: f64) -> Result<(), GpError>;

    /// The largest relative residual of the right-hand sides, where it knows better than the last batches tell.
    fn residual(&self) -> Option<f64> {
        None
    }

    /// Whether it knows that nothing is left to do.
    fn solved(&self) -> bool {
        false
    }

    /// Forgets all steps.
    fn reset(&mut self);

    /// The weights that would be returned now.
    fn weights(&self) -> Mat<T>;

    /// Everything that another process needs to go on: blocks by name, and numbers.
    fn save(&self) -> (Vec<(String, Mat<T>)>, Vec<u64>);
}

/// What a descent is told once.
pub(super) struct Terms {
    /// Rows of the data, n.
    pub(super) rows: usize,
    /// Norms of the right-hand sides.
    pub(super) norms: Vec<f64>,
    /// Times that a diverging run may begin anew with half the step.
    pub(super) restarts: usize,
    /// The small part of the state that `method` was restored from, if it was.
    pub(super) saved: Option<StateHeader>,
}

/// Descends until the budget is spent, the residuals are small enough, or the observer has seen enough. `step_size` is βn, asked for where no saved state has one.
pub(super) fn descend<T: Real>(
    method: &mut dyn StochasticMethod<T>,
    terms: Terms,
    step_size: impl FnOnce() -> Result<f64, GpError>,
    budget: &Budget,
    observer: &mut SolveObserver<'_, T>,
) -> Result<Solution<T>, GpError> {
    let Terms { rows, norms, restarts: most_restarts, saved } = terms;
    let clock = Clock::after(saved.as_ref().map_or(0.0, |header| header.seconds));
    let mut monitor = ResidualMonitor::new(&norms);
    let (restarts, times_rows) = match saved {
        None => (0, step_size()?),
        Some(header) => {
            let split = header.scalars.split_first().filter(|(_, means)| means.len() == norms.len());
            let Some((first, means)) = split else {
                let problem = "its numbers are not those of as many right-hand sides".into();
                return Err(GpError::State { problem });
            };
            monitor.first = Some(*first);
            monitor.means.copy_from_slice(means);
            (header.restarts, header.step_size)
        }
    };
    let tolerance = budget.tolerance;
    let mut descent =
        Descent { method, rows, norms, monitor, times_rows, restarts, most_restarts, tolerance };
    let (reason, progress) = drive(&mut descent, budget.limits(), clock, &mut |p, own| observer(p, own))?;
    Ok(Solution { weights: descent.method.weights(), reason, progress })
}

/// A method with its step size and what its residuals say.
struct Descent<'a, T: Real> {
    method: &'a mut dyn StochasticMethod<T>,
    rows: usize,
    norms: Vec<f64>,
    monitor: ResidualMonitor,
    /// The step size βn.
    times_rows: f64,
    restarts: usize,
    most_restarts: usize,
    tolerance: f64,
}

impl<T: Real> Descent<'_, T> {
    /// NaN before the first batch.
    fn residual(&self) -> f64 {
        self.method.residual().unwrap_or_else(|| self.monitor.largest())
    }
}

impl<T: Real> Iteration for Descent<'_, T> {
    type Error = GpError;

    fn progress(&self) -> Progress {
        Progress {
            step: self.method.steps(),
            residual: Some(self.residual()).filter(|residual| !residual.is_nan()),
            step_size: Some(self.times_rows),
            restarts: self.restarts,
            ..Progress::default()
        }
    }

    fn converged(&self) -> Option<Reason> {
        let solved = self.method.solved() || self.residual() <= self.tolerance;
        solved.then_some(Reason::Tolerance)
    }

    fn step(&mut self, _: &mut Run<'_, Self>) -> Result<Step, GpError> {
        self.monitor.observe(self.rows, self.method.gradient()?);
        if self.monitor.diverged() {
            return Ok(Step::Diverged);
        }
        self.method.descend(self.times_rows)?;
        Ok(Step::Taken)
    }

    fn restart(&mut self) -> Result<(), GpError> {
        if self.restarts >= self.most_restarts {
            return Err(GpError::Diverged { step_size: self.times_rows, restarts: self.restarts });
        }
        (self.restarts, self.times_rows) = (self.restarts + 1, 0.5 * self.times_rows);
        self.method.reset();
        self.monitor = ResidualMonitor::new(&self.norms);
        Ok(())
    }
}

impl<T: Real> Iterate<T> for Descent<'_, T> {
    fn weights(&self) -> Mat<T> {
        self.method.weights()
    }

    fn state(&self, progress: &Progress) -> SolverState<T> {
        let (blocks, integers) = self.method.save();
        let header = StateHeader {
            method: self.method.name().into(),
            step: progress.step,
            seconds: progress.elapsed.as_secs_f64(),
            step_size: self.times_rows,
            restarts: self.restarts,
            scalars: self.monitor.first.into_iter().chain(self.monitor.means.iter().copied()).collect(),
            integers,
        };
        SolverState { header, blocks }
    }
}
