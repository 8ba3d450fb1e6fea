//! One interface for all methods.

use super::conjugate::{ConjugateGradientOptions, solve_by_conjugate_gradients};
use super::descent::{DescentOptions, solve_by_descent};
use super::direct::solve_directly;
use super::dual::{DualDescentOptions, solve_by_dual_descent};
use super::problem::Problem;
use super::state::SolverState;
use crate::GpError;
use faer::Mat;
use posterior_linalg::Real;
use posterior_optim::Signal;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How to solve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A Cholesky factorisation: `n³/3` flops, `8n²` bytes.
    Direct,
    /// Preconditioned conjugate gradients.
    ConjugateGradients(ConjugateGradientOptions),
    /// Stochastic dual descent.
    DualDescent(DualDescentOptions),
    /// Stochastic gradient descent on the primal objective, and the variants that papers compare.
    Descent(DescentOptions),
}

/// How long to work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Most steps (iterations, batches). Averages are laid out for this many.
    pub steps: usize,
    /// Most time, whatever the steps.
    pub time: Option<Duration>,
    /// Relative residual of every right-hand side at which to stop early. Stochastic methods estimate it from their batches; that of
    /// inducing-point descent is a misfit, which keeps the noise at the solution and so reaches no small tolerance.
    pub tolerance: f64,
}

impl Budget {
    /// Steps alone: no limit of time, no early stop.
    pub fn steps(steps: usize) -> Self {
        Self { steps, time: None, tolerance: 0.0 }
    }
}

/// How a solve is getting on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Steps taken.
    pub step: usize,
    /// Steps planned.
    pub steps_planned: usize,
    /// Time spent, earlier runs included.
    pub elapsed: Duration,
    /// The largest relative residual of the right-hand sides, as far as the method knows it; NaN before it knows. With inducing-point
    /// descent it is the relative misfit of the targets instead, of which the noise remains at the solution.
    pub residual: f64,
    /// β n, for methods with a step size.
    pub step_size: Option<f64>,
    /// How often it began anew with a smaller step.
    pub restarts: usize,
}

/// What an observer is shown after every step. State and weights are computed only when asked for.
pub struct Event<'a, T: Real> {
    /// How it is getting on.
    pub progress: Progress,
    /// A checkpoint.
    pub state: &'a dyn Fn() -> SolverState<T>,
    /// The solution as it would be returned now, n x s: for validation.
    pub weights: &'a dyn Fn() -> Mat<T>,
}

/// Sees every step, and may stop the solve.
pub type Observer<'a, T> = dyn FnMut(&Event<'_, T>) -> Signal + 'a;

/// Where to begin.
#[derive(Clone, Debug, Default)]
pub enum Start<T: Real> {
    /// At zero.
    #[default]
    Zero,
    /// At weights that are known to be near (n x s): appended data, a neighbouring hyperparameter.
    Weights(Mat<T>),
    /// Where a solve with the same problem, method and budget was interrupted.
    Resume(SolverState<T>),
}

/// Why a solve ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Every right-hand side is within the tolerance.
    Tolerance,
    /// What is left is at the limit of the precision.
    Precision,
    /// The steps are used up.
    Steps,
    /// The time is used up.
    Time,
    /// The observer asked for it.
    Interrupted,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Solution<T: Real> {
    /// Representer weights, n x s.
    pub weights: Mat<T>,
    /// Why it ended.
    pub ended: Ended,
    /// How it ended.
    pub progress: Progress,
}

/// Solves `K̃ X = Z`.
///
/// # Errors
/// [`GpError::Shape`] for a start of another size, [`GpError::State`] for a state of another solve, [`GpError::Diverged`] when not even tiny
/// steps are stable, [`GpError::Solve`] for settings out of range and matrices that are not definite or not finite.
pub fn solve<T: Real>(
    method: &Method,
    problem: &Problem<'_, T>,
    start: Start<T>,
    budget: &Budget,
    observer: &mut Observer<'_, T>,
) -> Result<Solution<T>, GpError> {
    if let Start::Weights(weights) = &start {
        let (n, s) = problem.shape();
        crate::data::same_width("rows of the start", n, weights.nrows())?;
        crate::data::same_width("columns of the start", s, weights.ncols())?;
        super::problem::check_finite("start", weights.as_ref())?;
    }
    match method {
        Method::Direct => solve_directly(problem, observer),
        Method::ConjugateGradients(options) => {
            solve_by_conjugate_gradients(options, problem, start, budget, observer)
        }
        Method::DualDescent(options) => solve_by_dual_descent(options, problem, start, budget, observer),
        Method::Descent(options) => solve_by_descent(options, problem, start, budget, observer),
    }
}

/// Time and steps of one solve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    begun: Instant,
    before: Duration,
}

impl Clock {
    /// Starts after `seconds` of earlier runs.
    pub(super) fn after(seconds: f64) -> Self {
        let before = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Self { begun: Instant::now(), before }
    }

    /// All time so far.
    pub(super) fn elapsed(&self) -> Duration {
        self.before + self.begun.elapsed()
    }

    /// Whether the budget ends the solve after `step` steps with the given residual.
    pub(super) fn ends(&self, budget: &Budget, step: usize, residual: f64) -> Option<Ended> {
        if residual <= budget.tolerance {
            Some(Ended::Tolerance)
        } else if step >= budget.steps {
            Some(Ended::Steps)
        } else if budget.time.is_some_and(|limit| self.elapsed() >= limit) {
            Some(Ended::Time)
        } else {
            None
        }
    }
}
