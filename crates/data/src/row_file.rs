//! Rows of numbers in a file without a name, for tables that do not fit memory.
//!
//! Each row is as many doubles as every other, one behind the other, so that any row is read at its own place. The file has no name: whatever ends the program, the system gives its room back. What is
//! read are the bits that were written.

use crate::DataError;
use posterior_linalg::parallel;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes of a number.
const NUMBER: usize = size_of::<f64>();

/// Rows that one thread reads behind each other.
const ROWS: usize = 64;

/// Numbers that a pass over all rows holds.
const BLOCK: usize = 1 << 20;

/// Rows in a file. Any number of threads may read.
#[derive(Debug)]
pub struct RowFile {
    file: File,
    folder: PathBuf,
    width: usize,
    rows: usize,
}

/// A [`RowFile`] that is being written.
#[derive(Debug)]
pub struct RowWriter {
    out: BufWriter<File>,
    folder: PathBuf,
    width: usize,
    rows: usize,
}

/// Bytes of so many rows of so many numbers.
pub fn row_bytes(rows: usize, width: usize) -> u64 {
    (rows as u64).saturating_mul(width as u64).saturating_mul(NUMBER as u64)
}

/// Bytes that a folder has room for; None where the system does not say.
fn room_in(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let found = rustix::fs::statvfs(folder).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

impl RowWriter {
    /// A file for `rows` rows (at most) of `width` numbers in a folder, where there is room for them.
    ///
    /// # Errors
    /// [`DataError::NoRoom`]; [`DataError::Scratch`] when the folder cannot be written to.
    pub fn create(folder: &Path, rows: usize, width: usize) -> Result<Self, DataError> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let bytes = row_bytes(rows, width);
        if let Some(room) = room_in(folder).filter(|room| *room < bytes) {
            return Err(DataError::NoRoom { path: folder.into(), bytes, room });
        }
        let file = posterior_store::unnamed(folder).map_err(|e| failed(folder, e))?;
        Ok(Self { out: BufWriter::with_capacity(1 << 20, file), folder: folder.into(), width, rows: 0 })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`DataError::Scratch`].
    ///
    /// # Panics
    /// When it has another width.
    pub fn push(&mut self, row: impl IntoIterator<Item = f64>) -> Result<(), DataError> {
        let mut count = 0;
        for value in row {
            self.out.write_all(&value.to_le_bytes()).map_err(|e| failed(&self.folder, e))?;
            count += 1;
        }
        assert_eq!(count, self.width, "rows have one width");
        self.rows += 1;
        Ok(())
    }

    /// The rows, to be read.
    ///
    /// # Errors
    /// [`DataError::Scratch`].
    pub fn finish(self) -> Result<RowFile, DataError> {
        let Self { out, folder, width, rows } = self;
        let file = out.into_inner().map_err(|e| failed(&folder, e.into_error()))?;
        Ok(RowFile { file, folder, width, rows })
    }
}

impl RowFile {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        row_bytes(self.rows, self.width)
    }

    /// Consecutive rows, one behind the other.
    ///
    /// # Errors
    /// [`DataError::Scratch`].
    pub fn read(&self, rows: Range<usize>) -> Result<Vec<f64>, DataError> {
        let mut bytes = vec![0; rows.len() * self.width * NUMBER];
        self.read_at(&mut bytes, rows.start)?;
        Ok(numbers(&bytes).collect())
    }

    /// The given rows in the given order, one behind the other; they are read in the order of the file, by all threads.
    ///
    /// # Errors
    /// [`DataError::Scratch`], for rows that there are not as well.
    pub fn gather(&self, rows: &[usize]) -> Result<Vec<f64>, DataError> {
        let mut places: Vec<usize> = (0..rows.len()).collect();
        places.sort_unstable_by_key(|&place| rows[place]);
        let read = |places: &[usize]| -> Result<Vec<f64>, DataError> {
            let mut bytes = vec![0; self.width * NUMBER];
            let mut out = Vec::with_capacity(places.len() * self.width);
            for &place in places {
                self.read_at(&mut bytes, rows[place])?;
                out.extend(numbers(&bytes));
            }
            Ok(out)
        };
        let parts: Vec<&[usize]> = places.chunks(ROWS).collect();
        let found = parallel::map(parts.len(), 1, |i| read(parts[i]));
        let found: Vec<Vec<f64>> = found.into_iter().collect::<Result<_, _>>()?;
        let mut out = vec![0.0; rows.len() * self.width];
        let rows_found = found.iter().flat_map(|part| part.chunks_exact(self.width.max(1)));
        for (&place, row) in places.iter().zip(rows_found) {
            out[place * self.width..][..self.width].copy_from_slice(row);
        }
        Ok(out)
    }

    /// Shows every row once, in order. Memory: 8 MB.
    ///
    /// # Errors
    /// [`DataError::Scratch`].
    pub fn each(&self, mut see: impl FnMut(usize, &[f64])) -> Result<(), DataError> {
        let at_once = (BLOCK / self.width.max(1)).max(1);
        let mut start = 0;
        while start < self.rows {
            let end = self.rows.min(start + at_once);
            let block = self.read(start..end)?;
            (start..end).zip(block.chunks_exact(self.width.max(1))).for_each(|(i, row)| see(i, row));
            start = end;
        }
        Ok(())
    }

    fn read_at(&self, out: &mut [u8], row: usize) -> Result<(), DataError> {
        let place = row_bytes(row, self.width);
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_exact_at(&self.file, out, place);
        #[cfg(windows)]
        let read = {
            let mut done = 0;
            loop {
                if done == out.len() {
                    break Ok(());
                }
                match std::os::windows::fs::FileExt::seek_read(
                    &self.file,
                    &mut out[done..],
                    place + done as u64,
                ) {
                    Ok(0) => break Err(std::io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => done += count,
                    Err(error) => break Err(error),
                }
            }
        };
        read.map_err(|e| failed(&self.folder, e))
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes.as_chunks::<NUMBER>().0.iter().map(|b| f64::from_le_bytes(*b))
}

fn failed(folder: &Path, source: std::io::Error) -> DataError {
    DataError::Scratch { path: folder.into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_bit_for_bit_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let value = |i: usize, j: usize| match (i, j) {
            (3, 1) => -0.0,
            (4, 2) => f64::MIN_POSITIVE / 3.0,
            _ => (i as f64 + 0.1) / (j as f64 - 7.3),
        };
        let mut writer = RowWriter::create(folder.path(), 1000, 3).unwrap();
        (0..1000).for_each(|i| writer.push((0..3).map(|j| value(i, j))).unwrap());
        let file = writer.finish().unwrap();
        assert_eq!((file.rows(), file.width(), file.bytes()), (1000, 3, 24_000));
        let same = |found: &[f64], rows: &[usize]| {
            let expected: Vec<u64> =
                rows.iter().flat_map(|&i| (0..3).map(move |j| value(i, j).to_bits())).collect();
            assert_eq!(found.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), expected);
        };
        same(&file.read(2..700).unwrap(), &(2..700).collect::<Vec<_>>());
        let order: Vec<usize> = (0..500).map(|k| k * 613 % 1000).chain([4, 4, 999]).collect();
        same(&file.gather(&order).unwrap(), &order);
        let mut seen = Vec::new();
        file.each(|i, row| seen.extend([i as f64].iter().chain(row).copied())).unwrap();
        assert_eq!(seen.len(), 4000);
        assert!(seen.chunks(4).enumerate().all(|(i, row)| row[0] == i as f64 && row[1] == value(i, 0)));
        // A row that is not there is an error, and the folder shows no file.
        assert!(matches!(file.gather(&[1000]), Err(DataError::Scratch { .. })));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_has_no_room_is_refused_before_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let failed = RowWriter::create(folder.path(), usize::MAX / 16, 2).unwrap_err().to_string();
        assert!(failed.contains("has room for") && failed.contains("from disk"), "{failed}");
        let absent = RowWriter::create(&folder.path().join("absent"), 10, 2).unwrap_err();
        assert!(matches!(absent, DataError::Scratch { .. }), "{absent}");
    }
}
