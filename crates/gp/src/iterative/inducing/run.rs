//! The loop around the steps.

use super::gradient::{InducingProblem, InducingRegulariser};
use crate::GpError;
use crate::iterative::batches::{Batches, Sampling};
use crate::iterative::descent::{
    Averaging, DescentRule, ENGINE_BLOCKS, Engine, EngineSettings, NoisePlacement,
};
use crate::iterative::residual::ResidualMonitor;
use crate::iterative::solver::{Budget, Clock, Ended, Event, Observer, Progress, Solution, Start};
use crate::iterative::state::{SolverState, StateHeader};
use crate::iterative::step_size::StepSize;
use faer::Mat;
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::SolveError;
use posterior_optim::Signal;
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

const METHOD: &str = "inducing-descent";

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
    observer: &mut Observer<'_, T>,
) -> Result<Solution<T>, GpError> {
    let (n, shape) = (problem.x.nrows(), problem.shape());
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
    let norms = problem.target_norms(options.seed);
    let mut monitor = ResidualMonitor::new(&norms);
    let mut clock = Clock::after(0.0);
    let (mut origin, mut restarts, mut resumed, mut times_rows) = (None, 0, None, 0.0);
    match start {
        Start::Zero => {}
        Start::Weights(weights) => {
            crate::data::same_width("rows of the start", shape.0, weights.nrows())?;
            crate::data::same_width("columns of the start", shape.1, weights.ncols())?;
            origin = Some(weights);
        }
        Start::Resume(saved) => {
            let (header, blocks) = saved.open(METHOD, ENGINE_BLOCKS, shape)?;
            if header.scalars.len() != shape.1 + 1 || header.integers.len() != 1 {
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
            None => problem.automatic_step(batches.size(), options.rule.momentum(), options.seed)?,
        };
    }
    let pulled = (options.noise == NoisePlacement::Regulariser).then(|| problem.pulled_noise());
    let fresh = || Engine::new(settings, shape, origin.as_ref().map(Mat::as_ref));
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
        let batch = batches.batch(engine.step);
        let seed =
            Streams::new(options.seed).child("gp/inducing", engine.step as u64).stream("seed").random();
        let point = engine.point();
        let (gradient, misfit) =
            problem.gradient(point.as_ref(), &batch, options.regulariser, pulled.as_ref(), seed)?;
        monitor.observe(n, &misfit);
        if monitor.diverged() {
            if restarts >= options.restarts {
                return Err(GpError::Diverged { step_size: times_rows, restarts });
            }
            (restarts, times_rows) = (restarts + 1, 0.5 * times_rows);
            engine = fresh();
            monitor = ResidualMonitor::new(&norms);
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
                let blocks = ENGINE_BLOCKS.into_iter().zip(&engine.blocks);
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
