//! What can go wrong while training.

use crate::graph::NetworkError;
use thiserror::Error;

/// A training run that cannot start or go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The network and the data do not fit.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Loss and outputs or targets do not fit.
    #[error("{loss} loss: {problem}")]
    Loss {
        /// The loss.
        loss: &'static str,
        /// What does not fit, and what would.
        problem: String,
    },
    /// A setting out of range.
    #[error("{0}")]
    Setting(String),
    /// The loss is NaN or infinite.
    #[error(
        "the loss is not finite at step {step} (epoch {epoch}); the first layer with such values is {layer}: use a smaller learning rate, clip gradients, or check the data"
    )]
    NotFinite {
        /// Steps taken before.
        step: usize,
        /// Epoch, from 1.
        epoch: usize,
        /// Name of the layer, or what else went wrong first.
        layer: String,
    },
    /// A checkpoint that cannot be written or read, or belongs to another run.
    #[error("checkpoint {path}: {problem}")]
    Checkpoint {
        /// The file.
        path: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// What was to happen between two epochs failed.
    #[error(transparent)]
    Hook(Box<dyn std::error::Error + Send + Sync>),
}
