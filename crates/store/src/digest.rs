//! Fingerprints of files and numbers by SHA-256, in hexadecimal: which data something was made from, whatever they are called.

use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;

/// Of a file's bytes. Memory: 64 kB.
///
/// # Errors
/// When it cannot be read.
pub fn file_digest(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(hash)),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// Of a text and lists of numbers, each with its length.
pub fn numbers_digest(text: &str, numbers: &[&[f64]]) -> String {
    let mut hash = Sha256::new();
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text.as_bytes());
    for values in numbers {
        hash.update((values.len() as u64).to_le_bytes());
        values.iter().for_each(|v| hash.update(v.to_bits().to_le_bytes()));
    }
    hexadecimal(hash)
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
