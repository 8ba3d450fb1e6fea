//! Rows to judge or to choose by, apart from those that are learned from.

use super::file_rows::fingerprints;
use posterior_data::RowFingerprints;
use posterior_gp::{GpError, Observations};
use posterior_linalg::random::ChaCha8Rng;
use rand::seq::index;
use std::collections::{HashMap, HashSet};

/// What tells rows from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prints {
    /// A fingerprint of each row, its target included.
    pub(super) rows: Vec<u64>,
    /// Whether rows that equal others are copies of them, and no further observations that happen to be alike.
    pub(super) copied: bool,
}

impl Prints {
    /// From the fingerprints of rows, of their inputs, and the bits of their targets. Equal rows are copies where targets take (nearly) as many values as there are different rows, so that none would come twice by chance; where rows of the same inputs never have different targets; and where they seldom have
    /// though targets take many values.
    pub(super) fn new(rows: Vec<u64>, inputs: Vec<u64>, targets: Vec<u64>) -> Self {
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

    /// How many copies of each row there are, itself among them: one, where equal rows are no copies.
    pub(super) fn copies(&self) -> Vec<usize> {
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

/// Numbers of rows, each list ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Apart {
    /// To learn from.
    pub(super) rest: Vec<usize>,
    /// To judge by.
    pub(super) drawn: Vec<usize>,
    /// Rows that were drawn and went back, because their twins are learned from.
    pub(super) twins: usize,
    /// Copies of rows to judge by, which are in neither list.
    pub(super) copies: usize,
}

impl Apart {
    /// Draws `count` of the rows.
    pub(super) fn drawn(data: &Observations, count: usize, mut rng: ChaCha8Rng) -> Result<Self, GpError> {
        Ok(Self::drawn_of(&fingerprints(data)?, count, &mut rng))
    }

    /// The same of rows with these fingerprints.
    pub(super) fn drawn_of(prints: &Prints, count: usize, rng: &mut ChaCha8Rng) -> Self {
        let n = prints.rows.len();
        let mut out = vec![false; n];
        index::sample(rng, n, count).into_iter().for_each(|i| out[i] = true);
        let (rest, drawn) = (0..n).partition(|&i| !out[i]);
        Self::of_prints(prints, rest, drawn)
    }

    /// Without twins: a row that equals one of `rest`, input by input and in its (first) target, tells how well that row was remembered, and nothing of rows to come; whoever is chosen by such rows remembers. It
    /// goes back to `rest`, unless that would leave less than half of `drawn`: then copies of the drawn rows are learned from no more than these themselves. But of a table whose rows repeat by nature (few columns of few values), repetition is what rows to come are like, and all stay: those that repeat nothing are unlike them.
    pub(super) fn new(data: &Observations, rest: Vec<usize>, drawn: Vec<usize>) -> Result<Self, GpError> {
        Ok(Self::of_prints(&fingerprints(data)?, rest, drawn))
    }

    fn of_prints(prints: &Prints, rest: Vec<usize>, drawn: Vec<usize>) -> Self {
        if !prints.copied {
            return Self { rest, drawn, twins: 0, copies: 0 };
        }
        let of = |i: usize| prints.rows[i];
        let learned = RowFingerprints::new(rest.iter().map(|&i| of(i)));
        let (back, kept): (Vec<usize>, Vec<usize>) =
            drawn.iter().copied().partition(|&i| learned.contains(of(i)));
        if 2 * kept.len() >= drawn.len() {
            let twins = back.len();
            let mut rest = [rest, back].concat();
            rest.sort_unstable();
            return Self { rest, drawn: kept, twins, copies: 0 };
        }
        let mut judged = HashSet::new();
        let once: Vec<usize> = drawn.iter().copied().filter(|&i| judged.insert(of(i))).collect();
        let others: Vec<usize> = rest.iter().copied().filter(|&i| !judged.contains(&of(i))).collect();
        if others.is_empty() {
            return Self { rest, drawn, twins: 0, copies: 0 };
        }
        let copies = prints.rows.len() - others.len() - once.len();
        Self { rest: others, drawn: once, twins: 0, copies }
    }
}

/// What a summary says of copies that were left out with rows; nothing of none.
pub(super) fn copies_in_words(copies: usize) -> String {
    match copies {
        0 => String::new(),
        1 => "; a copy of one of them was left out with it".into(),
        many => format!("; {many} copies of them were left out with them"),
    }
}

/// What a summary says of twins; nothing of none.
pub(super) fn twins_in_words(twins: usize) -> String {
    match twins {
        0 => String::new(),
        1 => "; another one that was drawn equals a row that is learned from, and went back to it".into(),
        many => {
            format!("; {many} more that were drawn equal rows that are learned from, and went back to them")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;
    use posterior_linalg::random::Streams;

    /// Rows (i mod `period`).
    fn table(rows: usize, period: usize) -> Observations {
        let value = |i: usize| (i % period) as f64;
        let inputs = Mat::from_fn(rows, 2, |i, j| value(i) + j as f64);
        Observations::new(inputs, Mat::from_fn(rows, 1, |i, _| value(i)), None).unwrap()
    }

    #[test]
    fn twins_go_back() {
        // Row 40 + i is row i, of which 0 to 9 have one.
        let data = table(50, 40);
        let apart = Apart::new(&data, (0..30).chain(47..50).collect(), (30..47).collect()).unwrap();
        assert_eq!((apart.drawn, apart.twins, apart.copies), ((30..40).collect(), 7, 0));
        assert_eq!(apart.rest, (0..30).chain(40..50).collect::<Vec<_>>());
        // The same inputs with another target are no twins.
        let mut targets = data.targets().to_owned();
        targets[(40, 0)] = 0.5;
        let other = Observations::new(data.inputs().to_owned(), targets, None).unwrap();
        let apart = Apart::new(&other, (0..30).collect(), (30..41).collect()).unwrap();
        assert_eq!((apart.drawn.len(), apart.twins), (11, 0));
    }

    /// Rows that all are there more than once: nothing is judged by what was remembered.
    #[test]
    fn copies_are_left_out_with_their_rows() {
        let data = table(60, 20);
        let apart = Apart::new(&data, (0..50).collect(), (50..60).collect()).unwrap();
        // Rows 10 to 19 of three copies each.
        assert_eq!((apart.drawn.clone(), apart.twins, apart.copies), ((50..60).collect(), 0, 20));
        assert_eq!(apart.rest, (0..50).filter(|i| i % 20 < 10).collect::<Vec<_>>());
        let two = Apart::new(&data, (0..40).collect(), (40..60).collect()).unwrap();
        assert_eq!(
            (two.drawn.len(), two.rest.len(), two.copies),
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
        let apart = Apart::new(&data, (0..50).collect(), (50..60).collect()).unwrap();
        assert_eq!((apart.drawn.len(), apart.rest.len(), apart.copies), (10, 50, 0));
        // Classes that never contradict each other are copied rows.
        let inputs = Mat::from_fn(60, 1, |i, _| (i % 30) as f64);
        let classes = Mat::from_fn(60, 1, |i, _| f64::from(u8::from(i % 30 < 9)));
        let data = Observations::new(inputs, classes, None).unwrap();
        let apart = Apart::new(&data, (0..50).collect(), (50..60).collect()).unwrap();
        assert_eq!((apart.drawn.len(), apart.rest.len(), apart.copies), (10, 40, 10));
    }

    /// Measurements of few digits, all given twice, three of them with another target: copies, since two of 25 values are seldom the same by chance.
    #[test]
    fn rounded_targets_do_not_make_copies_natural() {
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
        let apart = Apart::drawn(&table(50, 50), 12, rng()).unwrap();
        assert_eq!((apart.rest.len(), apart.drawn.len(), apart.twins), (38, 12, 0));
        assert!(apart.drawn.iter().all(|i| apart.rest.binary_search(i).is_err()));
        // Every row twice: none of those that are drawn is learned from.
        let data = table(50, 25);
        let doubled = Apart::drawn(&data, 5, rng()).unwrap();
        assert_eq!(doubled.rest.len() + doubled.drawn.len() + doubled.copies, 50);
        let value = |i: &usize| i % 25;
        assert!(doubled.drawn.iter().all(|i| doubled.rest.iter().all(|j| value(i) != value(j))));
    }
}
