//! **The pool**: a table or an array whose rows may be labelled, read as models see it. Its state keeps what was learned about its columns and a digest of the file, not the rows: a file
//! that has changed since is refused, because rows are known by their numbers.

use crate::DecisionError;
use faer::Mat;
use posterior_data::{
    Column, DataError, Missing, MissingTarget, Notes, ReadOptions, Schema, Selection, Standardisation, Table,
    TextOptions, read_table, split_part_name,
};
use posterior_kernels::KernelExpression;
use posterior_notes::fixes::{FEATURES, LABEL_EXPORT, POOL};
use posterior_store::file_digest;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Which columns of a file are what.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct PoolColumns {
    /// How delimited text is read.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub text: TextOptions,
    /// Columns that the model looks at [default: all but --labels and --show]
    #[cfg_attr(feature = "clap", arg(long, value_name = "A,B", value_delimiter = ','))]
    pub features: Option<Vec<String>>,
    /// Columns that are categories, one 0/1 feature for each [default: columns of text]
    #[cfg_attr(
        feature = "clap",
        arg(long, visible_alias = "one-hot", value_name = "A,B", value_delimiter = ',')
    )]
    pub categories: Vec<String>,
    /// What to do with missing cells of features
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub missing: Missing,
    /// Column of labels that are known already, empty where they are not
    #[cfg_attr(feature = "clap", arg(long, value_name = "COL"))]
    pub labels: Option<String>,
    /// Columns to show with every row that is asked for [default: the features]
    #[cfg_attr(feature = "clap", arg(long, value_name = "A,B", value_delimiter = ','))]
    pub show: Vec<String>,
}

/// A pool as its state knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolSource {
    /// The file, as it was given; one array of several as `FILE.npz:NAME`.
    pub path: PathBuf,
    /// SHA-256 of its bytes.
    pub digest: String,
    /// How its text is read.
    #[serde(default, skip_serializing_if = "is_guessed")]
    pub text: TextOptions,
    /// Its rows.
    pub rows: usize,
    /// The features.
    pub schema: Schema,
    /// Their means and scales over the pool.
    pub standardisation: Standardisation,
    /// The column of labels, if it has one.
    pub labels: Option<String>,
    /// Columns to show.
    pub show: Vec<String>,
}

/// Whether nothing was said of a text.
fn is_guessed(text: &TextOptions) -> bool {
    *text == TextOptions::default()
}

/// A pool in memory.
#[derive(Clone, Debug)]
pub struct Pool {
    /// As it stands in the file.
    pub table: Table,
    /// Standardised features of the rows that can be asked for, n x D.
    pub inputs: Mat<f64>,
    /// The row of each in the table, counted from 0, ascending.
    pub rows: Vec<usize>,
    /// What was found in it.
    pub notes: Notes,
}

/// The file behind a path that may name an array in it.
fn file_of(path: &Path) -> PathBuf {
    split_part_name(path).0
}

fn digest(path: &Path) -> Result<String, DecisionError> {
    let file = file_of(path);
    file_digest(&file).map_err(|source| DataError::Read { path: file, source }.into())
}

impl Pool {
    /// Reads a file and learns what its columns are. `limit` bytes may be used for reading.
    ///
    /// # Errors
    /// [`DecisionError::Data`] naming the cell or the column; [`DecisionError::Ask`] for a pool of one row.
    pub fn open(
        path: &Path,
        columns: &PoolColumns,
        kernel: &KernelExpression,
        limit: u64,
    ) -> Result<(Self, PoolSource), DecisionError> {
        let digest = digest(path)?;
        let text = columns.text;
        let mut table = read_table(path, &ReadOptions { text, ..ReadOptions::limited(limit) })?;
        if table.rows() < 2 {
            return Err(DecisionError::Ask(format!(
                "{} has one row: there is nothing to choose among",
                path.display()
            )));
        }
        let resolve = |name: &String| table.column(name).map(|c| c.name.clone());
        let labels = columns.labels.as_ref().map(resolve).transpose()?;
        let show = columns.show.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
        let target = labels.clone().unwrap_or_else(|| unused_name(&table));
        let others =
            |name: &String| *name != target && !show.contains(name) && table.index.as_ref() != Some(name);
        if columns.features.as_ref().map_or_else(|| !table.names().iter().any(others), Vec::is_empty) {
            let why = format!("taking out labels and what is shown: name the {FEATURES}");
            return Err(DataError::NothingLeft { path: path.into(), why }.into());
        }
        if labels.is_none() {
            // Roles are those of tables that have a target; nothing reads this one.
            let rows = table.rows();
            table.columns.push(Column::numeric(target.clone(), vec![f64::NAN; rows]));
        }
        let selection = Selection {
            target: target.clone(),
            features: columns.features.clone(),
            exclude: if columns.features.is_none() { show.clone() } else { Vec::new() },
            categories: columns.categories.clone(),
            missing: columns.missing,
            // Rows without a label are what a pool is for.
            missing_target: MissingTarget::Error,
            ..Selection::default()
        };
        let all: Vec<usize> = (0..table.rows()).collect();
        let schema = Schema::learn(&table, &selection, &all)?;
        if labels.is_none() {
            table.columns.pop();
        }
        let mut extracted = schema.extract(&table, &all, false)?;
        extracted.notes.columns.clone_from(&schema.notes);
        let counts = kernel.count_columns(&schema.feature_names());
        schema.check_counts(&table.source, &counts, extracted.x.as_ref(), &extracted.rows)?;
        let none = vec![0.0; extracted.rows.len()];
        let standardisation = Standardisation::learn(extracted.x.as_ref(), &none)
            .keeping(&kernel.unscaled_columns(&schema.feature_names()))
            .keeping(&schema.indicators());
        let inputs = standardisation.features(extracted.x.as_ref());
        let rows = table.rows();
        let path = path.into();
        let source = PoolSource { path, digest, text, rows, schema, standardisation, labels, show };
        Ok((Self { table, inputs, rows: extracted.rows, notes: extracted.notes }, source))
    }

    /// Reads the file of a state again; `at` is where it lies now, if it was moved.
    ///
    /// # Errors
    /// [`DecisionError::Ask`] for a file that has changed; [`DecisionError::Data`] for one that cannot be read.
    pub fn read(source: &PoolSource, at: Option<&Path>, limit: u64) -> Result<Self, DecisionError> {
        let path = at.unwrap_or(&source.path);
        if !file_of(path).exists() {
            return Err(DecisionError::Ask(format!(
                "the pool {} is not there; if it was moved, say where it is ({POOL})",
                path.display()
            )));
        }
        if digest(path)? != source.digest {
            return Err(DecisionError::Ask(format!(
                "the pool {} has changed since the start, and rows are known by their numbers: restore the file, or begin another state with what is labelled so far (`{LABEL_EXPORT:#}`)",
                path.display()
            )));
        }
        let table = read_table(path, &ReadOptions { text: source.text, ..ReadOptions::limited(limit) })?;
        let all: Vec<usize> = (0..table.rows()).collect();
        let extracted = source.schema.extract(&table, &all, false)?;
        let inputs = source.standardisation.features(extracted.x.as_ref());
        Ok(Self { table, inputs, rows: extracted.rows, notes: extracted.notes })
    }

    /// The place among the rows that can be asked for of a row of the file, counted from 1.
    pub fn place(&self, row: usize) -> Option<usize> {
        self.rows.binary_search(&row.checked_sub(1)?).ok()
    }

    /// What a person is shown of a row of the file, counted from 1: names and cells.
    pub fn shown(&self, source: &PoolSource, row: usize) -> Vec<(String, String)> {
        let cell = |name: &String| {
            let column = self.table.column(name).ok()?;
            Some((column.name.clone(), column.cell(row - 1)))
        };
        source.shown_columns().iter().filter_map(cell).collect()
    }
}

impl PoolSource {
    /// Columns that the features come from, each once.
    pub fn feature_columns(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for feature in &self.schema.features {
            if out.last().is_none_or(|last| last != feature.column()) {
                out.push(feature.column().into());
            }
        }
        out
    }

    /// Columns that are shown: those asked for, else all features.
    pub fn shown_columns(&self) -> Vec<String> {
        if self.show.is_empty() { self.feature_columns() } else { self.show.clone() }
    }
}

/// A name that no column has.
fn unused_name(table: &Table) -> String {
    let mut name = String::from("label");
    while table.columns.iter().any(|c| c.name == name) {
        name.push('_');
    }
    name
}
