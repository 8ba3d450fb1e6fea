//! Which rows a step looks at: a function of seed and step only, so that a resumed fit sees what an uninterrupted one would have.

use posterior_linalg::random::Streams;
use rand::seq::SliceRandom;

/// Each epoch is a new random order of all rows, cut into batches; the last may be shorter. Every batch is a uniformly random
/// subset of its size, so `n/|I|` times its sum is unbiased.
#[derive(Debug)]
pub(super) struct Batches {
    rows: usize,
    size: usize,
    streams: Streams,
    epoch: Option<usize>,
    order: Vec<usize>,
}

impl Batches {
    pub(super) fn new(rows: usize, size: usize, seed: u64) -> Self {
        Self { rows, size: size.min(rows), streams: Streams::new(seed), epoch: None, order: Vec::new() }
    }

    pub(super) fn per_epoch(&self) -> usize {
        self.rows.div_ceil(self.size)
    }

    /// The rows of step `step`, from 0. Ascending when the batch is everything.
    pub(super) fn rows(&mut self, step: usize) -> &[usize] {
        let (epoch, part) = (step / self.per_epoch(), step % self.per_epoch());
        if self.epoch != Some(epoch) {
            self.order.clear();
            self.order.extend(0..self.rows);
            if self.size < self.rows {
                let mut rng = self.streams.child("gp/epoch", epoch as u64).stream("order");
                self.order.shuffle(&mut rng);
            }
            self.epoch = Some(epoch);
        }
        &self.order[part * self.size..((part + 1) * self.size).min(self.rows)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_visits_every_row_once_in_a_new_order_whatever_came_before() {
        let mut batches = Batches::new(10, 4, 3);
        assert_eq!(batches.per_epoch(), 3);
        let mut epochs = Vec::new();
        for epoch in 0..2 {
            let seen: Vec<usize> = (0..3).flat_map(|k| batches.rows(3 * epoch + k).to_vec()).collect();
            let mut sorted = seen.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
            epochs.push(seen);
        }
        assert_ne!(epochs[0], epochs[1]);
        assert_eq!(Batches::new(10, 4, 3).rows(4), &epochs[1][4..8]);
        assert_eq!(Batches::new(5, 100, 0).rows(7), [0, 1, 2, 3, 4]);
    }
}
