//! How a fit under any likelihood went, as it stands in a file.

use super::deep::DeepSummary;
use super::gvi::GviSummary;
use super::process::TableSource;
use crate::options::InferenceName;
use crate::{CheckedOn, ClassRecalibration, ObservedRecalibration};
use posterior_data::Notes;
use posterior_gp::Hyperprior;
use posterior_gp::exact::Plan;
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_optim::Reason;
use serde::{Deserialize, Serialize};

/// Scores of predictions; lower NLL is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelScores {
    /// Mean of `-log p(y | x)`, nats.
    pub nll: f64,
    /// Share of rows whose most probable class is theirs; none for counts and numbers.
    pub accuracy: Option<f64>,
    /// Expected calibration error of that class's probability; none for counts and numbers.
    pub ece: Option<f64>,
    /// Share of rows inside two standard deviations; none for classes.
    pub within_two_deviations: Option<f64>,
}

/// What is known of a fit's quality.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelCheck {
    /// Which rows.
    pub on: CheckedOn,
    /// How many.
    pub rows: usize,
    /// Rows that were held back as well and equal rows that are learned from, to which they were given back.
    pub training_duplicates: usize,
    /// Duplicates of these rows that were left out with them.
    pub duplicates: usize,
    /// Their scores.
    pub scores: LabelScores,
    /// NLL of a model that knows the targets' distribution and no inputs.
    pub baseline_nll: f64,
    /// What a user must know.
    pub warnings: Vec<String>,
}

/// A process without learned features that was fitted to a few of the rows, to compare with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainProcess {
    /// How its posterior is approximated.
    pub inference: InferenceName,
    /// Rows that it learned from.
    pub rows: usize,
    /// Its scores on the rows that were held back.
    pub scores: LabelScores,
    /// Seconds that it took.
    pub seconds: f64,
}

/// What came of features that were learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeatureSummary {
    /// How they were trained.
    pub learned: DeepSummary,
    /// The constant that is added to every latent value: with weights of zero, predictions ignore the inputs. Log-odds of yes; the logarithm of the mean count for each unit of relative exposure;
    /// the logarithm of an even intensity of events. It is 0 for numbers, and for classes with a function each.
    pub level: f64,
    /// The objective of the way that was chosen, averaged over recent steps, nats for each row.
    pub objective: f64,
    /// Steps that an earlier run had taken.
    pub resumed_from: usize,
    /// Of events: how many the mean intensity has in the whole window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_events: Option<f64>,
    /// A plain process of few rows; none where no rows were held back to compare on, or it could not be had.
    pub plain: Option<PlainProcess>,
}

/// What came of a mean and a covariance that were trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariationSummary {
    /// How they were trained.
    pub learned: GviSummary,
    /// The objective of the way that was chosen, averaged over recent steps, nats for each row.
    pub objective: f64,
    /// Steps that an earlier run had taken.
    pub resumed_from: usize,
    /// A plain process of few rows; none where no rows were held back to compare on, or it could not be had.
    pub plain: Option<PlainProcess>,
}

/// Pseudo-counts that were tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedPseudoCount {
    /// How the Gaussian was matched.
    pub matching: Matching,
    /// The pseudo-count.
    pub pseudo_count: f64,
    /// Its scores: every row of a part of the table predicted from the others of it, under hyperparameters that its half had no part in.
    pub scores: LabelScores,
    /// Whether yes and no were taken as two classes with a function each.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_classes: bool,
}

/// A pseudo-count that was learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundedPseudoCount {
    /// How the Gaussian was matched.
    pub matching: Matching,
    /// The pseudo-count.
    pub pseudo_count: f64,
    /// The bound on the log evidence of the labels, nats.
    pub bound: f64,
}

/// How labels became numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GaussianLabelSummary {
    /// Which numbers.
    pub gaussianised: Gaussianised,
    /// Pseudo-counts that were compared to choose it; none where it was given.
    pub tried: Vec<TriedPseudoCount>,
    /// Rows that they were compared on.
    pub tried_on: usize,
    /// Pseudo-counts that were learned, of which the one of the highest bound was kept; none where it was chosen otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<BoundedPseudoCount>,
    /// Prior mean of each latent function.
    pub offsets: Vec<f64>,
    /// The standard unit of all.
    pub scale: f64,
    /// How each latent function was fitted: its process's own description.
    pub members: Vec<TableSource>,
}

/// What came of a stochastic bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundSummary {
    /// The bound averaged over recent steps, nats.
    pub bound: f64,
    /// Inducing points.
    pub inducing: usize,
    /// Whether they moved.
    pub moved: bool,
}

/// What came of a search for the mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeSummary {
    /// Laplace's approximation of the log evidence, nats.
    pub log_evidence: f64,
    /// Newton steps of the last mode.
    pub newton_steps: usize,
}

/// An inference that was compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedInference {
    /// Which.
    pub inference: InferenceName,
    /// Scores of every row as the others predict it, under hyperparameters that its half had no part in.
    pub scores: Option<LabelScores>,
    /// Seconds it took.
    pub seconds: f64,
}

/// How the fit went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneralisedSummary {
    /// Why this likelihood.
    pub likelihood_choice: String,
    /// Why this inference and this method.
    pub choice: String,
    /// Inferences that were compared, where it was ours to choose; the better one was kept.
    pub tried: Vec<TriedInference>,
    /// Priors on hyperparameters, the weak default ones included.
    pub hyperpriors: Vec<Hyperprior>,
    /// Where hyperparameters come from.
    pub hyperparameter_source: String,
    /// Why the search for them ended.
    pub reason: Reason,
    /// Its steps.
    pub steps: usize,
    /// Its evaluations.
    pub evaluations: usize,
    /// Largest jitter that anything needed, in standard units.
    pub largest_jitter: f64,
    /// Hyperparameters at a bound that was set for them, with the bound.
    pub at_bounds: Vec<(String, f64)>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// The plan that was stated before.
    pub plan: Plan,
    /// What was found in the data.
    pub data: Notes,
    /// What is odd about the target.
    pub odd: Vec<String>,
    /// What rows count, in words, where not all count the same.
    pub weights: Option<String>,
    /// How good the fit is on rows that had no part in it.
    pub check: Option<LabelCheck>,
    /// What these rows say of class probabilities and sets; None of other targets, and where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalibration: Option<ClassRecalibration>,
    /// What intervals of counts and of numbers with outliers are worth, where such rows tell them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<ObservedRecalibration>,
    /// Of Gaussianised inference.
    pub gaussian_labels: Option<GaussianLabelSummary>,
    /// Of variational inference.
    pub bound: Option<BoundSummary>,
    /// Of the Laplace approximation.
    pub mode: Option<ModeSummary>,
    /// Of features that were learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<FeatureSummary>,
    /// Of a mean and a covariance that were trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<VariationSummary>,
}

/// Pseudo-counts that are compared, from hardly any regularisation to a whole observation of every class.
pub(crate) const PSEUDO_COUNTS: [f64; 7] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0];
