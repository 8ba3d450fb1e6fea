//! What a kind gives back for one seed.

use posterior_report::{Item, Note, SummaryRow};
use serde_json::Value;

/// A table whose cells are paths into the numbers: the runner fills in means (and standard errors over seeds).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NumberTable {
    /// Heading.
    pub(crate) title: String,
    /// Names of the columns; the first names the rows.
    pub(crate) head: Vec<String>,
    /// Rows: a name and the path of each cell.
    pub(crate) rows: Vec<(String, Vec<String>)>,
    /// What to know about it.
    pub(crate) caption: String,
}

impl NumberTable {
    /// One row for each of `names`, whose cells are `prefix.name.key`; keys with the heads of their columns.
    pub(crate) fn by_name<N: AsRef<str>>(
        title: &str,
        first: &str,
        prefix: &str,
        names: impl IntoIterator<Item = N>,
        columns: &[(impl AsRef<str>, impl AsRef<str>)],
        caption: &str,
    ) -> Self {
        let row = |name: N| {
            let name = name.as_ref();
            let cells = columns.iter().map(|(key, _)| format!("{prefix}.{name}.{}", key.as_ref()));
            (name.to_string(), cells.collect())
        };
        let heads = columns.iter().map(|(_, head)| head.as_ref());
        Self {
            title: title.into(),
            head: std::iter::once(first).chain(heads).map(String::from).collect(),
            rows: names.into_iter().map(row).collect(),
            caption: caption.into(),
        }
    }

    /// One row for each quantity, with the path of its value.
    pub(crate) fn of_quantities(title: &str, head: [&str; 2], rows: &[(&str, &str)]) -> Self {
        Self {
            title: title.into(),
            head: head.map(String::from).to_vec(),
            rows: rows.iter().map(|(name, path)| (name.to_string(), vec![path.to_string()])).collect(),
            caption: String::new(),
        }
    }
}

/// What one run found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// Numbers that are averaged over seeds: an object of objects and numbers.
    pub(crate) numbers: Value,
    /// Curves behind the pictures, kept for each seed.
    pub(crate) series: Value,
    /// Tables of numbers.
    pub(crate) tables: Vec<NumberTable>,
    /// Pictures.
    pub(crate) figures: Vec<Item>,
    /// Facts about data and network.
    pub(crate) facts: Vec<SummaryRow>,
    /// What happened on the way.
    pub(crate) notes: Vec<Note>,
}
