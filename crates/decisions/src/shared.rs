//! **A state that several processes change**: one JSON file, written in one step after each change and changed under its lock, one process after the other, each on what the others left.

use crate::DecisionError;
use posterior_data::{DataError, FileLock, LockHolder, create_atomically};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// Largest state that is read: a million trials of a hundred axes fit.
const LARGEST_FILE: u64 = 4 << 30;

/// What a process does while another one holds the lock of a state.
pub struct Waiting<'a> {
    /// Longest time to wait.
    pub limit: Duration,
    /// Told every few milliseconds who holds the lock and how long this has waited; false ends the wait.
    pub observer: &'a mut dyn FnMut(Option<&LockHolder>, Duration) -> bool,
}

/// A state in a file of its own.
pub trait SharedState: Serialize + DeserializeOwned {
    /// What does not fit together in a state that was read, such as one of another release.
    ///
    /// # Errors
    /// In words, for [`DecisionError::State`].
    fn check(&self) -> Result<(), String>;

    /// Writes the state in one step: after a crash the file holds the state before or after, never a part.
    ///
    /// # Errors
    /// [`DecisionError::File`]; an older file is untouched.
    fn save(&self, path: &Path) -> Result<(), DecisionError> {
        create_atomically(path, |out| {
            serde_json::to_writer(&mut *out, self)?;
            out.write_all(b"\n")
        })
        .map_err(|e| DecisionError::File {
            what: "write",
            path: path.into(),
            reason: e.to_string(),
        })
    }

    /// Reads and checks a state.
    ///
    /// # Errors
    /// [`DecisionError::File`], [`DecisionError::State`].
    fn load(path: &Path) -> Result<Self, DecisionError> {
        let failed = |e: std::io::Error| DecisionError::File {
            what: "read",
            path: path.into(),
            reason: e.to_string(),
        };
        let length = std::fs::metadata(path).map_err(failed)?.len();
        let state = |reason: String| DecisionError::State { path: path.into(), reason };
        if length > LARGEST_FILE {
            return Err(state(format!("it has {length} bytes")));
        }
        let text = std::fs::read(path).map_err(failed)?;
        let found: Self = serde_json::from_slice(&text).map_err(|e| state(e.to_string()))?;
        found.check().map_err(state)?;
        Ok(found)
    }

    /// Reads the state, changes it and writes it, all under its lock, so that of changes by several processes none is lost. An error of `change` leaves the
    /// file as it was. What `change` returns comes with the state as it was written.
    ///
    /// # Errors
    /// Those of `change`; [`DecisionError::Data`] with the lock's holder when the wait is over; as [`Self::load`] and [`Self::save`].
    fn update<T, E: From<DecisionError>>(
        path: &Path,
        waiting: Waiting<'_>,
        change: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<(T, Self), E> {
        if !path.exists() {
            // No lock for a state that is not there.
            Self::load(path)?;
        }
        let _lock = Self::lock(path, waiting)?;
        let mut state = Self::load(path)?;
        let result = change(&mut state)?;
        state.save(path)?;
        Ok((result, state))
    }

    /// The lock under which the state is changed, for a caller who does more than [`SharedState::update`].
    ///
    /// # Errors
    /// [`DecisionError::Data`] with the lock's holder.
    fn lock(path: &Path, waiting: Waiting<'_>) -> Result<FileLock, DecisionError> {
        Ok(FileLock::acquire(path, "lock", waiting.limit, waiting.observer).map_err(DataError::from)?)
    }
}
