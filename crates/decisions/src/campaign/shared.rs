//! A state that several processes change: one after the other, each on what the others left.

use super::Campaign;
use crate::DecisionError;
use posterior_data::{DataError, FileLock, LockHolder};
use std::path::Path;
use std::time::Duration;

/// What a process does while another one holds the lock of a state.
pub struct Waiting<'a> {
    /// Longest time to wait.
    pub limit: Duration,
    /// Told every few milliseconds who holds the lock and how long this has waited; false ends the wait.
    pub observer: &'a mut dyn FnMut(Option<&LockHolder>, Duration) -> bool,
}

impl Campaign {
    /// Reads the state, changes it and writes it, all under its lock, so that of changes by several processes none is lost. An error of `change` leaves the
    /// file as it was. What `change` returns comes with the state as it was written.
    ///
    /// # Errors
    /// Those of `change`; [`DecisionError::Data`] with the lock's holder when the wait is over; as [`Campaign::load`] and [`Campaign::save`].
    pub fn update<T, E: From<DecisionError>>(
        path: &Path,
        waiting: Waiting<'_>,
        change: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<(T, Self), E> {
        if !path.exists() {
            // No lock for a state that is not there.
            Self::load(path)?;
        }
        let _lock = Self::lock(path, waiting)?;
        let mut campaign = Self::load(path)?;
        let result = change(&mut campaign)?;
        campaign.save(path)?;
        Ok((result, campaign))
    }

    /// The lock under which the state is changed, for a caller who does more than [`Campaign::update`].
    ///
    /// # Errors
    /// [`DecisionError::Data`] with the lock's holder.
    pub fn lock(path: &Path, waiting: Waiting<'_>) -> Result<FileLock, DecisionError> {
        Ok(FileLock::acquire(path, "lock", waiting.limit, waiting.observer).map_err(DataError::from)?)
    }

    /// The lock of a process that tries the points of the state: one at a time, or two would try the same points. It does not keep others from telling and asking.
    ///
    /// # Errors
    /// [`DecisionError::Data`] with the lock's holder, at once.
    pub fn lock_trials(path: &Path) -> Result<FileLock, DecisionError> {
        Ok(FileLock::acquire(path, "run", Duration::ZERO, &mut |_, _| false).map_err(DataError::from)?)
    }
}
