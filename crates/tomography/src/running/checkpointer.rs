//! One checkpoint file.

use crate::TomographyError;
use posterior_optim::Signal;
use posterior_store::{Checkpoint, Identity, StoreError, Tensors, to_value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time until the first writing and between later ones, so that they cost nothing beside the work.
const AFTER: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(15)];

/// What every checkpoint of tomography says it is.
const METHOD: &str = "tomography checkpoint";

/// What the user is told where a checkpoint belongs to something else.
const REMEDY: &str = "use another --checkpoint, or remove the file to begin anew";

/// The small part of a state.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Facts {
    facts: Value,
}

/// Where a state is kept between runs; None keeps nothing.
#[derive(Debug, Default)]
pub struct Checkpointer {
    file: Option<(PathBuf, Identity)>,
    last: Option<Instant>,
    written: bool,
}

impl Checkpointer {
    /// That keeps nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// In a file, for a request known by all that its result depends on.
    pub fn in_file(path: &Path, identity: Identity) -> Self {
        Self { file: Some((path.into(), identity)), ..Self::default() }
    }

    /// The directions of a preconditioner, in a file of their own: they are large, and need not be written again with everything that changes. It goes when this one does.
    pub fn directions(&self) -> Self {
        match &self.file {
            Some((path, identity)) => Self::in_file(&directions_beside(path), identity.clone()),
            None => Self::none(),
        }
    }

    /// What an earlier run of the same request left, if anything.
    ///
    /// # Errors
    /// [`TomographyError::Store`]: a checkpoint of something else, with what differs; damaged files.
    pub fn earlier<S: DeserializeOwned>(&self) -> Result<Option<(S, Tensors)>, TomographyError> {
        let Some((path, identity)) = self.file.as_ref().filter(|(path, _)| path.exists()) else {
            return Ok(None);
        };
        let (state, tensors) = Checkpoint::<Facts>::read(path, METHOD, identity, REMEDY)?;
        let facts = serde_json::from_value(state.facts).map_err(|e| tensors.corrupt(e))?;
        Ok(Some((facts, tensors)))
    }

    /// Offers a state after a step: it is made and written where the last writing is some time ago.
    ///
    /// # Errors
    /// [`TomographyError::Store`] when it cannot be written.
    pub fn offer<S: Serialize>(
        &mut self,
        state: impl FnOnce() -> (S, Tensors),
    ) -> Result<(), TomographyError> {
        let last = *self.last.get_or_insert_with(Instant::now);
        if self.file.is_none() || last.elapsed() < AFTER[usize::from(self.written)] {
            return Ok(());
        }
        self.keep(state)
    }

    /// Writes the state now: before an end, after a part that took long.
    ///
    /// # Errors
    /// As [`Self::offer`].
    pub fn keep<S: Serialize>(
        &mut self,
        state: impl FnOnce() -> (S, Tensors),
    ) -> Result<(), TomographyError> {
        let Some((path, identity)) = &self.file else { return Ok(()) };
        let (facts, tensors) = state();
        let facts = to_value(&facts).map_err(StoreError::from)?;
        let checkpoint =
            Checkpoint { method: METHOD.into(), identity: identity.clone(), state: Facts { facts } };
        checkpoint.write(tensors, path)?;
        (self.last, self.written) = (Some(Instant::now()), true);
        Ok(())
    }

    /// Offers a state in the middle of a loop, or writes it now where somebody stops; what fails ends the loop, and waits in `failed`.
    pub fn offer_or_keep<S: Serialize>(
        &mut self,
        signal: Signal,
        state: impl FnOnce() -> (S, Tensors),
        failed: &mut Option<TomographyError>,
    ) -> Signal {
        let written = if signal == Signal::Stop { self.keep(state) } else { self.offer(state) };
        match written {
            Ok(()) => signal,
            Err(error) => {
                *failed = Some(error);
                Signal::Stop
            }
        }
    }

    /// Removes the file and the directions beside it: the work is done.
    pub fn finish(self) {
        if let Some((path, _)) = self.file {
            // What is left over does no harm: the same request ends at once.
            let _ = std::fs::remove_file(directions_beside(&path));
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Where directions are kept.
fn directions_beside(path: &Path) -> PathBuf {
    let mut own = path.as_os_str().to_owned();
    own.push(".directions");
    own.into()
}
