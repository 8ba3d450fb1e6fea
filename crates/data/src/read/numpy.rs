//! NPY arrays of one or two dimensions, and NPZ archives of them.

use super::plan::{NUMBER, ReadPlan};
use super::{ReadOptions, read_limited};
use crate::{Column, DataError, Table};
use npyz::{DType, NpyFile, Order, TypeChar};
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
    /// Row-major or column-major, as `order` says.
    values: Vec<f64>,
    order: Order,
}

impl Array {
    fn parse(bytes: &[u8], plan: &ReadPlan<'_>) -> Result<Self, DataError> {
        let path = plan.path;
        let malformed = |reason: String| DataError::Malformed { path: path.into(), format: "NPY", reason };
        check_header_length(bytes).map_err(malformed)?;
        let mut rest = bytes;
        let file = NpyFile::new(&mut rest).map_err(|e| malformed(e.to_string()))?;
        let shape = file.shape().to_vec();
        let (rows, columns) = match shape[..] {
            [n] => (n, 1),
            [n, d] => (n, d),
            _ => return Err(malformed(format!("an array of {} dimensions is no table", shape.len()))),
        };
        let DType::Plain(element) = file.dtype() else {
            return Err(malformed("structured arrays are not read".into()));
        };
        let (kind, size) = (element.type_char(), element.size_field());
        let header = file.header().clone();
        let order = header.order();
        let needed = rows.checked_mul(columns).and_then(|n| n.checked_mul(size.max(1)));
        if needed.is_none_or(|n| n > bytes.len() as u64) {
            return Err(malformed(format!(
                "it declares {rows} x {columns} numbers, but has only {} bytes",
                bytes.len()
            )));
        }
        // As they are decoded, and as columns.
        let cells = 2 * NUMBER * rows.saturating_mul(columns).min(u64::MAX / 32);
        plan.check(rows as usize, columns as usize, cells)?;
        macro_rules! widened {
            ($type:ty, $convert:expr) => {
                file.into_vec::<$type>()
                    .map_err(|e| malformed(e.to_string()))?
                    .into_iter()
                    .map($convert)
                    .collect()
            };
        }
        let values: Vec<f64> = match (kind, size) {
            (TypeChar::Float, 8) => file.into_vec::<f64>().map_err(|e| malformed(e.to_string()))?,
            (TypeChar::Float, 4) => widened!(f32, f64::from),
            (TypeChar::Int, 8) => widened!(i64, |v| v as f64),
            (TypeChar::Int, 4) => widened!(i32, f64::from),
            (TypeChar::Int, 2) => widened!(i16, f64::from),
            (TypeChar::Int, 1) => widened!(i8, f64::from),
            (TypeChar::Uint, 8) => widened!(u64, |v| v as f64),
            (TypeChar::Uint, 4) => widened!(u32, f64::from),
            (TypeChar::Uint, 2) => widened!(u16, f64::from),
            (TypeChar::Uint, 1) => widened!(u8, f64::from),
            (TypeChar::Bool, 1) => widened!(bool, |v| f64::from(u8::from(v))),
            _ => return Err(malformed(format!("elements of type {element} are not numbers that are read"))),
        };
        Ok(Self { rows: rows as usize, columns: columns as usize, values, order })
    }

    fn into_table(self, path: &Path, names: Vec<String>) -> Table {
        let (n, d) = (self.rows, self.columns);
        let at = |i: usize, j: usize| if self.order == Order::C { i * d + j } else { j * n + i };
        let column = |(j, name)| Column::numeric(name, (0..n).map(|i| self.values[at(i, j)]).collect());
        Table::new(path, names.into_iter().enumerate().map(column).collect())
    }
}

/// The declared length of the header against the bytes that follow, so that no decoder allocates for it.
fn check_header_length(bytes: &[u8]) -> Result<(), String> {
    let (start, length) = header_extent(bytes)?;
    let header = bytes.get(start..start.saturating_add(length)).ok_or_else(truncated)?;
    check_nesting(header)
}

/// Where the header's text begins and how many bytes it has, from the first 12 bytes of a file (10 of version 1).
pub(crate) fn header_extent(prelude: &[u8]) -> Result<(usize, usize), String> {
    if !prelude.starts_with(b"\x93NUMPY") {
        return Err("it does not begin with the NPY mark".into());
    }
    let version = *prelude.get(6).ok_or_else(truncated)?;
    let length = prelude.get(8..).unwrap_or_default();
    match version {
        1 => Ok((10, u16::from_le_bytes(*length.first_chunk().ok_or_else(truncated)?) as usize)),
        2 | 3 => Ok((12, u32::from_le_bytes(*length.first_chunk().ok_or_else(truncated)?) as usize)),
        other => Err(format!("format version {other} is not known")),
    }
}

/// Longest header text that is parsed.
pub(crate) const LONGEST_HEADER: usize = 1 << 16;

/// Nesting costs a decoder stack; a header that describes a plain array has next to none.
pub(crate) fn check_nesting(header: &[u8]) -> Result<(), String> {
    if header.len() > LONGEST_HEADER || header.iter().filter(|b| b"([{".contains(b)).count() > 16 {
        return Err("its header is longer or more deeply nested than that of an array of numbers".into());
    }
    Ok(())
}

fn truncated() -> String {
    "it is cut off within its header".into()
}
