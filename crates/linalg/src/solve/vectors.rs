//! The vector arithmetic of solvers on blocks of columns: sums in f64, one pass over memory each.

use super::SolveError;
use crate::vectorised::{self, dispatch};
use crate::{Real, parallel};
use faer::{Mat, MatMut, MatRef};

/// Below this many numbers, waking threads costs more than the pass over them.
const SMALL: usize = 1 << 16;

/// `Σ_i a_i b_i` in sixteen interleaved f64 sums.
fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let (heads_a, tail_a) = a.as_chunks::<LANES>();
    let (heads_b, tail_b) = b.as_chunks::<LANES>();
    for (x, y) in heads_a.iter().zip(heads_b) {
        for lane in 0..LANES {
            sums[lane] += x[lane].to_f64() * y[lane].to_f64();
        }
    }
    let tail: f64 = tail_a.iter().zip(tail_b).map(|(x, y)| x.to_f64() * y.to_f64()).sum();
    sums.iter().sum::<f64>() + tail
}

/// Calls `work(j)` for every column, on several threads when the block is large.
fn by_column<R: Send>(rows: usize, columns: usize, work: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    if rows * columns < SMALL { (0..columns).map(work).collect() } else { parallel::map(columns, 1, work) }
}

/// Inner products of corresponding columns.
#[inline(never)]
pub(super) fn column_dots<T: Real>(a: &Mat<T>, b: &Mat<T>) -> Vec<f64> {
    by_column(a.nrows(), a.ncols(), |j| dot(a.col_as_slice(j), b.col_as_slice(j)))
}

/// Euclidean norms of columns.
#[inline(never)]
pub(super) fn column_norms<T: Real>(a: &Mat<T>) -> Vec<f64> {
    column_dots(a, a).into_iter().map(f64::sqrt).collect()
}

/// `a[:, j] += scale[j] b[:, j]`.
pub(super) fn add_scaled<T: Real>(a: &mut Mat<T>, scale: &[f64], b: &Mat<T>) {
    each_column(a.as_mut(), |j, column| {
        let (s, b) = (T::from_f64(scale[j]), b.col_as_slice(j));
        dispatch(
            #[inline(always)]
            || vectorised::add_scaled(s, b, column),
        );
    });
}

/// `a[:, j] = b[:, j] + scale[j] a[:, j]`.
pub(super) fn scale_and_add<T: Real>(a: &mut Mat<T>, scale: &[f64], b: &Mat<T>) {
    each_column(a.as_mut(), |j, column| {
        let (s, b) = (T::from_f64(scale[j]), b.col_as_slice(j));
        dispatch(
            #[inline(always)]
            || {
                for (x, &y) in column.iter_mut().zip(b) {
                    *x = x.mul_add(s, y);
                }
            },
        );
    });
}

/// Calls `work(j, column)` for every column of a column-major block.
pub(super) fn each_column<T: Real>(block: MatMut<'_, T>, work: impl Fn(usize, &mut [T]) + Sync + Send) {
    let large = block.nrows() * block.ncols() >= SMALL;
    let visit = |(j, column): (usize, faer::ColMut<'_, T>)| {
        let slice = column.try_as_col_major_mut().expect("solver blocks are column-major").as_slice_mut();
        work(j, slice);
    };
    let columns: Vec<_> = block.col_iter_mut().enumerate().collect();
    if large {
        parallel::consume(columns, visit);
    } else {
        columns.into_iter().for_each(visit);
    }
}

/// Some columns of a matrix, in new memory.
#[inline(never)]
pub(super) fn pick_columns<T: Real>(matrix: &Mat<T>, columns: &[usize]) -> Mat<T> {
    let mut out = Mat::zeros(matrix.nrows(), columns.len());
    for (to, &from) in columns.iter().enumerate() {
        out.col_as_slice_mut(to).copy_from_slice(matrix.col_as_slice(from));
    }
    out
}

/// The first entry that is not finite, as an error.
pub(super) fn check_finite<T: Real>(what: &'static str, matrix: MatRef<'_, T>) -> Result<(), SolveError> {
    for column in 0..matrix.ncols() {
        for row in 0..matrix.nrows() {
            let value = matrix[(row, column)];
            if !Real::is_finite(value) {
                return Err(SolveError::NotFinite { what, row, column, value: value.to_f64() });
            }
        }
    }
    Ok(())
}
