//! One way to write a file: whole or not at all, where links lead, with the permissions that it should have.

use crate::StoreError;
use crate::regular::require_regular;
use std::fs::{File, Metadata};
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

/// Most symbolic links in a row that are followed, as in Linux.
const MOST_LINKS: usize = 40;

/// Where the bytes of a path go.
pub enum Target {
    /// To a file of this path, which exists or not; no link.
    File(PathBuf),
    /// To something that is no file: a pipe, a device, an open descriptor.
    Stream(PathBuf),
}

impl Target {
    /// Follows symbolic links, also to files that do not exist yet.
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let mut at = path.to_path_buf();
        for _ in 0..MOST_LINKS {
            if is_descriptor(&at) {
                return Ok(Self::Stream(at));
            }
            match std::fs::symlink_metadata(&at) {
                Ok(found) if found.is_symlink() => at = directory(&at).join(std::fs::read_link(&at)?),
                Ok(found) if !found.is_file() && !found.is_dir() => return Ok(Self::Stream(at)),
                _ => return Ok(Self::File(at)),
            }
        }
        Err(std::io::Error::other("it is a symbolic link in a circle"))
    }
}

/// The file that a path leads to through symbolic links; the path itself where it leads to none.
pub fn resolved(path: &Path) -> std::io::Result<PathBuf> {
    match Target::of(path)? {
        Target::File(at) | Target::Stream(at) => Ok(at),
    }
}

/// The folder that a file is in.
pub fn directory(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether a path names an open descriptor of this process, as `/dev/stdout` does in the end.
fn is_descriptor(path: &Path) -> bool {
    let folder = directory(path).to_string_lossy();
    let own = |rest: &str| rest == "self" || rest == "thread-self" || rest == std::process::id().to_string();
    cfg!(unix)
        && (folder == "/dev/fd"
            || folder.strip_prefix("/proc/").and_then(|f| f.strip_suffix("/fd")).is_some_and(own))
}

/// Writes a file through a hidden temporary one beside it, renamed when complete: readers see all of it or nothing, and an
/// error leaves an older file as it was. The older file's permissions are kept, a new one has those that the umask leaves; a symbolic link is followed and
/// stays; bytes for a pipe, a device or an open descriptor (`/dev/stdout`) go there directly.
///
/// # Errors
/// [`StoreError::Write`].
pub fn create_atomically(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> Result<(), StoreError> {
    create_checked(path, Links::Follow, fill, |_| Ok(()))
}

/// As [`create_atomically`] for a file whose name this program makes up, such as a journal or a checkpoint beside a model: a symbolic link in its place is replaced, not followed.
///
/// # Errors
/// [`StoreError::Write`], also where a folder, a pipe or a device is in its place.
pub fn replace_atomically(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> Result<(), StoreError> {
    create_checked(path, Links::Replace, fill, |_| Ok(()))
}

/// What is done about a symbolic link in the place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The file that it leads to is written: the user named the link.
    Follow,
    /// The link is replaced: nobody asked for it.
    Replace,
}

/// As [`create_atomically`]; before the temporary file takes the place of an older one, `check` reads it from its beginning and may refuse it. What goes to a pipe or a device is not
/// read again.
///
/// # Errors
/// [`StoreError::Write`]; an older file is untouched then.
pub fn create_checked(
    path: &Path,
    links: Links,
    fill: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
    check: impl FnOnce(&File) -> std::io::Result<()>,
) -> Result<(), StoreError> {
    let failed = |source| StoreError::Write { path: path.into(), source };
    let target = match links {
        Links::Follow => Target::of(path).map_err(failed)?,
        Links::Replace => {
            match std::fs::symlink_metadata(path) {
                Ok(found) if !found.is_symlink() => require_regular(&found).map_err(failed)?,
                _ => {}
            }
            Target::File(path.into())
        }
    };
    let at = match target {
        Target::File(at) => at,
        Target::Stream(at) => {
            let file = open_stream(&at).map_err(failed)?;
            let mut writer = BufWriter::new(&file);
            return fill(&mut writer).and_then(|()| writer.flush()).map_err(failed);
        }
    };
    let before = std::fs::symlink_metadata(&at).ok();
    let file = temporary(directory(&at)).map_err(failed)?;
    let mut writer = BufWriter::new(file.as_file());
    fill(&mut writer).and_then(|()| writer.flush()).map_err(failed)?;
    drop(writer);
    file.as_file().rewind().and_then(|()| check(file.as_file())).map_err(failed)?;
    if let Some(before) = before.filter(Metadata::is_file) {
        file.as_file().set_permissions(before.permissions()).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&at).map_err(|e| failed(e.error))?;
    sync_directory(directory(&at)).map_err(failed)
}

/// A hidden file in a folder that vanishes unless it is kept, with the permissions of an ordinary new file.
pub fn temporary(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".posterior-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Less what the umask takes away.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// A file without a name on the disk of a folder, to be written and read; the system gives its room back when it is closed, whatever closes it.
///
/// # Errors
/// When the folder is not there or cannot be written to.
pub fn unnamed(folder: &Path) -> std::io::Result<File> {
    tempfile::tempfile_in(folder)
}

/// Opens what is no file for writing. Descriptors are used as they are, at the place where they stand.
fn open_stream(path: &Path) -> std::io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let own = match path.file_name().and_then(|n| n.to_str()).filter(|_| is_descriptor(path)) {
            Some("1") => Some(std::io::stdout().as_fd().try_clone_to_owned()?),
            Some("2") => Some(std::io::stderr().as_fd().try_clone_to_owned()?),
            _ => None,
        };
        if let Some(own) = own {
            return Ok(own.into());
        }
    }
    let mut options = std::fs::OpenOptions::new();
    options.append(is_descriptor(path)).write(true);
    #[cfg(unix)]
    if !is_descriptor(path) {
        use std::os::unix::fs::OpenOptionsExt;
        // Links have been followed; one that has come since leads elsewhere.
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    }
    options.open(path)
}

/// Makes a rename last through a loss of power, where the system can.
fn sync_directory(folder: &Path) -> std::io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    use std::io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    match File::open(folder).and_then(|f| f.sync_all()) {
        // Folders that may be written but not listed; file systems without such a call.
        Err(e) if matches!(e.kind(), InvalidInput | PermissionDenied | Unsupported) => Ok(()),
        other => other,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn write(path: &Path, text: &str) {
        create_atomically(path, |out| out.write_all(text.as_bytes())).unwrap();
    }

    #[test]
    fn links_stay_and_their_targets_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("deep")).unwrap();
        symlink("deep/target", at("middle")).unwrap();
        symlink(at("middle"), at("link")).unwrap();
        // First to a file that does not exist yet.
        for text in ["one", "two"] {
            write(&at("link"), text);
            assert_eq!(std::fs::read_to_string(at("deep/target")).unwrap(), text);
            assert!(at("link").is_symlink() && at("middle").is_symlink());
        }
        symlink(at("circle"), at("circle")).unwrap();
        let error = create_atomically(&at("circle"), |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("circle"), "{error}");
    }

    #[test]
    fn a_link_in_the_place_of_an_own_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("precious"), "precious").unwrap();
        let replace = |path: &Path| replace_atomically(path, |out| out.write_all(b"own"));
        for target in ["precious", "missing"] {
            let own = at("own");
            let _ = std::fs::remove_file(&own);
            symlink(target, &own).unwrap();
            replace(&own).unwrap();
            assert!(!own.is_symlink());
            assert_eq!(std::fs::read_to_string(&own).unwrap(), "own");
        }
        assert_eq!(std::fs::read_to_string(at("precious")).unwrap(), "precious");
        assert!(!at("missing").exists());
        std::fs::create_dir(at("deep")).unwrap();
        let error = replace(&at("deep")).unwrap_err().to_string();
        assert!(error.contains("a folder is in its place"), "{error}");
    }

    #[test]
    fn what_is_refused_when_it_is_read_again_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write(&path, "old");
        let refuse = |mut file: &File| {
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            Err(std::io::Error::other(format!("`{text}` is wrong")))
        };
        let error = create_checked(&path, Links::Follow, |out| out.write_all(b"new"), refuse)
            .unwrap_err()
            .to_string();
        assert!(error.contains("`new` is wrong"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary file may remain");
    }

    #[test]
    fn permissions_are_those_of_the_older_file_or_of_the_umask() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&old, "").unwrap();
        std::fs::set_permissions(&old, PermissionsExt::from_mode(0o640)).unwrap();
        // What any other program would make here.
        std::fs::write(folder.path().join("ordinary"), "").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
        write(&old, "text");
        write(&new, "text");
        assert_eq!(mode(&old), 0o640);
        assert_eq!(mode(&new), mode(&folder.path().join("ordinary")));
    }

    #[test]
    fn pipes_are_written_to_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || std::fs::read_to_string(pipe).unwrap())
        };
        write(&pipe, "through the pipe");
        assert_eq!(reader.join().unwrap(), "through the pipe");
        assert!(matches!(Target::of(&pipe).unwrap(), Target::Stream(_)));
        write(Path::new("/dev/null"), "nothing");
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }
}
