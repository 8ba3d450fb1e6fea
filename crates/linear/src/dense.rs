//! Small helpers for dense vectors and matrices.

use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use posterior_linalg::random::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// A slice seen as a matrix of one column.
pub(crate) fn column(values: &[f64]) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(values, values.len(), 1)
}

/// The first column.
pub(crate) fn to_vec(matrix: &Mat<f64>) -> Vec<f64> {
    matrix.col(0).iter().copied().collect()
}

/// Adds `rows' rows` to the lower triangle of `matrix`. Cost `n d²` flops for `rows` of n x d.
pub(crate) fn add_gram(matrix: MatMut<'_, f64>, rows: MatRef<'_, f64>) {
    let par = if rows.nrows().saturating_mul(rows.ncols()) < 16_384 { Par::Seq } else { Par::rayon(0) };
    let full = BlockStructure::Rectangular;
    matmul(matrix, BlockStructure::TriangularLower, Accum::Add, rows.transpose(), full, rows, full, 1.0, par);
}

/// Standard normal numbers, column by column.
pub(crate) fn white(rows: usize, columns: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
    let mut out = Mat::zeros(rows, columns);
    for j in 0..columns {
        out.as_mut().col_mut(j).iter_mut().for_each(|v| *v = StandardNormal.sample(rng));
    }
    out
}
