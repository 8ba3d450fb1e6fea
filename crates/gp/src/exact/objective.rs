//! The criterion as an objective of the free hyperparameters: on one set of rows, or summed over several that share them.

use super::evidence::{Evaluation, log_evidence_and_gradient};
use super::fit::{Criterion, FitOptions, Optimizer};
use super::leave_one_out::leave_one_out_and_gradient;
use super::model::ExactGp;
use super::several::{SeveralObservations, log_evidence_of_several};
use crate::hyperprior::log_prior;
use crate::{GpError, Observations};
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_optim::{
    Adam, Attempt, Constrained, Lbfgs, Objective, ObjectiveError, Observer, Optimiser, Parameters, Reason,
    State, perturbed, restarts,
};

/// Data that are taken as independent of other parts given the hyperparameters.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    /// Targets that share their noise.
    One(&'a Observations),
    /// Functions with noise of their own each; their criterion is the evidence.
    Several(&'a SeveralObservations),
}

impl Part<'_> {
    fn values(&self) -> usize {
        match self {
            Self::One(data) => data.rows() * data.targets().ncols(),
            Self::Several(data) => data.rows() * data.functions(),
        }
    }
}

/// The negative criterion for each target value, summed over parts of the data that are taken as independent given the hyperparameters.
struct NegativeCriterion<'a> {
    model: ExactGp,
    parts: &'a [Part<'a>],
    options: &'a FitOptions,
    map: &'a Constrained,
    /// The n x n buffer, handed from evaluation to evaluation.
    buffer: Option<Mat<f64>>,
    largest_jitter: f64,
}

impl Objective for NegativeCriterion<'_> {
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
        let (mut value, mut count) = (0.0, 0);
        for part in self.parts {
            let buffer = self.buffer.take();
            let evaluation = match (part, self.options.criterion) {
                (Part::One(data), Criterion::Evidence) => {
                    log_evidence_and_gradient(&self.model, data, buffer)
                }
                (Part::One(data), Criterion::LeaveOneOut) => {
                    leave_one_out_and_gradient(&self.model, data, buffer)
                }
                (Part::Several(data), _) => log_evidence_of_several(&self.model, data, buffer),
            };
            let Evaluation { value: own, gradient, cholesky, buffer } = evaluation.map_err(failed)?;
            self.buffer = Some(buffer);
            self.largest_jitter = self.largest_jitter.max(cholesky.jitter);
            value += own;
            natural.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g);
            count += part.values();
        }
        let prior = log_prior(&self.options.hyperpriors, &self.model, &mut natural).map_err(failed)?;
        let scale = -1.0 / count as f64;
        for (g, natural) in gradient.iter_mut().zip(self.map.chain(theta, &natural)) {
            *g = scale * natural;
        }
        Ok(scale * (value + prior))
    }
}

/// Where a search ended.
pub(crate) struct Searched {
    /// The model at the best values.
    pub(crate) model: ExactGp,
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
    /// A buffer of the size of the last part.
    pub(crate) buffer: Option<Mat<f64>>,
}

/// Maximises the criterion, summed over `parts`, plus hyperpriors, from several starts. Cost of an evaluation: the sum over parts; memory: the largest part's.
pub(crate) fn maximise(
    mut model: ExactGp,
    parts: &[Part<'_>],
    options: &FitOptions,
    observer: &mut Observer<'_, State>,
) -> Result<Searched, GpError> {
    let map = Constrained::new(&mut model, &options.constraints)?;
    log_prior(&options.hyperpriors, &model, &mut vec![0.0; model.values().len()])?;
    if map.dimension() == 0 {
        let (attempts, at_bounds) = (Vec::new(), Vec::new());
        return Ok(Searched {
            model,
            attempts,
            reason: Reason::Gradient,
            steps: 0,
            largest_jitter: 0.0,
            at_bounds,
            buffer: None,
        });
    }
    let optimiser = match options.optimizer {
        Optimizer::Lbfgs => Optimiser::Lbfgs(Lbfgs::default()),
        Optimizer::Adam { learning_rate } => Optimiser::Adam(Adam::new(learning_rate)),
    };
    let mut steps = options.steps.clone();
    if matches!(options.optimizer, Optimizer::Adam { .. }) {
        // Adam swings past minima: a few steps without progress are no sign of the end.
        steps.patience = steps.patience.max(20);
    }
    let starts = starting_points(&model, &map, options);
    let mut objective = NegativeCriterion {
        model: model.clone(),
        parts,
        options,
        map: &map,
        buffer: None,
        largest_jitter: 0.0,
    };
    let result = restarts(&mut objective, &starts, &optimiser, &steps, observer)?;
    let NegativeCriterion { buffer, largest_jitter, .. } = objective;
    map.set(&mut model, &result.best.theta);
    Ok(Searched {
        at_bounds: map.at_bounds(&model.values()),
        model,
        attempts: result.attempts,
        reason: if result.interrupted { Reason::Interrupted } else { result.best.reason },
        steps: result.best.steps,
        largest_jitter,
        buffer,
    })
}

/// The model's own values; the same with little noise; random ones around the first.
///
/// Evidences tend to have one maximum that calls fine variation noise and one that calls it signal (Rasmussen and Williams
/// 2006, section 5.4.1), so the second start is on the other side of that divide from a usual first.
fn starting_points(model: &ExactGp, map: &Constrained, options: &FitOptions) -> Vec<Vec<f64>> {
    let own = map.unconstrained(&model.values());
    let mut values = model.values();
    if let Some(noise) = values.last_mut() {
        let floor = model.noise().floor();
        *noise = noise.min(if floor > 0.0 { 3.0 * floor } else { 1e-3 * *noise });
    }
    let random = (2..options.restarts)
        .map(|index| perturbed(&own, 1.0, Streams::new(options.seed).child("gp/restart", index as u64)));
    let mut out = vec![own.clone()];
    let quiet = map.unconstrained(&values);
    // The same point again where the noise is held.
    if options.restarts > 1 && quiet != own {
        out.push(quiet);
    }
    out.extend(random);
    out
}
