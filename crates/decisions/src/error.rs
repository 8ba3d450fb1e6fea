//! Why a decision could not be made.

use crate::labelling::LabelPlan;
use posterior_data::DataError;
use posterior_gp::GpError;
use posterior_kernels::KernelTextError;
use posterior_likelihoods::LikelihoodError;
use posterior_notes::fixes::MEMORY;
use std::path::PathBuf;

/// Why a decision could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecisionError {
    /// The axes.
    #[error("{0}")]
    Space(String),
    /// The kernel's text.
    #[error(transparent)]
    Kernel(#[from] KernelTextError),
    /// The process.
    #[error(transparent)]
    Gp(#[from] GpError),
    /// Labels as Gaussian observations, and predictions of labels.
    #[error(transparent)]
    Likelihood(#[from] LikelihoodError),
    /// More memory than may be used.
    #[error(
        "{plan}, above the limit of {:.1} MB: allow more ({}), or take fewer rows, features or classes",
        *limit as f64 / 1e6, MEMORY
    )]
    LabelMemory {
        /// What would be needed.
        plan: Box<LabelPlan>,
        /// Bytes that may be used.
        limit: u64,
    },
    /// Another process holds the lock of the state, or it cannot be locked.
    #[error(transparent)]
    Data(#[from] DataError),
    /// What was told.
    #[error("{0}")]
    Tell(String),
    /// What was asked for.
    #[error("{0}")]
    Ask(String),
    /// The state file cannot be read or written.
    #[error("cannot {what} the state {path}: {reason}")]
    File {
        /// Read or write.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The state file is something else, or damaged.
    #[error("{path} is not a usable state: {reason}. Restore the file, or start another")]
    State {
        /// The file.
        path: PathBuf,
        /// How it shows.
        reason: String,
    },
    /// An observer said stop.
    #[error("interrupted; nothing was asked for")]
    Interrupted,
}
