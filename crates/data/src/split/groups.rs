//! Rows that belong together (of one patient, one house, one day) are on one side: scores are then those of groups that were never seen.

use super::{Split, check_fold};
use crate::{DataError, Table};
use posterior_linalg::random::Streams;
use rand::seq::SliceRandom;
use std::collections::HashMap;

/// The group of each row, numbered from 0 in order of appearance: rows whose cells in a column are the same.
///
/// # Errors
/// [`DataError::NoSuchColumn`]; [`DataError::MissingCell`].
pub fn groups_of_rows(table: &Table, column: &str) -> Result<Vec<usize>, DataError> {
    let column = table.column(column)?;
    let mut known: HashMap<String, usize> = HashMap::new();
    let group = |row: usize| {
        let cell = column.cell(row);
        if cell.is_empty() {
            let (path, column) = (table.source.clone(), column.name.clone());
            return Err(DataError::MissingCell { path, row: row + 1, column });
        }
        let next = known.len();
        Ok(*known.entry(cell).or_insert(next))
    };
    (0..table.rows()).map(group).collect()
}

/// Groups in random order, with their rows.
fn shuffled(groups: &[usize], streams: Streams, name: &str) -> Vec<Vec<usize>> {
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); groups.iter().max().map_or(0, |most| most + 1)];
    groups.iter().enumerate().for_each(|(row, group)| rows[*group].push(row));
    rows.shuffle(&mut streams.stream(name));
    rows
}

impl Split {
    /// Whole groups test, drawn at random until they are as near to `round(fraction · rows)` rows as another group would bring them; at least one group on each side. `groups` has one number for each row.
    ///
    /// # Errors
    /// The problem in words, for a single group.
    pub fn grouped(groups: &[usize], fraction: f64, streams: Streams) -> Result<Self, String> {
        let shuffled = shuffled(groups, streams, "data/split/groups");
        if shuffled.len() < 2 {
            return Err("all rows are of one group, and a group is never parted".into());
        }
        let wanted = (fraction * groups.len() as f64).round();
        let (mut test, mut taken) = (Vec::new(), 0);
        for rows in &shuffled[..shuffled.len() - 1] {
            let (now, then) = (test.len() as f64, (test.len() + rows.len()) as f64);
            if taken > 0 && (then - wanted).abs() > (now - wanted).abs() {
                break;
            }
            test.extend(rows);
            taken += 1;
        }
        Ok(Self::sides(shuffled[taken..].concat(), test))
    }

    /// Fold `fold` (from 0) of `count` of whole groups: the largest first, each to the fold that has the fewest rows. `groups` has one number for each row.
    ///
    /// # Errors
    /// The problem in words, where there is no such fold or there are fewer groups than folds.
    pub fn grouped_fold(
        groups: &[usize],
        (count, fold): (usize, i64),
        streams: Streams,
    ) -> Result<Self, String> {
        let mut shuffled = shuffled(groups, streams, "data/folds/groups");
        let fold = check_fold(shuffled.len(), "group", (count, fold))?;
        shuffled.sort_by_key(|rows| std::cmp::Reverse(rows.len()));
        let mut folds: Vec<Vec<usize>> = vec![Vec::new(); count];
        for rows in shuffled {
            if let Some(smallest) = folds.iter_mut().min_by_key(|fold| fold.len()) {
                smallest.extend(rows);
            }
        }
        let test = folds.swap_remove(fold);
        Ok(Self::sides(folds.concat(), test))
    }

    /// In ascending order.
    pub(super) fn sides(mut train: Vec<usize>, mut test: Vec<usize>) -> Self {
        train.sort_unstable();
        test.sort_unstable();
        Self { train, test }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;

    /// 100 rows of 12 groups, of 1 to 20 rows.
    fn groups() -> Vec<usize> {
        (0..100).map(|row| (row * row / 40 + row) % 12).collect()
    }

    #[test]
    fn no_group_is_parted() {
        let groups = groups();
        let check = |split: &Split| {
            assert!(!split.test.is_empty() && !split.train.is_empty());
            assert!(split.test.iter().all(|t| split.train.iter().all(|r| groups[*t] != groups[*r])));
            let mut all = [split.train.clone(), split.test.clone()].concat();
            all.sort_unstable();
            assert_eq!(all, (0..100).collect::<Vec<_>>());
        };
        let largest = (0..12).map(|g| groups.iter().filter(|own| **own == g).count()).max().unwrap();
        for seed in 0..20 {
            let split = Split::grouped(&groups, 0.3, Streams::new(seed)).unwrap();
            check(&split);
            assert!(split.test.len().abs_diff(30) <= largest.div_ceil(2), "{}", split.test.len());
            assert_eq!(split, Split::grouped(&groups, 0.3, Streams::new(seed)).unwrap());
        }
        let folds: Vec<Split> =
            (0..4).map(|k| Split::grouped_fold(&groups, (4, k), Streams::new(1)).unwrap()).collect();
        folds.iter().for_each(check);
        let mut all: Vec<usize> = folds.iter().flat_map(|fold| fold.test.clone()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        let sizes: Vec<usize> = folds.iter().map(|fold| fold.test.len()).collect();
        // The largest to the emptiest: no two folds differ by more than a group.
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= largest, "{sizes:?}");
    }

    #[test]
    fn what_cannot_be_parted_is_said() {
        assert!(Split::grouped(&[0; 5], 0.5, Streams::new(0)).unwrap_err().contains("one group"));
        let problem = Split::grouped_fold(&[0, 0, 1], (3, 0), Streams::new(0)).unwrap_err();
        assert!(problem.contains("2 groups cannot be parted into 3 folds"), "{problem}");
        let texts = ["a", "b", "a"].map(|t| Some(t.to_string())).to_vec();
        let table =
            |values| Table::new("t", vec![Column { name: "g".into(), values: crate::Values::Text(values) }]);
        assert_eq!(groups_of_rows(&table(texts), "g").unwrap(), [0, 1, 0]);
        let gap = groups_of_rows(&table(vec![Some("a".into()), None]), "g").unwrap_err().to_string();
        assert!(gap.contains("row 2, column `g`"), "{gap}");
    }
}
