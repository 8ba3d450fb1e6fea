//! Which rows train and which test.
//!
//! | file | idea |
//! |---|---|
//! | here | at random, by class, by folds that are given |
//! | `groups` | rows that belong together stay together |
//! | `times` | the past trains, what came later tests |

mod groups;
mod times;

pub use groups::groups_of_rows;
pub use times::times_of_rows;

use crate::{Column, DataError, ReadOptions, Values, read_table};
use posterior_linalg::random::Streams;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;
use std::path::Path;

/// Row indices, counted from 0, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Rows to learn from.
    pub train: Vec<usize>,
    /// Rows to test on.
    pub test: Vec<usize>,
}

impl Split {
    /// Everything trains, nothing tests.
    pub fn all(rows: usize) -> Self {
        Self { train: (0..rows).collect(), test: Vec::new() }
    }

    /// A random share of the rows tests: `round(fraction · rows)` of them, at least one row on each side.
    pub fn random(rows: usize, fraction: f64, streams: Streams) -> Self {
        let mut order: Vec<usize> = (0..rows).collect();
        order.shuffle(&mut streams.stream("data/split"));
        let count =
            ((fraction * rows as f64).round() as usize).clamp(1, rows.saturating_sub(1).max(1)).min(rows);
        let test = order.split_off(rows - count);
        Self::sides(order, test)
    }

    /// As [`Split::random`] within every class, so that each is tested on its share: `round(fraction · rows)` of them in all, at least one row of a class trains, and rows of
    /// classes that are too small for a share are dealt out by chance. `classes` has one number for each row.
    pub fn stratified(classes: &[usize], fraction: f64, streams: Streams) -> Self {
        let rows = classes.len();
        let mut order: Vec<usize> = (0..rows).collect();
        order.shuffle(&mut streams.stream("data/split"));
        let mut by_class: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &row in &order {
            by_class.entry(classes[row]).or_default().push(row);
        }
        // Rows of all classes by their place in their own: the first of any cut has every class by its share.
        let mut placed: Vec<(f64, usize)> = Vec::with_capacity(rows);
        let mut last = Vec::with_capacity(by_class.len());
        for own in by_class.values() {
            let place = |k: usize| (k as f64 + 0.5) / own.len() as f64;
            placed.extend(own.iter().enumerate().take(own.len() - 1).map(|(k, &row)| (place(k), row)));
            last.extend(own.last());
        }
        placed.sort_by(|a, b| a.0.total_cmp(&b.0));
        let most = placed.len();
        let count = ((fraction * rows as f64).round() as usize).clamp(1, rows.saturating_sub(1).max(1));
        let rest = placed.split_off(count.min(most));
        let test = placed.into_iter().map(|(_, row)| row).collect();
        Self::sides(rest.into_iter().map(|(_, row)| row).chain(last).collect(), test)
    }

    /// Fold `fold` (from 0) of `count` of about the same size, drawn at random: its rows test, all others train. With `classes`, one number for each row, every fold has its share of each class, to within one row.
    ///
    /// # Errors
    /// The problem in words, where there is no such fold or it would have no rows.
    pub fn fold(
        rows: usize,
        (count, fold): (usize, i64),
        classes: Option<&[usize]>,
        streams: Streams,
    ) -> Result<Self, String> {
        let fold = check_fold(rows, "row", (count, fold))?;
        let mut order: Vec<usize> = (0..rows).collect();
        order.shuffle(&mut streams.stream("data/folds"));
        if let Some(classes) = classes {
            // Classes one after the other, dealt out without a break: no fold gets two rows more than another, of a class or in all.
            order.sort_by_key(|&row| classes[row]);
        }
        let (mut train, mut test) = (Vec::new(), Vec::new());
        for (place, &row) in order.iter().enumerate() {
            if place % count == fold { test.push(row) } else { train.push(row) }
        }
        Ok(Self::sides(train, test))
    }

    /// For a table of so many rows, from a file with one column `fold` (or a single column of any name): rows of fold `fold` test, all others train.
    ///
    /// # Errors
    /// [`DataError::Folds`] when the file has another number of rows than the table, holds other things than numbers, or no row
    /// has that fold.
    pub fn from_folds(path: &Path, fold: i64, rows: usize) -> Result<Self, DataError> {
        Self::of_folds(&Self::read_folds(path, rows)?, fold, path)
    }

    /// The folds of so many rows in a file, as [`Split::from_folds`] reads it.
    ///
    /// # Errors
    /// As there, but for the fold.
    pub fn read_folds(path: &Path, rows: usize) -> Result<Vec<i64>, DataError> {
        let folds = read_table(path, &ReadOptions::default())?;
        let column = if folds.columns.len() == 1 { &folds.columns[0] } else { folds.column("fold")? };
        if column.len() != rows {
            let reason = format!("{} folds for a table of {} rows", column.len(), rows);
            return Err(DataError::Folds { path: path.into(), reason });
        }
        folds_of_rows(column, path)
    }

    /// Rows of one fold test, all others train; `path` is where the folds are from, for messages.
    ///
    /// # Errors
    /// [`DataError::Folds`] when no row has that fold, or all have.
    pub fn of_folds(folds: &[i64], fold: i64, path: &Path) -> Result<Self, DataError> {
        let (test, train): (Vec<usize>, Vec<usize>) = (0..folds.len()).partition(|&row| folds[row] == fold);
        if test.is_empty() || train.is_empty() {
            let known = distinct(folds);
            let reason = format!("fold {fold} leaves no rows to test or to train; the folds are {known:?}");
            return Err(DataError::Folds { path: path.into(), reason });
        }
        Ok(Self { train, test })
    }
}

/// The fold of each row.
///
/// # Errors
/// [`DataError::Folds`] for anything but whole numbers.
pub fn folds_of_rows(column: &Column, path: &Path) -> Result<Vec<i64>, DataError> {
    let wrong = |reason: String| DataError::Folds { path: path.into(), reason };
    let Values::Numeric(values) = &column.values else {
        return Err(wrong(format!("the folds in `{}` are not numbers", column.name)));
    };
    match values.iter().position(|v| v.is_nan() || v.fract() != 0.0) {
        Some(row) => Err(wrong(format!("row {}: a fold is a whole number", row + 1))),
        None => Ok(values.iter().map(|v| *v as i64).collect()),
    }
}

/// The folds that there are, in order.
pub fn distinct(folds: &[i64]) -> Vec<i64> {
    let mut known = folds.to_vec();
    known.sort_unstable();
    known.dedup();
    known
}

/// That rows (or what is parted with them) can be parted into so many folds.
fn check_fold(parts: usize, what: &str, (count, fold): (usize, i64)) -> Result<usize, String> {
    if count < 2 || count > parts {
        return Err(format!(
            "{parts} {what}s cannot be parted into {count} folds: at least 2, at most one for each {what}"
        ));
    }
    if !(0..count as i64).contains(&fold) {
        return Err(format!("there is no fold {fold} of {count}; they are counted from 0"));
    }
    Ok(fold as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_splits_partition_the_rows_and_repeat() {
        for rows in [2, 10, 101] {
            let split = Split::random(rows, 0.2, Streams::new(3));
            let mut all = [split.train.clone(), split.test.clone()].concat();
            all.sort_unstable();
            assert_eq!(all, (0..rows).collect::<Vec<_>>());
            assert!(!split.test.is_empty() && !split.train.is_empty());
            assert_eq!(split, Split::random(rows, 0.2, Streams::new(3)));
        }
        assert_ne!(Split::random(101, 0.2, Streams::new(3)), Split::random(101, 0.2, Streams::new(4)));
        assert_eq!(Split::random(100, 0.25, Streams::new(0)).test.len(), 25);
    }

    #[test]
    fn folds_part_the_rows_and_every_class() {
        let classes: Vec<usize> =
            (0..47).map(|i| usize::from(i % 5 == 0) + usize::from(i % 10 == 0)).collect();
        for classes in [None, Some(&classes[..])] {
            let folds: Vec<Split> =
                (0..5).map(|k| Split::fold(47, (5, k), classes, Streams::new(1)).unwrap()).collect();
            let mut all: Vec<usize> = folds.iter().flat_map(|f| f.test.clone()).collect();
            all.sort_unstable();
            assert_eq!(all, (0..47).collect::<Vec<_>>());
            for fold in &folds {
                assert!(fold.test.len() >= 9 && fold.test.len() + fold.train.len() == 47);
                assert!(fold.test.iter().all(|row| !fold.train.contains(row)));
            }
            let Some(classes) = classes else { continue };
            for class in 0..3 {
                let of = |f: &Split| f.test.iter().filter(|&&row| classes[row] == class).count();
                let counts: Vec<usize> = folds.iter().map(of).collect();
                assert!(
                    counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1,
                    "{class}: {counts:?}"
                );
            }
        }
        let problem = |count, fold| Split::fold(10, (count, fold), None, Streams::new(0)).unwrap_err();
        assert!(problem(1, 0).contains("at least 2") && problem(11, 0).contains("10 rows"));
        assert!(problem(5, 5).contains("no fold 5 of 5") && problem(5, -1).contains("no fold -1"));
    }

    #[test]
    fn every_class_is_tested_on_its_share_and_none_is_left_without_a_row_to_train_on() {
        // 80, 15, 4 and 1 rows.
        let classes: Vec<usize> = (0..100)
            .map(|i| match i {
                0..80 => 0,
                80..95 => 1,
                95..99 => 2,
                _ => 3,
            })
            .collect();
        let split = Split::stratified(&classes, 0.2, Streams::new(5));
        let count = |rows: &[usize], class| rows.iter().filter(|&&row| classes[row] == class).count();
        assert_eq!([0, 1, 2, 3].map(|class| count(&split.test, class)), [16, 3, 1, 0]);
        assert_eq!(split.train.len(), 80);
        let mut all = [split.train.clone(), split.test.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        // However much is tested, a row of every class trains.
        let most = Split::stratified(&classes, 0.99, Streams::new(5));
        assert_eq!([0, 1, 2, 3].map(|class| count(&most.train, class)), [1; 4]);
        assert_eq!(split, Split::stratified(&classes, 0.2, Streams::new(5)));
    }
}
