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

/// Of a text and rows of numbers that come one after the other.
#[derive(Clone, Debug)]
pub struct RowsDigest {
    hash: Sha256,
    rows: u64,
}

impl RowsDigest {
    /// Of this text and no rows so far.
    pub fn new(text: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
        Self { hash, rows: 0 }
    }

    /// Adds a row.
    pub fn add(&mut self, row: impl IntoIterator<Item = f64>) {
        let mut width = 0u64;
        for value in row {
            self.hash.update(value.to_bits().to_le_bytes());
            width += 1;
        }
        self.hash.update(width.to_le_bytes());
        self.rows += 1;
    }

    /// In hexadecimal.
    pub fn finish(mut self) -> String {
        self.hash.update(self.rows.to_le_bytes());
        hexadecimal(self.hash)
    }
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
