//! Writing NPY and NPZ files in one atomic step.

use super::array::NumericArray;
use super::npy;
use crate::{DataError, StoreError, create_atomically};
use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// Writes the array as `.npy`: row-major, little-endian, the type as it is kept. It reads back to the same bits, here and in NumPy.
///
/// # Errors
/// [`StoreError::Write`]; an older file is then as it was.
pub fn write_npy(path: &Path, array: &NumericArray) -> Result<(), DataError> {
    Ok(create_atomically(path, |out| npy::write(array, out))?)
}

/// Writes the arrays as `.npz`, uncompressed as NumPy's `savez` does, in the order given. The same arrays make the same bytes.
///
/// # Errors
/// [`StoreError::Write`], also for two arrays of one name or an empty name; an older file is then as it was.
pub fn write_npz(path: &Path, arrays: &[(&str, &NumericArray)]) -> Result<(), DataError> {
    let mut names = HashSet::new();
    if let Some((name, _)) = arrays.iter().find(|(name, _)| name.is_empty() || !names.insert(*name)) {
        let what = if name.is_empty() {
            "an array has no name".into()
        } else {
            format!("two arrays are called `{name}`")
        };
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, what);
        return Err(StoreError::Write { path: path.into(), source }.into());
    }
    create_atomically(path, |out| {
        let mut archive = ZipWriter::new(out);
        for (name, array) in arrays {
            // Members near 4 GiB need the larger headers; the slack is for the NPY header.
            let large = array.values().memory() > u64::from(u32::MAX) - (1 << 20);
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .last_modified_time(DateTime::default())
                .large_file(large);
            archive.start_file(format!("{name}.npy"), options).map_err(std::io::Error::other)?;
            let mut member = BufWriter::with_capacity(1 << 16, &mut archive);
            npy::write(array, &mut member)?;
            member.flush()?;
        }
        archive.finish().map_err(std::io::Error::other)?;
        Ok(())
    })?;
    Ok(())
}
