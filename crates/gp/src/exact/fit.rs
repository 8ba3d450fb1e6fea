//! Learning hyperparameters: the evidence or the leave-one-out score, plus hyperpriors, maximised from several starts.

use super::evidence::log_evidence;
use super::leave_one_out::leave_one_out_and_gradient;
use super::model::ExactGp;
use super::objective::{Part, maximise};
use super::plan::Plan;
use super::posterior::ExactPosterior;
use crate::hyperprior::Hyperprior;
use crate::search::Searched;
use crate::{GpError, Observations};
use posterior_optim::{Attempt, Constraint, LoopOptions, Observer, Reason, State};
use serde::{Deserialize, Serialize};

/// What is maximised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
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
    /// Priors on hyperparameters.
    pub hyperpriors: Vec<Hyperprior>,
    /// Hyperparameters that are held or bounded.
    #[serde(default)]
    pub constraints: Vec<Constraint>,
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
            constraints: Vec::new(),
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
    /// Hyperparameters that ended at a bound of [`FitOptions::constraints`], with the bound.
    pub at_bounds: Vec<(String, f64)>,
    /// What was planned.
    pub plan: Plan,
}

/// Fits the hyperparameters of `model` to `data` and conditions on it. The observer is told each step of each start (the part of its progress), and can end
/// the fit, in whichever start it is; the result is then the best so far with [`Reason::Interrupted`]. Where constraints leave nothing to search for, the
/// model is conditioned as it is.
///
/// # Errors
/// [`GpError::Memory`] before anything is allocated when the plan exceeds the limit; [`GpError::UnknownParameter`]
/// for a hyperprior without parameter; [`GpError::Optim`] when no start could be evaluated.
pub fn fit(
    model: ExactGp,
    data: Observations,
    options: &FitOptions,
    observer: &mut Observer<'_, State>,
) -> Result<Fit, GpError> {
    let plan = options.plan(&data);
    if plan.peak_bytes > options.memory_limit {
        return Err(GpError::Memory { plan, limit: options.memory_limit });
    }
    let (searched, buffer) = maximise(model, &[Part::One(&data)], options, observer)?;
    let Searched { model, attempts, reason, steps, largest_jitter, at_bounds } = searched;
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
        reason,
        steps,
        evaluations: attempts.iter().map(|a| a.evaluations).sum(),
        attempts,
        at_bounds,
        largest_jitter: largest_jitter.max(log_evidence.cholesky.jitter),
        plan,
    })
}
