//! What this machine does in a second, measured in some hundredths of one.

use faer::{Mat, MatRef};
use posterior_kernels::Kernel;
use posterior_kernels::matrix::KernelMatrix;
use posterior_linalg::Real;
use posterior_linalg::dense::solve_lower;
use posterior_linalg::operator::RowAccess;
use std::hint::black_box;
use std::time::Instant;

/// Rows that a factorisation is measured on: enough to reach half of what large ones do.
pub(crate) const ROWS: usize = 640;

/// Operations a second of triangular solves, by one of some milliseconds.
pub(crate) fn dense_rate() -> f64 {
    const COLUMNS: usize = 128;
    let factor = Mat::from_fn(ROWS, ROWS, |i, j| if i == j { 2.0 } else { 1.0 / (1 + i + j) as f64 });
    let mut right = Mat::from_fn(ROWS, COLUMNS, |i, j| (i + j) as f64);
    let started = Instant::now();
    solve_lower(factor.as_ref(), right.as_mut());
    black_box(&right);
    (ROWS * ROWS * COLUMNS) as f64 / started.elapsed().as_secs_f64().max(1e-9)
}

/// Seconds of a batch's product: `batch` rows of the kernel matrix of `x` times a block of `columns`.
pub(crate) fn seconds_of_batch<T: Real>(
    kernel: &dyn Kernel<T>,
    x: MatRef<'_, T>,
    batch: usize,
    columns: usize,
) -> f64 {
    let matrix = KernelMatrix::new(kernel, x);
    // Rows together, as solvers keep them.
    let weights = vec![T::ONE; x.nrows() * columns];
    let rows: Vec<usize> = (0..batch).collect();
    let mut out = Mat::zeros(batch, columns);
    let started = Instant::now();
    matrix.apply_rows(&rows, MatRef::from_row_major_slice(&weights, x.nrows(), columns), out.as_mut());
    black_box(&out);
    started.elapsed().as_secs_f64()
}

/// Seconds of one entry of a kernel matrix, evaluated and multiplied with so many columns.
pub(crate) fn seconds_of_pair<T: Real>(kernel: &dyn Kernel<T>, points: MatRef<'_, T>, columns: usize) -> f64 {
    /// Points that are measured on: some milliseconds.
    const MOST: (usize, usize) = (2048, 128);
    let points = points.subrows(0, points.nrows().min(MOST.0));
    let batch = points.nrows().min(MOST.1);
    seconds_of_batch(kernel, points, batch, columns) / (batch * points.nrows()).max(1) as f64
}
