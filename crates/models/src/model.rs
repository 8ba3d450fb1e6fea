//! **What every model can be asked**, whatever its family.

use crate::{
    Comparison, Evaluation, JointRow, ModelData, ModelError, PredictedKind, PredictionPlan, TrainedOn,
    VarianceMethod, VarianceSolves,
};
use posterior_data::stream::StreamOptions;
use posterior_data::{Column, Departure, InputMoments, NumericArray};
use posterior_likelihoods::Integration;
use posterior_networks::Graph;
use posterior_report::{Curves, FeatureLengthscale, Hyperparameter, Note, PosteriorPanel, SummaryRow};
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
    /// One of them, in words.
    pub fn one(self) -> &'static str {
        match self {
            Self::Process => "a Gaussian process",
            Self::Network => "a network",
        }
    }

    /// Refuses the first of these flags that is given: the family takes none of them.
    pub(crate) fn without(self, flags: &[(bool, &'static str)]) -> Result<(), ModelError> {
        match flags.iter().find(|(given, _)| *given) {
            Some((_, flag)) => Err(ModelError::NotTaken { flag, family: self }),
            None => Ok(()),
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
    /// Whether the draws are an array of their own ([`Answer::draws`]) instead of columns; networks have them no other way.
    pub draws_apart: bool,
    /// The covariance of all outputs of all inputs (networks).
    pub joint: bool,
    /// Seed of the draws.
    pub seed: u64,
    /// How uncertainty becomes a prediction; as fitted where absent (networks).
    pub integration: Option<Integration>,
    /// Where variances come from; from samples where absent (processes).
    pub variances: Option<VarianceMethod>,
    /// Whether truths are wanted, to be scored against ([`Model::comparison`]).
    pub truth: bool,
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
    /// Joint draws that are no columns, as [`Model::sample`] gives them.
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

/// What a report shows of a model beside its scores; what a family lacks is empty.
#[derive(Clone, Debug, Default)]
pub struct Portrait {
    /// What it is, as the beginning of a title.
    pub title: &'static str,
    /// Its method, in short.
    pub method: &'static str,
    /// Name of the target.
    pub target: String,
    /// Names of the classes, where classes are predicted.
    pub class_names: Vec<String>,
    /// What was learned, in units that people use.
    pub hyperparameters: Vec<Hyperparameter>,
    /// The lengthscale of each feature.
    pub lengthscales: Vec<FeatureLengthscale>,
    /// The posterior over a grid, for models of one numeric input.
    pub posterior: Option<PosteriorPanel>,
    /// Scores along hyperparameters.
    pub evidence: Vec<Curves>,
}

/// A fitted model of any family.
pub trait Model: Send + Sync {
    /// Its family.
    fn family(&self) -> Family;

    /// What it predicts.
    fn predicts(&self) -> PredictedKind;

    /// Seconds that its fit took.
    fn seconds(&self) -> f64;

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

    /// What a report shows of it.
    ///
    /// # Errors
    /// When the posterior over a grid cannot be computed.
    fn portrait(&self) -> Result<Portrait, ModelError>;

    /// The structure of its network, if it is one.
    fn graph(&self) -> Option<&Graph> {
        None
    }

    /// Refuses a question that it has no answer to, before anything is read.
    ///
    /// # Errors
    /// [`ModelError::NotTaken`] for what its family does not have, [`ModelError::Usage`] for what does not go together.
    fn check(&self, question: &Question) -> Result<(), ModelError>;

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

    /// Joint draws of the noiseless function at all examples that have a prediction, `[draws, examples, outputs]`, regression in the target's units; as many as the question's `samples`, by
    /// its seed, in its memory.
    ///
    /// # Errors
    /// When they need more memory, or data and model do not fit.
    fn sample(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError>;

    /// Predictive distributions of examples beside those of a simple competitor, with truths where the question wants them.
    ///
    /// # Errors
    /// When data and model do not fit, or there are no truths.
    fn comparison(&self, data: &ModelData, question: &Question) -> Result<Comparison, ModelError>;

    /// Scores on examples with truths, beside those of the competitor.
    ///
    /// # Errors
    /// As [`Self::comparison`]; also when truths and predictions are of different kinds.
    fn evaluate(&self, data: &ModelData, question: &Question) -> Result<Evaluation, ModelError> {
        self.comparison(data, &Question { truth: true, ..question.clone() })?.scored()
    }

    /// What scoring so many models of this kind on these data takes, the data included.
    ///
    /// # Errors
    /// [`ModelError::PredictionMemory`] for more than is allowed.
    fn plan_scores(
        &self,
        data: &ModelData,
        models: usize,
        question: &Question,
    ) -> Result<PredictionPlan, ModelError>;

    /// Which examples with truths it has learned from, by their numbers; None where the data hold no truths, or where the model does not say what it learned from.
    ///
    /// # Errors
    /// When data and model do not fit.
    fn trained_on(&self, data: &ModelData) -> Result<Option<TrainedOn>, ModelError>;

    /// The seed by which rows of its table were left out of the fit.
    ///
    /// # Errors
    /// [`ModelError::Usage`] where fits of the family leave out none.
    fn split_seed(&self) -> Result<u64, ModelError> {
        Err(ModelError::Usage(
            "--folds and --test-fraction are for Gaussian processes: give the rows to score as a file of their own".into(),
        ))
    }

    /// Log-likelihoods of sets of so many `points` each, by as many functions drawn from the posterior as the question's `samples`, beside those of the competitor.
    ///
    /// # Errors
    /// [`ModelError::NotTaken`] where the family has none; when the data hold no truths, draws need more memory, or there are fewer examples than points in a set.
    fn joint_scores(
        &self,
        _data: &ModelData,
        _points: &[usize],
        _question: &Question,
    ) -> Result<Vec<JointRow>, ModelError> {
        Err(ModelError::NotTaken { flag: "joint-kappa", family: self.family() })
    }

    /// Inputs that are unlike those of training: in other units, or far outside. None where that is not known or said otherwise ([`Self::check_inputs`]).
    fn departures(&self, inputs: &InputMoments) -> Option<Vec<Departure>>;

    /// How a large table is read part by part for a question.
    ///
    /// # Errors
    /// [`ModelError::Usage`] where predictions need all rows together, [`ModelError::NotTaken`] where the family reads no parts.
    fn cut(&self, files: &[PathBuf], question: &Question) -> Result<StreamOptions, ModelError>;

    /// Whether a question can be answered part by part.
    fn answers_parts(&self, question: &Question) -> bool;
}
