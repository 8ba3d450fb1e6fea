//! One interface for all methods.

use super::conjugate::{ConjugateGradientOptions, solve_by_conjugate_gradients};
use super::descent::{DescentOptions, solve_by_descent};
use super::direct::solve_directly;
use super::dual::{DualDescentOptions, solve_by_dual_descent};
use super::problem::Problem;
use super::sketch::{SketchAndProjectOptions, solve_by_sketch_and_project};
use super::state::SolverState;
use crate::GpError;
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_linalg::{PerPrecision, Real, compiled_here};
use posterior_optim::{Limits, Progress, Reason, Signal};
use serde::{Deserialize, Serialize};
use std::time::Duration;

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
    /// Sketch-and-project: blocks of rows, each solved nearly exactly.
    SketchAndProject(SketchAndProjectOptions),
    /// Stochastic gradient descent on the primal objective, and the variants that papers compare.
    Descent(DescentOptions),
}

impl Method {
    /// The same with other random batches. Preconditioners keep their seeds, as what they approximate hardly changes between solves.
    pub(super) fn reseeded(&self, streams: Streams) -> Self {
        let mut own = self.clone();
        match &mut own {
            Self::Direct | Self::ConjugateGradients(_) => {}
            Self::DualDescent(options) => options.seed = streams.seed(),
            Self::SketchAndProject(options) => options.seed = streams.seed(),
            Self::Descent(options) => options.seed = streams.seed(),
        }
        own
    }

    /// Rows of K that a step multiplies with; as many as there are make a pass. Of a system with n rows and s right-hand sides.
    pub fn rows_of_a_step(&self, rows: usize, columns: usize) -> usize {
        match self {
            Self::Direct | Self::ConjugateGradients(_) => rows,
            Self::DualDescent(options) => options.batch.min(rows),
            Self::SketchAndProject(options) => options.block_of(rows, columns),
            Self::Descent(options) => {
                // The primal's data term multiplies with rows and with columns.
                let passes = if options.gradient.is_dual() { 1 } else { 2 };
                passes * if options.gradient.is_by_batch() { options.batch.min(rows) } else { rows }
            }
        }
    }
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

    /// What the driver looks after; the tolerance is the method's.
    pub(super) fn limits(&self) -> Limits {
        Limits { steps: self.steps, time: self.time }
    }
}

/// What an observer of a solve is shown after every step. Weights and state are computed only when asked for.
pub trait Iterate<T: Real> {
    /// The solution as it would be returned now, n x s: for validation.
    fn weights(&self) -> Mat<T>;

    /// A checkpoint, `progress` being what the observer was told.
    fn state(&self, progress: &Progress) -> SolverState<T>;
}

/// Sees every step, and may stop the solve. The residual of its progress is the largest of the right-hand sides, as far as the method knows it; with
/// inducing-point descent it is the relative misfit of the targets instead, of which the noise remains at the solution. The step size is βn.
pub type SolveObserver<'a, T> = dyn FnMut(&Progress, &dyn Iterate<T>) -> Signal + 'a;

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

/// What came out.
#[derive(Clone, Debug)]
pub struct Solution<T: Real> {
    /// Representer weights, n x s.
    pub weights: Mat<T>,
    /// Why it ended.
    pub reason: Reason,
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
    observer: &mut SolveObserver<'_, T>,
) -> Result<Solution<T>, GpError> {
    compiled_here!(T: Real, PerPrecision; ['a, 'b: 'a, 'c: 'a] solve_by, (
        method: &'a Method = method,
        problem: &'a Problem<'b, T> = problem,
        start: Start<T> = start,
        budget: &'a Budget = budget,
        observer: &'a mut SolveObserver<'c, T> = observer,
    ) -> Result<Solution<T>, GpError>)
}

fn solve_by<T: Real>(
    method: &Method,
    problem: &Problem<'_, T>,
    start: Start<T>,
    budget: &Budget,
    observer: &mut SolveObserver<'_, T>,
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
        Method::SketchAndProject(options) => {
            solve_by_sketch_and_project(options, problem, start, budget, observer)
        }
        Method::Descent(options) => solve_by_descent(options, problem, start, budget, observer),
    }
}
