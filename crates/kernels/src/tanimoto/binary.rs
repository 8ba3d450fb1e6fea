//! Rows of bits.

use super::kernel::value;
use super::matrix::CountRows;
use super::{CountError, SparseCounts};
use faer::MatMut;
use posterior_linalg::Real;
use posterior_linalg::sparse::SparseRows;
use std::ops::Range;

/// n vectors of D bits, 64 in a word: what two have in common is the population count of their conjunction, so an entry costs D/64 operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryRows {
    dimension: usize,
    words_per_row: usize,
    words: Vec<u64>,
    ones: Vec<u32>,
}

impl BinaryRows {
    /// The rows whose bits are the columns that `rows` names with a number other than 0.
    ///
    /// # Errors
    /// [`CountError::NotACount`] for numbers other than 0 and 1.
    pub fn new<T: Real>(rows: &SparseRows<T>) -> Result<Self, CountError> {
        let words_per_row = rows.columns().div_ceil(64);
        let mut words = vec![0u64; words_per_row * rows.rows()];
        let mut ones = vec![0u32; rows.rows()];
        for i in 0..rows.rows() {
            let (columns, values) = rows.row(i);
            for (&c, &v) in columns.iter().zip(values) {
                if v == T::ONE {
                    words[i * words_per_row + c as usize / 64] |= 1 << (c % 64);
                    ones[i] += 1;
                } else if v != T::ZERO {
                    let (column, value) = (c as usize, v.to_f64());
                    return Err(CountError::NotACount { row: i, column, value });
                }
            }
        }
        Ok(Self { dimension: rows.columns(), words_per_row, words, ones })
    }

    /// The bits that counts have: 1 for a count above 0.
    pub fn presence<T: Real>(counts: &SparseCounts<T>) -> Self {
        let rows = counts.sparse_rows();
        let words_per_row = rows.columns().div_ceil(64);
        let mut words = vec![0u64; words_per_row * rows.rows()];
        let mut ones = vec![0u32; rows.rows()];
        for i in 0..rows.rows() {
            let (columns, values) = rows.row(i);
            for (&c, _) in columns.iter().zip(values).filter(|&(_, v)| *v > T::ZERO) {
                words[i * words_per_row + c as usize / 64] |= 1 << (c % 64);
                ones[i] += 1;
            }
        }
        Self { dimension: rows.columns(), words_per_row, words, ones }
    }

    fn row(&self, i: usize) -> &[u64] {
        &self.words[i * self.words_per_row..(i + 1) * self.words_per_row]
    }
}

impl<T: Real> CountRows<T> for BinaryRows {
    fn rows(&self) -> usize {
        self.ones.len()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn select(&self, rows: &[usize]) -> Self {
        Self {
            dimension: self.dimension,
            words_per_row: self.words_per_row,
            words: rows.iter().flat_map(|&i| self.row(i).iter().copied()).collect(),
            ones: rows.iter().map(|&i| self.ones[i]).collect(),
        }
    }

    fn tile(&self, rows: Range<usize>, other: &Self, columns: Range<usize>, mut out: MatMut<'_, T>) {
        posterior_linalg::vectorised::dispatch(
            #[inline(always)]
            || {
                for (j, column) in columns.enumerate() {
                    let bits = other.row(column);
                    for (i, row) in rows.clone().enumerate() {
                        let mut shared = 0u64;
                        for (a, b) in self.row(row).iter().zip(bits) {
                            shared += u64::from((a & b).count_ones());
                        }
                        let both = u64::from(self.ones[row]) + u64::from(other.ones[column]);
                        out[(i, j)] = value(T::from_f64(shared as f64), T::from_f64(both as f64));
                    }
                }
            },
        );
    }
}
