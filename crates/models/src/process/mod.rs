//! The **model**: a fitted process with all that is needed to use it - roles of columns, standardisation, hyperparameters,
//! posterior factors - and its file.
//!
//! | file | what |
//! |---|---|
//! | `header` | what the JSON says |
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
//! | [`GeneralisedModel`] | the same under any likelihood: classes, counts, outliers |
//! | `panel`, `maps` | the posterior over a grid, for one input; the prior's covariance, predictions over the plane |
//! | `parts` | what a kernel is made of: covariances of categories, curves of columns, shares of a sum |
//! | `file` | model to container and back, bit for bit |
//! | [`Effects`], `effective` | what columns do: importance, partial dependence; for numbers with Gaussian noise |
//! | `continued` | further rows for a saved exact process, its hyperparameters kept |
//! | `compress` | a model of many rows, carried by fewer points |
//! | `left_out` | a table's training rows, each predicted from all others |
//! | `joint` | the covariance of the function at several rows |
//! | `scalable` | methods for large tables |
//! | `deep` | learned features |
//! | `gvi` | means and covariances that are free of each other |
//! | `streaming` | a fitted process that goes on learning ([`StreamModel`]) |

mod asked;
mod check;
mod compress;
mod continued;
mod deep;
mod describe;
mod effective;
mod effects;
mod file;
mod file_rows;
mod fit;
mod generalised;
mod gvi;
mod header;
mod joint;
mod left_out;
mod maps;
mod noise;
mod panel;
mod parts;
mod predict;
mod predict_plan;
mod prepared;
mod prepared_table;
mod rates;
mod row_weights;
mod scalable;
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
    BoundSummary, BoundedPseudoCount, ChosenLikelihood, FeatureSummary, GeneralisedHeader, GeneralisedModel,
    GeneralisedSummary, InferencePlan, LabelCheck, LabelScores, ModeSummary, Observed, PlainProcess,
    StandInSummary, Target, TriedInference, TriedPseudoCount, VariationSummary, choose_likelihood,
    no_exposure,
};
pub use gvi::{GviSummary, KernelNetwork, MeanKind, PriorSummary, TriedWay};
pub use header::{ContinuedRows, FitSummary, Header};
pub(crate) use noise::NoiseProcess;
pub use noise::NoiseSummary;
pub use parts::{CategoryCovariance, KernelParts, WarpCurve};
pub use predict::{PredictOptions, Predictions};
pub use prepared::{FitStage, Prepared};
pub use prepared_table::PreparedTable;
pub(crate) use rates::expected_seconds;
pub use scalable::{
    Chosen, EXACT_POSTERIOR_ROWS, EXACT_ROWS, EvidenceSearchSummary, ScalablePlan, ScalableSummary, Solver,
    choose,
};

pub use streaming::{
    BadRow, LearnedNoise, ParsedRows, RunningScore, ScoreSums, StreamCounts, StreamInput, StreamModel,
    StreamOutput, StreamPlan, StreamState, StreamedRows, TakenRows,
};
pub(crate) use target_transform::{AT_THE_FIT, no_image};
pub use target_transform::{TransformChoice, TriedTransform};

use crate::calibration::Calibration;
use crate::{Hyperparameter, Intervals, ModelError, Predictor, TrainingRows};
use std::sync::Arc;

/// A fitted model.
#[derive(Clone, Debug)]
pub struct ProcessModel {
    header: Header,
    predictor: Arc<dyn Predictor>,
    /// Not known once rows of a stream were learned.
    training: TrainingRows,
    /// What rows that it was judged on say of its intervals.
    calibration: Calibration,
    /// How far observations scatter at each place, where that was learned.
    noise: Option<Arc<NoiseProcess>>,
}

impl ProcessModel {
    /// What it is and how it came about.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Which rows it was trained on; not known once rows of a stream were learned.
    pub fn training(&self) -> &TrainingRows {
        &self.training
    }

    /// How wide intervals of observations are, where they were recalibrated.
    pub fn intervals(&self) -> Option<Intervals> {
        self.calibration.intervals().pop().flatten()
    }

    /// What predicts the function, in standard units.
    pub fn predictor(&self) -> &dyn Predictor {
        &*self.predictor
    }

    /// The predictor without what is known of columns and units.
    pub fn into_predictor(self) -> Arc<dyn Predictor> {
        self.predictor
    }
}
