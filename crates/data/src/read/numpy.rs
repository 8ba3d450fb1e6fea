//! NPY arrays of one or two dimensions, and NPZ archives of them.

use super::npy_header::{NpyHeader, header_extent, truncated};
use super::plan::{NUMBER, ReadPlan};
use super::{ReadOptions, read_limited};
use crate::{Column, DataError, Table};
use std::path::Path;

pub(super) fn parse_npy(bytes: &[u8], path: &Path, options: &ReadOptions) -> Result<Table, DataError> {
    let array = Array::parse(bytes, &ReadPlan::new(path, options, bytes.len() as u64))?;
    let names = (1..=array.columns).map(|i| format!("x{i}")).collect::<Vec<_>>();
    Ok(array.into_table(path, names))
}

/// One named array; or the only one; or several with equal rows, side by side (`NAME` for a vector, `NAME1`, `NAME2`, ... for
/// the columns of a matrix).
pub(super) fn parse_npz(
    bytes: &[u8],
    path: &Path,
    wanted: Option<&str>,
    options: &ReadOptions,
) -> Result<Table, DataError> {
    let malformed = |reason: String| DataError::Malformed { path: path.into(), format: "NPZ", reason };
    let mut archive =
        zip::ZipArchive::new(std::io::Cursor::new(bytes)).map_err(|e| malformed(e.to_string()))?;
    let names: Vec<String> = archive
        .file_names()
        .map(|name| name.map(|n| n.into_owned()).map_err(|e| malformed(e.to_string())))
        .collect::<Result<_, _>>()?;
    let stems: Vec<String> = names.iter().map(|n| n.trim_end_matches(".npy").to_string()).collect();
    if let Some(wanted) = wanted
        && !stems.iter().any(|s| s == wanted)
    {
        return Err(DataError::NoSuchColumn {
            path: path.into(),
            missing: vec![wanted.into()],
            known: stems,
        });
    }
    let mut columns: Vec<Column> = Vec::new();
    let mut cells = 0;
    for (file, stem) in names.iter().zip(&stems).filter(|(_, s)| wanted.is_none_or(|w| w == *s)) {
        let entry = archive.by_name(file).map_err(|e| malformed(e.to_string()))?;
        let budget = options.memory_limit.saturating_sub(bytes.len() as u64 + cells);
        let content = read_limited(entry, path, "NPZ", &ReadOptions::limited(budget))?;
        let there = bytes.len() as u64 + content.len() as u64 + cells;
        let array = Array::parse(&content, &ReadPlan::new(path, options, there))?;
        cells += NUMBER * array.values.len() as u64;
        let single = array.columns == 1;
        let names =
            (1..=array.columns).map(|i| if single { stem.clone() } else { format!("{stem}{i}") }).collect();
        let table = array.into_table(path, names);
        if columns.first().is_some_and(|c| c.len() != table.rows()) {
            return Err(malformed(format!(
                "its arrays have different numbers of rows; name one: {}:NAME with NAME one of {}",
                path.display(),
                stems.join(", ")
            )));
        }
        columns.extend(table.columns);
    }
    Ok(Table::new(path, columns))
}

struct Array {
    rows: usize,
    columns: usize,
    /// Row-major, or column-major in Fortran order.
    values: Vec<f64>,
    fortran_order: bool,
}

impl Array {
    fn parse(bytes: &[u8], plan: &ReadPlan<'_>) -> Result<Self, DataError> {
        let path = plan.path;
        let malformed = |reason: String| DataError::Malformed { path: path.into(), format: "NPY", reason };
        let (start, length) = header_extent(bytes).map_err(malformed)?;
        let rest = bytes.get(start..).unwrap_or_default();
        let (text, rest) = rest.split_at_checked(length).ok_or_else(|| malformed(truncated()))?;
        let header = NpyHeader::parse(text).map_err(malformed)?;
        let (rows, columns) = match header.shape[..] {
            [n] => (n, 1),
            [n, d] => (n, d),
            _ => return Err(malformed(format!("an array of {} dimensions is no table", header.shape.len()))),
        };
        let code = header.code();
        let size = code.get(1..).and_then(|size| size.parse::<usize>().ok()).unwrap_or(1).max(1);
        let held = |count: usize| Some((count, rest.get(..count.checked_mul(size)?)?));
        let Some((count, data)) = rows.checked_mul(columns).and_then(held) else {
            return Err(malformed(format!(
                "it declares {rows} x {columns} numbers, but has only {} bytes",
                bytes.len()
            )));
        };
        // As they are decoded, and as columns.
        plan.check(rows, columns, 2 * NUMBER * count as u64)?;
        macro_rules! widened {
            ($type:ty, $convert:expr) => {{
                let (chunks, _) = data.as_chunks();
                let value =
                    if header.is_big_endian() { <$type>::from_be_bytes } else { <$type>::from_le_bytes };
                chunks.iter().map(|bytes| $convert(value(*bytes))).collect()
            }};
        }
        let values: Vec<f64> = match code {
            "f8" => widened!(f64, f64::from),
            "f4" => widened!(f32, f64::from),
            "f2" => widened!(half::f16, f64::from),
            "i8" => widened!(i64, |v| v as f64),
            "i4" => widened!(i32, f64::from),
            "i2" => widened!(i16, f64::from),
            "i1" => widened!(i8, f64::from),
            "u8" => widened!(u64, |v| v as f64),
            "u4" => widened!(u32, f64::from),
            "u2" => widened!(u16, f64::from),
            "u1" => widened!(u8, f64::from),
            "b1" => {
                if let Some(i) = data.iter().position(|&v| v > 1) {
                    let reason = format!("value {} is a truth value that is neither 0 nor 1", i + 1);
                    return Err(malformed(reason));
                }
                widened!(u8, f64::from)
            }
            _ => {
                let element = header.element();
                return Err(malformed(format!("elements of type {element} are not numbers that are read")));
            }
        };
        Ok(Self { rows, columns, values, fortran_order: header.fortran_order })
    }

    fn into_table(self, path: &Path, names: Vec<String>) -> Table {
        let (n, d) = (self.rows, self.columns);
        let at = |i: usize, j: usize| if self.fortran_order { j * n + i } else { i * d + j };
        let column = |(j, name)| Column::numeric(name, (0..n).map(|i| self.values[at(i, j)]).collect());
        Table::new(path, names.into_iter().enumerate().map(column).collect())
    }
}
