//! Rows to judge or to choose by, apart from those that are learned from.

use posterior_data::{RowFingerprints, table_fingerprints};
use posterior_gp::Observations;
use posterior_linalg::random::ChaCha8Rng;
use rand::seq::index;

/// Numbers of rows, each list ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Apart {
    /// To learn from.
    pub(super) rest: Vec<usize>,
    /// To judge by.
    pub(super) drawn: Vec<usize>,
    /// Rows that were drawn and went back, because their twins are learned from.
    pub(super) twins: usize,
}

impl Apart {
    /// Draws `count` of the rows.
    pub(super) fn drawn(data: &Observations, count: usize, mut rng: ChaCha8Rng) -> Self {
        Self::drawn_of(&prints(data), count, &mut rng)
    }

    /// The same of rows with these fingerprints.
    pub(super) fn drawn_of(prints: &[u64], count: usize, rng: &mut ChaCha8Rng) -> Self {
        let n = prints.len();
        let mut out = vec![false; n];
        index::sample(rng, n, count).into_iter().for_each(|i| out[i] = true);
        let (rest, drawn) = (0..n).partition(|&i| !out[i]);
        Self::of_prints(prints, rest, drawn)
    }

    /// Without twins: a row that equals one of `rest`, input by input and in its (first) target, tells how well that row was remembered, and nothing of rows to come; whoever is chosen by such rows remembers. It
    /// goes back to `rest`, unless that would leave less than half of `drawn`: of a table whose rows repeat by nature (few columns of few values), repetition is what rows to come are like.
    pub(super) fn new(data: &Observations, rest: Vec<usize>, drawn: Vec<usize>) -> Self {
        Self::of_prints(&prints(data), rest, drawn)
    }

    fn of_prints(prints: &[u64], rest: Vec<usize>, drawn: Vec<usize>) -> Self {
        let learned = RowFingerprints::new(rest.iter().map(|&i| prints[i]));
        let (back, kept): (Vec<usize>, Vec<usize>) =
            drawn.iter().copied().partition(|&i| learned.contains(prints[i]));
        if 2 * kept.len() < drawn.len() {
            return Self { rest, drawn, twins: 0 };
        }
        let twins = back.len();
        let mut rest = [rest, back].concat();
        rest.sort_unstable();
        Self { rest, drawn: kept, twins }
    }
}

fn prints(data: &Observations) -> Vec<u64> {
    let targets: Vec<f64> = data.targets().col(0).iter().copied().collect();
    table_fingerprints(data.inputs(), &targets)
}

/// What a summary says of them; nothing of none.
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
        let apart = Apart::new(&data, (0..40).collect(), (40..50).collect());
        // All of them are twins: their table repeats by nature.
        assert_eq!((apart.drawn.len(), apart.twins), (10, 0));
        let apart = Apart::new(&data, (0..30).chain(47..50).collect(), (30..47).collect());
        assert_eq!((apart.drawn, apart.twins), ((30..40).collect(), 7));
        assert_eq!(apart.rest, (0..30).chain(40..50).collect::<Vec<_>>());
        // The same inputs with another target are no twins.
        let mut targets = data.targets().to_owned();
        targets[(40, 0)] = 0.5;
        let other = Observations::new(data.inputs().to_owned(), targets, None).unwrap();
        let apart = Apart::new(&other, (0..30).collect(), (30..41).collect());
        assert_eq!((apart.drawn.len(), apart.twins), (11, 0));
    }

    #[test]
    fn draws_are_apart() {
        let rng = || Streams::new(3).stream("test/apart");
        let apart = Apart::drawn(&table(50, 50), 12, rng());
        assert_eq!((apart.rest.len(), apart.drawn.len(), apart.twins), (38, 12, 0));
        assert!(apart.drawn.iter().all(|i| apart.rest.binary_search(i).is_err()));
        // Every row twice: where one half is drawn, most have their twin among the others.
        let doubled = Apart::drawn(&table(50, 25), 5, rng());
        assert_eq!(doubled.rest.len() + doubled.drawn.len(), 50);
        assert!(twins_in_words(doubled.twins).is_empty() == (doubled.twins == 0));
    }
}
