//! Which files a network learned from, whatever they are called.

use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};

/// SHA-256 of a file's bytes, in hexadecimal; of the archive, where `archive.npz:array` names a part of one.
pub(crate) fn file_digest(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(container(path))?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Digests of several files in order; empty where one cannot be read, so that it equals no other list.
pub(crate) fn digests<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Vec<String> {
    paths.map(|p| file_digest(p)).collect::<Result<_, _>>().unwrap_or_default()
}

/// The file that holds an array.
fn container(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    match text.rfind(".npz:") {
        Some(at) if !path.exists() => PathBuf::from(&text[..at + 4]),
        _ => path.into(),
    }
}
