//! The golden numbers of spec `deep_kernel_decomposition`, section 13, dense formulas, and finite differences.

mod bound;
mod evidence;
mod golden;
mod maps;
mod predictions;
mod theory;
mod training;
mod triangles;

use super::*;
use faer::Mat;
use faer::linalg::solvers::DenseSolveCore;
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

const NOISE: f64 = 0.1;

/// Φᵀ of the golden example.
fn features() -> Mat<f64> {
    let phi = [[1.0, 0.5], [-0.3, 0.8], [0.2, -1.2], [0.7, 0.4]];
    Mat::from_fn(2, 4, |j, i| phi[i][j])
}

fn targets() -> Mat<f64> {
    Mat::from_fn(4, 1, |i, _| [0.9, -0.2, 0.4, 1.1][i])
}

/// `|φ|²` of each row.
fn squares(features: &Mat<f64>) -> Vec<f64> {
    (0..features.ncols()).map(|i| features.col(i).squared_norm_l2()).collect()
}

fn solved(rows: &ScaledRows, trace_weight: f64) -> SolvedEvidence {
    let mut sums = EvidenceSums::new(rows.features.nrows(), rows.residuals.ncols());
    sums.add(rows);
    sums.solve(trace_weight, JitterPolicy::NONE).unwrap()
}

fn normal(rows: usize, columns: usize, name: &str) -> Mat<f64> {
    let mut rng = Streams::new(5).stream(name);
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

fn assert_near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} {expected}");
}

/// `log N(y; 0, Σ)` with the log determinant that it has on the way.
fn dense_log_density(covariance: &Mat<f64>, y: &Mat<f64>) -> f64 {
    let eigenvalues = covariance.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
    let log_det: f64 = eigenvalues.iter().map(|e| e.ln()).sum();
    let inverse = covariance.partial_piv_lu().inverse();
    let fit = y.col(0).transpose() * &inverse * y.col(0);
    -0.5 * (y.nrows() as f64 * (2.0 * std::f64::consts::PI).ln() + log_det + fit)
}
