//! Linear models against brute force, against each other, and against published numbers.

mod bad_inputs;
mod curvature;
mod duality;
mod features;
mod mode;
mod projected;
mod reference;
mod sampled;

use crate::structure::{Block, BlockMatrix, Conditioned, Dense, LowRank, Structure};
use faer::{Mat, MatRef};
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

/// Standard normal numbers from a stream of the given name.
pub(crate) fn normal(rows: usize, columns: usize, name: &str) -> Mat<f64> {
    let mut rng = Streams::new(11).stream(name);
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

/// The same as a vector.
pub(crate) fn normals(count: usize, name: &str) -> Vec<f64> {
    to_vec(&normal(count, 1, name))
}

/// The first column.
pub(crate) fn to_vec(matrix: &Mat<f64>) -> Vec<f64> {
    matrix.col(0).iter().copied().collect()
}

/// A slice as a matrix of one column.
pub(crate) fn column(values: &[f64]) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(values, values.len(), 1)
}

/// The curvature `Q'Q` of rows `Q` as one dense block, and as one of low rank.
pub(crate) fn structures(q: &Mat<f64>) -> [Structure; 2] {
    let forms = [
        BlockMatrix::Dense(Dense::new(q.transpose() * q)),
        BlockMatrix::LowRank(LowRank::new(q.transpose().to_owned(), vec![0.0; q.ncols()])),
    ];
    forms.map(|matrix| {
        Structure::new(vec![Block { name: "all".into(), range: 0..q.ncols(), matrix }]).unwrap()
    })
}

/// `J H^-1 J'` for rows `J` and a posterior of one block.
pub(crate) fn covariance(posterior: &Conditioned, rows: &Mat<f64>) -> Mat<f64> {
    let white = posterior.blocks()[0].1.whiten(rows.as_ref());
    &white * white.transpose()
}

#[track_caller]
pub(crate) fn assert_matrix(actual: MatRef<'_, f64>, expected: MatRef<'_, f64>, tolerance: f64) {
    assert_eq!((actual.nrows(), actual.ncols()), (expected.nrows(), expected.ncols()));
    let error = (actual - expected).norm_max();
    assert!(error <= tolerance, "largest difference {error:e}, tolerance {tolerance:e}");
}

#[track_caller]
pub(crate) fn assert_near(actual: f64, expected: f64, tolerance: f64) {
    assert!((actual - expected).abs() <= tolerance, "{actual} against {expected}, tolerance {tolerance:e}");
}
