//! The **model**: a fitted process with all that is needed to use it - roles of columns, standardisation, hyperparameters,
//! posterior factors - and its file.
//!
//! | file | what |
//! |---|---|
//! | `header` | how a fit went, and what the JSON says |
//! | `fit` | table in, model out |
//! | `noise` | how far observations scatter at each place |
//! | `target_transform` | which map the target goes through |
//! | `prepared` | rows of a table as a process learns from them |
//! | `prepared_table`, `file_rows` | a table read part by part, into memory or a file; rows of that file |
//! | `asked`, `describe` | what any model can be asked; a process in words |
//! | `row_weights` | what rows count |
//! | `apart` | rows to judge or to choose by, apart from those that are learned from |
//! | `check` | how good it is on rows that had no part in it |
//! | `rates` | what this machine does in a second |
//! | `predict` | table in, predictions and scores out |
//! | `predict_plan` | what that takes |
//! | `generalised` | fits under any likelihood: classes, counts, outliers |
//! | `panel`, `maps` | the posterior over a grid, for one input; the prior's covariance, predictions over the plane |
//! | `parts` | what a kernel is made of: covariances of categories, curves of columns, shares of a sum |
//! | [`Effects`], `effective` | what columns do: importance, partial dependence |
//! | `continued` | further rows for a saved exact process, its hyperparameters kept |
//! | `compress` | a model of many rows, carried by fewer points |
//! | `left_out` | a table's training rows, each predicted from all others |
//! | `joint` | the covariance of the function at several rows |
//! | `scalable` | methods for large tables |
//! | `deep` | learned features |
//! | `bound` | the stochastic bound of inducing points |
//! | `gvi` | means and covariances that are free of each other |
//! | `streaming` | a fitted process that goes on learning ([`StreamModel`]) |

mod asked;
mod bound;
mod check;
mod compress;
mod continued;
pub(crate) mod deep;
mod describe;
mod effective;
mod effects;
mod file_rows;
pub(crate) mod fit;
pub(crate) mod generalised;
pub(crate) mod gvi;
mod header;
mod joint;
mod left_out;
mod maps;
mod noise;
mod panel;
mod parts;
mod predict;
mod predict_plan;
pub(crate) mod prepared;
pub(crate) mod prepared_table;
pub(crate) mod rates;
mod row_weights;
pub(crate) mod scalable;
mod streaming;
mod target_transform;

pub use check::{CheckScores, FitCheck, TriedMethod};
pub use compress::CompressionPlan;
pub use continued::{ContinuationPlan, NewRows};
pub use deep::{DeepSummary, TriedSetting};
pub use effects::{Averaged, Dependence, Effects, Importance, Place, PlaceUnit, RowsOf};
pub(crate) use file_rows::CANDIDATES;
pub use file_rows::FileRows;
pub use generalised::{
    BoundSummary, BoundedPseudoCount, ChosenLikelihood, FeatureSummary, GeneralisedSummary, InferencePlan,
    LabelCheck, LabelScores, ModeSummary, Observed, PlainProcess, StandInSummary, TriedInference,
    TriedPseudoCount, VariationSummary, choose_likelihood, no_exposure,
};
pub use gvi::{GviSummary, KernelNetwork, MeanKind, PriorSummary, TriedWay};
pub use header::{ContinuedRows, FitRecord, FitSummary, ProcessRecord, TableSource};
pub(crate) use noise::{read as read_noise, write as write_noise};
pub use parts::{CategoryCovariance, KernelParts, WarpCurve};
pub use predict::PredictOptions;
pub use prepared::{FitStage, Prepared};
pub use prepared_table::PreparedTable;
pub(crate) use rates::expected_seconds;
pub use scalable::{
    EXACT_POSTERIOR_ROWS, EXACT_ROWS, EvidenceSearchSummary, ScalablePlan, ScalableSummary, Solver,
};

pub use streaming::{
    BadRow, LearnedNoise, ParsedRows, RunningScore, ScoreSums, StreamCounts, StreamInput, StreamModel,
    StreamOutput, StreamPlan, StreamState, StreamedRows, TakenRows,
};
pub use target_transform::{TransformChoice, TriedTransform};
pub(crate) use target_transform::{at_the_fit, no_image};

use crate::calibration::Calibration;
use crate::inputs::TableInputs;
use crate::output::{GaussianOutput, NoiseProcess, Output};
use crate::{Hyperparameter, Intervals, ModelError, Predictor, TrainingRows};
use std::sync::Arc;

/// A process on a table, as the parts of its [`Model`](crate::Model).
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// Rows of a table as standardised inputs.
    pub(crate) inputs: &'a TableInputs,
    /// What predicts the latent functions, in standard units.
    pub(crate) predictor: &'a Arc<dyn Predictor>,
    /// What is observed of them.
    pub(crate) output: &'a Output,
    /// What rows that it was judged on say of its predictions.
    pub(crate) calibration: &'a Calibration,
    /// Not known once rows of a stream were learned.
    pub(crate) training: &'a TrainingRows,
    /// How it came about.
    pub(crate) record: &'a ProcessRecord,
}

impl<'a> Process<'a> {
    /// What it reads.
    pub fn inputs(&self) -> &'a TableInputs {
        self.inputs
    }

    /// What is observed of its functions.
    pub fn output(&self) -> &'a Output {
        self.output
    }

    /// How it came about.
    pub fn record(&self) -> &'a ProcessRecord {
        self.record
    }

    /// What stands in its file besides arrays.
    pub fn header(&self) -> TableSource {
        let (inputs, output, record) = (self.inputs.clone(), self.output.clone(), self.record.clone());
        TableSource { inputs, output, record }
    }

    /// Which rows it was trained on; not known once rows of a stream were learned.
    pub fn training(&self) -> &'a TrainingRows {
        self.training
    }

    /// How wide intervals of observations are, where they were recalibrated.
    pub fn intervals(&self) -> Option<Intervals> {
        self.calibration.intervals().pop().flatten()
    }

    /// What predicts the functions, in standard units.
    pub fn predictor(&self) -> &'a dyn Predictor {
        &**self.predictor
    }

    /// Its output, where that is numbers with Gaussian noise.
    ///
    /// # Errors
    /// [`ModelError::Usage`] for other models.
    pub(super) fn numbers(&self) -> Result<&'a GaussianOutput, ModelError> {
        self.output.gaussian().ok_or_else(|| {
            ModelError::Usage(
                "this is of numbers with Gaussian noise, and the model is of another likelihood: ask for its predictive distributions".into(),
            )
        })
    }

    /// What predicts the noise of places, where that was learned.
    fn noise_of_places(&self) -> Option<&'a NoiseProcess> {
        self.output.gaussian()?.process.as_deref()
    }
}
