//! Hyperparameters: the evidence plus hyperpriors, maximised.

use super::evidence::{laplace_evidence, laplace_evidence_and_gradient};
use super::model::LaplaceGp;
use super::posterior::LaplacePosterior;
use crate::exact::{FitOptions, Plan};
use crate::search::{Scored, Searched, maximise};
use crate::{GpError, Observations};
use faer::Mat;
use posterior_optim::{Attempt, Observer, Reason, State};

/// A fitted process, with everything that happened on the way.
#[derive(Debug)]
pub struct LaplaceFit {
    /// The posterior at the best hyperparameters.
    pub posterior: LaplacePosterior,
    /// Laplace's approximation of the log evidence there.
    pub log_evidence: f64,
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
    /// Hyperparameters that ended at a bound of the options' constraints, with the bound.
    pub at_bounds: Vec<(String, f64)>,
    /// Newton steps of the last mode.
    pub newton_steps: usize,
    /// What was planned.
    pub plan: Plan,
}

/// Fits the hyperparameters of `model` to `data` and finds the posterior there; the options' criterion is not looked at (there is the evidence only), and of their restarts the second, which has little noise, is none here. The observer is told each step of each start, and can end the fit; the result is then
/// the best so far with [`Reason::Interrupted`]. Where constraints leave nothing to search for, the model stays as it is.
///
/// # Errors
/// [`GpError::Memory`] before anything is allocated when the plan exceeds the limit; targets that the likelihood cannot produce; a likelihood without curvature, or whose outputs are coupled otherwise than classes are;
/// [`GpError::Optim`] when no start could be evaluated.
pub fn fit_laplace(
    model: LaplaceGp,
    data: &Observations,
    options: &FitOptions,
    observer: &mut Observer<'_, State>,
) -> Result<LaplaceFit, GpError> {
    model.check(data)?;
    let plan = model.plan(data.rows());
    if plan.peak_bytes > options.memory_limit {
        return Err(GpError::Memory { plan, limit: options.memory_limit });
    }
    // Coefficients of the last mode, where the next one is sought from, and of the best: a density that is not log-concave has several.
    let mut last: Option<Mat<f64>> = None;
    let mut best: Option<(f64, Mat<f64>)> = None;
    let evaluate = |model: &LaplaceGp| -> Result<Scored, GpError> {
        let found = laplace_evidence_and_gradient(model, data, last.as_ref())?;
        if best.as_ref().is_none_or(|(value, _)| found.value > *value) {
            best = Some((found.value, found.mode.coefficients.clone()));
        }
        last = Some(found.mode.coefficients);
        Ok(Scored { value: found.value, gradient: found.gradient, jitter: found.jitter })
    };
    let Searched { model, attempts, reason, steps, largest_jitter, at_bounds } =
        maximise(model, data.rows(), options, None, evaluate, observer)?;
    let found = laplace_evidence(&model, data, best.as_ref().map(|(_, coefficients)| coefficients))?;
    let (log_evidence, newton_steps) = (found.value, found.mode.newton_steps);
    let posterior = LaplacePosterior::new(model, data, Some(&found.mode.coefficients))?;
    Ok(LaplaceFit {
        posterior,
        log_evidence,
        reason,
        steps,
        evaluations: attempts.iter().map(|a| a.evaluations).sum(),
        attempts,
        largest_jitter: largest_jitter.max(found.jitter),
        at_bounds,
        newton_steps,
        plan,
    })
}
