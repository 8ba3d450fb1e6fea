//! **Targets that are no measurements**: class labels by name, counts, and what a column of either looks like before anyone says which it is.

use crate::error::known_labels;
use crate::read::{Quantity, is_absent};
use crate::schema::numbers;
use crate::{Column, DataError, MissingTarget, Table, Values};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// More distinct cells than this are not told apart while a column is looked at.
const MOST_DISTINCT: usize = 1 << 20;

/// The fewest rows with a target that a fit takes: of one or two no error bar can be told.
pub const LEAST_TARGETS: usize = 3;

/// Targets whose spread is a smaller share of the largest are equal: as much is lost where numbers are written with nine digits.
const LEAST_SPREAD: f64 = 1e-9;

/// The classes of a target, in order: numbers by value, other labels by alphabet. A label is the text of a cell, spaces and case included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClassNames(Vec<String>);

/// What a target column holds.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetSketch {
    /// Cells that are not missing.
    pub cells: usize,
    /// Whether all of them are numbers.
    pub numeric: bool,
    /// Whether all of them are whole numbers from 0.
    pub counts: bool,
    /// Whether all of them are whole numbers.
    pub whole: bool,
    /// Whether they have a unit, as what is counted or told apart has not.
    pub measured: bool,
    /// Different cells, and how often each occurs.
    pub distinct: BTreeMap<String, usize>,
    /// Mean and population variance of numbers; NaN of text.
    pub moments: [f64; 2],
}

impl TargetSketch {
    /// Looks at the given rows of a column, of which [`finite_targets`] has told those with infinite numbers.
    ///
    /// # Errors
    /// [`DataError::NoSuchColumn`]; [`DataError::TooFewTargets`] where all cells are missing.
    pub fn of(table: &Table, target: &str, rows: &[usize]) -> Result<Self, DataError> {
        let column = table.column(target)?;
        let mut distinct = BTreeMap::new();
        let mut cells = 0;
        for &row in rows {
            let cell = column.cell(row);
            if cell.is_empty() {
                continue;
            }
            cells += 1;
            if distinct.len() < MOST_DISTINCT || distinct.contains_key(&cell) {
                *distinct.entry(cell).or_insert(0) += 1;
            }
        }
        if cells == 0 {
            require_targets(&table.source, &column.name, cells, None)?;
        }
        let Values::Numeric(values) = &column.values else {
            let moments = [f64::NAN; 2];
            let [numeric, counts, whole, measured] = [false; 4];
            return Ok(Self { cells, numeric, counts, whole, measured, distinct, moments });
        };
        let own = || rows.iter().map(|&row| values[row]).filter(|v| !v.is_nan());
        let whole = own().all(|v| v.fract() == 0.0);
        let counts = whole && own().all(|v| v >= 0.0);
        let mean = own().sum::<f64>() / cells as f64;
        let variance = own().map(|v| (v - mean).powi(2)).sum::<f64>() / cells as f64;
        let measured = table.written.contains_key(&column.name);
        Ok(Self { cells, numeric: true, counts, whole, measured, distinct, moments: [mean, variance] })
    }

    /// Pairs of labels that differ in case or in spaces at their ends only: they are different classes, and hardly meant to be.
    pub fn look_alikes(&self) -> Vec<[String; 2]> {
        let mut seen: HashMap<String, &String> = HashMap::new();
        let mut out = Vec::new();
        for label in self.distinct.keys() {
            match seen.get(&label.trim().to_lowercase()) {
                Some(first) => out.push([(*first).clone(), label.clone()]),
                None => {
                    seen.insert(label.trim().to_lowercase(), label);
                }
            }
        }
        out
    }

    /// Its classes.
    ///
    /// # Errors
    /// For fewer than two, [`DataError::TooFewTargets`] if there are too few rows as well, else [`DataError::OneClass`].
    pub fn classes(&self, table: &Table, target: &str) -> Result<ClassNames, DataError> {
        let mut names: Vec<String> = self.distinct.keys().cloned().collect();
        let values: Option<Vec<f64>> = names.iter().map(|n| n.parse::<f64>().ok()).collect();
        if values.is_some_and(|v| v.iter().all(|v| !v.is_nan())) {
            let value = |name: &String| name.parse::<f64>().unwrap_or(f64::NAN);
            names.sort_by(|a, b| value(a).total_cmp(&value(b)));
        }
        if names.len() < 2 {
            require_targets(&table.source, target, self.cells, None)?;
            return Err(DataError::OneClass {
                path: table.source.clone(),
                column: target.into(),
                label: names.pop().unwrap_or_default(),
            });
        }
        Ok(ClassNames(names))
    }
}

impl ClassNames {
    /// From names that are known, such as those of a model's file: at least two, no two of them the same; None for others.
    pub fn new(names: Vec<String>) -> Option<Self> {
        let mut sorted = names.clone();
        sorted.sort_unstable();
        let distinct = sorted.windows(2).all(|pair| pair[0] != pair[1]);
        (names.len() > 1 && distinct && names.iter().all(|name| !name.is_empty())).then_some(Self(names))
    }

    /// The names, in the order of the classes.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Number of classes.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The class of a label.
    pub fn class(&self, label: &str) -> Option<usize> {
        self.0.iter().position(|name| name == label)
    }

    /// The classes of the given rows, counted from 0; None where a cell is missing.
    ///
    /// # Errors
    /// [`DataError::NoSuchColumn`]; [`DataError::UnknownLabel`] naming the row.
    pub fn of_rows(
        &self,
        table: &Table,
        target: &str,
        rows: &[usize],
    ) -> Result<Vec<Option<usize>>, DataError> {
        let column = table.column(target)?;
        let written = table.as_written(column);
        let index: HashMap<&str, usize> = self.0.iter().enumerate().map(|(k, n)| (n.as_str(), k)).collect();
        let class = |&row: &usize| {
            let cell = column.cell(row);
            match index.get(cell.as_str()).or_else(|| index.get(written.cell(row).as_str())) {
                Some(class) => Ok(Some(*class)),
                None if cell.is_empty() => Ok(None),
                None => Err(self.unknown(table, column, row, cell)),
            }
        };
        rows.iter().map(class).collect()
    }

    /// What is wrong with a label that is no class. One that differs in case or spaces only is named.
    fn unknown(&self, table: &Table, column: &Column, row: usize, text: String) -> DataError {
        let alike = self.0.iter().find(|name| name.trim().eq_ignore_ascii_case(text.trim())).cloned();
        DataError::UnknownLabel {
            path: table.source.clone(),
            row: row + 1,
            column: column.name.clone(),
            text,
            known: known_labels(&self.0, alike.as_deref()),
        }
    }
}

/// Refuses targets of which nothing can be learned that deserves error bars: too few, or numbers that are all the same (`range`, least and largest, where their scale is to be learned).
///
/// # Errors
/// [`DataError::TooFewTargets`], [`DataError::EqualTargets`].
pub fn require_targets(
    path: &Path,
    column: &str,
    found: usize,
    range: Option<[f64; 2]>,
) -> Result<(), DataError> {
    let (path, column) = (|| path.into(), || column.to_string());
    if found < LEAST_TARGETS {
        return Err(DataError::TooFewTargets {
            path: path(),
            column: column(),
            found,
            needed: LEAST_TARGETS,
        });
    }
    match range {
        Some([least, largest]) if largest - least <= LEAST_SPREAD * least.abs().max(largest.abs()) => {
            Err(DataError::EqualTargets { path: path(), column: column(), rows: found, value: least })
        }
        _ => Ok(()),
    }
}

/// Of the given rows, those whose target is no infinite number. With `drop` the others are left out, else the first of them is an error.
///
/// # Errors
/// [`DataError::NoSuchColumn`]; [`DataError::Infinite`] naming the row.
pub fn finite_targets(
    table: &Table,
    target: &str,
    rows: &[usize],
    drop: bool,
) -> Result<Vec<usize>, DataError> {
    let column = table.column(target)?;
    let number = |row: usize| match &column.values {
        Values::Numeric(values) => values[row],
        Values::Text(texts) => texts[row].as_deref().map_or(f64::NAN, |text| match text.trim() {
            "∞" | "+∞" => f64::INFINITY,
            "-∞" => f64::NEG_INFINITY,
            text => text.parse().unwrap_or(f64::NAN),
        }),
    };
    // Among words `inf` is one of them; beside a number it is none.
    let words = matches!(column.values, Values::Text(_)) && !rows.iter().any(|row| number(*row).is_finite());
    let infinite = |row: usize| !words && number(row).is_infinite();
    if let Some(&row) = rows.iter().find(|row| infinite(**row) && !drop) {
        let (path, column, value) = (table.source.clone(), column.name.clone(), number(row));
        return Err(DataError::Infinite { path, row: row + 1, column, value });
    }
    Ok(rows.iter().copied().filter(|row| !infinite(*row)).collect())
}

/// Refuses a column of text that is numbers but for a few cells, or money in any form: these are no classes.
///
/// # Errors
/// [`DataError::NoSuchColumn`]; [`DataError::TargetNotANumber`] naming the first cell that is none; [`DataError::SeveralUnits`].
pub fn refuse_nearly_numbers(table: &Table, target: &str, rows: &[usize]) -> Result<(), DataError> {
    let column = table.column(target)?;
    let Values::Text(cells) = &column.values else { return Ok(()) };
    let (mut present, mut numbers, mut money) = (0, 0, 0);
    let (mut unit, mut other, mut first): (Option<String>, _, _) = (None, None, None);
    for &row in rows {
        let Some(text) = cells[row].as_deref().filter(|text| !is_absent(text)) else { continue };
        present += 1;
        match Quantity::read_any(text).filter(Quantity::is_known) {
            None => first = first.or(Some(row)),
            Some(found) => {
                numbers += 1;
                money += usize::from(found.is_money());
                match &unit {
                    None => unit = Some(found.unit),
                    Some(known) if *known != found.unit && other.is_none() => other = Some((row, found.unit)),
                    Some(_) => {}
                }
            }
        }
    }
    if numbers == 0 || 20 * numbers < 19 * present && 2 * money < present {
        return Ok(());
    }
    let (path, column, row) = (table.source.clone(), column.name.clone(), |row: usize| row + 1);
    let text = |row: usize| cells[row].clone().unwrap_or_default();
    match (first, other, unit) {
        (Some(bad), ..) => Err(DataError::TargetNotANumber { path, row: row(bad), column, text: text(bad) }),
        (None, Some((bad, unit)), Some(known)) if money > 0 || known.len() > 1 && unit.len() > 1 => {
            let units = [known, unit];
            Err(DataError::SeveralUnits { path, row: row(bad), column, text: text(bad), units: units.into() })
        }
        _ => Ok(()),
    }
}

/// The counts of the given rows, whole numbers from 0; None where a cell is missing.
///
/// # Errors
/// [`DataError::NoSuchColumn`], [`DataError::NotANumber`], [`DataError::NotACount`] naming the row.
pub fn counts_of_rows(table: &Table, target: &str, rows: &[usize]) -> Result<Vec<Option<f64>>, DataError> {
    let column = table.column(target)?;
    let values = numbers(table, column)?;
    let count = |&row: &usize| match values[row] {
        value if value.is_nan() => Ok(None),
        value if value >= 0.0 && value.fract() == 0.0 && value.is_finite() => Ok(Some(value)),
        value => Err(DataError::NotACount {
            path: table.source.clone(),
            row: row + 1,
            column: column.name.clone(),
            value,
        }),
    };
    rows.iter().map(count).collect()
}

/// Of the given rows, those whose target is there, with the targets: places in `rows`, and values.
///
/// # Errors
/// [`DataError::MissingTarget`] unless such rows are left out; [`DataError::NothingLeft`].
pub fn present<T>(
    table: &Table,
    target: &str,
    rows: &[usize],
    values: Vec<Option<T>>,
    missing: MissingTarget,
) -> Result<(Vec<usize>, Vec<T>), DataError> {
    let mut out = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for (place, value) in values.into_iter().enumerate() {
        match value {
            Some(value) => {
                out.0.push(place);
                out.1.push(value);
            }
            None if missing == MissingTarget::LeaveOut => {}
            None => {
                let (path, column) = (table.source.clone(), target.into());
                return Err(DataError::MissingTarget { path, row: rows[place] + 1, column });
            }
        }
    }
    if out.0.is_empty() {
        let why = format!("dropping those without the target `{target}`");
        return Err(DataError::NothingLeft { path: table.source.clone(), why });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, parse_table};
    use std::path::Path;

    fn table(cells: &str) -> Table {
        let text = format!("y\n{}\n", cells.replace(' ', "\n").replace('_', " "));
        parse_table(text.into_bytes(), Path::new("t.csv"), None, &ReadOptions::default()).unwrap()
    }

    fn sketch(cells: &str) -> (Table, TargetSketch) {
        let table = table(cells);
        let rows: Vec<usize> = (0..table.rows()).collect();
        let sketch = TargetSketch::of(&table, "y", &rows).unwrap();
        (table, sketch)
    }

    #[test]
    fn columns_are_told_apart() {
        let (table, text) = sketch("no yes yes No");
        assert!(!text.numeric && text.cells == 4 && text.distinct["yes"] == 2);
        assert_eq!(text.look_alikes(), [["No".to_string(), "no".into()]]);
        assert_eq!(text.classes(&table, "y").unwrap().names(), ["No", "no", "yes"]);
        let (table, numbers) = sketch("10 2 2 0");
        assert!(numbers.counts && numbers.whole && numbers.moments == [3.5, 14.75]);
        // By value, not by alphabet.
        let classes = numbers.classes(&table, "y").unwrap();
        assert_eq!(classes.names(), ["0", "2", "10"]);
        assert_eq!(classes.of_rows(&table, "y", &[0, 2]).unwrap(), [Some(2), Some(1)]);
        let (_, negative) = sketch("-1 1 1");
        assert!(negative.whole && !negative.counts);
        assert!(!sketch("0.5 1").1.whole);
    }

    #[test]
    fn bad_targets_are_named() {
        let (training, one) = sketch("a a a");
        let error = one.classes(&training, "y").unwrap_err().to_string();
        assert!(error.contains("`a`") && error.contains("only"), "{error}");
        let classes = ClassNames::new(vec!["Yes".into(), "no".into()]).unwrap();
        let later = table("no maybe");
        let error = classes.of_rows(&later, "y", &[0, 1]).unwrap_err().to_string();
        assert!(error.contains("row 2") && error.contains("`maybe`") && error.contains("Yes, no"), "{error}");
        let error = classes.of_rows(&table("yes no"), "y", &[0]).unwrap_err().to_string();
        assert!(error.contains("did you mean `Yes`"), "{error}");
        for (cells, shown) in [("1 -2", "-2"), ("1 2.5", "2.5")] {
            let error = counts_of_rows(&table(cells), "y", &[0, 1]).unwrap_err().to_string();
            assert!(error.contains("row 2") && error.contains(shown), "{error}");
        }
        assert!(ClassNames::new(vec!["a".into()]).is_none());
        assert!(ClassNames::new(vec!["a".into(), "a".into()]).is_none());
    }

    #[test]
    fn infinite_targets_are_no_numbers_and_no_classes() {
        let found = |cells: &str, drop| {
            let table = table(cells);
            finite_targets(&table, "y", &(0..table.rows()).collect::<Vec<_>>(), drop)
        };
        // The last makes the column text; so does the word in the one before it.
        for cells in ["2 inf 2 3", "2 -Infinity 2 3", "2 1e999 2 3", "2 +INF 2 x", "2 ∞ 2 3"] {
            let error = found(cells, false).unwrap_err().to_string();
            assert!(error.contains("row 2, column `y`") && error.contains("not a finite number"), "{error}");
            assert_eq!(found(cells, true).unwrap(), [0, 2, 3]);
        }
        for cells in ["2 NaN NA", "ant inf lat", "inferior Infinity"] {
            assert_eq!(found(cells, false).unwrap().len(), cells.split(' ').count(), "{cells}");
        }
    }

    #[test]
    fn few_or_equal_targets_are_refused_with_how_many_there_are() {
        let refused = |found, range| {
            require_targets(Path::new("t.csv"), "y", found, range).map_err(|error| error.to_string())
        };
        let few = refused(2, None).unwrap_err();
        assert!(few.contains("`y` is there in 2 of the rows") && few.contains("a fit needs 3"), "{few}");
        for equal in [[3.25, 3.25], [0.0, 0.0], [1.0, 1.000_000_000_1], [-1.000_000_000_1, -1.0]] {
            let error = refused(3, Some(equal)).unwrap_err();
            assert!(error.contains("all 3 targets `y` are"), "{error}");
        }
        for range in [[1.0, 1.000_001], [0.0, 1e-300], [-1e-12, 1e-12], [-f64::MAX, f64::MAX]] {
            assert!(refused(3, Some(range)).is_ok(), "{range:?}");
        }
        // One class in too few rows: more of the same rows do not help, but more rows do.
        let (table, one) = sketch("a a");
        assert!(one.classes(&table, "y").unwrap_err().to_string().contains("a fit needs 3"));
    }

    #[test]
    fn missing_targets_are_dropped_or_named() {
        let table = Table::new("t", vec![Column::numeric("y", vec![1.0, f64::NAN, 3.0])]);
        let counts = || counts_of_rows(&table, "y", &[0, 1, 2]).unwrap();
        let (places, values) = present(&table, "y", &[0, 1, 2], counts(), MissingTarget::LeaveOut).unwrap();
        assert_eq!((places, values), (vec![0, 2], vec![1.0, 3.0]));
        let error = present(&table, "y", &[0, 1, 2], counts(), MissingTarget::Error).unwrap_err();
        assert!(error.to_string().contains("row 2"), "{error}");
        assert!(TargetSketch::of(&table, "y", &[1]).is_err());
    }
}
