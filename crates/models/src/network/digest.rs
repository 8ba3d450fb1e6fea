//! Which files a network learned from, whatever they are called.

use posterior_data::split_part_name;
use posterior_store::file_digest;
use std::path::{Path, PathBuf};

/// SHA-256 of a file's bytes; of the archive, where `archive.npz:array` names a part of one.
pub(crate) fn digest(path: &Path) -> std::io::Result<String> {
    file_digest(&container(path))
}

/// Digests of several files in order; empty where one cannot be read, so that it equals no other list.
pub(crate) fn digests<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Vec<String> {
    paths.map(|p| digest(p)).collect::<Result<_, _>>().unwrap_or_default()
}

/// Whether this names a part of an archive, whose digest says nothing about the part.
pub(crate) fn is_part(path: &Path) -> bool {
    container(path) != path
}

/// The file that holds an array.
fn container(path: &Path) -> PathBuf {
    if path.exists() { path.into() } else { split_part_name(path).0 }
}
