//! Rows of bits.

use super::kernel::value;
use super::matrix::CountRows;
use super::{CountError, SparseCounts};
use crate::kernel::column;
use faer::MatMut;
use posterior_linalg::Real;
use posterior_linalg::sparse::SparseRows;
use posterior_linalg::vectorised::dispatch;
use std::convert::Infallible;
use std::ops::Range;

/// n vectors of D bits, 64 in a word: what two have in common is the population count of their conjunction, so an entry costs D/64 of those.
///
/// Word by word, all vectors side by side: the loop over vectors is the innermost one and takes as many as a register holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryRows {
    dimension: usize,
    /// Word w of vector i is at `w n + i`.
    words: Vec<u64>,
    ones: Vec<u32>,
}

impl BinaryRows {
    /// The rows whose bits are the columns that `rows` names with a number other than 0.
    ///
    /// # Errors
    /// [`CountError::NotACount`] for numbers other than 0 and 1.
    pub fn new<T: Real>(rows: &SparseRows<T>) -> Result<Self, CountError> {
        Self::build(rows, |row, column, v| {
            if v == T::ONE || v == T::ZERO {
                Ok(v == T::ONE)
            } else {
                Err(CountError::NotACount { row, column, value: v.to_f64() })
            }
        })
    }

    /// The bits that counts have: 1 for a count above 0.
    pub fn presence<T: Real>(counts: &SparseCounts<T>) -> Self {
        let Ok(bits) = Self::build(counts.sparse_rows(), |_, _, v| Ok::<_, Infallible>(v > T::ZERO));
        bits
    }

    /// The bits for which `bit` says yes, told row, column and number of each that is there.
    fn build<T: Real, E>(
        rows: &SparseRows<T>,
        bit: impl Fn(usize, usize, T) -> Result<bool, E>,
    ) -> Result<Self, E> {
        let n = rows.rows();
        let mut words = vec![0u64; rows.columns().div_ceil(64) * n];
        let mut ones = vec![0u32; n];
        for i in 0..n {
            let (columns, values) = rows.row(i);
            for (&c, &v) in columns.iter().zip(values) {
                let c = c as usize;
                if bit(i, c, v)? {
                    words[c / 64 * n + i] |= 1 << (c % 64);
                    ones[i] += 1;
                }
            }
        }
        Ok(Self { dimension: rows.columns(), words, ones })
    }

    /// One word of every vector, for each word.
    fn words(&self) -> impl Iterator<Item = &[u64]> {
        // No vectors, no words: a chunk must not be empty.
        self.words.chunks_exact(self.ones.len().max(1))
    }
}

/// Adds to each number how many bits its word has in common with `bits`.
#[inline(always)]
fn add_common(shared: &mut [u64], words: &[u64], bits: u64) {
    let words = &words[..shared.len()];
    for i in 0..shared.len() {
        shared[i] += u64::from((words[i] & bits).count_ones());
    }
}

/// The kernel of vectors with `ones` bits each that share `shared` bits with a vector of `others` bits.
#[inline(always)]
fn write_values<T: Real>(shared: &[u64], ones: &[u32], others: u32, out: &mut [T]) {
    let (shared, ones) = (&shared[..out.len()], &ones[..out.len()]);
    for i in 0..out.len() {
        // Both are far below 2^53; a signed number has a vector instruction on more machines.
        let both = i64::from(ones[i]) + i64::from(others);
        out[i] = value(T::from_f64(shared[i] as i64 as f64), T::from_f64(both as f64));
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
            words: self.words().flat_map(|word| rows.iter().map(|&i| word[i])).collect(),
            ones: rows.iter().map(|&i| self.ones[i]).collect(),
        }
    }

    fn tile(&self, rows: Range<usize>, other: &Self, columns: Range<usize>, mut out: MatMut<'_, T>) {
        let mut shared = vec![0u64; rows.len()];
        let ones = &self.ones[rows.clone()];
        dispatch(
            #[inline(always)]
            || {
                let shared = &mut shared[..];
                for (j, z) in columns.enumerate() {
                    shared.fill(0);
                    for (word, others) in self.words().zip(other.words()) {
                        add_common(shared, &word[rows.clone()], others[z]);
                    }
                    write_values(shared, ones, other.ones[z], column(&mut out, j));
                }
            },
        );
    }
}
