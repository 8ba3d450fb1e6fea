//! Which columns of the inputs a kernel sees, and their copies divided by lengthscales.

use faer::{Mat, MatRef};
use posterior_linalg::Real;

/// The columns that a kernel is restricted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(Vec<usize>);

impl Columns {
    /// All of `dimension` columns.
    pub fn all(dimension: usize) -> Self {
        Self((0..dimension).collect())
    }

    /// Some columns, counted from 0.
    ///
    /// # Panics
    /// When `columns` is empty.
    pub fn some(columns: Vec<usize>) -> Self {
        assert!(!columns.is_empty(), "a kernel needs at least one column");
        Self(columns)
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Their indices.
    pub fn indices(&self) -> &[usize] {
        &self.0
    }
}

/// A block of points as the kernel's arithmetic wants it: chosen columns, each contiguous, times a factor.
pub(crate) struct Points<T> {
    rows: usize,
    values: Vec<T>,
}

impl<T: Real> Points<T> {
    /// Column `d` of the result is column `columns[d]` of `x` times `factor(d)`.
    pub(crate) fn new(x: MatRef<'_, T>, columns: &Columns, factor: impl Fn(usize) -> T) -> Self {
        Self::map(x, columns, |d, v| v * factor(d))
    }

    /// Column `d` of the result is `f(d, v)` for each v in column `columns[d]` of `x`.
    pub(crate) fn map(x: MatRef<'_, T>, columns: &Columns, f: impl Fn(usize, T) -> T) -> Self {
        let rows = x.nrows();
        let mut values = Vec::with_capacity(rows * columns.count());
        for (d, &c) in columns.indices().iter().enumerate() {
            values.extend(x.col(c).iter().map(|&v| f(d, v)));
        }
        Self { rows, values }
    }

    /// Chosen column `d`.
    #[inline(always)]
    pub(crate) fn column(&self, d: usize) -> &[T] {
        &self.values[d * self.rows..(d + 1) * self.rows]
    }

    /// Number of chosen columns.
    pub(crate) fn count(&self) -> usize {
        self.values.len().checked_div(self.rows).unwrap_or(0)
    }

    /// As a matrix, rows x columns.
    pub(crate) fn matrix(&self) -> MatRef<'_, T> {
        MatRef::from_column_major_slice(&self.values, self.rows, self.count())
    }
}

/// Adds `values[d][i]` to column `columns[d]` of `target`.
pub(crate) fn add_column<T: Real>(target: &mut Mat<T>, column: usize, values: &[T]) {
    target.as_mut().col_mut(column).iter_mut().zip(values).for_each(|(t, &v)| *t += v);
}

/// Partial sums that a loop keeps side by side, so that it becomes vector code.
pub(crate) const LANES: usize = 16;

/// Interleaved partial sums of K terms over `0..count`.
#[inline(always)]
pub(crate) fn lanes<T: Real, const K: usize>(
    count: usize,
    term: impl Fn(usize) -> [T; K],
) -> [[T; LANES]; K] {
    let mut sums = [[T::ZERO; LANES]; K];
    let whole = count / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for lane in 0..LANES {
            let terms = term(start + lane);
            for k in 0..K {
                sums[k][lane] += terms[k];
            }
        }
    }
    for i in whole..count {
        let terms = term(i);
        for k in 0..K {
            sums[k][i - whole] += terms[k];
        }
    }
    sums
}

/// Adds partial sums to those of earlier loops.
#[inline(always)]
pub(crate) fn add_lanes<T: Real>(totals: &mut [f64; LANES], sums: &[T; LANES]) {
    for lane in 0..LANES {
        totals[lane] += sums[lane].to_f64();
    }
}

/// The sum of partial sums, by halves.
#[inline(always)]
pub(crate) fn fold<T: Real>(sums: &[T; LANES]) -> f64 {
    let mut totals = [0.0; LANES];
    add_lanes(&mut totals, sums);
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            totals[lane] += totals[lane + half];
        }
        half /= 2;
    }
    totals[0]
}

/// `Σ term(i)` over `0..count`.
#[inline(always)]
pub(crate) fn lane_sum<T: Real>(count: usize, term: impl Fn(usize) -> T) -> f64 {
    let [sums] = lanes(
        count,
        #[inline(always)]
        |i| [term(i)],
    );
    fold(&sums)
}
