//! Solvers against dense factorisations, gradients against their means, laws against their formulas.

mod gradients;
mod hyperparameters;
mod inducing;
mod lanczos;
mod laws;
mod pathwise;
mod search;
mod solvers;

use super::*;
use faer::Mat;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::operator::Dense;
use posterior_linalg::random::Streams;
use posterior_optim::{Progress, Sampling, Signal};
use rand_distr::{Distribution, StandardNormal};

/// Standard normal numbers of a stream.
pub(super) fn normal(rows: usize, columns: usize, name: &str) -> Mat<f64> {
    let mut rng = Streams::new(11).stream(name);
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

/// A Matérn-3/2 (or squared-exponential) kernel matrix on n points of the plane.
pub(super) fn kernel_matrix(n: usize, lengthscale: f64, matern: bool) -> Mat<f64> {
    let x = normal(n, 2, "points");
    Mat::from_fn(n, n, |i, j| {
        let q2 = ((x[(i, 0)] - x[(j, 0)]).powi(2) + (x[(i, 1)] - x[(j, 1)]).powi(2)) / lengthscale.powi(2);
        let s = (3.0 * q2).sqrt();
        if matern { (1.0 + s) * (-s).exp() } else { (-0.5 * q2).exp() }
    })
}

/// `K + diag(noise)`
pub(super) fn shifted(matrix: &Mat<f64>, noise: &[f64]) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| matrix[(i, j)] + if i == j { noise[i] } else { 0.0 })
}

pub(super) fn exact_solution(matrix: &Mat<f64>, noise: &[f64], targets: &Mat<f64>) -> Mat<f64> {
    Cholesky::of(shifted(matrix, noise).as_ref(), JitterPolicy::NONE).unwrap().solve(targets.as_ref())
}

/// An observer that never stops anything.
pub(super) fn watch<T: posterior_linalg::Real>(_: &Progress, _: &dyn Iterate<T>) -> Signal {
    Signal::Continue
}

/// Features of a stored matrix: a root of it times fresh normal matrices, so that `E[Φ Φᵀ] = K` exactly.
pub(super) struct RootFeatures(pub(super) Mat<f64>);

impl FreshFeatures<f64> for RootFeatures {
    fn features(&self, count: usize, seed: u64) -> Result<Mat<f64>, crate::GpError> {
        let mut rng = Streams::new(seed).stream("features");
        let white = Mat::<f64>::from_fn(self.0.ncols(), count, |_, _| {
            let draw: f64 = StandardNormal.sample(&mut rng);
            draw / (count as f64).sqrt()
        });
        Ok(&self.0 * white)
    }
}

/// The lower factor of K, a root for [`RootFeatures`].
pub(super) fn root(matrix: &Mat<f64>) -> Mat<f64> {
    let factored = Cholesky::of(matrix.as_ref(), JitterPolicy::default()).unwrap();
    factored.multiply_factor(Mat::<f64>::identity(matrix.nrows(), matrix.nrows()).as_ref())
}

pub(super) fn dense(matrix: &Mat<f64>) -> Dense<f64> {
    Dense::new(matrix.clone())
}
