//! States that several processes change, one after the other: `optimize`, `label` and `stream`.

use super::remarks;
use crate::args::{Cli, LockArgs};
use crate::interrupt::Interrupt;
use crate::output::Failure;
use posterior::data::LockHolder;
use posterior::decisions::{SharedState, Waiting};
use posterior::notes::fixes::FORCE;
use std::path::Path;
use std::time::Duration;

/// After so long a person is told who holds the lock.
const PATIENCE: Duration = Duration::from_secs(2);

/// Does something with the wait for a lock that this command line asks for.
pub(super) fn with_waiting<T>(
    cli: &Cli,
    lock: &LockArgs,
    interrupt: &Interrupt,
    work: impl FnOnce(Waiting<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let seconds = lock.lock_timeout;
    if !(0.0..1e9).contains(&seconds) {
        return Err(Failure::usage(format!(
            "--lock-timeout is {seconds}; it must be a number of seconds from 0"
        )));
    }
    let remarks = remarks(cli);
    let mut said = false;
    let mut observer = |holder: Option<&LockHolder>, waited: Duration| {
        if waited > PATIENCE && !said {
            said = true;
            let holder = holder.map_or_else(|| "another process".into(), ToString::to_string);
            remarks.say(format!("waiting for at most {seconds} s: the state is in use by {holder}"));
        }
        !interrupt.requested()
    };
    work(Waiting { limit: Duration::from_secs_f64(seconds), observer: &mut observer })
}

/// Reads the state, changes and writes it under its lock.
pub(super) fn update<S: SharedState, T>(
    cli: &Cli,
    state: &Path,
    lock: &LockArgs,
    interrupt: &Interrupt,
    change: impl FnOnce(&mut S) -> Result<T, Failure>,
) -> Result<(T, S), Failure> {
    with_waiting(cli, lock, interrupt, |waiting| S::update(state, waiting, change))
}

/// Writes a first state; one that exists is replaced only where `force` asks for it.
pub(super) fn begin<S: SharedState>(
    cli: &Cli,
    (path, force): (&Path, bool),
    lock: &LockArgs,
    state: &S,
) -> Result<(), Failure> {
    with_waiting(cli, lock, &Interrupt::default(), |waiting| {
        let _lock = S::lock(path, waiting)?;
        // Another process may have begun meanwhile.
        refuse_existing(path, force)?;
        Ok(state.save(path)?)
    })
}

/// Refuses to begin a state that exists.
pub(super) fn refuse_existing(path: &Path, force: bool) -> Result<(), Failure> {
    if path.exists() && !force {
        return Err(Failure::usage(format!(
            "{} exists; go on with `ask` and `tell`, or begin anew with {FORCE}",
            path.display()
        )));
    }
    Ok(())
}
