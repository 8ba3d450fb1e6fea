//! Settings, and the solve.

use super::engine::{Averaging, DescentRule, EngineSettings};
use super::estimate::{Gradient, NoisePlacement, Regulariser, draw, gradient_estimate};
use super::iteration::{EngineMethod, check_batch};
use crate::GpError;
use crate::iterative::problem::Problem;
use crate::iterative::solver::{Budget, Solution, SolveObserver, Start};
use crate::iterative::step_size::{Curvature, StepSize};
use crate::iterative::stochastic::{Terms, descend, row_batches};
use faer::MatRef;
use posterior_linalg::Real;
use posterior_linalg::solve::SolveError;
use posterior_optim::Sampling;
use serde::{Deserialize, Serialize};

/// Settings of gradient descent; the defaults are the published ones for "SGD" with the automatic step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DescentOptions {
    /// Which gradient.
    pub gradient: Gradient,
    /// Rows of a batch, r.
    pub batch: usize,
    /// How a gradient becomes a step.
    pub rule: DescentRule,
    /// The average.
    pub averaging: Averaging,
    /// The step size βn. The automatic one is for the plain rule and those with momentum.
    pub step_size: StepSize,
    /// Largest norm of a column's gradient divided by n. The published step 0.5 needs it (0.1): it is beyond the limit of stability.
    pub clip: Option<f64>,
    /// How batches are drawn.
    pub sampling: Sampling,
    /// Seed of batches, features and columns.
    pub seed: u64,
    /// Times that a diverging run may begin anew with half the step.
    pub restarts: usize,
}

impl Default for DescentOptions {
    fn default() -> Self {
        Self {
            gradient: Gradient::Primal {
                noise: NoisePlacement::Regulariser,
                regulariser: Regulariser::Features { count: 100 },
            },
            batch: 512,
            rule: DescentRule::Nesterov { momentum: 0.9 },
            averaging: Averaging::Geometric,
            step_size: StepSize::Automatic,
            clip: Some(0.1),
            sampling: Sampling::Permutation,
            seed: 0,
            restarts: 20,
        }
    }
}

pub(in crate::iterative) fn solve_by_descent<T: Real>(
    options: &DescentOptions,
    problem: &Problem<'_, T>,
    start: Start<T>,
    budget: &Budget,
    observer: &mut SolveObserver<'_, T>,
) -> Result<Solution<T>, GpError> {
    let rows = problem.shape().0;
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
    let on_batch = Box::new(move |step, point: MatRef<'_, T>| {
        let (batch, seed) = draw(&mut batches, step, options.seed);
        gradient_estimate(options.gradient, problem, point, &batch, seed)
    });
    let (mut method, saved) = EngineMethod::new("descent", settings, problem.shape(), start, on_batch)?;
    let terms = Terms { rows, norms: problem.target_norms(), restarts: options.restarts, saved };
    let step_size = || match options.step_size.fixed()? {
        Some(value) => Ok(value),
        None => automatic(options, problem, size),
    };
    descend(&mut method, terms, step_size, budget, observer)
}

/// βn by the rules of [`Curvature`]; rules that normalise the gradient have none.
fn automatic<T: Real>(
    options: &DescentOptions,
    problem: &Problem<'_, T>,
    batch: usize,
) -> Result<f64, GpError> {
    let rule = options.rule;
    if matches!(rule, DescentRule::AdaGrad | DescentRule::RmsProp | DescentRule::Adam) {
        let needed = "given for rules that normalise the gradient (0.05 for Adam and RMSProp, 10 for AdaGrad were tuned on POL)";
        return Err(SolveError::Setting { what: "the step size", value: f64::NAN, needed }.into());
    }
    let curvature = Curvature::of(problem, options.seed)?;
    let rows = problem.shape().0;
    let batch = if options.gradient.is_by_batch() { batch } else { rows };
    let step = if options.gradient.is_dual() {
        curvature.dual_step(batch, rule.momentum())
    } else {
        curvature.primal_step(batch, rule.momentum())
    };
    Ok(rows as f64 * step)
}
