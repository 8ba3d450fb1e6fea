//! Settings, and the solve.

use super::gradient::{InducingProblem, InducingRegulariser};
use crate::GpError;
use crate::iterative::descent::{
    Averaging, DescentRule, EngineMethod, EngineSettings, NoisePlacement, check_batch,
};
use crate::iterative::solver::{Budget, Solution, SolveObserver, Start};
use crate::iterative::step_size::StepSize;
use crate::iterative::stochastic::{Terms, descend, row_batches};
use faer::MatRef;
use posterior_linalg::random::Streams;
use posterior_linalg::{PerPrecision, Real, compiled_here};
use posterior_optim::Sampling;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Settings of inducing-point descent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InducingDescentOptions {
    /// Rows of a batch, r.
    pub batch: usize,
    /// How a gradient becomes a step.
    pub rule: DescentRule,
    /// The average.
    pub averaging: Averaging,
    /// The step size βn. The automatic one is for the plain rule and those with momentum.
    pub step_size: StepSize,
    /// Largest norm of a column's gradient divided by n.
    pub clip: Option<f64>,
    /// The regulariser's gradient.
    pub regulariser: InducingRegulariser,
    /// Where the noise of sampling targets stands.
    pub noise: NoisePlacement,
    /// How batches are drawn.
    pub sampling: Sampling,
    /// Seed of batches and features.
    pub seed: u64,
    /// Times that a diverging run may begin anew with half the step.
    pub restarts: usize,
}

impl Default for InducingDescentOptions {
    fn default() -> Self {
        Self {
            batch: 512,
            rule: DescentRule::Nesterov { momentum: 0.9 },
            averaging: Averaging::Geometric,
            step_size: StepSize::Automatic,
            clip: None,
            regulariser: InducingRegulariser::Features { count: 100 },
            noise: NoisePlacement::Regulariser,
            sampling: Sampling::Permutation,
            seed: 0,
            restarts: 20,
        }
    }
}

/// Minimises the inducing-point objective: weights of m x s. The residual of its progress is the misfit of batches relative to the targets, of which the
/// noise remains at the solution.
///
/// # Errors
/// As [`crate::iterative::solve`].
pub fn solve_inducing<T: Real>(
    options: &InducingDescentOptions,
    problem: &InducingProblem<'_, T>,
    start: Start<T>,
    budget: &Budget,
    observer: &mut SolveObserver<'_, T>,
) -> Result<Solution<T>, GpError> {
    compiled_here!(T: Real, PerPrecision; ['a, 'b: 'a, 'c: 'a] minimise, (
        options: &'a InducingDescentOptions = options,
        problem: &'a InducingProblem<'b, T> = problem,
        start: Start<T> = start,
        budget: &'a Budget = budget,
        observer: &'a mut SolveObserver<'c, T> = observer,
    ) -> Result<Solution<T>, GpError>)
}

fn minimise<T: Real>(
    options: &InducingDescentOptions,
    problem: &InducingProblem<'_, T>,
    start: Start<T>,
    budget: &Budget,
    observer: &mut SolveObserver<'_, T>,
) -> Result<Solution<T>, GpError> {
    let rows = problem.x.nrows();
    check_batch(options.batch)?;
    let settings = EngineSettings {
        rule: options.rule,
        averaging: options.averaging,
        clip: options.clip,
        data_rows: rows,
        planned: budget.steps,
    };
    let mut batches = row_batches(rows, options.batch, options.sampling, options.seed);
    let size = batches.size();
    let pulled = (options.noise == NoisePlacement::Regulariser).then(|| problem.pulled_noise());
    let on_batch = Box::new(move |step, point: MatRef<'_, T>| {
        let seed = Streams::new(options.seed).child("gp/inducing", step as u64).stream("seed").random();
        problem.gradient(point, &batches.batch(step), options.regulariser, pulled.as_ref(), seed)
    });
    let (mut method, saved) =
        EngineMethod::new("inducing-descent", settings, problem.shape(), start, on_batch)?;
    let norms = problem.target_norms(options.seed);
    let terms = Terms { rows, norms, restarts: options.restarts, saved };
    let step_size = || match options.step_size.fixed()? {
        Some(value) => Ok(value),
        None => problem.automatic_step(size, options.rule.momentum(), options.seed),
    };
    descend(&mut method, terms, step_size, budget, observer)
}
