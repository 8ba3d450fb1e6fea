//! Hyperparameters and inducing inputs: the bound plus hyperpriors, maximised by L-BFGS.

use super::accumulate::Accumulated;
use super::shared_inputs::SharedInputs;
use super::{CollapsedGp, collapsed_bound_and_gradient};
use crate::hyperprior::{Hyperprior, log_prior};
use crate::inducing::{InducingError, InducingPosterior, Plan};
use crate::{GpError, Observations, RowSource};
use posterior_optim::{
    Constrained, Constraint, Lbfgs, LoopOptions, Objective, ObjectiveError, Observer, Optimiser, Parameters,
    Reason, Signal, State, minimise, resume,
};
use serde::{Deserialize, Serialize};

/// How to fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollapsedOptions {
    /// Budget and tolerances. The objective is the negative bound for each target value.
    pub steps: LoopOptions,
    /// Priors on hyperparameters.
    pub hyperpriors: Vec<Hyperprior>,
    /// Parameters that are held or bounded.
    #[serde(default)]
    pub constraints: Vec<Constraint>,
    /// Most memory that the plan may need, in bytes.
    pub memory_limit: u64,
}

impl Default for CollapsedOptions {
    fn default() -> Self {
        let steps = LoopOptions {
            steps: 200,
            gradient_tolerance: 1e-5,
            value_tolerance: 1e-7,
            patience: 3,
            time: None,
        };
        Self { steps, hyperpriors: Vec::new(), constraints: Vec::new(), memory_limit: 8 << 30 }
    }
}

/// A fitted process.
#[derive(Debug)]
pub struct CollapsedFit {
    /// The posterior at the best hyperparameters.
    pub posterior: InducingPosterior,
    /// The model there, to go on from.
    pub model: CollapsedGp,
    /// The bound there, summed over targets, without hyperpriors.
    pub bound: f64,
    /// Why the fit ended.
    pub reason: Reason,
    /// Steps taken.
    pub steps: usize,
    /// Evaluations of bound and gradient.
    pub evaluations: usize,
    /// Largest amount added to the diagonal of `K_ZZ`, relative to its mean.
    pub largest_jitter: f64,
    /// Parameters that ended at a bound of [`CollapsedOptions::constraints`], with the bound.
    pub at_bounds: Vec<(String, f64)>,
    /// What was planned.
    pub plan: Plan,
}

/// Where a search ended.
#[derive(Debug)]
pub struct CollapsedSearch {
    /// The model at the best hyperparameters and inducing inputs.
    pub model: CollapsedGp,
    /// Why the search ended.
    pub reason: Reason,
    /// Steps taken.
    pub steps: usize,
    /// Evaluations of bound and gradient.
    pub evaluations: usize,
    /// Largest amount added to the diagonal of `K_ZZ`, relative to its mean.
    pub largest_jitter: f64,
    /// Parameters that ended at a bound of [`CollapsedOptions::constraints`], with the bound.
    pub at_bounds: Vec<(String, f64)>,
    /// What was planned.
    pub plan: Plan,
}

struct NegativeBound<'a> {
    model: CollapsedGp,
    /// What moves.
    map: Constrained,
    parts: Vec<&'a dyn RowSource>,
    /// All parts at once, where that is less work.
    shared_inputs: Option<SharedInputs<'a>>,
    hyperpriors: &'a [Hyperprior],
    largest_jitter: f64,
}

impl Objective for NegativeBound<'_> {
    fn dimension(&self) -> usize {
        self.map.dimension()
    }

    fn parameter_names(&self) -> Vec<String> {
        self.map.names()
    }

    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        self.map.set(&mut self.model, theta);
        let failed = |error: GpError| ObjectiveError(error.to_string());
        let mut natural = vec![0.0; self.model.values().len()];
        let mut value = 0.0;
        let evaluations: Vec<_> = match &self.shared_inputs {
            Some(shared_inputs) => vec![shared_inputs.bound_and_gradient(&self.model)],
            None => self.parts.iter().map(|data| collapsed_bound_and_gradient(&self.model, *data)).collect(),
        };
        for evaluation in evaluations {
            let evaluation = evaluation.map_err(failed)?;
            self.largest_jitter = self.largest_jitter.max(evaluation.relative_jitter);
            natural.iter_mut().zip(evaluation.gradient).for_each(|(sum, g)| *sum += g);
            value += evaluation.value;
        }
        let count: usize = self.parts.iter().map(|data| data.rows() * data.widths()[1]).sum();
        let prior = log_prior(self.hyperpriors, &self.model, &mut natural).map_err(failed)?;
        let scale = -1.0 / count as f64;
        for (g, natural) in gradient.iter_mut().zip(self.map.chain(theta, &natural)) {
            *g = scale * natural;
        }
        Ok(scale * (value + prior))
    }
}

/// Fits `model` to `data`, in memory or in files, from its own values or, given a `state` that the observer saw earlier, from there bit for bit. The
/// observer is told each step with the state that could be saved, and can end the fit; the result is then the best so far.
///
/// # Errors
/// [`InducingError::Memory`] before anything is allocated when the plan exceeds the limit; [`GpError::UnknownParameter`] for
/// a hyperprior without parameter; [`GpError::Optim`] when the bound has no value at the start or the state or a constraint does not fit.
pub fn fit_collapsed(
    model: CollapsedGp,
    data: &dyn RowSource,
    options: &CollapsedOptions,
    state: Option<State>,
    observer: &mut Observer<'_, State>,
) -> Result<CollapsedFit, GpError> {
    let CollapsedSearch { model, reason, steps, evaluations, largest_jitter, at_bounds, plan } =
        search(model, (vec![data], None), options, state, observer)?;
    let (posterior, bound) = model.clone().condition(data)?;
    Ok(CollapsedFit { posterior, model, bound, reason, steps, evaluations, largest_jitter, at_bounds, plan })
}

/// Maximises the bound, summed over parts that share everything but targets and noise (and, if need be, rows); as [`fit_collapsed`] otherwise. Cost of an evaluation: the sum over parts, or that of two for any number of parts
/// of the same rows whose noise (which is not learned) is the same in most of them, as that of classes is.
///
/// # Errors
/// As [`fit_collapsed`]; [`GpError::Empty`] for no parts; [`GpError::Weighted`] and [`GpError::Offset`].
pub fn search_collapsed(
    model: CollapsedGp,
    parts: &[Observations],
    options: &CollapsedOptions,
    state: Option<State>,
    observer: &mut Observer<'_, State>,
) -> Result<CollapsedSearch, GpError> {
    parts.iter().try_for_each(Observations::plain)?;
    let shared_inputs = SharedInputs::new(&model, parts);
    let parts = parts.iter().map(|part| part as &dyn RowSource).collect();
    search(model, (parts, shared_inputs), options, state, observer)
}

fn search<'a>(
    mut model: CollapsedGp,
    (parts, shared_inputs): (Vec<&'a dyn RowSource>, Option<SharedInputs<'a>>),
    options: &CollapsedOptions,
    state: Option<State>,
    observer: &mut Observer<'_, State>,
) -> Result<CollapsedSearch, GpError> {
    let Some(largest) = parts.iter().max_by_key(|part| part.rows()) else {
        return Err(GpError::Empty { what: "the set of parts" });
    };
    parts.iter().try_for_each(|part| model.check_widths(*part))?;
    let plan = model.plan(*largest);
    if plan.peak_bytes > options.memory_limit {
        return Err(InducingError::Memory { plan, limit: options.memory_limit }.into());
    }
    log_prior(&options.hyperpriors, &model, &mut vec![0.0; model.values().len()])?;
    let map = Constrained::new(&mut model, &options.constraints)?;
    let start = map.unconstrained(&model.values());
    let hyperpriors = &options.hyperpriors;
    let mut objective = NegativeBound { model, map, parts, shared_inputs, hyperpriors, largest_jitter: 0.0 };
    let outcome = match state {
        Some(state) => resume(&mut objective, state, &options.steps, observer)?,
        None => {
            minimise(&mut objective, &start, Optimiser::Lbfgs(Lbfgs::default()), &options.steps, observer)?
        }
    };
    let NegativeBound { mut model, map, largest_jitter, .. } = objective;
    map.set(&mut model, &outcome.theta);
    let at_bounds = map.at_bounds(&model.values());
    let (reason, steps, evaluations) = (outcome.reason, outcome.steps, outcome.evaluations);
    Ok(CollapsedSearch { model, reason, steps, evaluations, largest_jitter, at_bounds, plan })
}

impl CollapsedGp {
    /// What a fit to these rows will take.
    pub fn plan(&self, data: &dyn RowSource) -> Plan {
        let (inputs, targets) = (self.inducing.ncols(), self.mean.target_count());
        Plan::collapsed(data.rows(), inputs, targets, self.inducing.nrows()).of_rows(data)
    }

    /// The posterior at these hyperparameters with the bound there. Cost `2nm²` flops and `O(m²)` memory.
    ///
    /// # Errors
    /// As [`super::collapsed_bound`].
    pub fn condition(self, data: &dyn RowSource) -> Result<(InducingPosterior, f64), GpError> {
        let accumulated = self.accumulate(data)?;
        self.conditioned(accumulated)
    }

    /// The same where `watch`, which is told after each block how many rows have been seen, can end it; None then.
    ///
    /// # Errors
    /// As [`Self::condition`].
    pub fn condition_watched(
        self,
        data: &dyn RowSource,
        watch: &mut dyn FnMut(usize) -> Signal,
    ) -> Result<Option<(InducingPosterior, f64)>, GpError> {
        match self.sums(data, watch)? {
            (_, _, Signal::Stop) => Ok(None),
            (whitening, sums, _) => self.conditioned(Accumulated::of(whitening, sums)?).map(Some),
        }
    }

    fn conditioned(self, accumulated: Accumulated) -> Result<(InducingPosterior, f64), GpError> {
        let Accumulated { whitening, evidence } = accumulated;
        let distribution = evidence.posterior()?;
        let noise = self.likelihood.with_outputs(self.mean.target_count());
        let posterior = InducingPosterior::from_parts(
            self.kernel,
            self.mean,
            Box::new(noise),
            self.inducing,
            whitening.cholesky,
            distribution,
        )?;
        Ok((posterior, evidence.value))
    }
}
