//! A matrix of numbers from any file that holds one: the input of a linear head on features that were computed elsewhere, such as
//! the last hidden layer of a large network.
//!
//! NumPy's files are read as arrays and keep their element type, so that half a million rows of single precision take half of what
//! a table would; text and Parquet files are read as tables.

use crate::arrays::same_type;
use crate::limits::check_memory;
use crate::read::split_part_name;
use crate::schema::numbers;
use crate::{ArrayValues, Column, DataError, NumericArray, ReadOptions, Table, read_array, read_table};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What is read from a file of features.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureOptions {
    /// Limit for reading. While a table or a part of an array is turned into the matrix, both are in memory.
    pub read: ReadOptions,
    /// The column of labels or targets, by name or number (from 1); all columns are features when absent.
    pub label_column: Option<String>,
    /// The columns of features, in this order, by name or number; all but the labels when absent.
    pub columns: Option<Vec<String>>,
}

impl Default for FeatureOptions {
    /// 8 GiB, every column a feature.
    fn default() -> Self {
        Self { read: ReadOptions::for_arrays(), label_column: None, columns: None }
    }
}

/// Features of N rows, ready for a linear head.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureMatrix {
    /// The file, for messages.
    pub source: PathBuf,
    /// N x P, finite. Arrays keep their element type, tables are in double precision.
    pub values: NumericArray,
    /// A name for each of the P columns; `x1`, `x2`, ... for arrays, which have none.
    pub column_names: Vec<String>,
    /// The column of labels or targets (N), finite, if there is one.
    pub labels: Option<Vec<f64>>,
}

impl FeatureMatrix {
    /// The labels as classes, counted from 0; nothing without labels.
    ///
    /// # Errors
    /// [`DataError::Label`] for one that is negative, not whole or above 4294967295.
    pub fn classes(&self) -> Result<Option<Vec<u32>>, DataError> {
        let class = |(row, value): (usize, &f64)| {
            let class = *value as u32;
            // The conversion saturates and drops fractions, so that what was changed is not equal.
            if f64::from(class) == *value {
                return Ok(class);
            }
            let reason = format!("the label is {value}; classes are whole numbers, counted from 0");
            Err(DataError::Label { path: self.source.clone(), record: row + 1, reason })
        };
        self.labels.as_ref().map(|labels| labels.iter().enumerate().map(class).collect()).transpose()
    }
}

/// Reads a matrix with a row for each example: `.npy` (also `.gz`) or an array of an `.npz` (`FILE.npz:NAME`) of two dimensions,
/// or of one, which is a single column; or a table as [`read_table`] reads it of which all columns that are used are numeric.
///
/// # Errors
/// As [`read_array`] and [`read_table`] for the file; [`DataError::NoRows`] and [`DataError::NothingLeft`] without rows or columns
/// of features; [`DataError::NoSuchColumn`] with all columns that are missing; [`DataError::Role`] for a column used twice;
/// [`DataError::NotANumber`] for text; [`DataError::DoNotMatch`] for an array of more dimensions; [`DataError::NotFinite`] for
/// missing cells (NaN) and infinities.
pub fn read_feature_matrix(path: &Path, options: &FeatureOptions) -> Result<FeatureMatrix, DataError> {
    let (file, _) = split_part_name(path);
    let name = file.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let is_array = [".npy", ".npy.gz", ".npz"].iter().any(|ending| name.ends_with(ending));
    if is_array {
        return from_array(path, read_array(path, &options.read)?, options);
    }
    from_table(read_table(path, &options.read)?, options)
}

/// Which of the columns are features and which is the label, counted from 0.
struct Roles {
    features: Vec<usize>,
    label: Option<usize>,
    /// Whether each column is either.
    used: Vec<bool>,
}

fn roles(path: &Path, names: &[String], options: &FeatureOptions) -> Result<Roles, DataError> {
    // A name first, a number from 1 if there is no such name, as for tables.
    let by_name: HashMap<&str, usize> =
        names.iter().enumerate().rev().map(|(j, name)| (name.as_str(), j)).collect();
    let find = |wanted: &String| {
        let number =
            || wanted.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).filter(|n| *n < names.len());
        by_name.get(wanted.as_str()).copied().or_else(number)
    };
    let asked = options.columns.iter().flatten().chain(&options.label_column);
    let missing: Vec<String> = asked.filter(|name| find(name).is_none()).cloned().collect();
    if !missing.is_empty() {
        return Err(DataError::NoSuchColumn { path: path.into(), missing, known: names.to_vec() });
    }
    let label = options.label_column.as_ref().and_then(find);
    let features: Vec<usize> = match &options.columns {
        Some(columns) => columns.iter().filter_map(find).collect(),
        None => (0..names.len()).filter(|j| Some(*j) != label).collect(),
    };
    let mut used = vec![false; names.len()];
    for j in features.iter().copied().chain(label) {
        if std::mem::replace(&mut used[j], true) {
            let role = "used twice; name every column once, as a feature or as the label".into();
            return Err(DataError::Role { column: names[j].clone(), role });
        }
    }
    if features.is_empty() {
        let why = "taking out the label; there must be at least one column of features".into();
        return Err(DataError::NothingLeft { path: path.into(), why });
    }
    Ok(Roles { features, label, used })
}

fn from_array(
    path: &Path,
    array: NumericArray,
    options: &FeatureOptions,
) -> Result<FeatureMatrix, DataError> {
    let (rows, columns) = match *array.shape() {
        [rows] => (rows, 1),
        [rows, columns] => (rows, columns),
        _ => {
            let reason = format!(
                "its shape is {:?}, but features are a matrix with a row for each example; reshape it to two dimensions",
                array.shape()
            );
            return Err(DataError::DoNotMatch { path: path.into(), reason });
        }
    };
    if rows == 0 {
        return Err(DataError::NoRows { path: path.into() });
    }
    if columns == 0 {
        let why = "reading an array without columns".into();
        return Err(DataError::NothingLeft { path: path.into(), why });
    }
    check_memory("column names", &[columns], 64)?;
    let names: Vec<String> = (1..=columns).map(|j| format!("x{j}")).collect();
    let Roles { features, label, used } = roles(path, &names, options)?;
    // Only what is used must be finite; positions are those in the file.
    let whole = label.is_none() && features.iter().copied().eq(0..columns);
    if whole {
        array.require_finite(path)?;
    } else if let Some((index, value)) =
        array.values().find(|index, value| !value.is_finite() && used[index % columns])
    {
        return Err(DataError::NotFinite { path: path.into(), position: array.position(index), value });
    }
    let labels = label.map(|label| (0..rows).map(|i| array.values().at(i * columns + label)).collect());
    let values = if whole {
        array.into_parts().1
    } else {
        let pick = |index: usize| index / features.len() * columns + features[index % features.len()];
        let count = rows * features.len();
        same_type!(array.values(), values => (0..count).map(|i| values[pick(i)]).collect())
    };
    let values = NumericArray::new(vec![rows, features.len()], values)?;
    let column_names = features.iter().map(|j| names[*j].clone()).collect();
    Ok(FeatureMatrix { source: path.into(), values, column_names, labels })
}

fn from_table(table: Table, options: &FeatureOptions) -> Result<FeatureMatrix, DataError> {
    let names = table.names();
    // What names the rows is no feature.
    let own = FeatureOptions {
        columns: options.columns.clone().or_else(|| named_features(&table, options)),
        ..options.clone()
    };
    let Roles { features, label, .. } = roles(&table.source, &names, &own)?;
    let numbers = |j: usize| finite_numbers(&table, &table.columns[j], j);
    let labels = label.map(|j| numbers(j).map(<[f64]>::to_vec)).transpose()?;
    let columns = features.iter().map(|j| numbers(*j)).collect::<Result<Vec<&[f64]>, _>>()?;
    let rows = table.rows();
    let values = (0..rows).flat_map(|i| columns.iter().map(move |column| column[i])).collect();
    let values = NumericArray::new(vec![rows, columns.len()], ArrayValues::F64(values))?;
    let column_names = features.iter().map(|j| names[*j].clone()).collect();
    Ok(FeatureMatrix { source: table.source, values, column_names, labels })
}

/// All columns but the index and the label, where there is an index.
fn named_features(table: &Table, options: &FeatureOptions) -> Option<Vec<String>> {
    let index = table.index.as_ref()?;
    let label =
        options.label_column.as_ref().and_then(|name| table.column(name).ok()).map(|column| &column.name);
    Some(table.names().into_iter().filter(|name| name != index && Some(name) != label).collect())
}

/// The finite numbers of a column, which is the `index`-th of its table.
fn finite_numbers<'a>(table: &Table, column: &'a Column, index: usize) -> Result<&'a [f64], DataError> {
    let values = numbers(table, column)?;
    match values.iter().position(|v| !v.is_finite()) {
        Some(row) => {
            let position = vec![row, index];
            Err(DataError::NotFinite { path: table.source.clone(), position, value: values[row] })
        }
        None => Ok(values),
    }
}
