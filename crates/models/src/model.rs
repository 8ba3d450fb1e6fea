//! **What every model can be asked**, whatever its family.

use crate::process::{VarianceMethod, VarianceSolves};
use crate::{ModelData, ModelError, PredictionPlan};
use posterior_data::stream::StreamOptions;
use posterior_data::{Column, Departure, InputMoments, NumericArray};
use posterior_likelihoods::Integration;
use posterior_report::{Note, SummaryRow};
use posterior_store::StoreError;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The families of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Gaussian processes on tables.
    Process,
    /// Networks with error bars.
    Network,
}

impl Family {
    /// One of them, and several, in words.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Process => ("a Gaussian process", "Gaussian processes"),
            Self::Network => ("a network", "networks"),
        }
    }
}

/// Files to ask a model about.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// A table; for networks also arrays, images or features, several of which are put together.
    pub data: &'a [PathBuf],
    /// Truths of data that hold none.
    pub labels: &'a [PathBuf],
    /// Whether truths are wanted.
    pub truth: bool,
    /// Bytes that a file may take.
    pub memory: u64,
}

/// How the numbers leave, which takes memory of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PredictedInto {
    /// Columns in memory, or a file of text.
    #[default]
    Columns,
    /// One array.
    Array,
    /// A Parquet file: encoded beside the columns.
    Parquet,
    /// Text that is printed at once.
    Text,
    /// A JSON document.
    Json,
}

impl PredictedInto {
    /// Bytes of a number on its way out, beside its column.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Columns | Self::Array => 0,
            Self::Parquet => 24,
            Self::Text => 72,
            Self::Json => 96,
        }
    }
}

/// What is asked about some rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Quantiles of new observations, in (0, 1).
    pub quantiles: Vec<f64>,
    /// Quantiles of the noiseless function instead (networks).
    pub latent: bool,
    /// Only so many of the most probable classes (networks).
    pub top: Option<usize>,
    /// Joint draws of the noiseless function.
    pub samples: usize,
    /// The covariance of all outputs of all inputs (networks).
    pub joint: bool,
    /// Seed of the draws.
    pub seed: u64,
    /// How uncertainty becomes a prediction; as fitted where absent (networks).
    pub integration: Option<Integration>,
    /// Where variances come from (processes).
    pub variances: VarianceMethod,
    /// Where the numbers go.
    pub into: PredictedInto,
    /// Bytes that all of it may take.
    pub memory: u64,
    /// Bytes of them that something else takes.
    pub beside: u64,
    /// Whether the plan says how long it takes, which may be measured.
    pub timed: bool,
}

/// What a model says about some rows.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Rows that have a prediction.
    pub count: usize,
    /// New columns, as long as [`ModelData::length`]; empty cells where a row has no prediction.
    pub columns: Vec<Column>,
    /// The predictions as one array where [`PredictedInto::Array`] was asked for.
    pub array: Option<NumericArray>,
    /// Joint draws that are no columns, `[draws, examples, outputs]`.
    pub draws: Option<NumericArray>,
    /// The joint covariance.
    pub covariance: Option<NumericArray>,
    /// Variances that rounding had made negative and that were raised to 0.
    pub clipped: usize,
    /// Cells that were filled in.
    pub filled: usize,
    /// How exact variances by solves are, where there were solves.
    pub solves: Option<VarianceSolves>,
    /// Where the inputs lay, for [`Model::departures`].
    pub inputs: InputMoments,
}

/// A fitted model of any family.
pub trait Model: Send + Sync {
    /// Its family.
    fn family(&self) -> Family;

    /// Writes its file in one step.
    ///
    /// # Errors
    /// [`StoreError::Write`]; an older file is untouched then.
    fn save(&self, path: &Path) -> Result<(), StoreError>;

    /// The facts about it, in order.
    fn summary(&self) -> Vec<SummaryRow>;

    /// Everything that was added, chosen, dropped or is odd.
    fn notes(&self) -> Vec<Note>;

    /// Facts, what was learned and notes for people.
    fn described(&self) -> String;

    /// The same for programs.
    ///
    /// # Errors
    /// When JSON cannot hold it.
    fn report(&self) -> Result<Value, StoreError>;

    /// Reads files of the kind that it learned from.
    ///
    /// # Errors
    /// When a file cannot be read or does not fit.
    fn read(&self, files: &Files<'_>) -> Result<ModelData, ModelError>;

    /// Remarks on data beside those of the fit; refuses numbers of another kind unless these are `allowed`.
    ///
    /// # Errors
    /// [`ModelError::Request`].
    fn check_inputs(&self, data: &ModelData, allowed: bool) -> Result<Vec<String>, ModelError>;

    /// What predicting takes, the data included.
    ///
    /// # Errors
    /// [`ModelError::PredictionMemory`] for more than is allowed.
    fn plan(&self, data: &ModelData, question: &Question) -> Result<PredictionPlan, ModelError>;

    /// Answers.
    ///
    /// # Errors
    /// When data and model do not fit, or the question has no answer.
    fn predict(&self, data: &ModelData, question: &Question) -> Result<Answer, ModelError>;

    /// Inputs that are unlike those of training: in other units, or far outside. None where that is not known or said otherwise ([`Self::check_inputs`]).
    fn departures(&self, inputs: &InputMoments) -> Option<Vec<Departure>>;

    /// How a large table of `path` is read part by part for a question.
    ///
    /// # Errors
    /// [`ModelError::Usage`] where predictions need all rows together, or the family reads no parts.
    fn cut(&self, path: &Path, question: &Question) -> Result<StreamOptions, ModelError>;

    /// Whether a question can be answered part by part.
    fn answers_parts(&self, question: &Question) -> bool;
}
