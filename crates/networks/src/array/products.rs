//! Matrix products.

use super::{Array, Precision, together};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, MatMut, MatRef, Par};
use posterior_linalg::parallel;
use posterior_linalg::vectorised::dispatch;
use std::ops::Range;

/// A row-major matrix or its transpose.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    columns: usize,
    /// Values from one row to the next, and of a row that are left out before the first.
    stride: usize,
    first: usize,
    transposed: bool,
}

impl<'a, T: Precision> Matrix<'a, T> {
    /// `values` as `[rows, columns]`.
    ///
    /// # Panics
    /// When there are more values or fewer.
    pub fn new(values: &'a [T], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "a matrix of {rows} x {columns}");
        Self { values, rows, columns, stride: columns, first: 0, transposed: false }
    }

    /// Some columns of what is not transposed.
    pub(crate) fn columns(self, own: Range<usize>) -> Self {
        debug_assert!(!self.transposed && own.end <= self.columns);
        Self { columns: own.len(), first: self.first + own.start, ..self }
    }

    /// Its transpose, without moving anything.
    pub fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    fn view(self) -> MatRef<'a, T> {
        let all = MatRef::from_row_major_slice(self.values, self.rows, self.stride);
        let view = all.subcols(self.first, self.columns);
        if self.transposed { view.transpose() } else { view }
    }
}

/// Multiplications below which one thread is quicker than two.
const SERIAL: usize = 1 << 18;

/// One product on this thread, into some columns of `out`, which has rows of so many values.
#[inline(never)]
fn run<T: Precision>(
    (out, stride, own): (&mut [T], usize, Range<usize>),
    accumulate: bool,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
) {
    assert_eq!(a.ncols(), b.nrows(), "factors fit each other");
    assert_eq!(out.len(), a.nrows() * stride, "the product fits its place");
    if out.is_empty() {
        return;
    }
    let out = MatMut::from_row_major_slice_mut(out, a.nrows(), stride);
    let accumulate = if accumulate { Accum::Add } else { Accum::Replace };
    matmul(out.subcols_mut(own.start, own.len()), accumulate, a, b, T::ONE, Par::Seq);
}

/// One product on all threads: each takes some rows. (The threads of the matrix library spin while they wait for each other, which costs
/// much where other work runs beside them.) The sum behind an entry runs in the same order however the rows are cut, as long as every part has eight
/// rows and work enough for the kernels that run on large matrices.
#[inline(never)]
fn share<T: Precision>(out: &mut [T], columns: usize, accumulate: bool, a: Matrix<'_, T>, b: Matrix<'_, T>) {
    let (a, b) = (a.view(), b.view());
    let threads = rayon::current_num_threads();
    let work = a.nrows() * a.ncols() * columns;
    // Blocks of rows that fill registers, two for each thread where there are many.
    let parts = if a.nrows() >= 128 * threads { 2 * threads } else { threads };
    let parts = parts.min(a.nrows() / 8).min(work / (SERIAL / 2));
    if threads == 1 || work <= SERIAL || parts < 2 || out.is_empty() {
        return run((out, columns, 0..columns), accumulate, a, b);
    }
    let edge = |part: usize| if part == parts { a.nrows() } else { part * a.nrows() / parts / 8 * 8 };
    let mut rest = out;
    let mut cuts = Vec::with_capacity(parts);
    for part in 0..parts {
        let rows = edge(part)..edge(part + 1);
        let (own, others) = rest.split_at_mut(rows.len() * columns);
        cuts.push((rows, own));
        rest = others;
    }
    parallel::consume(cuts, |(rows, out): (Range<usize>, &mut [T])| {
        run((out, columns, 0..columns), accumulate, a.subrows(rows.start, rows.len()), b);
    });
}

/// `out = a b` (or `out += a b`), row-major, on all threads of the pool.
///
/// # Panics
/// When sizes do not fit.
pub fn product<T: Precision>(out: &mut [T], accumulate: bool, a: Matrix<'_, T>, b: Matrix<'_, T>) {
    T::multiply(out, accumulate, a, b);
}

/// The same on this thread, for those who share out many products themselves; `out` has so many columns.
pub(crate) fn product_here<T: Precision>(
    out: &mut [T],
    columns: usize,
    accumulate: bool,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
) {
    run((out, columns, 0..columns), accumulate, a.view(), b.view());
}

/// The same into some columns of `out`, which has rows of so many values.
pub(crate) fn product_in_columns<T: Precision>(
    out: (&mut [T], usize, Range<usize>),
    accumulate: bool,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
) {
    run(out, accumulate, a.view(), b.view());
}

/// What [`product`] does.
pub(crate) fn multiply<T: Precision>(out: &mut [T], accumulate: bool, a: Matrix<'_, T>, b: Matrix<'_, T>) {
    let columns = if b.transposed { b.rows } else { b.columns };
    share(out, columns, accumulate, a, b);
}

/// Adds `A^T A` of a row-major `A` (`[rows, columns]`) to the lower triangle of `sum`: `rows x columns^2` flops, half of a product. Products are made in the precision of `A`,
/// at most 8,192 rows at a time, before they are added in f64. The cuts depend on sizes only.
///
/// # Panics
/// When sizes do not fit.
pub fn add_gram<T: Precision>(sum: &mut faer::Mat<f64>, rows: &[T], columns: usize) {
    T::add_gram(sum, rows, columns);
}

/// What [`add_gram`] does.
pub(crate) fn add_rows<T: Precision>(sum: &mut faer::Mat<f64>, rows: &[T], columns: usize) {
    assert!(
        sum.nrows() == columns && sum.ncols() == columns,
        "the sum is square, with a row for each column"
    );
    assert!(columns > 0 && rows.len().is_multiple_of(columns), "whole rows");
    for piece in rows.chunks(8192 * columns) {
        let count = piece.len() / columns;
        if columns >= 512 || count < 64 {
            // Few rows for many columns: adding up would cost as much as multiplying, so each thread makes its own part of the triangle.
            add_gram_by_columns(sum, piece, columns);
        } else {
            let each = count.div_ceil(8).max(32) * columns;
            // As many at a time as there are threads, each of which holds one.
            for wave in piece.chunks(each * rayon::current_num_threads()) {
                let parts = parallel::map(wave.len().div_ceil(each), 1, |part| {
                    lower_gram(&wave[part * each..wave.len().min((part + 1) * each)], columns)
                });
                parts.iter().for_each(|part| add_lower(sum, 0, part));
            }
        }
    }
}

/// The lower triangle of `A^T A` on this thread.
fn lower_gram<T: Precision>(rows: &[T], columns: usize) -> faer::Mat<T> {
    let a = MatRef::from_row_major_slice(rows, rows.len() / columns, columns);
    let mut out = faer::Mat::zeros(columns, columns);
    add_triangle(out.as_mut(), a);
    out
}

/// `out = A^T A`, lower triangle.
fn add_triangle<T: Precision>(out: MatMut<'_, T>, a: MatRef<'_, T>) {
    triangular::matmul(
        out,
        BlockStructure::TriangularLower,
        Accum::Replace,
        a.transpose(),
        BlockStructure::Rectangular,
        a,
        BlockStructure::Rectangular,
        T::ONE,
        Par::Seq,
    );
}

/// Adds a lower triangle to the block that begins at `start` on the diagonal.
fn add_lower<T: Precision>(sum: &mut faer::Mat<f64>, start: usize, part: &faer::Mat<T>) {
    for j in 0..part.ncols() {
        let to = &mut sum.col_as_slice_mut(start + j)[start + j..];
        to.iter_mut().zip(&part.col_as_slice(j)[j..]).for_each(|(a, &b)| *a += b.to_f64());
    }
}

/// The triangle in bands of rows with equal areas.
fn add_gram_by_columns<T: Precision>(sum: &mut faer::Mat<f64>, rows: &[T], columns: usize) {
    let count = (columns / 128).clamp(1, 16);
    let a = MatRef::from_row_major_slice(rows, rows.len() / columns, columns);
    let edge = |k: usize| match k {
        0 => 0,
        k if k == count => columns,
        // Multiples of the registers' height.
        k => (columns as f64 * (k as f64 / count as f64).sqrt()) as usize / 16 * 16,
    };
    let bands: Vec<(usize, faer::Mat<T>, faer::Mat<T>)> = parallel::map(count, 1, |k| {
        let (start, end) = (edge(k), edge(k + 1));
        let own = a.subcols(start, end - start);
        let mut left = faer::Mat::zeros(end - start, start);
        if start > 0 {
            matmul(left.as_mut(), Accum::Replace, own.transpose(), a.subcols(0, start), T::ONE, Par::Seq);
        }
        let mut corner = faer::Mat::zeros(end - start, end - start);
        add_triangle(corner.as_mut(), own);
        (start, left, corner)
    });
    for (start, left, corner) in &bands {
        for j in 0..left.ncols() {
            let to = &mut sum.col_as_slice_mut(j)[*start..];
            to.iter_mut().zip(left.col_as_slice(j)).for_each(|(a, &b)| *a += b.to_f64());
        }
        add_lower(sum, *start, corner);
    }
}

/// One product for each of `count` pieces of `out`, in parallel; `factors(i)` gives the factors of piece `i`.
pub(crate) fn products<'a, T: Precision>(
    out: &mut [T],
    count: usize,
    accumulate: bool,
    factors: impl Fn(usize) -> (Matrix<'a, T>, Matrix<'a, T>) + Sync,
) {
    if out.is_empty() || count == 0 {
        return;
    }
    let size = out.len() / count;
    products_apart(out, size, size, accumulate, factors);
}

/// As [`products`], where piece `i` is the first `length` values from `i * stride`.
pub(crate) fn products_apart<'a, T: Precision>(
    out: &mut [T],
    stride: usize,
    length: usize,
    accumulate: bool,
    factors: impl Fn(usize) -> (Matrix<'a, T>, Matrix<'a, T>) + Sync,
) {
    let count = out.len().div_ceil(stride);
    let threads = rayon::current_num_threads();
    let one = |(i, out): (usize, &mut [T])| {
        let (a, b) = factors(i);
        let columns = if b.transposed { b.rows } else { b.columns };
        let out = &mut out[..length];
        if count < threads {
            share(out, columns, accumulate, a, b);
        } else {
            run((out, columns, 0..columns), accumulate, a.view(), b.view());
        }
    };
    if count < threads {
        out.chunks_mut(stride).enumerate().for_each(one);
    } else {
        let each = count.div_ceil(8 * threads);
        parallel::chunks(out, stride * each, 1, |part, out| {
            out.chunks_mut(stride).enumerate().for_each(|(i, out)| one((part * each + i, out)));
        });
    }
}

/// Outer products by row: `out[r * stride + j * columns + i] = left[r, j] right[r / width, i]`.
pub(crate) fn outer<T: Precision>(left: &Array<T>, right: &Array<T>, stride: usize, out: &mut [T]) {
    let width = left.rows() / right.rows().max(1);
    let columns = right.row_len();
    parallel::chunks(out, stride, together(stride), |r, out| {
        let right = right.row(r / width);
        dispatch(
            #[inline(always)]
            || {
                for (out, &l) in out.chunks_exact_mut(columns).zip(left.row(r)) {
                    for (o, &v) in out.iter_mut().zip(right) {
                        *o = l * v;
                    }
                }
            },
        );
    });
}
