//! Hyperparameters: the evidence plus hyperpriors, maximised.

use super::evidence::{laplace_evidence, laplace_evidence_and_gradient};
use super::model::LaplaceGp;
use super::posterior::LaplacePosterior;
use crate::exact::{FitOptions, Optimizer, Plan};
use crate::hyperprior::{Hyperprior, log_prior};
use crate::{GpError, Observations};
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_optim::{
    Adam, Attempt, Constrained, Lbfgs, Objective, ObjectiveError, Observer, Optimiser, Parameters, Reason,
    State, perturbed, restarts,
};

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

struct NegativeEvidence<'a> {
    model: LaplaceGp,
    data: &'a Observations,
    hyperpriors: &'a [Hyperprior],
    map: &'a Constrained,
    /// Coefficients of the last mode, where the next one is sought from.
    last: Option<Mat<f64>>,
    largest_jitter: f64,
}

impl Objective for NegativeEvidence<'_> {
    fn dimension(&self) -> usize {
        self.map.dimension()
    }

    fn parameter_names(&self) -> Vec<String> {
        self.map.names()
    }

    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        self.map.set(&mut self.model, theta);
        let failed = |error: GpError| ObjectiveError(error.to_string());
        let found =
            laplace_evidence_and_gradient(&self.model, self.data, self.last.as_ref()).map_err(failed)?;
        self.largest_jitter = self.largest_jitter.max(found.jitter);
        self.last = Some(found.mode.coefficients);
        let mut natural = found.gradient;
        let prior = log_prior(self.hyperpriors, &self.model, &mut natural).map_err(failed)?;
        let scale = -1.0 / self.data.rows() as f64;
        for (g, natural) in gradient.iter_mut().zip(self.map.chain(theta, &natural)) {
            *g = scale * natural;
        }
        Ok(scale * (found.value + prior))
    }
}

/// Fits the hyperparameters of `model` to `data` and finds the posterior there; the options' criterion is not looked at (there is the evidence only). The observer is told each step of each start, and can end the fit; the result is then
/// the best so far with [`Reason::Interrupted`]. Where constraints leave nothing to search for, the model stays as it is.
///
/// # Errors
/// [`GpError::Memory`] before anything is allocated when the plan exceeds the limit; targets that the likelihood cannot produce; a likelihood whose outputs are coupled otherwise than classes are;
/// [`GpError::Optim`] when no start could be evaluated.
pub fn fit_laplace(
    mut model: LaplaceGp,
    data: &Observations,
    options: &FitOptions,
    observer: &mut Observer<'_, State>,
) -> Result<LaplaceFit, GpError> {
    model.check(data)?;
    let plan = model.plan(data.rows());
    if plan.peak_bytes > options.memory_limit {
        return Err(GpError::Memory { plan, limit: options.memory_limit });
    }
    let map = Constrained::new(&mut model, &options.constraints)?;
    log_prior(&options.hyperpriors, &model, &mut vec![0.0; model.values().len()])?;
    let (mut attempts, mut reason, mut steps, mut largest_jitter) = (Vec::new(), Reason::Gradient, 0, 0.0);
    let mut last = None;
    if map.dimension() > 0 {
        let optimiser = match options.optimizer {
            Optimizer::Lbfgs => Optimiser::Lbfgs(Lbfgs::default()),
            Optimizer::Adam { learning_rate } => Optimiser::Adam(Adam::new(learning_rate)),
        };
        let own = map.unconstrained(&model.values());
        let random =
            |index: usize| perturbed(&own, 1.0, Streams::new(options.seed).child("gp/restart", index as u64));
        let starts: Vec<Vec<f64>> =
            std::iter::once(own.clone()).chain((1..options.restarts.max(1)).map(random)).collect();
        let mut objective = NegativeEvidence {
            model: model.clone(),
            data,
            hyperpriors: &options.hyperpriors,
            map: &map,
            last: None,
            largest_jitter: 0.0,
        };
        let result = restarts(&mut objective, &starts, &optimiser, &options.steps, observer)?;
        largest_jitter = objective.largest_jitter;
        last = objective.last;
        map.set(&mut model, &result.best.theta);
        reason = if result.interrupted { Reason::Interrupted } else { result.best.reason };
        (attempts, steps) = (result.attempts, result.best.steps);
    }
    let at_bounds = map.at_bounds(&model.values());
    let found = laplace_evidence(&model, data, last.as_ref())?;
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
