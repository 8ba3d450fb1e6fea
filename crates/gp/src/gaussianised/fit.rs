//! Hyperparameters and the pseudo-count together: the bound plus hyperpriors, maximised.

use super::bound::Bound;
use super::model::{GaussianisedBound, GaussianisedGp};
use crate::exact::{FitOptions, Plan};
use crate::search::{Scored, Searched, maximise};
use crate::{GpError, Observations};
use posterior_optim::{Attempt, Observer, Reason, State};

/// A fitted process, with everything that happened on the way.
#[derive(Clone, Debug)]
pub struct GaussianisedFit {
    /// The model with all that was learned.
    pub model: GaussianisedGp,
    /// The bound on the log evidence there, with the posterior at the rows.
    pub bound: Bound,
    /// Why the best start ended.
    pub reason: Reason,
    /// Steps of the best start.
    pub steps: usize,
    /// Evaluations over all starts.
    pub evaluations: usize,
    /// What became of each start.
    pub attempts: Vec<Attempt>,
    /// Largest jitter that any evaluation needed.
    pub largest_jitter: f64,
    /// Parameters that ended at a bound of the options' constraints, with the bound.
    pub at_bounds: Vec<(String, f64)>,
    /// What was planned.
    pub plan: Plan,
}

/// Fits kernel, means and pseudo-count of `model` to `data`; the options' criterion is not looked at (there is the bound only), and of their restarts the second, which has little noise, is none here. The observer is told each step of each start, and can end the fit; the result is then
/// the best so far with [`Reason::Interrupted`]. Where constraints leave nothing to search for, the model stays as it is.
///
/// # Errors
/// [`GpError::Memory`] before anything is allocated when the plan exceeds the limit; targets that the likelihood cannot produce; [`GpError::Optim`] when no start could be evaluated.
pub fn fit_gaussianised(
    model: GaussianisedGp,
    data: &Observations,
    options: &FitOptions,
    observer: &mut Observer<'_, State>,
) -> Result<GaussianisedFit, GpError> {
    model.check(data)?;
    let plan = model.plan(data.rows());
    if plan.peak_bytes > options.memory_limit {
        return Err(GpError::Memory { plan, limit: options.memory_limit });
    }
    let evaluate = |model: &GaussianisedGp| -> Result<Scored, GpError> {
        let GaussianisedBound { bound, gradient } = model.evaluate(data, true)?;
        Ok(Scored { value: bound.value, gradient, jitter: bound.jitter })
    };
    let Searched { model, attempts, reason, steps, largest_jitter, at_bounds } =
        maximise(model, data.rows(), options, None, evaluate, observer)?;
    let bound = model.evaluate(data, false)?.bound;
    let evaluations = attempts.iter().map(|a| a.evaluations).sum();
    let largest_jitter = largest_jitter.max(bound.jitter);
    Ok(GaussianisedFit {
        model,
        bound,
        reason,
        steps,
        evaluations,
        attempts,
        largest_jitter,
        at_bounds,
        plan,
    })
}
