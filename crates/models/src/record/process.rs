//! What stands in a model file besides arrays.

use super::check::FitCheck;
use super::large::ScalableSummary;
use super::likelihood::GeneralisedSummary;
use super::streamed::StreamedRows;
use crate::{Hyperparameter, Output, Recalibration, TableInputs, TransformChoice};
use posterior_data::Notes;
use posterior_gp::exact::{Criterion, Optimizer, Plan};
use posterior_gp::{Hyperprior, MeanForm};
use posterior_kernels::KernelExpression;
use posterior_linalg::cholesky::CholeskyInfo;
use posterior_optim::{Attempt, Reason};
use serde::{Deserialize, Serialize};

/// Rows that were added to a fit whose hyperparameters stayed, and how they fitted what was there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContinuedRows {
    /// Rows that were there.
    pub rows_before: usize,
    /// Rows that were added.
    pub rows_added: usize,
    /// Of these, rows that equal one that was there or one before them, in all inputs and the target.
    pub repeated: usize,
    /// Mean log predictive density of the added rows in nats, each predicted from all rows before it (of the standardised target).
    pub log_density: f64,
    /// The same of the rows that were there, each predicted from all others of them.
    pub log_density_before: f64,
    /// Mean squared error of the added rows in units of their predicted variance, each predicted from all rows before it; 1 on average where the model is right.
    pub squared_error: f64,
    /// The same of the rows that were there, each predicted from all others of them.
    pub squared_error_before: f64,
    /// The largest [`Self::squared_error`] that chance explains, 199 times in 200, where the added rows are like those that were there.
    pub squared_error_explained: f64,
}

/// How the fit went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitSummary {
    /// Log evidence of the standardised targets, where the method knows it.
    pub log_evidence: Option<f64>,
    /// What was maximised.
    pub criterion: Criterion,
    /// Its value.
    pub criterion_value: Option<f64>,
    /// Priors on hyperparameters that were added to it, the weak default ones included.
    pub hyperpriors: Vec<Hyperprior>,
    /// With what.
    pub optimizer: Optimizer,
    /// Why the best start ended.
    pub reason: Reason,
    /// Steps of the best start.
    pub steps: usize,
    /// Evaluations over all starts.
    pub evaluations: usize,
    /// What became of each start.
    pub attempts: Vec<Attempt>,
    /// Largest jitter that any evaluation needed, in standard units.
    pub largest_jitter: f64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// The plan that was stated before.
    pub plan: Plan,
    /// Why the method was chosen.
    pub choice: String,
    /// What was found in the data.
    pub data: Notes,
    /// Which map the target goes through, and why.
    pub transform: TransformChoice,
    /// What weighs rows, in words; none where all count the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// How good the fit is on rows that had no part in it; none where there were no such rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<FitCheck>,
    /// How intervals were made to hold what they say there, where they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalibration: Option<Recalibration>,
    /// Where hyperparameters come from, of the exact posterior that `auto` kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hyperparameter_source: Option<String>,
    /// Hyperparameters that ended at a bound that was set for them, with the bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_bounds: Vec<(String, f64)>,
    /// What methods for large tables have to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalable: Option<ScalableSummary>,
}

/// How a fit went, by what was observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FitRecord {
    /// Numbers with Gaussian noise.
    Gaussian(Box<FitSummary>),
    /// Classes, counts, events, numbers with outliers.
    Likelihood(Box<GeneralisedSummary>),
}

impl FitRecord {
    /// Of numbers with Gaussian noise.
    pub fn gaussian(&self) -> Option<&FitSummary> {
        match self {
            Self::Gaussian(own) => Some(own),
            Self::Likelihood(_) => None,
        }
    }

    /// Of other targets.
    pub fn likelihood(&self) -> Option<&GeneralisedSummary> {
        match self {
            Self::Gaussian(_) => None,
            Self::Likelihood(own) => Some(own),
        }
    }

    /// What methods for large tables have to say; none of other targets than numbers with Gaussian noise.
    pub(crate) fn scalable(&self) -> Option<&ScalableSummary> {
        self.gaussian()?.scalable.as_ref()
    }

    /// Wall-clock seconds.
    pub fn seconds(&self) -> f64 {
        match self {
            Self::Gaussian(own) => own.seconds,
            Self::Likelihood(own) => own.seconds,
        }
    }

    /// What weighs rows, in words; none where all count the same.
    pub fn weights(&self) -> Option<&str> {
        match self {
            Self::Gaussian(own) => own.weights.as_deref(),
            Self::Likelihood(own) => own.weights.as_deref(),
        }
    }
}

/// How a model came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// The method: a name of [`MethodName`](crate::options::MethodName) other than `auto` under Gaussian noise; `gaussianised`, `variational` or `laplace process` under other likelihoods.
    pub method: String,
    /// How the posterior is computed under other likelihoods: `exact`, `sgpr`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solver: Option<String>,
    /// Rows trained on.
    pub rows: usize,
    /// The kernel.
    pub kernel: KernelExpression,
    /// The mean's form.
    pub mean: MeanForm,
    /// Everything learned, in standard units.
    pub hyperparameters: Vec<Hyperparameter>,
    /// The least Gaussian noise variance that could be learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_floor: Option<f64>,
    /// What the final factorisation needed, under Gaussian noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cholesky: Option<CholeskyInfo>,
    /// The seed.
    pub seed: u64,
    /// How the fit went.
    pub fit: FitRecord,
    /// What was learned afterwards, row by row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streamed: Option<StreamedRows>,
    /// Rows that were added to a fit, in their order ([`Model::continued`](crate::Model::continued)).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continued: Vec<ContinuedRows>,
}

impl ProcessRecord {
    /// The values of a hyperparameter.
    pub fn hyperparameter(&self, name: &str) -> Option<&[f64]> {
        self.hyperparameters.iter().find(|h| h.name == name).map(|h| h.values.as_slice())
    }
}

/// What is known of a process besides what predicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableSource {
    /// Rows of a table as standardised inputs.
    #[serde(flatten)]
    pub inputs: TableInputs,
    /// What is observed of the functions.
    #[serde(flatten)]
    pub output: Output,
    /// How it came about.
    #[serde(flatten)]
    pub record: ProcessRecord,
}
