//! **A state that several processes change**: one JSON file, written in one step after each change and changed under its lock, one process after the other, each on what the others left.

use crate::DecisionError;
use posterior_data::{DataError, FileLock, LockHolder};
use posterior_store::{Links, create_checked, write_json};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
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
    /// [`DecisionError::File`], also for a state that could not be read again, such as one with a number that is not finite; an older file is untouched.
    fn save(&self, path: &Path) -> Result<(), DecisionError> {
        let fill = |out: &mut BufWriter<&File>| {
            write_json(out, self)?;
            out.write_all(b"\n")
        };
        let check = |mut file: &File| {
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            Self::parse(&text).map(drop).map_err(|reason| {
                std::io::Error::other(format!("what was to be kept cannot be read again: {reason}"))
            })
        };
        create_checked(path, Links::Follow, fill, check).map_err(|e| DecisionError::File {
            what: "write",
            path: path.into(),
            reason: e.to_string(),
        })
    }

    /// The state of a file's text, checked.
    ///
    /// # Errors
    /// What is wrong with it.
    fn parse(text: &[u8]) -> Result<Self, String> {
        let found: Self = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        found.check().map(|()| found)
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
        Self::parse(&text).map_err(state)
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Serialize, Deserialize)]
    struct State {
        values: Vec<f64>,
        best: Option<f64>,
    }

    impl SharedState for State {
        fn check(&self) -> Result<(), String> {
            if self.values.len() < 3 { Ok(()) } else { Err("too many values".into()) }
        }
    }

    #[test]
    fn a_state_that_cannot_be_read_again_leaves_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.json");
        State { values: vec![1.0], best: None }.save(&path).unwrap();
        let before = std::fs::read(&path).unwrap();
        for (state, problem) in [
            (State { values: vec![1.0, f64::INFINITY], best: None }, "`values[1]` is Infinity"),
            (State { values: vec![1.0], best: Some(f64::NAN) }, "`best` is NaN"),
            (State { values: vec![1.0; 3], best: None }, "cannot be read again: too many values"),
        ] {
            let text = state.save(&path).unwrap_err().to_string();
            assert!(text.contains(problem) && text.contains("s.json"), "{text}");
            assert_eq!(std::fs::read(&path).unwrap(), before);
        }
    }
}
