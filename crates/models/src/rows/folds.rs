//! Parts of the rows that take turns in being predicted by what the others teach.

use super::split::Prints;
use posterior_data::Split;
use posterior_gp::Parting;
use posterior_linalg::random::Streams;
use std::collections::HashMap;

/// Fewer rows tell nothing of what hyperparameters remember.
const FEWEST: usize = 20;
/// Folds of few rows, and of more, where each costs more.
const MANY: usize = 5;
const FEW: usize = 3;
const FEW_FROM: usize = 500;
/// Rows above which one split takes the place of folds, and its share.
pub(crate) const FOLDED: usize = 2000;
const SHARE: f64 = 0.2;

/// Which rows learn and which are predicted, fold by fold: by chance, duplicates together; in whole groups; or each newer than what teaches it. None of rows that cannot be parted.
pub(crate) fn folds(parting: Option<&Parting>, prints: &Prints, seed: u64) -> Vec<Split> {
    let n = prints.rows.len();
    if n < FEWEST {
        return Vec::new();
    }
    let streams = Streams::new(seed).child("model/folds", 0);
    let alike = |copied: bool| -> Vec<usize> {
        let mut places = HashMap::new();
        let own = |(row, print): (usize, &u64)| {
            let next = places.len();
            if copied { *places.entry(*print).or_insert(next) } else { row }
        };
        prints.rows.iter().enumerate().map(own).collect()
    };
    let groups = match parting {
        Some(Parting::Times(_)) => None,
        Some(Parting::Groups(groups)) => Some(groups.clone()),
        None => Some(alike(prints.copied)),
    };
    if n > FOLDED {
        let split = match (groups, parting) {
            (Some(groups), _) => Split::grouped(&groups, SHARE, streams),
            (None, Some(Parting::Times(times))) => Split::newest(times, SHARE),
            (None, _) => return Vec::new(),
        };
        return split.into_iter().collect();
    }
    let most = if n <= FEW_FROM { MANY } else { FEW };
    let of = |count: usize| -> Result<Vec<Split>, String> {
        let fold = |fold: usize| match (&groups, parting) {
            (Some(groups), _) => Split::grouped_fold(groups, (count, fold as i64), streams),
            (None, Some(Parting::Times(times))) => Split::forward_fold(times, (count, fold as i64)),
            (None, _) => Err(String::new()),
        };
        (0..count).map(fold).collect()
    };
    (2..=most).rev().find_map(|count| of(count).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;
    use posterior_gp::Observations;

    /// Rows (i mod `period`).
    fn prints(rows: usize, period: usize) -> Prints {
        let value = |i: usize| (i % period) as f64;
        let (x, y) = (Mat::from_fn(rows, 1, |i, _| value(i)), Mat::from_fn(rows, 1, |i, _| value(i)));
        Prints::of(&Observations::new(x, y, None).unwrap()).unwrap()
    }

    /// Every row is predicted once, and never beside another of its group.
    fn check(splits: &[Split], rows: usize, group: impl Fn(usize) -> usize) {
        let mut all: Vec<usize> = splits.iter().flat_map(|split| split.test.clone()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..rows).collect::<Vec<_>>());
        for Split { train, test } in splits {
            assert_eq!(train.len() + test.len(), rows);
            assert!(test.iter().all(|&i| train.iter().all(|&j| group(i) != group(j))));
        }
    }

    #[test]
    fn rows_that_belong_together_are_in_one_fold() {
        let splits = folds(None, &prints(60, 60), 1);
        assert_eq!(splits.len(), MANY);
        check(&splits, 60, |i| i);
        check(&folds(None, &prints(60, 30), 1), 60, |i| i % 30);
        let groups = Parting::Groups((0..60).map(|i| i / 20).collect());
        let splits = folds(Some(&groups), &prints(60, 60), 1);
        assert_eq!(splits.len(), 3, "as many as there are groups");
        check(&splits, 60, |i| i / 20);
        assert!(folds(Some(&Parting::Groups(vec![0; 60])), &prints(60, 60), 1).is_empty());
        assert!(folds(None, &prints(FEWEST - 1, 60), 1).is_empty());
        assert_eq!(folds(None, &prints(FEW_FROM + 1, 1000), 1).len(), FEW);
    }

    #[test]
    fn what_is_predicted_is_newer_than_what_teaches_it() {
        let times = Parting::Times((0..90).map(|i| f64::from(i * 7 % 90)).collect());
        let Parting::Times(own) = &times else { unreachable!() };
        let splits = folds(Some(&times), &prints(90, 90), 1);
        assert_eq!(splits.len(), MANY);
        for Split { train, test } in &splits {
            let newest = train.iter().map(|&i| own[i]).fold(0.0, f64::max);
            assert!(test.iter().all(|&i| own[i] > newest));
        }
    }

    #[test]
    fn large_tables_are_parted_once() {
        let rows = FOLDED + 100;
        let splits = folds(None, &prints(rows, rows), 1);
        let share = splits[0].test.len() as f64 / rows as f64;
        assert!(splits.len() == 1 && (share - SHARE).abs() < 0.01, "{share}");
    }
}
