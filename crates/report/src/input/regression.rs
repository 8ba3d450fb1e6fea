//! A regression model on one dataset.

use super::{Curves, Item, Note, Plane, SummaryRow, Table};
use posterior_metrics::RegressionScores;
use serde::{Deserialize, Serialize};

/// A regression model on one dataset. Start from `RegressionReport::default()` and fill in what is known: an absent
/// part leaves its figures and tables out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RegressionReport {
    /// Name of the dataset; heading of the section.
    pub dataset: String,
    /// A sentence on what the problem is; may be empty.
    pub description: String,
    /// Name of the target column.
    pub target: String,
    /// Unit of the target.
    pub target_unit: Option<String>,
    /// Facts about the model and its fit, in order (method, kernel, rows, seconds, ...).
    pub summary: Vec<SummaryRow>,
    /// What the rows of scores and predictions are to the model.
    pub rows: ScoredRows,
    /// Scores on these rows.
    pub scores: Option<RegressionScores>,
    /// Scores of a simple competitor on the same rows.
    pub baseline: Option<Baseline>,
    /// Predictions, row by row.
    pub predictions: Option<Predictions>,
    /// Fitted hyperparameters.
    pub hyperparameters: Vec<Hyperparameter>,
    /// One lengthscale per feature, if the kernel has them.
    pub lengthscales: Vec<FeatureLengthscale>,
    /// What happened on the way: jitter, dropped rows, constant columns, ...
    pub notes: Vec<Note>,
    /// The posterior over a grid, for problems with one input.
    pub posterior: Option<PosteriorPanel>,
    /// Maps beside it: of the prior's covariance for one input; of predictions and covariances for two.
    pub maps: Vec<Plane>,
    /// What else is known of the model, as tables.
    pub tables: Vec<Table>,
    /// Curves that columns go through before the kernel.
    pub warps: Vec<Curves>,
    /// Anything else, after the other figures.
    pub more: Vec<Item>,
}

/// What scored rows are to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoredRows {
    /// It was not trained on them.
    #[default]
    HeldOut,
    /// It was trained on them: scores say how well it fits, not how well it predicts.
    Training,
    /// It was trained on some of them: on more than chance explains.
    PartlyTraining,
    /// Nobody recorded what it was trained on.
    Unknown,
}

impl ScoredRows {
    /// One of them, in words.
    pub(crate) fn one(self) -> &'static str {
        match self {
            Self::HeldOut => "a held-out row",
            Self::Training => "a row that the model was trained on",
            Self::PartlyTraining | Self::Unknown => "a row",
        }
    }

    /// So many of them, in words.
    pub(crate) fn several(self, count: &str) -> String {
        match self {
            Self::HeldOut => format!("{count} held-out rows"),
            Self::Training => format!("{count} rows that the model was trained on"),
            Self::PartlyTraining => format!("{count} rows (the model was trained on some of them)"),
            Self::Unknown => format!("{count} rows (whether the model was trained on them is not known)"),
        }
    }
}

/// A competitor by which the scores are judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// What it does, as in "always the training mean".
    pub name: String,
    /// Its scores on the same rows.
    pub scores: RegressionScores,
}

/// Predictions of rows; three arrays of one length in units of the target. Rows beyond the shortest array, and rows
/// with a number that is not finite or a standard deviation that is not positive, are left out and counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Predictions {
    /// Predictive means.
    pub mean: Vec<f64>,
    /// Predictive standard deviations of the observations (noise included).
    pub standard_deviation: Vec<f64>,
    /// Observed targets.
    pub truth: Vec<f64>,
    /// What predictions are that are not Gaussian in these units; nothing of those that are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<PredictedDistribution>,
}

/// Predictions of rows that are not Gaussian; three arrays as long as the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictedDistribution {
    /// Lower ends of the central 95 % intervals.
    pub low: Vec<f64>,
    /// Upper ends.
    pub high: Vec<f64>,
    /// Normal quantiles of the predicted probabilities of the truths: standard normal if the model is right.
    pub residual: Vec<f64>,
}

/// A fitted hyperparameter and what it means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hyperparameter {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit; empty if it has none.
    pub unit: String,
    /// One sentence on what it does.
    pub meaning: String,
}

/// The lengthscale of one feature.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FeatureLengthscale {
    /// Name of the feature's column.
    pub feature: String,
    /// Lengthscale in standard deviations of the feature, so that features can be compared. Positive; infinity is
    /// allowed and means that the feature plays no part.
    pub lengthscale: f64,
}

/// The posterior of a function of one input, on a grid of `g` points in ascending order. Deviations and targets are
/// in units of the target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PosteriorPanel {
    /// What its values are of, where that is not the report's target (its logarithm, say).
    pub target: Option<String>,
    /// Name of the input column.
    pub input: String,
    /// Unit of the input.
    pub input_unit: Option<String>,
    /// Grid, `g` points.
    pub grid: Vec<f64>,
    /// Posterior mean, `g` values.
    pub mean: Vec<f64>,
    /// Standard deviation of the function, `g` values.
    pub latent_standard_deviation: Vec<f64>,
    /// Standard deviation of a new observation (noise included), `g` values.
    pub observed_standard_deviation: Vec<f64>,
    /// Functions drawn from the posterior, each `g` values.
    pub samples: Vec<Vec<f64>>,
    /// The function that made the data, where it is known; `g` values or empty.
    pub true_function: Vec<f64>,
    /// Inputs of the training points.
    pub train_input: Vec<f64>,
    /// Targets of the training points.
    pub train_target: Vec<f64>,
}
