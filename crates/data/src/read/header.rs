//! Names of columns from a first row, and the index that pandas writes before them.

use crate::error::short;
use crate::{Column, DataError, Values};
use posterior_notes::fixes::FEATURES;
use std::collections::HashSet;
use std::path::Path;

/// What a first row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) names: Vec<String>,
    /// Whether the names were made up because the row is data, all of it numbers.
    pub(crate) is_row: bool,
    /// What the first column is called now, where it had no name.
    pub(crate) index: Option<String>,
}

impl Header {
    /// From the cells of a first row, trimmed. The first of several columns may have no name: it is called `index`, or `index_1`, ... where that is taken.
    ///
    /// # Errors
    /// [`DataError::Malformed`] for another column without a name, and for two of one name.
    pub(crate) fn of(
        first: Vec<String>,
        is_number: impl Fn(&str) -> bool,
        format: &'static str,
        path: &Path,
    ) -> Result<Self, DataError> {
        if first.iter().all(|cell| is_number(cell)) {
            let names = (1..=first.len()).map(|i| format!("x{i}")).collect();
            return Ok(Self { names, is_row: true, index: None });
        }
        let mut seen = HashSet::new();
        for (j, name) in first.iter().enumerate() {
            let reason = if name.is_empty() && (j > 0 || first.len() == 1) {
                format!("column {} has no name in the header; give it one, or delete it", j + 1)
            } else if !seen.insert(name) {
                format!("two columns are called `{}`; rename one", short(name))
            } else {
                continue;
            };
            return Err(DataError::Malformed { path: path.into(), format, reason });
        }
        let nameless = first.first().is_some_and(String::is_empty);
        let free = || {
            let others = (1..).map(|i| format!("index_{i}"));
            std::iter::once("index".to_string()).chain(others).find(|name| !seen.contains(name))
        };
        let index = if nameless { free() } else { None };
        let mut names = first;
        if let Some(index) = &index {
            names[0].clone_from(index);
        }
        Ok(Self { names, is_row: false, index })
    }

    /// Whether [`Header::with_unnamed`] has something to decide.
    pub(crate) fn may_count(&self) -> bool {
        !self.is_row && self.names.first().is_some_and(|name| name == UNNAMED)
    }

    /// Takes the first column for an index where it has the name that pandas gives to one without and its cells are consecutive whole numbers.
    pub(crate) fn with_unnamed(mut self, cells: impl Iterator<Item = Option<f64>>) -> Self {
        if self.may_count() && consecutive(cells) {
            self.index = Some(UNNAMED.into());
        }
        self
    }

    /// What was made up, in words.
    pub(crate) fn notes(&self, file: &Path) -> Vec<String> {
        let path = file.display();
        let made_up = self.is_row.then(|| format!("{path} has no header: columns are named x1, x2, ..."));
        let index = self.index.as_ref().map(|name| index_note(file, name));
        made_up.into_iter().chain(index).collect()
    }
}

/// What is said of an index, by the name that its column has now.
pub(crate) fn index_note(path: &Path, name: &str) -> String {
    let (path, what) = (
        path.display(),
        match name {
            UNNAMED => "its first column is called `Unnamed: 0`, counts rows",
            LEVEL => "its column `__index_level_0__`",
            _ => "its first column has no name",
        },
    );
    let and = if name == LEVEL { "is" } else { "and is" };
    format!("{path}: {what} {and} taken for an index: no feature ({FEATURES} says otherwise)")
}

/// The name of a column that is an index as pandas counts rows, where the first one is.
pub(crate) fn counted_index(first: Option<&Column>) -> Option<String> {
    let first = first.filter(|column| column.name == UNNAMED)?;
    let Values::Numeric(numbers) = &first.values else { return None };
    consecutive(numbers.iter().map(|value| Some(*value))).then(|| first.name.clone())
}

/// What pandas calls the index of a Parquet file, where it has no name.
pub(crate) const LEVEL: &str = "__index_level_0__";

/// What pandas calls a first column without a name that it reads and writes again.
pub(crate) const UNNAMED: &str = "Unnamed: 0";

fn consecutive(cells: impl Iterator<Item = Option<f64>>) -> bool {
    let mut last: Option<f64> = None;
    for cell in cells {
        match cell {
            Some(value) if value.fract() == 0.0 && last.is_none_or(|last| value == last + 1.0) => {
                last = Some(value);
            }
            _ => return false,
        }
    }
    last.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(names: &[&str]) -> Result<Header, DataError> {
        let number = |cell: &str| cell.parse::<f64>().is_ok();
        Header::of(names.iter().map(|n| n.to_string()).collect(), number, "CSV", Path::new("t.csv"))
    }

    #[test]
    fn a_first_column_without_a_name_is_an_index() {
        let found = header(&["", "a"]).unwrap();
        assert_eq!(
            (found.index.as_deref(), &found.names[..]),
            (Some("index"), &["index".into(), "a".into()][..])
        );
        let taken = header(&["", "index", "index_1"]).unwrap();
        assert_eq!(taken.names[0], "index_2");
        assert!(taken.notes(Path::new("t.csv"))[0].contains("has no name and is taken for an index"));
        for bad in [&["a", ""][..], &["", "", "a"], &[""]] {
            assert!(header(bad).unwrap_err().to_string().contains("has no name in the header"), "{bad:?}");
        }
        assert!(header(&["a", "a"]).is_err());
        let numbers = header(&["1", "2"]).unwrap();
        assert!(numbers.is_row && numbers.index.is_none());
    }

    #[test]
    fn an_unnamed_column_that_counts_is_an_index() {
        let index = |cells: &[Option<f64>]| {
            header(&["Unnamed: 0", "a"]).unwrap().with_unnamed(cells.iter().copied()).index
        };
        assert_eq!(index(&[Some(0.0), Some(1.0), Some(2.0)]).as_deref(), Some("Unnamed: 0"));
        assert_eq!(index(&[Some(7.0), Some(8.0)]).as_deref(), Some("Unnamed: 0"));
        for other in [
            &[Some(0.0), Some(2.0)][..],
            &[Some(0.5), Some(1.5)],
            &[Some(0.0), None],
            &[Some(0.0), Some(f64::NAN)],
            &[],
        ] {
            assert_eq!(index(other), None, "{other:?}");
        }
        let named = header(&["a", "Unnamed: 0"]).unwrap().with_unnamed([Some(0.0)].into_iter());
        assert_eq!(named.index, None);
    }
}
