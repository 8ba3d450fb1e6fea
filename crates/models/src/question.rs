//! What may be asked about some rows.

use crate::VarianceMethod;
use posterior_data::TextOptions;
use posterior_likelihoods::Integration;

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
    /// Quantiles of the noiseless function instead.
    pub latent: bool,
    /// How delimited text is read, where its files are read part by part.
    pub text: TextOptions,
    /// Only so many of the most probable classes.
    pub top: Option<usize>,
    /// Levels in (0, 1) of sets of classes that hold the true one so often.
    pub sets: Vec<f64>,
    /// Joint draws of the noiseless function.
    pub samples: usize,
    /// Whether the draws are an array of their own ([`Answer::draws`](crate::Answer::draws)) instead of columns; networks have them no other way.
    pub draws_apart: bool,
    /// The covariance of the noiseless function at all inputs, of all outputs.
    pub joint: bool,
    /// Rows are training rows, each predicted from all others (exact processes).
    pub leave_one_out: bool,
    /// Points in sets whose labels are scored jointly ([`Model::joint_scores`](crate::Model::joint_scores), networks).
    pub joint_points: Vec<usize>,
    /// Seed of the draws.
    pub seed: u64,
    /// How uncertainty becomes a prediction; as fitted where absent (networks).
    pub integration: Option<Integration>,
    /// Where variances come from; from samples where absent (processes).
    pub variances: Option<VarianceMethod>,
    /// Whether truths are wanted, to be scored against ([`Model::evaluate`](crate::Model::evaluate)).
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
