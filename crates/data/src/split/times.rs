//! Splits in time: a model is tested on what came after all that it learned from, as it will be used.

use super::{Split, check_fold};
use crate::schema::{ColumnSketch, table_order};
use crate::{DataError, Reading, Table, TimeForm};
use std::collections::BTreeSet;

/// When each row was, as a number: a column of numbers, or of dates in any form that features may have. Whether dates begin with the day or with the month is as `order` says, or as cells of any column decide.
///
/// # Errors
/// [`DataError::NoSuchColumn`]; [`DataError::NotANumber`] and [`DataError::NotADate`] for what is neither; [`DataError::MissingCell`].
pub fn times_of_rows(table: &Table, column: &str, order: Option<TimeForm>) -> Result<Vec<f64>, DataError> {
    let column = table.column(column)?;
    let rows: Vec<usize> = (0..table.rows()).collect();
    let mut sketch = ColumnSketch::new(false);
    sketch.see(column, &rows, (&table.source, 0));
    let order = order.or_else(|| sketch.open_order().and_then(|_| table_order(table)));
    let reading = sketch
        .time_form(&column.name, &table.source, order)?
        .map_or(Reading::Plain, |form| Reading::Time { form });
    let times = reading.numbers(table, column, &rows, &vec![true; rows.len()])?;
    match times.iter().position(|time| time.is_nan()) {
        Some(row) => {
            let (path, column) = (table.source.clone(), column.name.clone());
            Err(DataError::MissingCell { path, row: row + 1, column })
        }
        None => Ok(times),
    }
}

/// Places in time where rows may be parted, as the number of rows before each: none parts rows of the same time.
fn cuts(times: &[f64]) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|a, b| times[*a].total_cmp(&times[*b]));
    let cuts = (1..order.len()).filter(|&at| times[order[at - 1]] != times[order[at]]).collect();
    (order, cuts)
}

impl Split {
    /// The newest rows test: `round(fraction · rows)` of them, or as many as come nearest to that without parting rows of one time.
    ///
    /// # Errors
    /// The problem in words, where all rows are of one time.
    pub fn newest(times: &[f64], fraction: f64) -> Result<Self, String> {
        let (order, cuts) = cuts(times);
        let wanted = times.len() - (fraction * times.len() as f64).round() as usize;
        let Some(at) = cuts.into_iter().min_by_key(|at| at.abs_diff(wanted)) else {
            return Err("all rows are of one time: none is newer than others".into());
        };
        Ok(Self::sides(order[..at].to_vec(), order[at..].to_vec()))
    }

    /// Fold `fold` (from 0) of `count` in time: the rows are parted into `count + 1` spans of about as many rows, and a fold tests the span that follows those that train, the first `fold + 1`. Rows of one time are never parted.
    ///
    /// # Errors
    /// The problem in words, where there is no such fold or there are too few times.
    pub fn forward_fold(times: &[f64], (count, fold): (usize, i64)) -> Result<Self, String> {
        let (order, cuts) = cuts(times);
        // A span for each fold, and the first, which only trains.
        let fold = check_fold(cuts.len(), "time step", (count, fold))?;
        let nearest = |span: usize| {
            let wanted = span * times.len() / (count + 1);
            cuts.iter().copied().min_by_key(|at| at.abs_diff(wanted)).unwrap_or(0)
        };
        let ends: BTreeSet<usize> = (1..=count).map(nearest).collect();
        if ends.len() < count {
            return Err(format!("too many rows are of the same time for {count} folds; ask for fewer"));
        }
        let ends: Vec<usize> = ends.into_iter().chain([order.len()]).collect();
        Ok(Self::sides(order[..ends[fold]].to_vec(), order[ends[fold]..ends[fold + 1]].to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, parse_table};
    use std::path::Path;

    #[test]
    fn the_past_trains_and_the_future_tests() {
        // 100 rows, four of each time, not in order.
        let times: Vec<f64> = (0..100).map(|row| f64::from(row * 37 % 100 / 4)).collect();
        let before = |split: &Split| {
            let latest = split.train.iter().map(|&row| times[row]).fold(f64::MIN, f64::max);
            assert!(split.test.iter().all(|&row| times[row] > latest));
        };
        for fraction in [0.1, 0.25, 0.5] {
            let split = Split::newest(&times, fraction).unwrap();
            before(&split);
            assert!((split.test.len() as f64 - 100.0 * fraction).abs() <= 2.0, "{}", split.test.len());
            assert_eq!(split.train.len() + split.test.len(), 100);
        }
        let folds: Vec<Split> = (0..4).map(|k| Split::forward_fold(&times, (4, k)).unwrap()).collect();
        folds.iter().for_each(before);
        for (k, fold) in folds.iter().enumerate() {
            assert_eq!((fold.train.len(), fold.test.len()), (20 * (k + 1), 20));
        }
        assert!(Split::newest(&[1.0; 5], 0.5).unwrap_err().contains("one time"));
        assert!(
            Split::forward_fold(&[1.0, 1.0, 1.0, 2.0, 3.0], (2, 0)).unwrap_err().contains("ask for fewer")
        );
        assert!(Split::forward_fold(&[1.0, 2.0], (3, 0)).unwrap_err().contains("1 time steps"));
    }

    #[test]
    fn times_are_numbers_or_dates() {
        let read = |text: &str| {
            let table = parse_table(text.into(), Path::new("t.csv"), None, &ReadOptions::default()).unwrap();
            times_of_rows(&table, "t", None)
        };
        assert_eq!(read("t,y\n3,1\n1.5,2\n").unwrap(), [3.0, 1.5]);
        assert_eq!(read("t,y\n1970-01-02,1\n1970-01-01 12:00,2\n").unwrap(), [1.0, 0.5]);
        assert!(read("t,y\n1,1\n,2\n").unwrap_err().to_string().contains("row 2, column `t`"));
        assert!(read("t,y\nred,1\nblue,2\n").is_err());
    }
}
