//! What a fit leaves behind.

use crate::options::MethodName;
use crate::{FitCheck, Hyperparameter, Predictor, ScalableSummary};
use posterior_gp::{Hyperprior, Observations};
use posterior_optim::Reason;
use std::sync::Arc;

/// What a fit leaves behind.
pub(crate) struct ScalableFit {
    /// The method that it came from: of `auto`, the best of those that were tried.
    pub(crate) method: MethodName,
    /// Where hyperparameters come from, if the summary does not say.
    pub(crate) source: Option<String>,
    /// How good it is on rows that were held back; none where there were none.
    pub(crate) check: Option<FitCheck>,
    pub(crate) predictor: Arc<dyn Predictor>,
    pub(crate) hyperparameters: Vec<Hyperparameter>,
    /// The priors that their search used, those that nobody stated included.
    pub(crate) hyperpriors: Vec<Hyperprior>,
    /// None for the exact posterior of few rows.
    pub(crate) summary: Option<ScalableSummary>,
    pub(crate) reason: Reason,
    pub(crate) largest_jitter: f64,
    /// That of all rows, where the posterior of a large table has one.
    pub(crate) log_evidence: Option<f64>,
}

impl ScalableFit {
    /// A posterior that a method came to; nothing else is said of it.
    pub(crate) fn new(
        method: MethodName,
        predictor: Arc<dyn Predictor>,
        hyperparameters: Vec<Hyperparameter>,
        (reason, largest_jitter): (Reason, f64),
    ) -> Self {
        let (source, check, hyperpriors, summary, log_evidence) = (None, None, Vec::new(), None, None);
        Self {
            method,
            source,
            check,
            predictor,
            hyperparameters,
            hyperpriors,
            summary,
            reason,
            largest_jitter,
            log_evidence,
        }
    }

    /// Rows that the posterior was conditioned on, where it keeps them.
    pub(crate) fn rows(&self) -> usize {
        self.predictor.training().map_or(0, Observations::rows)
    }
}
