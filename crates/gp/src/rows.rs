//! Rows that a method asks for by their numbers, wherever they are.

use crate::{GpError, Observations, Parting};
use std::fmt::Debug;
use std::ops::Range;

/// Rows to learn from that need not be in memory: [`Observations`], or a file of them. A method on mini-batches asks for no more than a batch at a time, one that adds up all rows for a block, and neither knows which it is.
pub trait RowSource: Debug + Sync {
    /// Number of rows, n.
    fn rows(&self) -> usize;

    /// Numbers of inputs and of targets, D and t.
    fn widths(&self) -> [usize; 2];

    /// Whether rows have known noise variances.
    fn has_row_noise(&self) -> bool;

    /// Whether the rows are in memory, which the plan of a fit then counts.
    fn in_memory(&self) -> bool;

    /// How rows are parted where some are left out, if it matters; never of rows that are not in memory.
    fn parting(&self) -> Option<&Parting> {
        None
    }

    /// The given rows, in the given order: some of `0..n`, any of them more than once.
    ///
    /// # Errors
    /// [`GpError::Rows`] where they cannot be had, [`GpError::Empty`] for no rows.
    ///
    /// # Panics
    /// When there is no such row.
    fn gather(&self, rows: &[usize]) -> Result<Observations, GpError>;

    /// Consecutive rows.
    ///
    /// # Errors
    /// As [`Self::gather`].
    fn block(&self, rows: Range<usize>) -> Result<Observations, GpError> {
        self.gather(&rows.collect::<Vec<_>>())
    }
}

impl RowSource for Observations {
    fn rows(&self) -> usize {
        Observations::rows(self)
    }

    fn widths(&self) -> [usize; 2] {
        [self.inputs().ncols(), self.targets().ncols()]
    }

    fn has_row_noise(&self) -> bool {
        self.noise_variances().is_some()
    }

    fn in_memory(&self) -> bool {
        true
    }

    fn parting(&self) -> Option<&Parting> {
        Observations::parting(self)
    }

    fn gather(&self, rows: &[usize]) -> Result<Observations, GpError> {
        self.select(rows)
    }
}

#[cfg(test)]
pub(crate) mod reversed {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Rows that are asked for from elsewhere, in the order of a file that is written from its end.
    #[derive(Debug)]
    pub(crate) struct ReversedRows {
        backwards: Observations,
        /// Rows that were asked for at a time, at most.
        most: AtomicUsize,
        pub(crate) fails: bool,
    }

    impl ReversedRows {
        pub(crate) fn new(data: &Observations) -> Self {
            let order: Vec<usize> = (0..data.rows()).rev().collect();
            Self { backwards: data.select(&order).unwrap(), most: 0.into(), fails: false }
        }

        pub(crate) fn most_at_once(&self) -> usize {
            self.most.load(Ordering::Relaxed)
        }
    }

    impl RowSource for ReversedRows {
        fn rows(&self) -> usize {
            self.backwards.rows()
        }

        fn widths(&self) -> [usize; 2] {
            RowSource::widths(&self.backwards)
        }

        fn has_row_noise(&self) -> bool {
            self.backwards.noise_variances().is_some()
        }

        fn in_memory(&self) -> bool {
            false
        }

        fn gather(&self, rows: &[usize]) -> Result<Observations, GpError> {
            if self.fails {
                return Err(GpError::Rows { reason: "the disk is gone".into() });
            }
            self.most.fetch_max(rows.len(), Ordering::Relaxed);
            let last = self.backwards.rows() - 1;
            self.backwards.select(&rows.iter().map(|i| last - i).collect::<Vec<_>>())
        }
    }
}
