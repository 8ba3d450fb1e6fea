//! Rows to judge or to choose by, apart from those that are learned from.

use crate::facts::count;
use crate::{Fact, Facts, ModelError};
use posterior_data::{RowFingerprints, Split as DrawnSplit, table_fingerprints};
use posterior_gp::{GpError, Parting, RowSource};
use posterior_linalg::random::{ChaCha8Rng, Streams};
use posterior_linalg::tiles::pieces;
use posterior_notes::fixes::EXACT;
use rand::RngExt;
use rand::seq::index;
use std::collections::{HashMap, HashSet};

/// Rows that are looked at together in a pass over all.
const BLOCK: usize = 4096;

/// What tells rows from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prints {
    /// A fingerprint of each row, its target included.
    pub(crate) rows: Vec<u64>,
    /// Whether rows that equal others are duplicates of them, and no further observations that happen to be alike.
    pub(crate) copied: bool,
}

impl Prints {
    /// Of all rows as they are in standard units, by their inputs and their first target.
    ///
    /// # Errors
    /// [`GpError::Rows`] where rows cannot be read.
    pub(crate) fn of(data: &dyn RowSource) -> Result<Self, GpError> {
        let n = data.rows();
        let [mut rows, mut inputs, mut targets] = [n; 3].map(Vec::with_capacity);
        for range in pieces(n, BLOCK) {
            let block = data.block(range)?;
            let y: Vec<f64> = block.targets().col(0).iter().copied().collect();
            rows.extend(table_fingerprints(block.inputs(), &y));
            inputs.extend(table_fingerprints(block.inputs(), &vec![0.0; y.len()]));
            targets.extend(y.iter().map(|y| y.to_bits()));
        }
        Ok(Self::new(rows, inputs, targets))
    }

    /// From the fingerprints of rows, of their inputs, and the bits of their targets. Equal rows are duplicates where targets take (nearly) as many values as there are different rows, so that none would come twice by chance; where rows of the same inputs never have different targets; and where they seldom have
    /// though targets take many values.
    fn new(rows: Vec<u64>, inputs: Vec<u64>, targets: Vec<u64>) -> Self {
        /// Values of which two are seldom the same by chance, and the share of pairs of equal inputs whose targets are as well.
        const MANY: usize = 20;
        const SELDOM_OTHERWISE: f64 = 0.9;
        let n = rows.len();
        let (different, alike) = tally(rows.clone());
        let [(inputs, same_inputs), (targets, _)] = [inputs, targets].map(tally);
        let copied = different < n
            && (2 * targets >= different
                || 100 * different.saturating_sub(inputs) <= n - inputs
                || targets >= MANY && alike >= SELDOM_OTHERWISE * same_inputs);
        Self { rows, copied }
    }

    /// How many duplicates of each row there are, itself among them: one, where equal rows are no duplicates.
    pub(crate) fn multiplicities(&self) -> Vec<usize> {
        let mut counts: HashMap<u64, usize> = HashMap::new();
        self.rows.iter().for_each(|print| *counts.entry(*print).or_default() += 1);
        self.rows.iter().map(|print| if self.copied { counts[print] } else { 1 }).collect()
    }
}

/// How many different numbers there are, and pairs of equal ones.
fn tally(mut numbers: Vec<u64>) -> (usize, f64) {
    numbers.sort_unstable();
    let runs = numbers.chunk_by(|a, b| a == b).map(<[u64]>::len);
    runs.fold((0, 0.0), |(count, pairs), run| (count + 1, pairs + 0.5 * run as f64 * (run - 1) as f64))
}

/// Numbers of rows, each list ascending. Test rows are no part of it: they leave a table before a fit sees it ([`posterior_data::Split`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// To learn from.
    pub(crate) train: Vec<usize>,
    /// To judge or to choose by.
    pub(crate) validation: Vec<usize>,
    /// Rows that were drawn and went back, because their duplicates are learned from.
    pub(crate) training_duplicates: usize,
    /// Duplicates of validation rows, which are in neither list.
    pub(crate) duplicates: usize,
}

impl Split {
    /// Draws `count` of the rows: of rows with groups or times whole ones until so many are reached, or the newest.
    ///
    /// # Errors
    /// [`GpError::Rows`] where all rows are of one group or one time.
    pub(crate) fn drawn(
        prints: &Prints,
        parting: Option<&Parting>,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self, GpError> {
        let n = prints.rows.len();
        if let Some(parting) = parting {
            let streams = Streams::new(rng.random());
            return Self::whole(parting, count as f64 / n as f64, streams);
        }
        let mut out = vec![false; n];
        index::sample(rng, n, count).into_iter().for_each(|i| out[i] = true);
        let (train, validation) = (0..n).partition(|&i| !out[i]);
        Ok(Self::as_drawn(train, validation).without_training_duplicates(prints))
    }

    /// A share of the rows, in whole groups or newer than the others.
    ///
    /// # Errors
    /// [`GpError::Rows`] where all rows are of one group or one time.
    pub(crate) fn whole(parting: &Parting, fraction: f64, streams: Streams) -> Result<Self, GpError> {
        let drawn = match parting {
            Parting::Groups(groups) => DrawnSplit::grouped(groups, fraction, streams),
            Parting::Times(times) => DrawnSplit::newest(times, fraction),
        };
        let drawn = drawn.map_err(|problem| GpError::Rows {
            reason: format!("they cannot be parted by --groups or --time: {problem}"),
        })?;
        Ok(Self::as_drawn(drawn.train, drawn.test))
    }

    /// These rows as they are.
    pub(crate) fn as_drawn(train: Vec<usize>, validation: Vec<usize>) -> Self {
        Self { train, validation, training_duplicates: 0, duplicates: 0 }
    }

    /// Without duplicates: a row that equals one of `train`, input by input and in its (first) target, tells how well that row was remembered, and nothing of rows to come; whoever is chosen by such rows remembers. It
    /// goes back to `train`, unless that would leave less than half of `validation`: then duplicates of the drawn rows are learned from no more than these themselves. But of a table whose rows repeat by nature (few columns of few values), repetition is what rows to come are like, and all stay: those that repeat nothing are unlike them.
    pub(crate) fn without_training_duplicates(self, prints: &Prints) -> Self {
        if !prints.copied {
            return self;
        }
        let Self { train, validation, .. } = &self;
        let of = |i: usize| prints.rows[i];
        let learned = RowFingerprints::new(train.iter().map(|&i| of(i)));
        let (back, kept): (Vec<usize>, Vec<usize>) =
            validation.iter().copied().partition(|&i| learned.contains(of(i)));
        if 2 * kept.len() >= validation.len() {
            let training_duplicates = back.len();
            let mut train = [&train[..], &back].concat();
            train.sort_unstable();
            return Self { train, validation: kept, training_duplicates, duplicates: 0 };
        }
        let mut judged = HashSet::new();
        let once: Vec<usize> = validation.iter().copied().filter(|&i| judged.insert(of(i))).collect();
        let others: Vec<usize> = train.iter().copied().filter(|&i| !judged.contains(&of(i))).collect();
        if others.is_empty() {
            return self;
        }
        let duplicates = prints.rows.len() - others.len() - once.len();
        Self { train: others, validation: once, training_duplicates: 0, duplicates }
    }
}

/// Rows that are set aside: a tenth, but no more than say enough.
pub(crate) const MOST_SET_ASIDE: usize = 5000;

/// Rows that are set aside of so many, to stop and to choose by.
pub(crate) fn set_aside(rows: usize) -> Result<usize, ModelError> {
    if rows < 10 {
        return Err(ModelError::Request(format!(
            "deep kernels need rows to learn from and others to stop by; {rows} are too few: take {EXACT}"
        )));
    }
    Ok((rows / 10).clamp(1, MOST_SET_ASIDE))
}

/// Duplicates that were left out with rows, and drawn rows that went back to their duplicates; nothing of none.
pub(crate) fn equals(training_duplicates: usize, duplicates: usize) -> Facts {
    let own = Facts::apart("; ");
    let own = match training_duplicates {
        0 => own,
        1 => own.and("another one that was drawn equals a row that is learned from, and went back to it"),
        many => own
            .and(count(many, "more that were drawn equal rows that are learned from, and went back to them")),
    };
    match duplicates {
        0 => own,
        1 => own.and("a duplicate of one of them was left out with it"),
        many => own.and(count(many, "duplicates of them were left out with them")),
    }
}

/// Rows that were set aside, what for, and those that went back.
pub(crate) fn rows_set_aside(rows: usize, what_for: &str, training_duplicates: usize) -> Fact {
    let rows = Facts::apart("; ").and(count(rows, what_for));
    Fact::new("rows set aside", rows.and(equals(training_duplicates, 0)))
}

/// Scores of so many rows that had no part in a fit.
pub(crate) fn scored(rows: usize, scores: Facts) -> Facts {
    Facts::apart("; ").and(Facts::apart(": ").and(count(rows, "")).and(scores))
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;
    use posterior_gp::Observations;
    use posterior_linalg::random::Streams;

    /// Rows (i mod `period`).
    fn table(rows: usize, period: usize) -> Observations {
        let value = |i: usize| (i % period) as f64;
        let inputs = Mat::from_fn(rows, 2, |i, j| value(i) + j as f64);
        Observations::new(inputs, Mat::from_fn(rows, 1, |i, _| value(i)), None).unwrap()
    }

    fn split(data: &Observations, train: Vec<usize>, validation: Vec<usize>) -> Split {
        Split::as_drawn(train, validation).without_training_duplicates(&Prints::of(data).unwrap())
    }

    #[test]
    fn training_duplicates_go_back() {
        // Row 40 + i is row i, of which 0 to 9 have one.
        let data = table(50, 40);
        let apart = split(&data, (0..30).chain(47..50).collect(), (30..47).collect());
        assert_eq!(
            (apart.validation, apart.training_duplicates, apart.duplicates),
            ((30..40).collect(), 7, 0)
        );
        assert_eq!(apart.train, (0..30).chain(40..50).collect::<Vec<_>>());
        // The same inputs with another target are no duplicates.
        let mut targets = data.targets().to_owned();
        targets[(40, 0)] = 0.5;
        let other = Observations::new(data.inputs().to_owned(), targets, None).unwrap();
        let apart = split(&other, (0..30).collect(), (30..41).collect());
        assert_eq!((apart.validation.len(), apart.training_duplicates), (11, 0));
    }

    /// Rows that all are there more than once: nothing is judged by what was remembered.
    #[test]
    fn duplicates_are_left_out_with_their_rows() {
        let data = table(60, 20);
        let apart = split(&data, (0..50).collect(), (50..60).collect());
        // Rows 10 to 19 of three duplicates each.
        assert_eq!(
            (apart.validation.clone(), apart.training_duplicates, apart.duplicates),
            ((50..60).collect(), 0, 20)
        );
        assert_eq!(apart.train, (0..50).filter(|i| i % 20 < 10).collect::<Vec<_>>());
        let two = split(&data, (0..40).collect(), (40..60).collect());
        assert_eq!(
            (two.validation.len(), two.train.len(), two.duplicates),
            (20, 40, 0),
            "nothing would be left to learn from"
        );
    }

    /// Three values of one column, and targets of two, whatever the column: they repeat by nature.
    #[test]
    fn what_repeats_by_nature_is_judged_as_it_comes() {
        let inputs = Mat::from_fn(60, 1, |i, _| (i % 3) as f64);
        let noisy = Mat::from_fn(60, 1, |i, _| f64::from(u8::from(i % 7 < 3)));
        let data = Observations::new(inputs.clone(), noisy, None).unwrap();
        let apart = split(&data, (0..50).collect(), (50..60).collect());
        assert_eq!((apart.validation.len(), apart.train.len(), apart.duplicates), (10, 50, 0));
        // Classes that never contradict each other are copied rows.
        let inputs = Mat::from_fn(60, 1, |i, _| (i % 30) as f64);
        let classes = Mat::from_fn(60, 1, |i, _| f64::from(u8::from(i % 30 < 9)));
        let data = Observations::new(inputs, classes, None).unwrap();
        let apart = split(&data, (0..50).collect(), (50..60).collect());
        assert_eq!((apart.validation.len(), apart.train.len(), apart.duplicates), (10, 40, 10));
    }

    /// Measurements of few digits, all given twice, three of them with another target: duplicates, since two of 25 values are seldom the same by chance.
    #[test]
    fn rounded_targets_do_not_make_duplicates_natural() {
        let bits = |values: Vec<usize>| values.into_iter().map(|v| v as u64).collect::<Vec<u64>>();
        let input = |i: usize| i % 100;
        let copied = |values: usize, others: usize| {
            let target = |i: usize| (i % 100 + usize::from(i < others)) % values;
            let rows = bits((0..200).map(|i| 1000 * input(i) + target(i)).collect());
            Prints::new(rows, bits((0..200).map(input).collect()), bits((0..200).map(target).collect()))
                .copied
        };
        assert!(copied(25, 3) && !copied(25, 20));
        // Of two values they are the same by chance.
        assert!(copied(2, 1) && !copied(2, 3));
    }

    #[test]
    fn draws_are_apart() {
        let rng = || Streams::new(3).stream("test/apart");
        let apart = Split::drawn(&Prints::of(&table(50, 50)).unwrap(), None, 12, &mut rng()).unwrap();
        assert_eq!((apart.train.len(), apart.validation.len(), apart.training_duplicates), (38, 12, 0));
        assert!(apart.validation.iter().all(|i| apart.train.binary_search(i).is_err()));
        // Every row twice: none of those that are drawn is learned from.
        let data = table(50, 25);
        let doubled = Split::drawn(&Prints::of(&data).unwrap(), None, 5, &mut rng()).unwrap();
        assert_eq!(doubled.train.len() + doubled.validation.len() + doubled.duplicates, 50);
        let value = |i: &usize| i % 25;
        assert!(doubled.validation.iter().all(|i| doubled.train.iter().all(|j| value(i) != value(j))));
    }
}
