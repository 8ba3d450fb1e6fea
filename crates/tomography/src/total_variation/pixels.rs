//! Adam on the pixels, as published.

use super::Penalised;
use crate::TomographyError;
use posterior_optim::{
    Adaptive, LoopOptions, Objective, ObjectiveError, Observer, Optimiser, Outcome, State, minimise, resume,
};
use serde::{Deserialize, Serialize};

/// How Adam goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamOptions {
    /// Step size; published: 1e-3.
    pub learning_rate: f64,
    /// Steps; published: 60,000 at 5 angles, 30,000 at 10 and 15, 10,000 above.
    pub steps: usize,
    /// Whether what is below 0 counts as 0 (a ReLU on the output).
    pub non_negative: bool,
}

impl Default for AdamOptions {
    fn default() -> Self {
        Self { learning_rate: 1e-3, steps: 10_000, non_negative: true }
    }
}

/// The objective as Adam sees it.
struct Pixels<'a> {
    problem: Penalised<'a>,
    non_negative: bool,
}

impl Objective for Pixels<'_> {
    fn dimension(&self) -> usize {
        self.problem.variation.pixels()
    }

    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        let image = shown(theta, self.non_negative);
        let (value, slope) = self.problem.value_and_gradient(&image);
        gradient.copy_from_slice(&slope);
        if self.non_negative {
            gradient.iter_mut().zip(theta).filter(|(_, t)| **t <= 0.0).for_each(|(g, _)| *g = 0.0);
        }
        Ok(value)
    }
}

fn shown(theta: &[f64], non_negative: bool) -> Vec<f64> {
    theta.iter().map(|&t| if non_negative { t.max(0.0) } else { t }).collect()
}

/// The iterate of the lowest objective among those of Adam's steps from `start` (the filtered back-projection, as published), or on from a saved state. [`reconstruct`](super::reconstruct) is
/// faster and knows when it is done; this is what published numbers were made with. The outcome's `theta` is the image.
///
/// Pixels that are below 0 have no gradient where `non_negative`: a start there stays. Cost of a step: one product with T and one with its transpose.
///
/// # Errors
/// [`TomographyError`]: a start or a state of another problem; a failure of the optimiser.
pub fn reconstruct_by_adam(
    problem: &Penalised<'_>,
    start: &[f64],
    saved: Option<State>,
    options: &AdamOptions,
    observer: &mut Observer<'_, State>,
) -> Result<Outcome, TomographyError> {
    problem.check_start(start)?;
    if !(options.learning_rate > 0.0 && options.learning_rate.is_finite()) {
        let (name, value) = ("the step size", options.learning_rate);
        return Err(TomographyError::Option { name, value, expected: "it is positive and finite" });
    }
    let mut pixels = Pixels { problem: *problem, non_negative: options.non_negative };
    // Every planned step is taken: the published method has no other end.
    let plan = LoopOptions {
        steps: options.steps,
        time: None,
        gradient_tolerance: 0.0,
        value_tolerance: 0.0,
        patience: usize::MAX,
    };
    let outcome = match saved {
        Some(state) => resume(&mut pixels, state, &plan, observer),
        None => {
            let adam = Optimiser::Adaptive(Adaptive::adam(options.learning_rate));
            minimise(&mut pixels, start, adam, &plan, observer)
        }
    };
    let mut outcome = outcome.map_err(|e| TomographyError::Optimiser(e.to_string()))?;
    outcome.theta = shown(&outcome.theta, options.non_negative);
    Ok(outcome)
}
