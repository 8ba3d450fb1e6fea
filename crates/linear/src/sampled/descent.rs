//! Nesterov's momentum on random batches, for a block of vectors.

use crate::LinearError;
use faer::{Mat, MatRef};
use posterior_linalg::parallel;
use posterior_linalg::solve::SolveError;
use posterior_optim::{
    Batches, Clock, Iteration, Limits, Progress, Reason, Run, Sampling, Signal, Step, drive,
};
use serde::{Deserialize, Serialize};

/// Times the first loss above which a run counts as diverging.
const DIVERGED: f64 = 1e3;

/// How a descent goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DescentOptions {
    /// Passes over the data.
    pub epochs: usize,
    /// Examples of a batch.
    pub batch: usize,
    /// Nesterov's momentum, in [0, 1).
    pub momentum: f64,
    /// The step size; where None, `1 - momentum` over the largest eigenvalue of a batch's Hessian, or 1 over it where every batch is all examples: without the noise of batches nothing has to be averaged out.
    pub step_size: Option<f64>,
    /// Times that a diverging run may begin anew with half the step.
    pub restarts: usize,
    /// Seed of the batches.
    pub seed: u64,
}

impl Default for DescentOptions {
    fn default() -> Self {
        Self { epochs: 20, batch: 100, momentum: 0.9, step_size: None, restarts: 20, seed: 0 }
    }
}

/// What can go wrong while samples are made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampledError {
    /// The features, the data, the options.
    #[error(transparent)]
    Linear(#[from] LinearError),
    /// The linear solver.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// No step is small enough.
    #[error(
        "step {step} of {what} has a loss that is not finite or {DIVERGED} times the first, even with a step size of {step_size:e} after {restarts} restarts: check the features, give a smaller step size, or solve by conjugate gradients"
    )]
    Diverged {
        /// What was looked for.
        what: &'static str,
        /// The step.
        step: usize,
        /// The last step size.
        step_size: f64,
        /// How often it was halved.
        restarts: usize,
    },
    /// A state of another problem.
    #[error("the saved state of {what} does not fit: {problem}; start again without it")]
    State {
        /// Of what.
        what: &'static str,
        /// Why not.
        problem: String,
    },
}

/// An objective of a block of vectors (d x k), by batches.
pub trait BatchGradient {
    /// Examples, n.
    fn examples(&self) -> usize;

    /// The gradient at a block of vectors, unbiased from a batch, and the same batch's loss (a mean over vectors).
    ///
    /// # Errors
    /// Those of features and data.
    fn gradient(&mut self, at: MatRef<'_, f64>, batch: &[usize]) -> Result<(Mat<f64>, f64), LinearError>;

    /// The largest curvature that a batch shows.
    ///
    /// # Errors
    /// Those of features and data.
    fn steepness(&self, options: &DescentOptions) -> Result<f64, SampledError>;
}

/// What becomes of the iterates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Averaging {
    /// Constant steps, and a geometric average over about the last hundredth of the run: for quadratics.
    Geometric,
    /// Steps that fall linearly to zero, and the last iterate: for losses that are not quadratic.
    Decay,
}

/// Where a descent stands: plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct DescentState {
    /// The iterate, d x k.
    pub position: Mat<f64>,
    /// Its velocity.
    pub velocity: Mat<f64>,
    /// The average of iterates.
    pub average: Mat<f64>,
    /// Steps taken.
    pub step: usize,
    /// The step size.
    pub step_size: f64,
    /// How often it was halved.
    pub restarts: usize,
    /// The loss of the first batch.
    pub first_loss: Option<f64>,
}

struct Descent<'a, G: BatchGradient> {
    what: &'static str,
    objective: &'a mut G,
    options: &'a DescentOptions,
    averaging: Averaging,
    batches: Batches,
    steps: usize,
    start: Mat<f64>,
    state: DescentState,
    loss: f64,
}

/// Descends from `start` (d x k) as long as the options say: `v <- rho v - eta g(z + rho v)`, `z <- z + v`. The observer sees every step with the state, which it may save; a run that goes on from a saved state (with the same
/// start, which restarts return to) takes the same steps. Returns the vectors, and why it ended.
///
/// Cost of a step: the gradient, and a dozen passes over d x k numbers. Source: spec `linearised_laplace`, section 5.7; Antorán (2024), section 4.2.4.
///
/// # Errors
/// [`SampledError`].
pub fn descend<G: BatchGradient>(
    what: &'static str,
    objective: &mut G,
    start: Mat<f64>,
    saved: Option<DescentState>,
    averaging: Averaging,
    options: &DescentOptions,
    observer: &mut dyn FnMut(&Progress, &DescentState) -> Signal,
) -> Result<(Mat<f64>, Reason), SampledError> {
    check(options)?;
    let names = ["linear/epoch", "order"];
    let batches =
        Batches::new(objective.examples(), options.batch, Sampling::Permutation, options.seed, names)
            .full()
            .ascending();
    let steps = options.epochs * batches.per_epoch();
    let state = match saved {
        Some(state) => {
            let fits =
                [&state.position, &state.velocity, &state.average].iter().all(|m| m.shape() == start.shape());
            if !fits || state.step > steps {
                let problem = "its blocks are of other weights, samples or steps".into();
                return Err(SampledError::State { what, problem });
            }
            state
        }
        None => {
            let step_size = match options.step_size {
                Some(value) => value,
                None => {
                    let noisy = options.batch < objective.examples();
                    let share = if noisy { 1.0 - options.momentum } else { 1.0 };
                    share / objective.steepness(options)?.max(f64::MIN_POSITIVE)
                }
            };
            begun(&start, step_size, 0)
        }
    };
    let mut descent =
        Descent { what, objective, options, averaging, batches, steps, start, state, loss: f64::NAN };
    let limits = Limits { steps, time: None };
    let mut tell = |progress: &Progress, own: &Descent<'_, G>| observer(progress, &own.state);
    let (reason, _) = drive(&mut descent, limits, Clock::start(), &mut tell)?;
    let state = descent.state;
    Ok((if averaging == Averaging::Geometric { state.average } else { state.position }, reason))
}

fn begun(start: &Mat<f64>, step_size: f64, restarts: usize) -> DescentState {
    DescentState {
        position: start.clone(),
        velocity: Mat::zeros(start.nrows(), start.ncols()),
        average: start.clone(),
        step: 0,
        step_size,
        restarts,
        first_loss: None,
    }
}

fn check(options: &DescentOptions) -> Result<(), LinearError> {
    let refuse = |name, value, expected| Err(LinearError::Option { name, value, expected });
    if options.epochs == 0 {
        return refuse("epochs", 0.0, "at least one pass over the data is needed");
    }
    if options.batch == 0 {
        return refuse("batch", 0.0, "a batch has at least one example");
    }
    if !(0.0..1.0).contains(&options.momentum) {
        return refuse("momentum", options.momentum, "it lies in [0, 1)");
    }
    match options.step_size {
        Some(value) if !(value > 0.0 && value.is_finite()) => {
            refuse("step size", value, "it is positive and finite")
        }
        _ => Ok(()),
    }
}

impl<G: BatchGradient> Iteration for Descent<'_, G> {
    type Error = SampledError;

    fn progress(&self) -> Progress {
        Progress {
            step: self.state.step,
            value: Some(self.loss).filter(|l| l.is_finite()),
            step_size: Some(self.state.step_size),
            restarts: self.state.restarts,
            ..Progress::default()
        }
    }

    fn step(&mut self, _: &mut Run<'_, Self>) -> Result<Step, SampledError> {
        let (momentum, steps) = (self.options.momentum, self.steps as f64);
        let batch = self.batches.batch(self.state.step);
        let state = &mut self.state;
        let mut ahead = state.position.clone();
        each(&mut ahead, &state.velocity, |z, v| z + momentum * v);
        let (gradient, loss) = self.objective.gradient(ahead.as_ref(), &batch)?;
        self.loss = loss;
        let first = *state.first_loss.get_or_insert(loss);
        if !loss.is_finite() || loss.abs() > DIVERGED * first.abs().max(f64::MIN_POSITIVE) {
            return Ok(Step::Diverged);
        }
        let rate = match self.averaging {
            Averaging::Geometric => state.step_size,
            Averaging::Decay => state.step_size * (1.0 - state.step as f64 / steps),
        };
        each(&mut state.velocity, &gradient, |v, g| momentum * v - rate * g);
        each(&mut state.position, &state.velocity, |z, v| z + v);
        if self.averaging == Averaging::Geometric {
            let weight = (100.0 / steps).min(1.0);
            each(&mut state.average, &state.position, |a, z| a + weight * (z - a));
        }
        state.step += 1;
        Ok(Step::Taken)
    }

    fn restart(&mut self) -> Result<(), SampledError> {
        let DescentState { step, step_size, restarts, .. } = self.state;
        if restarts >= self.options.restarts {
            return Err(SampledError::Diverged { what: self.what, step: step + 1, step_size, restarts });
        }
        self.state = begun(&self.start, 0.5 * step_size, restarts + 1);
        Ok(())
    }
}

/// `a <- f(a, b)` entry by entry.
fn each(a: &mut Mat<f64>, b: &Mat<f64>, f: impl Fn(f64, f64) -> f64 + Sync) {
    parallel::columns(a.as_mut(), 1, |j, a| {
        a.iter_mut().zip(b.col(j).iter()).for_each(|(a, b)| *a = f(*a, *b));
    });
}
