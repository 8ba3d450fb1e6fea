//! What can be wrong with a file.

use crate::LockHolder;
use std::path::PathBuf;

/// Why a file could not be written, read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be read at all.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It cannot be written; an older file is untouched, and nothing has been left behind.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{path} is not a posterior model: {reason}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// How it shows.
        reason: String,
    },
    /// It is damaged.
    #[error("{path} is damaged: {reason}. Make it again or restore the file")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// How it shows.
        reason: String,
    },
    /// It has another format version.
    #[error(
        "{path} has format {found}, written by release {writer}; this release reads format {supported}: use that release, or make the file again"
    )]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The one that this release reads.
        supported: u32,
        /// The release that wrote it.
        writer: String,
    },
    /// A checkpoint of other work.
    #[error("{path} is the checkpoint of other work, which differs in {}: {remedy}", differs.join(", "))]
    OtherCheckpoint {
        /// The file.
        path: PathBuf,
        /// Names of settings, and the data.
        differs: Vec<String>,
        /// What to do.
        remedy: String,
    },
    /// A kernel of the program's own that no registered reader can make again.
    #[error(
        "no reader is registered for the kernel `{kernel}`, which a model file names: call `kernels::register` first"
    )]
    NoReader {
        /// Its name.
        kernel: String,
    },
    /// A state that text cannot hold.
    #[error("the state of the work cannot be kept: {0}")]
    State(#[from] serde_json::Error),
    /// Another process holds the lock of a file.
    #[error(
        "{path} is in use by {}; it was waited for {:.1} s: try again when that has ended, or wait longer",
        holder.as_ref().map_or_else(|| "another process".to_string(), ToString::to_string), waited.as_secs_f64()
    )]
    Locked {
        /// The file that the lock is for.
        path: PathBuf,
        /// Who holds the lock, where that can be read.
        holder: Option<Box<LockHolder>>,
        /// How long this process waited.
        waited: std::time::Duration,
    },
}
