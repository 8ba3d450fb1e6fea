//! Which columns of the inputs a kernel sees, their copies divided by lengthscales, and sums over them.

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

/// `out[i] <- Σ_d` of `count` terms of coordinates `x_id` and a point's `z_d`, each given as its coordinates and the point's, where `term(x, z, sum)` adds one: up to eight a pass, so that partial sums
/// stay in registers and a column is written once for eight dimensions. The order of additions is that of the dimensions.
#[inline(always)]
pub(crate) fn sum_dimensions<'a, T: Real>(
    count: usize,
    out: &mut [T],
    dimension: impl Fn(usize) -> (&'a [T], T),
    term: impl Fn(T, T, T) -> T + Copy,
) {
    if count == 0 {
        out.fill(T::ZERO);
    }
    let mut done = 0;
    while done < count {
        done += match count - done {
            8.. => add_dimensions::<T, 8>(done, out, &dimension, term),
            4.. => add_dimensions::<T, 4>(done, out, &dimension, term),
            2.. => add_dimensions::<T, 2>(done, out, &dimension, term),
            _ => add_dimensions::<T, 1>(done, out, &dimension, term),
        };
    }
}

/// Adds N dimensions from `first`; before the first there was nothing. Returns N.
#[inline(always)]
fn add_dimensions<'a, T: Real, const N: usize>(
    first: usize,
    out: &mut [T],
    dimension: &impl Fn(usize) -> (&'a [T], T),
    term: impl Fn(T, T, T) -> T + Copy,
) -> usize {
    let n = out.len();
    let mut columns = [&[][..]; N];
    let mut point = [T::ZERO; N];
    for k in 0..N {
        let (column, z) = dimension(first + k);
        columns[k] = &column[..n];
        point[k] = z;
    }
    if first == 0 {
        for i in 0..n {
            let mut sum = T::ZERO;
            for k in 0..N {
                sum = term(columns[k][i], point[k], sum);
            }
            out[i] = sum;
        }
    } else {
        for i in 0..n {
            let mut sum = out[i];
            for k in 0..N {
                sum = term(columns[k][i], point[k], sum);
            }
            out[i] = sum;
        }
    }
    N
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

    /// On both sides of what is taken in one pass, from none on; whole numbers, with a term that shows the order.
    #[test]
    fn dimensions_are_summed_in_their_order() {
        for count in 0..30_usize {
            let columns: Vec<Vec<f64>> = (0..count).map(|d| vec![d as f64, 1.0, -2.0]).collect();
            let mut out = vec![f64::NAN; 3];
            sum_dimensions(
                count,
                &mut out,
                |d| (&columns[d], (d % 3) as f64),
                |x, z, sum| (7.0 * sum + x * z) % 1009.0,
            );
            for i in 0..3 {
                let expected =
                    (0..count).fold(0.0, |sum, d| (7.0 * sum + columns[d][i] * (d % 3) as f64) % 1009.0);
                assert_eq!(out[i], expected, "{count}");
            }
        }
    }

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
