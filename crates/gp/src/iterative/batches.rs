//! Which rows a stochastic step looks at.

use posterior_linalg::random::Streams;
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// How batches are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Consecutive slices of a fresh permutation each epoch; a remainder shorter than a batch waits for a later epoch. Each slice is
    /// uniform, but slices of one epoch depend on one another: where the gradient's noise does not vanish at the solution (the primal), averages of
    /// iterates keep a bias of the order of the step size. Dual descent has none.
    #[default]
    Permutation,
    /// Independent uniform draws; a row may occur twice.
    Independent,
}

/// Batches as a function of the seed and the number of the step, so that a resumed run sees the same ones.
#[derive(Clone, Debug)]
pub(super) struct Batches {
    rows: usize,
    size: usize,
    sampling: Sampling,
    streams: Streams,
    epoch: Option<(usize, Vec<usize>)>,
}

impl Batches {
    /// Batches of `size` (at most `rows`) out of `rows`.
    pub(super) fn new(rows: usize, size: usize, sampling: Sampling, seed: u64) -> Self {
        Self { rows, size: size.clamp(1, rows), sampling, streams: Streams::new(seed), epoch: None }
    }

    /// Rows in a batch.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The batch of step `step` (from 0), in ascending order.
    pub(super) fn batch(&mut self, step: usize) -> Vec<usize> {
        let mut chosen = match self.sampling {
            Sampling::Independent => {
                let mut rng = self.streams.child("gp/batch", step as u64).stream("rows");
                (0..self.size).map(|_| rng.random_range(0..self.rows)).collect()
            }
            Sampling::Permutation => {
                let slices = self.rows / self.size;
                let (epoch, slice) = (step / slices, step % slices);
                let size = self.size;
                self.permutation(epoch)[slice * size..(slice + 1) * size].to_vec()
            }
        };
        chosen.sort_unstable();
        chosen
    }

    fn permutation(&mut self, epoch: usize) -> &[usize] {
        if self.epoch.as_ref().is_none_or(|(at, _)| *at != epoch) {
            let mut order: Vec<usize> = (0..self.rows).collect();
            order.shuffle(&mut self.streams.child("gp/epoch", epoch as u64).stream("permutation"));
            self.epoch = Some((epoch, order));
        }
        self.epoch.as_ref().map_or(&[], |(_, order)| order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_visits_every_row_once_and_steps_can_be_repeated() {
        let mut batches = Batches::new(12, 4, Sampling::Permutation, 1);
        let mut seen: Vec<usize> = (0..3).flat_map(|step| batches.batch(step)).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..12).collect::<Vec<_>>());
        let (first, second) = (batches.batch(1), batches.batch(4));
        assert_ne!(first, second);
        assert_eq!(Batches::new(12, 4, Sampling::Permutation, 1).batch(4), second);
        assert_eq!(batches.batch(1), first);
        assert_eq!(Batches::new(3, 100, Sampling::Permutation, 1).batch(0), [0, 1, 2]);
    }

    #[test]
    fn independent_rows_are_uniform() {
        let mut batches = Batches::new(5, 100, Sampling::Independent, 2);
        batches.size = 100;
        let mut counts = [0.0; 5];
        for step in 0..200 {
            batches.batch(step).into_iter().for_each(|i| counts[i] += 1.0);
        }
        // Each count is binomial(20000, 1/5): standard deviation 57.
        assert!(counts.iter().all(|c: &f64| (c - 4000.0).abs() < 4.5 * 57.0), "{counts:?}");
    }
}
