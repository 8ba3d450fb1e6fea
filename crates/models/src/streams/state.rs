//! The state of a stream: its model, how far it has come, and how good it was, in one file that is written whole after each batch.
//!
//! A state is a model file as well: whatever is asked of it is asked of the model as it is.

use super::model::StreamModel;
use super::score::RunningScore;
use crate::saved::FileHeader;
use posterior_data::arriving::RowFormat;
use posterior_store::{Container, StoreError};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What has become of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamCounts {
    /// Rows read: all of the following.
    pub rows: u64,
    /// Rows that the model was first fitted to, where the stream began without one: neither predicted nor scored.
    pub start: u64,
    /// Rows predicted, then learned.
    pub learned: u64,
    /// Rows without a target, which were predicted only.
    pub unlabelled: u64,
    /// Bad rows that were passed over.
    pub skipped: u64,
    /// Batches learned.
    pub batches: u64,
    /// Missing cells that were filled with the fit's means.
    pub filled_cells: u64,
    /// Cells of categories that training had not, taken as none of those that it had.
    pub unseen_categories: u64,
    /// Latent variances that rounding had made negative and that were raised to 0.
    pub clipped: u64,
}

/// Where rows come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamInput {
    /// How lines become rows.
    pub format: RowFormat,
    /// The file; none of standard input.
    pub file: Option<PathBuf>,
    /// Bytes of the file that have been read.
    pub offset: u64,
    /// Digest of the stream's first row, by which input that begins anew is known.
    pub first_row: String,
    /// Digest of the first row of the file that is read now, by which a file that was replaced is known.
    pub file_mark: String,
}

/// A file to which predictions are added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamOutput {
    /// The file.
    pub file: PathBuf,
    /// Bytes of it that belong to rows that are counted; more than these are written again.
    pub bytes: u64,
}

/// All of a stream.
#[derive(Clone, Debug)]
pub struct StreamState {
    /// The model as it is.
    pub model: StreamModel,
    /// What has become of rows.
    pub counts: StreamCounts,
    /// How good predictions were.
    pub score: RunningScore,
    /// Where rows come from.
    pub input: StreamInput,
    /// Where predictions go.
    pub output: Option<StreamOutput>,
}

/// What stands in a file besides the model.
#[derive(Serialize, Deserialize)]
struct StateHeader {
    most_inducing: usize,
    counts: StreamCounts,
    score: RunningScore,
    input: StreamInput,
    output: Option<StreamOutput>,
}

impl StreamState {
    /// Writes it in one step.
    ///
    /// # Errors
    /// [`StoreError::Write`]; the older state is untouched then.
    pub fn save(&self, path: &Path) -> Result<(), StoreError> {
        let own = StateHeader {
            most_inducing: self.model.most_inducing(),
            counts: self.counts,
            score: self.score,
            input: self.input.clone(),
            output: self.output.clone(),
        };
        let mut container = self.model.container()?;
        container.header.stream = Some(posterior_store::to_value(&own)?);
        container.write(path)
    }

    /// Reads it.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong with the file; [`StoreError::Corrupt`] for a file that is no state.
    pub fn load(path: &Path) -> Result<Self, StoreError> {
        let mut container = Container::<FileHeader>::read(path)?;
        let Some(own) = container.header.stream.take() else {
            return Err(container.tensors.corrupt("it is no state of `posterior stream`"));
        };
        let own: StateHeader = serde_json::from_value(own).map_err(|e| container.tensors.corrupt(e))?;
        let StateHeader { most_inducing, counts, score, input, output } = own;
        let model = StreamModel::restored(container, most_inducing)?;
        Ok(Self { model, counts, score, input, output })
    }
}
