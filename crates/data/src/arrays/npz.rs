//! NPZ: archives of named arrays; and the one entry for NumPy's files.

use super::array::NumericArray;
use super::npy;
use super::source::Source;
use crate::read::{guarded, split_array_name};
use crate::{DataError, ReadOptions};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use zip::ZipArchive;

/// What an archive begins with: a member, or its end where it has none.
pub(super) const MARKS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// Reads the array in `path`: `.npy`, gzipped or not; `FILE.npz:NAME`; or `FILE.npz` with a single array.
///
/// Every integer type, half precision and truth values are converted without loss (see [`crate::ArrayValues`]); Fortran order is
/// turned into row-major, which takes the memory once more. Arrays without values are read: they have a dimension of 0.
///
/// # Errors
/// [`DataError::Read`], [`DataError::Malformed`], [`DataError::DeclaredTooLarge`] beyond the limit (8 GiB in
/// [`ReadOptions::for_arrays`]), [`DataError::WhichArray`] or [`DataError::NoSuchArray`] with the arrays that there are, and
/// [`DataError::UnknownArrayFormat`] for a file that is not NumPy's.
pub fn read_array(path: &Path, options: &ReadOptions) -> Result<NumericArray, DataError> {
    let (file, name) = split_array_name(path);
    if let Some(name) = name {
        return read_member(&file, Some(&name), options);
    }
    let mut source = Source::open(&file, options)?;
    if looks_like_npz(&source) {
        return read_member(&file, None, options);
    }
    if looks_like_npy(&source) {
        return npy::read(&mut source);
    }
    let reason = "it begins neither as NPY nor as NPZ does".into();
    Err(DataError::UnknownArrayFormat { path: file, reason })
}

/// Whether the content is NPY, or claims to be by its name.
pub(super) fn looks_like_npy(source: &Source<'_>) -> bool {
    let name = file_name(&source.path);
    source.head.starts_with(npy::MARK) || name.ends_with(".npy") || name.ends_with(".npy.gz")
}

/// Whether the content is an archive, or claims to be by its name.
pub(super) fn looks_like_npz(source: &Source<'_>) -> bool {
    let archive = MARKS.iter().any(|mark| source.head.starts_with(mark));
    (archive && !source.is_packed()) || file_name(&source.path).ends_with(".npz")
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

/// Reads all the arrays of an NPZ file, in its order. The limit holds for all of them together; members that are not `.npy` are
/// passed over.
///
/// # Errors
/// As [`read_array`]; a broken array is named as `FILE.npz:NAME`.
pub fn read_arrays(path: &Path, options: &ReadOptions) -> Result<Vec<(String, NumericArray)>, DataError> {
    guarded(path, "NPZ", || {
        let mut archive = open(path)?;
        let mut budget = options.memory_limit;
        let mut arrays = Vec::new();
        for (index, name) in members(&mut archive, path)? {
            let array = member(&mut archive, index, &name, path, budget)?;
            budget = budget.saturating_sub(array.values().memory());
            arrays.push((name, array));
        }
        Ok(arrays)
    })
}

fn read_member(path: &Path, wanted: Option<&str>, options: &ReadOptions) -> Result<NumericArray, DataError> {
    guarded(path, "NPZ", || {
        let mut archive = open(path)?;
        let mut members = members(&mut archive, path)?;
        let known = |members: Vec<(usize, String)>| members.into_iter().map(|(_, name)| name).collect();
        let found = match wanted {
            Some(wanted) => members.iter().position(|(_, name)| name == wanted),
            None => (members.len() == 1).then_some(0),
        };
        let Some(found) = found else {
            return Err(match wanted {
                Some(wanted) => {
                    DataError::NoSuchArray { path: path.into(), wanted: wanted.into(), known: known(members) }
                }
                None => DataError::WhichArray { path: path.into(), known: known(members) },
            });
        };
        let (index, name) = members.swap_remove(found);
        member(&mut archive, index, &name, path, options.memory_limit)
    })
}

type Archive = ZipArchive<BufReader<File>>;

fn open(path: &Path) -> Result<Archive, DataError> {
    let file = File::open(path).map_err(|source| DataError::Read { path: path.into(), source })?;
    ZipArchive::new(BufReader::new(file)).map_err(|e| malformed(path, e))
}

/// Index and name, without `.npy`, of each array.
fn members(archive: &mut Archive, path: &Path) -> Result<Vec<(usize, String)>, DataError> {
    let mut members = Vec::new();
    for (index, name) in archive.file_names().enumerate() {
        let name = name.map_err(|e| malformed(path, e))?;
        if let Some(stem) = name.strip_suffix(".npy") {
            members.push((index, stem.to_string()));
        }
    }
    Ok(members)
}

fn member(
    archive: &mut Archive,
    index: usize,
    name: &str,
    path: &Path,
    limit: u64,
) -> Result<NumericArray, DataError> {
    let member_path = PathBuf::from(format!("{}:{name}", path.display()));
    let entry = archive.by_index(index).map_err(|e| malformed(&member_path, e))?;
    npy::read(&mut Source::member(entry, member_path, limit)?)
}

fn malformed(path: &Path, error: zip::result::ZipError) -> DataError {
    DataError::Malformed { path: path.into(), format: "NPZ", reason: error.to_string() }
}
