//! First-order methods over mini-batches.

use super::problem::add_prior;
use super::{Mode, ModeProblem};
use crate::features::FeatureMap;
use crate::{LinearError, check};
use posterior_linalg::random::Streams;
use posterior_optim::{Adam, LoopOptions, Objective, ObjectiveError, Observer, Optimiser, State, minimise};
use rand::seq::index;
use serde::{Deserialize, Serialize};

/// How descent runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DescentOptions {
    /// The method, with its step size and schedule.
    pub optimiser: Optimiser,
    /// Steps.
    pub steps: usize,
    /// Examples per step, drawn without repeats, anew for each step; all when at least as many as there are.
    pub batch: usize,
    /// Geometric averaging of the iterates, `z <- average w + (1 - average) z`, in (0, 1]; the last iterate when `None`.
    /// The samples' objectives use 100 / steps; a mode under a decreasing step size needs none.
    pub average: Option<f64>,
    /// Converged when the gradient over all data, after the last step, has at most this norm.
    pub gradient_tolerance: f64,
    /// Seed of the mini-batches.
    pub seed: u64,
}

impl Default for DescentOptions {
    /// Adam at 1e-3, 1000 steps of 256 examples, no averaging, gradient 1e-3.
    fn default() -> Self {
        Self {
            optimiser: Optimiser::Adam(Adam::new(1e-3)),
            steps: 1000,
            batch: 256,
            average: None,
            gradient_tolerance: 1e-3,
            seed: 0,
        }
    }
}

/// The mode by stochastic descent with `n/|I| sum_I` in place of the sum over all examples; L-BFGS needs `batch` to cover all of them.
///
/// Batches are a function of seed and step, so a run is repeatable. The observer sees each step with the objective's estimate and may
/// stop the run; the result is then the iterate so far. One pass over all data at the end measures objective and gradient.
///
/// # Errors
/// [`LinearError::Option`]; [`LinearError::Optimiser`] when the objective stops being finite; those of the feature map.
pub fn descend<F: FeatureMap>(
    problem: &ModeProblem<'_, F>,
    precisions: &[f64],
    start: &[f64],
    options: &DescentOptions,
    observer: &mut Observer<'_, State>,
) -> Result<Mode, LinearError> {
    problem.check(precisions, start)?;
    let examples = problem.source().examples();
    if options.batch == 0 {
        return Err(LinearError::Option { name: "batch", value: 0.0, expected: "at least 1 example" });
    }
    let whole = options.batch >= examples;
    if matches!(options.optimiser, Optimiser::Lbfgs(_)) && !whole {
        let expected = "all examples, because L-BFGS compares gradients of different steps";
        return Err(LinearError::Option { name: "batch", value: options.batch as f64, expected });
    }
    if let Some(average) = options.average.filter(|&a| !(a > 0.0 && a <= 1.0)) {
        return Err(LinearError::Option { name: "average", value: average, expected: "above 0, at most 1" });
    }
    let mut estimate = Estimate {
        problem,
        precisions,
        batch: (!whole).then_some(options.batch),
        streams: Streams::new(options.seed),
        indices: Vec::new(),
        average: options.average,
        iterate: start.to_vec(),
        failure: None,
    };
    // A noisy value says nothing about convergence, so only the budget ends a stochastic run.
    let loop_options = LoopOptions {
        steps: options.steps,
        time: None,
        gradient_tolerance: if whole {
            options.gradient_tolerance / (start.len() as f64).sqrt()
        } else {
            -1.0
        },
        value_tolerance: 0.0,
        patience: if matches!(options.optimiser, Optimiser::Lbfgs(_)) { 3 } else { usize::MAX },
    };
    let run = minimise(&mut estimate, start, options.optimiser.clone(), &loop_options, observer);
    let outcome = match (run, estimate.failure.take()) {
        (Ok(outcome), _) => outcome,
        (Err(_), Some(error)) => return Err(error),
        (Err(error), None) => return Err(error.into()),
    };
    // L-BFGS evaluates points that it then rejects, so the last evaluated is not the iterate; its best is.
    let lbfgs = matches!(options.optimiser, Optimiser::Lbfgs(_));
    let weights = if lbfgs { outcome.theta } else { estimate.iterate };
    let mut gradient = vec![0.0; weights.len()];
    let objective = problem.objective(&weights, precisions, &mut gradient)?;
    let gradient_norm = check::squared_norm(&gradient).sqrt();
    if !gradient_norm.is_finite() {
        let (step, value) = (outcome.steps, gradient_norm);
        return Err(LinearError::Diverged { what: "the norm of the gradient", step, value });
    }
    let converged = gradient_norm <= options.gradient_tolerance;
    Ok(Mode { weights, objective, gradient_norm, steps: outcome.steps, converged })
}

/// The objective of one step.
struct Estimate<'p, 'a, F: FeatureMap> {
    problem: &'p ModeProblem<'a, F>,
    precisions: &'p [f64],
    /// Mini-batch size; all data when `None`.
    batch: Option<usize>,
    streams: Streams,
    indices: Vec<usize>,
    average: Option<f64>,
    /// The last iterate, or their average.
    iterate: Vec<f64>,
    /// A failure of the features, kept whole because the optimiser passes on its text only.
    failure: Option<LinearError>,
}

impl<F: FeatureMap> Objective for Estimate<'_, '_, F> {
    fn dimension(&self) -> usize {
        self.precisions.len()
    }

    fn begin_step(&mut self, step: usize) {
        if let Some(batch) = self.batch {
            let mut rng = self.streams.child("linear/minibatch", step as u64).stream("indices");
            self.indices = index::sample(&mut rng, self.problem.source().examples(), batch).into_vec();
        }
    }

    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        let share = self.average.unwrap_or(1.0);
        self.iterate.iter_mut().zip(theta).for_each(|(z, w)| *z += share * (w - *z));
        let result = match self.batch {
            None => self.problem.objective(theta, self.precisions, gradient),
            Some(batch) => {
                gradient.fill(0.0);
                let scale = self.problem.source().examples() as f64 / batch as f64;
                self.problem
                    .add_batch(theta, &self.indices, scale, gradient)
                    .map(|value| value + add_prior(theta, self.precisions, gradient))
            }
        };
        result.map_err(|error| {
            let message = ObjectiveError(error.to_string());
            self.failure = Some(error);
            message
        })
    }
}
