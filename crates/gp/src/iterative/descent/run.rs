//! The loop around the steps.

use super::engine::{Averaging, BLOCKS, DescentRule, Engine, EngineSettings};
use super::estimate::{Gradient, NoisePlacement, Regulariser, draw, gradient_estimate};
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

const METHOD: &str = "descent";

pub(in crate::iterative) fn solve_by_descent<T: Real>(
    options: &DescentOptions,
    problem: &Problem<'_, T>,
    start: Start<T>,
    budget: &Budget,
    observer: &mut Observer<'_, T>,
) -> Result<Solution<T>, GpError> {
    let (n, s) = problem.shape();
    if options.batch == 0 {
        return Err(SolveError::Setting { what: "the batch size", value: 0.0, needed: "at least 1" }.into());
    }
    let settings = EngineSettings {
        rule: options.rule,
        averaging: options.averaging,
        clip: options.clip,
        data_rows: n,
        planned: budget.steps,
    };
    settings.check()?;
    let mut batches = Batches::new(n, options.batch, options.sampling, options.seed);
    let mut monitor = ResidualMonitor::new(&problem.target_norms());
    let mut clock = Clock::after(0.0);
    let (mut origin, mut restarts, mut resumed, mut times_rows) = (None, 0, None, 0.0);
    match start {
        Start::Zero => {}
        Start::Weights(weights) => origin = Some(weights),
        Start::Resume(saved) => {
            let (header, blocks) = saved.open(METHOD, BLOCKS, (n, s))?;
            if header.scalars.len() != s + 1 || header.integers.len() != 1 {
                let problem = "its numbers are not those of as many right-hand sides".into();
                return Err(GpError::State { problem });
            }
            clock = Clock::after(header.seconds);
            (restarts, times_rows) = (header.restarts, header.step_size);
            monitor.first = header.scalars.first().copied();
            monitor.means.copy_from_slice(&header.scalars[1..]);
            resumed = Some(Engine::resumed(settings, blocks, header.step, header.integers[0] != 0));
        }
    }
    if resumed.is_none() {
        times_rows = match options.step_size.fixed()? {
            Some(value) => value,
            None => automatic(options, problem, batches.size())?,
        };
    }
    let fresh = || Engine::new(settings, (n, s), origin.as_ref().map(Mat::as_ref));
    let mut engine = resumed.unwrap_or_else(fresh);
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
        if let Some(ended) = clock.ends(budget, engine.step, residual) {
            return Ok(Solution {
                weights: engine.average(),
                ended,
                progress: progress(engine.step, residual),
            });
        }
        let (batch, seed) = draw(&mut batches, engine.step, options.seed);
        let point = engine.point();
        let (gradient, residuals) =
            gradient_estimate(options.gradient, problem, point.as_ref(), &batch, seed)?;
        monitor.observe(n, &residuals);
        if monitor.diverged() {
            if restarts >= options.restarts {
                return Err(GpError::Diverged { step_size: times_rows, restarts });
            }
            (restarts, times_rows) = (restarts + 1, 0.5 * times_rows);
            engine = fresh();
            monitor = ResidualMonitor::new(&problem.target_norms());
            continue;
        }
        engine.advance(&gradient, times_rows);
        let event = Event {
            progress: progress(engine.step, monitor.largest()),
            state: &|| {
                let header = StateHeader {
                    method: METHOD.into(),
                    step: engine.step,
                    seconds: clock.elapsed().as_secs_f64(),
                    step_size: times_rows,
                    restarts,
                    scalars: monitor.first.into_iter().chain(monitor.means.iter().copied()).collect(),
                    integers: vec![u64::from(engine.from_zero)],
                };
                let blocks = BLOCKS.into_iter().zip(&engine.blocks);
                SolverState { header, blocks: blocks.map(|(name, b)| (name.into(), b.clone())).collect() }
            },
            weights: &|| engine.average(),
        };
        if observer(&event) == Signal::Stop {
            let progress = event.progress;
            return Ok(Solution { weights: engine.average(), ended: Ended::Interrupted, progress });
        }
    }
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
