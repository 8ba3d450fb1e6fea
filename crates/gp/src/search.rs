//! **The search for hyperparameters** that every method in closed form shares: constraints, hyperpriors, starts, optimiser.

use crate::GpError;
use crate::exact::{FitOptions, Optimizer};
use crate::hyperprior::log_prior;
use posterior_linalg::random::Streams;
use posterior_optim::{
    Adaptive, Attempt, Constrained, Lbfgs, Objective, ObjectiveError, Observer, Optimiser, Parameters,
    Reason, State, perturbed, restarts,
};

/// A criterion at one model.
pub(crate) struct Scored {
    /// Its value, to be maximised.
    pub(crate) value: f64,
    /// Its gradient in the natural values, in the order of the model's parameters.
    pub(crate) gradient: Vec<f64>,
    /// The jitter that its factorisations needed.
    pub(crate) jitter: f64,
}

/// Where a search ended.
pub(crate) struct Searched<M> {
    /// The model at the best values.
    pub(crate) model: M,
    /// What became of each start; none where nothing was free.
    pub(crate) attempts: Vec<Attempt>,
    /// Why the best start ended, or that the observer ended the search.
    pub(crate) reason: Reason,
    /// Steps of the best start.
    pub(crate) steps: usize,
    /// Largest jitter of any evaluation.
    pub(crate) largest_jitter: f64,
    /// Parameters that ended at a bound, with the bound.
    pub(crate) at_bounds: Vec<(String, f64)>,
}

/// The negative criterion with hyperpriors, for each target value.
struct Negative<'a, M, E> {
    model: M,
    count: f64,
    options: &'a FitOptions,
    map: &'a Constrained,
    evaluate: E,
    largest_jitter: f64,
}

impl<M, E> Objective for Negative<'_, M, E>
where
    M: Parameters,
    E: FnMut(&M) -> Result<Scored, GpError>,
{
    fn dimension(&self) -> usize {
        self.map.dimension()
    }

    fn parameter_names(&self) -> Vec<String> {
        self.map.names()
    }

    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        self.map.set(&mut self.model, theta);
        let failed = |error: GpError| ObjectiveError(error.to_string());
        let Scored { value, gradient: mut natural, jitter } = (self.evaluate)(&self.model).map_err(failed)?;
        self.largest_jitter = self.largest_jitter.max(jitter);
        let prior = log_prior(&self.options.hyperpriors, &self.model, &mut natural).map_err(failed)?;
        let scale = -1.0 / self.count;
        for (g, natural) in gradient.iter_mut().zip(self.map.chain(theta, &natural)) {
            *g = scale * natural;
        }
        Ok(scale * (value + prior))
    }
}

/// Maximises a criterion of `count` target values plus hyperpriors: from the model's own values, from a `second` start where there is one (natural values), then from random ones, so many in all as the options' restarts.
///
/// # Errors
/// [`GpError::UnknownParameter`] for a hyperprior without parameter; [`GpError::Optim`] when a constraint does not fit, or no start can be evaluated.
pub(crate) fn maximise<M: Parameters + Clone>(
    mut model: M,
    count: usize,
    options: &FitOptions,
    second: Option<Vec<f64>>,
    evaluate: impl FnMut(&M) -> Result<Scored, GpError>,
    observer: &mut Observer<'_, State>,
) -> Result<Searched<M>, GpError> {
    let map = Constrained::new(&mut model, &options.constraints)?;
    log_prior(&options.hyperpriors, &model, &mut vec![0.0; model.values().len()])?;
    if map.dimension() == 0 {
        let (attempts, at_bounds) = (Vec::new(), Vec::new());
        let (reason, steps, largest_jitter) = (Reason::Gradient, 0, 0.0);
        return Ok(Searched { model, attempts, reason, steps, largest_jitter, at_bounds });
    }
    let optimiser = match options.optimizer {
        Optimizer::Lbfgs => Optimiser::Lbfgs(Lbfgs::default()),
        Optimizer::Adam { learning_rate } => Optimiser::Adaptive(Adaptive::adam(learning_rate)),
    };
    let mut steps = options.steps.clone();
    if matches!(options.optimizer, Optimizer::Adam { .. }) {
        // Adam swings past minima: a few steps without progress are no sign of the end.
        steps.patience = steps.patience.max(20);
    }
    let own = map.unconstrained(&model.values());
    let mut starts = vec![own.clone()];
    // The same point again where what differs is held.
    let second = second.map(|values| map.unconstrained(&values)).filter(|second| *second != own);
    starts.extend(second.filter(|_| options.restarts > 1));
    starts.extend(
        (2..options.restarts)
            .map(|index| perturbed(&own, 1.0, Streams::new(options.seed).child("gp/restart", index as u64))),
    );
    let mut objective = Negative {
        model: model.clone(),
        count: count as f64,
        options,
        map: &map,
        evaluate,
        largest_jitter: 0.0,
    };
    let result = restarts(&mut objective, &starts, &optimiser, &steps, observer)?;
    let largest_jitter = objective.largest_jitter;
    map.set(&mut model, &result.best.theta);
    Ok(Searched {
        at_bounds: map.at_bounds(&model.values()),
        model,
        attempts: result.attempts,
        reason: if result.interrupted { Reason::Interrupted } else { result.best.reason },
        steps: result.best.steps,
        largest_jitter,
    })
}
