//! Files that must be ordinary ones: opened under their own name, never through a symbolic link, and without waiting for a pipe.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, Result};
use std::path::Path;

/// Opens an ordinary file by its own name, or makes it where `options` create files. A symbolic link in its place is an error, and so is whatever else is no file: nothing behind a link
/// is changed, and no pipe is waited for.
///
/// # Errors
/// That of the system; what is in the file's place, and what to do.
pub fn open_regular(path: &Path, options: &OpenOptions) -> Result<File> {
    if let Ok(found) = std::fs::symlink_metadata(path) {
        // Opening a device can do something by itself.
        require_regular(&found)?;
    }
    let mut options = options.clone();
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    }
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
        options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    }
    let file = options.open(path)?;
    // Something else may have come there between the two.
    require_regular(&file.metadata()?)?;
    Ok(file)
}

/// Refuses what is no ordinary file.
pub(crate) fn require_regular(found: &Metadata) -> Result<()> {
    let kind = found.file_type();
    let what = if kind.is_symlink() || is_reparse_point(found) {
        "a symbolic link"
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_file() {
        return Ok(());
    } else {
        "a pipe, a socket or a device"
    };
    Err(Error::other(format!(
        "{what} is in its place, and this file must be an ordinary one: remove what is there, or choose another name"
    )))
}

#[cfg(windows)]
fn is_reparse_point(found: &Metadata) -> bool {
    use std::os::windows::fs::MetadataExt;
    const FILE_ATTRIBUTE_REPARSE_POINT: u32 = 0x400;
    found.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0
}

#[cfg(not(windows))]
fn is_reparse_point(_: &Metadata) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_ordinary_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        open_regular(&at("file"), &options).unwrap().write_all(b"text").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("missing", at("dangling")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for (name, what) in [
            ("link", "a symbolic link"),
            ("dangling", "a symbolic link"),
            ("folder", "a folder"),
            ("pipe", "a pipe"),
        ] {
            let error = open_regular(&at(name), &options).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("remove what is there"), "{name}: {error}");
        }
        assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "text");
        assert!(!at("missing").exists());
    }
}
