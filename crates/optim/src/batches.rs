//! Which rows a step on part of the data looks at.

use posterior_linalg::random::{ChaCha8Rng, Streams};
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// How batches are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Consecutive slices of a fresh permutation each epoch. Each slice is a uniformly random subset, but slices of one epoch depend on one another: where the
    /// gradient's noise does not vanish at the solution (the primal), averages of iterates keep a bias of the order of the step size. Dual descent has none.
    #[default]
    Permutation,
    /// Independent uniform draws; a row may occur twice.
    Independent,
}

/// Batches as a function of the seed and the number of the step, so that a resumed run sees the same ones.
#[derive(Clone, Debug)]
pub struct Batches {
    rows: usize,
    size: usize,
    sampling: Sampling,
    streams: Streams,
    names: [&'static str; 2],
    full: bool,
    ascending: bool,
    /// The epoch that `order` is of.
    epoch: Option<usize>,
    order: Vec<usize>,
}

impl Batches {
    /// Batches of `size` (at least 1 and at most `rows`) out of `rows`; the last of an epoch may be shorter. `names` are those of the random streams: children by
    /// epoch, or by step for independent draws, and the stream of each.
    pub fn new(rows: usize, size: usize, sampling: Sampling, seed: u64, names: [&'static str; 2]) -> Self {
        let (size, streams) = (size.clamp(1, rows.max(1)), Streams::new(seed));
        Self {
            rows,
            size,
            sampling,
            streams,
            names,
            full: false,
            ascending: false,
            epoch: None,
            order: Vec::new(),
        }
    }

    /// The same with batches of full size only: a remainder waits for a later epoch.
    pub fn full(self) -> Self {
        Self { full: true, ..self }
    }

    /// The same with the rows of each batch in ascending order.
    pub fn ascending(self) -> Self {
        Self { ascending: true, ..self }
    }

    /// Rows in a batch.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Batches in an epoch.
    pub fn per_epoch(&self) -> usize {
        if self.full { self.rows / self.size } else { self.rows.div_ceil(self.size) }
    }

    /// The batch of step `step`, from 0.
    pub fn batch(&mut self, step: usize) -> Vec<usize> {
        let mut chosen: Vec<usize> = match self.sampling {
            Sampling::Independent => {
                let mut rng = self.stream(step);
                (0..self.size).map(|_| rng.random_range(0..self.rows)).collect()
            }
            Sampling::Permutation => {
                let (epoch, slice) = (step / self.per_epoch(), step % self.per_epoch());
                if self.epoch != Some(epoch) {
                    self.order.clear();
                    self.order.extend(0..self.rows);
                    let mut rng = self.stream(epoch);
                    self.order.shuffle(&mut rng);
                    self.epoch = Some(epoch);
                }
                self.order[slice * self.size..((slice + 1) * self.size).min(self.rows)].to_vec()
            }
        };
        if self.ascending {
            chosen.sort_unstable();
        }
        chosen
    }

    fn stream(&self, index: usize) -> ChaCha8Rng {
        let [child, stream] = self.names;
        self.streams.child(child, index as u64).stream(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["test/epoch", "order"];

    #[test]
    fn an_epoch_visits_every_row_once_and_steps_can_be_repeated() {
        let new = || Batches::new(12, 4, Sampling::Permutation, 1, NAMES).ascending();
        let mut batches = new();
        let mut seen: Vec<usize> = (0..3).flat_map(|step| batches.batch(step)).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..12).collect::<Vec<_>>());
        let (first, second) = (batches.batch(1), batches.batch(4));
        assert_ne!(first, second);
        assert!(first.is_sorted());
        assert_eq!(new().batch(4), second);
        assert_eq!(batches.batch(1), first);
        assert_eq!(Batches::new(3, 100, Sampling::Permutation, 1, NAMES).ascending().batch(0), [0, 1, 2]);
    }

    #[test]
    fn remainders_are_short_batches_or_wait() {
        let new = || Batches::new(10, 4, Sampling::Permutation, 3, NAMES);
        let mut batches = new();
        assert_eq!(batches.per_epoch(), 3);
        let mut epochs = Vec::new();
        for epoch in 0..2 {
            let seen: Vec<usize> = (0..3).flat_map(|k| batches.batch(3 * epoch + k)).collect();
            let mut sorted = seen.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
            epochs.push(seen);
        }
        assert_ne!(epochs[0], epochs[1]);
        assert_eq!(new().batch(4), &epochs[1][4..8]);
        let mut full = new().full();
        assert_eq!((full.per_epoch(), full.batch(2).len()), (2, 4));
        // The second step of full batches is the second slice of the same order.
        assert_eq!(full.batch(1), &epochs[0][4..8]);
    }

    #[test]
    fn independent_rows_are_uniform() {
        let mut counts = [0.0; 5];
        let mut batches = Batches::new(5, 5, Sampling::Independent, 2, NAMES);
        for step in 0..4000 {
            batches.batch(step).into_iter().for_each(|i| counts[i] += 1.0);
        }
        // Each count is binomial(20000, 1/5): standard deviation 57.
        assert!(counts.iter().all(|c: &f64| (c - 4000.0).abs() < 4.5 * 57.0), "{counts:?}");
    }
}
