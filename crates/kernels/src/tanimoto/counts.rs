//! Rows of few counts.

use super::kernel::value;
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::sparse::{SparseError, SparseRows};
use posterior_linalg::vectorised::dispatch;
use std::ops::Range;

/// Columns whose counts lie side by side while a tile is computed.
const LANES: usize = 16;

/// Dimensions up to which 16 rows are spread out; 4 MiB in single precision.
const SPREAD: usize = 1 << 16;

/// n vectors of D counts, most of which are zero.
///
/// A tile of the kernel matrix spreads 16 of its columns' vectors over D x 16 numbers, in which each non-zero count of a row finds its
/// 16 partners side by side: one vector operation for each non-zero count and 16 entries. Beyond 65,536 dimensions two sorted rows are merged
/// instead.
#[derive(Clone, Debug)]
pub struct SparseCounts<T> {
    rows: SparseRows<T>,
    sums: Vec<T>,
}

/// What is wrong with counts.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CountError {
    /// A count that is none.
    #[error("row {row}, column {column}: {value} is not a count; counts are finite and 0 or more")]
    NotACount {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// The number.
        value: f64,
    },
    /// Rows that do not hang together.
    #[error(transparent)]
    Sparse(#[from] SparseError),
}

impl<T: Real> SparseCounts<T> {
    /// Takes rows of counts.
    ///
    /// # Errors
    /// [`CountError::NotACount`] for negative, infinite or missing numbers.
    pub fn new(rows: SparseRows<T>) -> Result<Self, CountError> {
        let mut sums = Vec::with_capacity(rows.rows());
        for i in 0..rows.rows() {
            let (columns, values) = rows.row(i);
            let bad = values.iter().position(|v| !v.is_finite() || *v < T::ZERO);
            if let Some(k) = bad {
                let (column, value) = (columns[k] as usize, values[k].to_f64());
                return Err(CountError::NotACount { row: i, column, value });
            }
            sums.push(values.iter().copied().sum());
        }
        Ok(Self { rows, sums })
    }

    /// The counts of a dense matrix, n x D.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_dense(x: MatRef<'_, T>) -> Result<Self, CountError> {
        Self::new(SparseRows::from_dense(x)?)
    }

    /// The rows.
    pub fn sparse_rows(&self) -> &SparseRows<T> {
        &self.rows
    }

    /// `Σ min` by merging two sorted rows.
    fn merged(&self, i: usize, other: &Self, j: usize) -> T {
        let ((ci, vi), (cj, vj)) = (self.rows.row(i), other.rows.row(j));
        let (mut a, mut b, mut sum) = (0, 0, T::ZERO);
        while a < ci.len() && b < cj.len() {
            match ci[a].cmp(&cj[b]) {
                std::cmp::Ordering::Less => a += 1,
                std::cmp::Ordering::Greater => b += 1,
                std::cmp::Ordering::Equal => {
                    sum += if vi[a] < vj[b] { vi[a] } else { vj[b] };
                    (a, b) = (a + 1, b + 1);
                }
            }
        }
        sum
    }

    /// `Σ min` of row i with 16 rows that are spread out.
    #[inline(always)]
    fn against(&self, i: usize, spread: &[T]) -> [T; LANES] {
        let (columns, values) = self.rows.row(i);
        let mut sums = [T::ZERO; LANES];
        for (&c, &v) in columns.iter().zip(values) {
            let partners = &spread[c as usize * LANES..(c as usize + 1) * LANES];
            for lane in 0..LANES {
                sums[lane] += if partners[lane] < v { partners[lane] } else { v };
            }
        }
        sums
    }

    /// How many vectors.
    pub fn rows(&self) -> usize {
        self.rows.rows()
    }

    /// D: how many counts each has.
    pub fn dimension(&self) -> usize {
        self.rows.columns()
    }

    /// Some of the vectors.
    pub fn select(&self, rows: &[usize]) -> Self {
        Self { rows: self.rows.select(rows), sums: rows.iter().map(|&i| self.sums[i]).collect() }
    }

    /// Writes the kernel of some vectors with some of `other`, which has the same dimension (column-major).
    pub(super) fn tile(
        &self,
        rows: Range<usize>,
        other: &Self,
        columns: Range<usize>,
        mut out: MatMut<'_, T>,
    ) {
        let dimension = self.rows.columns();
        if dimension > SPREAD {
            for (j, column) in columns.enumerate() {
                for (i, row) in rows.clone().enumerate() {
                    out[(i, j)] = value(self.merged(row, other, column), self.sums[row] + other.sums[column]);
                }
            }
            return;
        }
        let mut spread = vec![T::ZERO; dimension * LANES];
        let mut first = columns.start;
        while first < columns.end {
            let group = first..(first + LANES).min(columns.end);
            let scatter = |spread: &mut [T], keep: bool| {
                for (lane, j) in group.clone().enumerate() {
                    let (columns, values) = other.rows.row(j);
                    for (&c, &v) in columns.iter().zip(values) {
                        spread[c as usize * LANES + lane] = if keep { v } else { T::ZERO };
                    }
                }
            };
            scatter(&mut spread, true);
            dispatch(
                #[inline(always)]
                || {
                    for (i, row) in rows.clone().enumerate() {
                        let sums = self.against(row, &spread);
                        for (lane, j) in group.clone().enumerate() {
                            let both = self.sums[row] + other.sums[j];
                            out[(i, j - columns.start)] = value(sums[lane], both);
                        }
                    }
                },
            );
            scatter(&mut spread, false);
            first = group.end;
        }
    }
}
