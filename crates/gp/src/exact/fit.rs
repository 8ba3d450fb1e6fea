//! Learning hyperparameters: the evidence or the leave-one-out score, plus hyperpriors, maximised from several starts.

use super::evidence::{Evaluation, log_evidence, log_evidence_and_gradient};
use super::leave_one_out::leave_one_out_and_gradient;
use super::model::ExactGp;
use super::plan::Plan;
use super::posterior::ExactPosterior;
use crate::hyperprior::{Hyperprior, log_prior};
use crate::{GpError, Observations};
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_optim::{
    Adam, Attempt, Event, Lbfgs, LoopOptions, Objective, ObjectiveError, Optimiser, Parameters, Reason,
    Signal, perturbed, restarts,
};
use serde::{Deserialize, Serialize};

/// What is maximised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// The log evidence (marginal likelihood).
    #[default]
    Evidence,
    /// The leave-one-out log score: more robust when the model is wrong, three times the work and memory.
    LeaveOneOut,
}

/// Which optimiser moves the hyperparameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimizer {
    /// L-BFGS: few evaluations, exact gradients.
    #[default]
    Lbfgs,
    /// Adam with a fixed step size in the unconstrained parameters.
    Adam {
        /// Its step size; 0.1 is customary for evidences.
        learning_rate: f64,
    },
}

/// How to fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitOptions {
    /// What is maximised.
    pub criterion: Criterion,
    /// With what.
    pub optimizer: Optimizer,
    /// Budget and tolerances of each start; Adam is given a patience of at least 20. The objective is the negative criterion for each target value.
    pub steps: LoopOptions,
    /// Starts: the model's own values, the same with little noise (three times its floor), then random ones (normal in the
    /// unconstrained parameters, standard deviation 1 around the model's values).
    pub restarts: usize,
    /// Seed of the random starts.
    pub seed: u64,
    /// Beliefs about hyperparameters.
    pub hyperpriors: Vec<Hyperprior>,
    /// Most memory that the plan may need, in bytes.
    pub memory_limit: u64,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            criterion: Criterion::default(),
            optimizer: Optimizer::default(),
            steps: LoopOptions {
                steps: 200,
                gradient_tolerance: 1e-5,
                value_tolerance: 1e-7,
                patience: 3,
                time: None,
            },
            restarts: 2,
            seed: 0,
            hyperpriors: Vec::new(),
            memory_limit: 8 << 30,
        }
    }
}

impl FitOptions {
    /// What a fit would need.
    pub fn plan(&self, data: &Observations) -> Plan {
        let (rows, inputs, targets) = (data.rows(), data.inputs().ncols(), data.targets().ncols());
        match self.criterion {
            Criterion::Evidence => Plan::evidence(rows, inputs, targets),
            Criterion::LeaveOneOut => Plan::leave_one_out(rows, inputs, targets),
        }
    }
}

/// A fitted process, with everything that happened on the way.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The posterior at the best hyperparameters.
    pub posterior: ExactPosterior,
    /// Log evidence there, summed over targets, whatever was maximised.
    pub log_evidence: f64,
    /// The criterion there (without hyperpriors).
    pub criterion: f64,
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
    /// What was planned.
    pub plan: Plan,
}

/// The negative criterion per target value, as an [`Objective`] of the unconstrained parameters.
struct NegativeCriterion<'a> {
    model: ExactGp,
    data: &'a Observations,
    options: &'a FitOptions,
    /// The n x n buffer, handed from evaluation to evaluation.
    buffer: Option<Mat<f64>>,
    largest_jitter: f64,
}

impl Objective for NegativeCriterion<'_> {
    fn dimension(&self) -> usize {
        self.model.unconstrained().len()
    }

    fn parameter_names(&self) -> Vec<String> {
        self.model.unconstrained_names()
    }

    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        self.model.set_unconstrained(theta);
        let buffer = self.buffer.take();
        let failed = |error: GpError| ObjectiveError(error.to_string());
        let evaluation = match self.options.criterion {
            Criterion::Evidence => log_evidence_and_gradient(&self.model, self.data, buffer),
            Criterion::LeaveOneOut => leave_one_out_and_gradient(&self.model, self.data, buffer),
        };
        let Evaluation { value, gradient: mut natural, cholesky, buffer } = evaluation.map_err(failed)?;
        self.buffer = Some(buffer);
        self.largest_jitter = self.largest_jitter.max(cholesky.jitter);
        let prior = log_prior(&self.options.hyperpriors, &self.model, &mut natural).map_err(failed)?;
        let scale = -1.0 / (self.data.rows() * self.data.targets().ncols()) as f64;
        for (g, natural) in gradient.iter_mut().zip(self.model.chain(theta, &natural)) {
            *g = scale * natural;
        }
        Ok(scale * (value + prior))
    }
}

/// Fits the hyperparameters of `model` to `data` and conditions on it. The observer is told the start and each step, and can end
/// the fit; the result is then the best so far with [`Reason::Interrupted`].
///
/// # Errors
/// [`GpError::Memory`] before anything is allocated when the plan exceeds the limit; [`GpError::UnknownParameter`]
/// for a hyperprior without parameter; [`GpError::Optim`] when no start could be evaluated.
pub fn fit(
    model: ExactGp,
    data: Observations,
    options: &FitOptions,
    observer: &mut dyn FnMut(usize, &Event) -> Signal,
) -> Result<Fit, GpError> {
    let plan = options.plan(&data);
    if plan.peak_bytes > options.memory_limit {
        return Err(GpError::Memory { plan, limit: options.memory_limit });
    }
    log_prior(&options.hyperpriors, &model, &mut vec![0.0; model.values().len()])?;
    let optimiser = match options.optimizer {
        Optimizer::Lbfgs => Optimiser::Lbfgs(Lbfgs::default()),
        Optimizer::Adam { learning_rate } => Optimiser::Adam(Adam::new(learning_rate)),
    };
    let mut steps = options.steps.clone();
    if matches!(options.optimizer, Optimizer::Adam { .. }) {
        // Adam swings past minima: a few steps without progress are no sign of the end.
        steps.patience = steps.patience.max(20);
    }
    let starts = starting_points(&model, options);
    let mut objective =
        NegativeCriterion { model: model.clone(), data: &data, options, buffer: None, largest_jitter: 0.0 };
    let mut watch = |start: usize, event: &Event, _: &_| observer(start, event);
    let result = restarts(&mut objective, &starts, &optimiser, &steps, &mut watch)?;
    let NegativeCriterion { buffer, largest_jitter, .. } = objective;
    let mut model = model;
    model.set_unconstrained(&result.best.theta);
    let (criterion, log_evidence) = match options.criterion {
        Criterion::Evidence => {
            let log_evidence = log_evidence(&model, &data, buffer)?;
            (log_evidence.value, log_evidence)
        }
        Criterion::LeaveOneOut => {
            let evaluation = leave_one_out_and_gradient(&model, &data, buffer)?;
            (evaluation.value, super::evidence::log_evidence(&model, &data, Some(evaluation.buffer))?)
        }
    };
    let posterior = model.condition_in(data, Some(log_evidence.buffer))?;
    Ok(Fit {
        posterior,
        log_evidence: log_evidence.value,
        criterion,
        reason: result.best.reason,
        steps: result.best.steps,
        evaluations: result.attempts.iter().map(|a| a.evaluations).sum(),
        attempts: result.attempts,
        largest_jitter: largest_jitter.max(log_evidence.cholesky.jitter),
        plan,
    })
}

/// The model's own values; the same with little noise; random ones around the first.
///
/// Evidences tend to have one maximum that calls fine variation noise and one that calls it signal (Rasmussen and Williams
/// 2006, section 5.4.1), so the second start is on the other side of that divide from a usual first.
fn starting_points(model: &ExactGp, options: &FitOptions) -> Vec<Vec<f64>> {
    let own = model.unconstrained();
    let mut quiet = model.clone();
    let mut values = quiet.values();
    if let Some(noise) = values.last_mut() {
        let floor = model.noise().floor();
        *noise = noise.min(if floor > 0.0 { 3.0 * floor } else { 1e-3 * *noise });
    }
    quiet.set_values(&values);
    let random = (2..options.restarts)
        .map(|index| perturbed(&own, 1.0, Streams::new(options.seed).child("gp/restart", index as u64)));
    let mut out = vec![own.clone()];
    if options.restarts > 1 {
        out.push(quiet.unconstrained());
    }
    out.extend(random);
    out
}
