//! One process at a time: a lock that the operating system gives back when its holder ends, however it ends.

use crate::{StoreError, open_regular, resolved};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, Read, Result as IoResult, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often a lock that somebody holds is tried again.
const PAUSE: Duration = Duration::from_millis(10);

/// Longest description of a holder that is read.
const LONGEST: u64 = 1 << 14;

/// What stands before a description of a holder. A file that begins with anything else is not ours, and is left as it is.
const MARK: &[u8] = b"posterior lock\n";

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// Its process.
    pub process: u32,
    /// Its command line.
    pub command: String,
    /// Seconds since 1970 when it took the lock.
    pub since: u64,
}

impl LockHolder {
    fn this_process() -> Self {
        let command = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>();
        let command = command.join(" ").chars().take(300).collect();
        Self { process: std::process::id(), command, since: now() }
    }
}

impl std::fmt::Display for LockHolder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { process, command, since } = self;
        write!(out, "process {process} (`{command}`), since {} s", now().saturating_sub(*since))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// An exclusive lock on a file, held through a small file beside it (`.NAME.PURPOSE`) until this value is dropped or the process ends: what a killed
/// process leaves behind blocks nobody. The lock is advisory: it binds those who ask for it. The small file stays, so that all see one and the same.
///
/// The small file must be an ordinary one with one name: no symbolic link is followed, and nothing is written to a file with content of somebody else.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

impl FileLock {
    /// Takes the lock, waiting for at most `limit` while another process holds it. `waiting` is told who that is and how long this has waited so far, every few
    /// milliseconds, and says whether to go on.
    ///
    /// # Errors
    /// [`StoreError::Locked`] with the holder when the time is over or `waiting` says no; [`StoreError::Write`] where the small file cannot be made, something else
    /// is in its place, or the file system has no locks.
    pub fn acquire(
        path: &Path,
        purpose: &str,
        limit: Duration,
        waiting: &mut dyn FnMut(Option<&LockHolder>, Duration) -> bool,
    ) -> Result<Self, StoreError> {
        let place = Self::place(path, purpose)?;
        let failed = |source| StoreError::Write { path: place.clone(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = open_regular(&place, &options).map_err(failed)?;
        require_one_name(&file).map_err(failed)?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) => {}
            }
            let (holder, waited) = (holder(&mut file), started.elapsed());
            if waited >= limit || !waiting(holder.as_ref(), waited) {
                return Err(StoreError::Locked { path: path.into(), holder: holder.map(Box::new), waited });
            }
            std::thread::sleep(PAUSE.min(limit - waited));
        }
        require_own(&mut file).map_err(failed)?;
        // For messages only: a lock whose holder is not named is a lock still.
        let _ = describe(&mut file);
        Ok(Self { file })
    }

    /// The small file: beside the file itself, whatever links lead to it.
    fn place(path: &Path, purpose: &str) -> Result<PathBuf, StoreError> {
        let target = resolved(path).map_err(|source| StoreError::Write { path: path.into(), source })?;
        let mut name = std::ffi::OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(".");
        name.push(purpose);
        Ok(target.with_file_name(name))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}

/// Refuses a file that has another name elsewhere, where somebody may keep something else by it.
fn require_one_name(file: &File) -> IoResult<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let names = file.metadata()?.nlink();
        if names > 1 {
            return Err(Error::other(format!(
                "the file has {names} names (hard links), and a lock has one: remove this one"
            )));
        }
    }
    let _ = file;
    Ok(())
}

/// Refuses a file with content that is no description of a holder, also of one that was killed while writing it.
fn require_own(file: &mut File) -> IoResult<()> {
    let mut head = Vec::new();
    file.rewind()?;
    (&*file).take(MARK.len() as u64).read_to_end(&mut head)?;
    if MARK.starts_with(&head) && file.metadata()?.len() <= LONGEST {
        return Ok(());
    }
    Err(Error::other("the file has content that is no lock of posterior: move it away, or remove it"))
}

/// Only for files that [`require_own`] has let through.
fn describe(file: &mut File) -> IoResult<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&[MARK, &serde_json::to_vec(&LockHolder::this_process())?].concat())
}

fn holder(file: &mut File) -> Option<LockHolder> {
    let mut text = Vec::new();
    file.rewind().ok()?;
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(text.strip_prefix(MARK)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once_names_its_holder_and_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.json");
        let wait = |limit| FileLock::acquire(&path, "lock", Duration::from_millis(limit), &mut |_, _| true);
        let held = wait(0).unwrap();
        let mut seen = None;
        let refused = FileLock::acquire(&path, "lock", Duration::from_secs(60), &mut |holder, _| {
            seen = holder.cloned();
            false
        });
        assert_eq!(seen.unwrap().process, std::process::id());
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("s.json") && text.contains(&format!("process {}", std::process::id())),
            "{text}"
        );
        assert!(wait(30).is_err());
        // Another purpose is another lock.
        FileLock::acquire(&path, "run", Duration::ZERO, &mut |_, _| true).unwrap();
        drop(held);
        wait(0).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_to_a_file_share_its_lock() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("s.json"), folder.path().join("link.json"));
        std::fs::write(&path, "").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let wait = |path| FileLock::acquire(path, "lock", Duration::ZERO, &mut |_, _| true);
        let _held = wait(&link).unwrap();
        assert!(wait(&path).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_lock_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let precious = || std::fs::write(at("precious"), "precious").unwrap();
        let pipe =
            || assert!(std::process::Command::new("mkfifo").arg(at(".s.lock")).status().unwrap().success());
        let places: [(&str, &dyn Fn()); 5] = [
            ("a symbolic link", &|| std::os::unix::fs::symlink("precious", at(".s.lock")).unwrap()),
            ("2 names", &|| std::fs::hard_link(at("precious"), at(".s.lock")).unwrap()),
            ("no lock of posterior", &|| std::fs::write(at(".s.lock"), "precious").unwrap()),
            ("a folder", &|| std::fs::create_dir(at(".s.lock")).unwrap()),
            ("a pipe", &pipe),
        ];
        for (what, place) in places {
            precious();
            place();
            let error = FileLock::acquire(&at("s"), "lock", Duration::ZERO, &mut |_, _| true).unwrap_err();
            assert!(error.to_string().contains(what) && error.to_string().contains("remove"), "{error}");
            assert_eq!(std::fs::read(at("precious")).unwrap(), b"precious", "{what}");
            if what.starts_with("no lock") {
                assert_eq!(std::fs::read(at(".s.lock")).unwrap(), b"precious");
            }
            std::fs::remove_file(at(".s.lock")).or_else(|_| std::fs::remove_dir(at(".s.lock"))).unwrap();
        }
        // What a process leaves that is killed while it writes who it is.
        std::fs::write(at(".s.lock"), &MARK[..4]).unwrap();
        drop(FileLock::acquire(&at("s"), "lock", Duration::ZERO, &mut |_, _| true).unwrap());
        assert_eq!(std::fs::metadata(at(".s.lock")).unwrap().len(), 0);
    }
}
