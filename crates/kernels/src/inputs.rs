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

/// Interleaved partial sums of a term over `0..count`.
#[inline(always)]
pub(crate) fn lanes<T: Real>(count: usize, term: impl Fn(usize) -> T) -> [T; LANES] {
    let mut sums = [T::ZERO; LANES];
    let whole = count / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for lane in 0..LANES {
            sums[lane] += term(start + lane);
        }
    }
    for i in whole..count {
        sums[i - whole] += term(i);
    }
    sums
}

/// Interleaved partial sums of `w (x - centre)` and of `w (x - centre)²`.
#[inline(always)]
pub(crate) fn moment_lanes<T: Real>(x: &[T], centre: T, w: &[T]) -> [[T; LANES]; 2] {
    let mut sums = [[T::ZERO; LANES]; 2];
    let ((x, x_rest), (w, w_rest)) = (x.as_chunks::<LANES>(), w.as_chunks::<LANES>());
    for (x, w) in x.iter().zip(w) {
        add_moments(&mut sums, x, centre, w);
    }
    let mut rest = [T::ZERO; 2];
    for (&x, &w) in x_rest.iter().zip(w_rest) {
        let pull = w * (x - centre);
        rest[0] += pull;
        rest[1] = pull.mul_add(x - centre, rest[1]);
    }
    sums[0][0] += rest[0];
    sums[1][0] += rest[1];
    sums
}

/// Each loop is one instruction for all lanes: with both sums in one loop, the compiler puts pairs of terms together in short vectors.
#[inline(always)]
fn add_moments<T: Real>(sums: &mut [[T; LANES]; 2], x: &[T; LANES], centre: T, w: &[T; LANES]) {
    let (mut difference, mut pull) = ([T::ZERO; LANES], [T::ZERO; LANES]);
    for lane in 0..LANES {
        difference[lane] = x[lane] - centre;
    }
    for lane in 0..LANES {
        pull[lane] = w[lane] * difference[lane];
    }
    for lane in 0..LANES {
        sums[0][lane] += pull[lane];
    }
    for lane in 0..LANES {
        sums[1][lane] = pull[lane].mul_add(difference[lane], sums[1][lane]);
    }
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
    fold(&lanes(count, term))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small integers, whose sums are exact in any order; lengths on both sides of whole vectors.
    #[test]
    fn partial_sums_take_every_term_once() {
        for length in 0..70_usize {
            let x: Vec<f64> = (0..length).map(|i| (i * i % 29) as f64).collect();
            let w: Vec<f64> = (0..length).map(|i| (i * 5 % 17) as f64 - 8.0).collect();
            let moment =
                |power: i32| -> f64 { x.iter().zip(&w).map(|(x, w)| w * (x - 3.0).powi(power)).sum() };
            let [first, second] = moment_lanes(&x, 3.0, &w);
            assert_eq!((fold(&first), fold(&second)), (moment(1), moment(2)), "{length} terms");
            assert_eq!(lane_sum(length, |i| x[i]), x.iter().sum::<f64>(), "{length} terms");
        }
    }
}
