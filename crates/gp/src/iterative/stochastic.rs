//! The loop that all stochastic solvers share: look at a batch, watch for divergence, step, tell the observer.

use super::residual::ResidualMonitor;
use super::solver::{Budget, Clock, Ended, Event, Observer, Progress, Solution};
use super::state::{SolverState, StateHeader};
use crate::GpError;
use faer::Mat;
use posterior_linalg::Real;
use posterior_optim::Signal;

/// What is iterated.
pub(super) trait Iteration<T: Real> {
    /// Its name in saved states.
    fn method(&self) -> &'static str;

    /// Steps taken.
    fn step(&self) -> usize;

    /// Computes the gradient on the next batch and keeps it. Returns the batch's residuals, r x s.
    fn look(&mut self) -> Result<&Mat<T>, GpError>;

    /// Steps along the gradient that was looked at; the step size is `times_rows / n`.
    fn advance(&mut self, times_rows: f64);

    /// Forgets all steps.
    fn restart(&mut self);

    /// The weights that would be returned now.
    fn weights(&self) -> Mat<T>;

    /// Everything that another process needs to go on: blocks by name, and numbers.
    fn save(&self) -> (Vec<(String, Mat<T>)>, Vec<u64>);
}

/// Clock, step size, residuals and restarts of one run.
pub(super) struct Course {
    clock: Clock,
    monitor: ResidualMonitor,
    /// Norms of the right-hand sides.
    norms: Vec<f64>,
    rows: usize,
    /// The step size βn.
    pub(super) times_rows: f64,
    restarts: usize,
    most_restarts: usize,
    /// Whether it goes on from a saved state, which has a step size.
    pub(super) resumed: bool,
}

impl Course {
    /// A run on `rows` rows that begins now; its step size is still to be set.
    pub(super) fn new(rows: usize, norms: Vec<f64>, most_restarts: usize) -> Self {
        Self {
            clock: Clock::after(0.0),
            monitor: ResidualMonitor::new(&norms),
            norms,
            rows,
            times_rows: 0.0,
            restarts: 0,
            most_restarts,
            resumed: false,
        }
    }

    /// Goes on where a saved run stopped.
    pub(super) fn resume(&mut self, header: &StateHeader) -> Result<(), GpError> {
        let Some((first, means)) = header.scalars.split_first().filter(|(_, m)| m.len() == self.norms.len())
        else {
            let problem = "its numbers are not those of as many right-hand sides".into();
            return Err(GpError::State { problem });
        };
        self.clock = Clock::after(header.seconds);
        (self.restarts, self.times_rows) = (header.restarts, header.step_size);
        self.monitor.first = Some(*first);
        self.monitor.means.copy_from_slice(means);
        self.resumed = true;
        Ok(())
    }

    /// Steps until the budget is spent, the residuals are small enough, or the observer has seen enough. A run that diverges begins anew
    /// with half the step.
    pub(super) fn run<T: Real>(
        mut self,
        iteration: &mut dyn Iteration<T>,
        budget: &Budget,
        observer: &mut Observer<'_, T>,
    ) -> Result<Solution<T>, GpError> {
        loop {
            let step = iteration.step();
            if let Some(ended) = self.clock.ends(budget, step, self.monitor.largest()) {
                let progress = self.progress(step, budget);
                return Ok(Solution { weights: iteration.weights(), ended, progress });
            }
            self.monitor.observe(self.rows, iteration.look()?);
            if self.monitor.diverged() {
                if self.restarts >= self.most_restarts {
                    return Err(GpError::Diverged { step_size: self.times_rows, restarts: self.restarts });
                }
                (self.restarts, self.times_rows) = (self.restarts + 1, 0.5 * self.times_rows);
                iteration.restart();
                self.monitor = ResidualMonitor::new(&self.norms);
                continue;
            }
            iteration.advance(self.times_rows);
            let progress = self.progress(iteration.step(), budget);
            let event =
                Event { progress, state: &|| self.state(iteration), weights: &|| iteration.weights() };
            if observer(&event) == Signal::Stop {
                return Ok(Solution { weights: iteration.weights(), ended: Ended::Interrupted, progress });
            }
        }
    }

    fn progress(&self, step: usize, budget: &Budget) -> Progress {
        Progress {
            step,
            steps_planned: budget.steps,
            elapsed: self.clock.elapsed(),
            residual: self.monitor.largest(),
            step_size: Some(self.times_rows),
            restarts: self.restarts,
        }
    }

    fn state<T: Real>(&self, iteration: &dyn Iteration<T>) -> SolverState<T> {
        let (blocks, integers) = iteration.save();
        let header = StateHeader {
            method: iteration.method().into(),
            step: iteration.step(),
            seconds: self.clock.elapsed().as_secs_f64(),
            step_size: self.times_rows,
            restarts: self.restarts,
            scalars: self.monitor.first.into_iter().chain(self.monitor.means.iter().copied()).collect(),
            integers,
        };
        SolverState { header, blocks }
    }
}
