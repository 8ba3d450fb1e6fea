//! Linear models against brute force, against each other, and against published numbers.

mod bad_inputs;
mod curvature;
mod duality;
mod effective_dimension;
mod exact;
mod expectation_maximisation;
mod features;
mod learning;
mod mode;
mod reference;
mod update;

use crate::Prior;
use crate::noise::Noise;
use faer::linalg::solvers::DenseSolveCore;
use faer::{Mat, MatRef};
use posterior_linalg::random::Streams;

/// Standard normal numbers from a stream of the given name.
pub(crate) fn normal(rows: usize, columns: usize, name: &str) -> Mat<f64> {
    crate::dense::white(rows, columns, &mut Streams::new(11).stream(name))
}

/// The same as a vector.
pub(crate) fn normals(count: usize, name: &str) -> Vec<f64> {
    crate::dense::to_vec(&normal(count, 1, name))
}

/// Features (4 x 3) and softmax curvature of the reference case of spec `linearised_laplace`, section 14.
pub(crate) fn reference() -> (Mat<f64>, Noise) {
    let phi = faer::mat![[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [0.5, -1.0, 0.0], [1.0, 2.0, 1.0]];
    let p: f64 = 1.0 / (1.0 + (-0.5f64).exp());
    let b = p * (1.0 - p);
    (phi, Noise::from_blocks(2, &[b, -b, -b, b, b, -b, -b, b]).unwrap())
}

/// A random problem whose targets follow its features, with two outputs and a positive definite 2 x 2 noise precision for each of `examples` examples.
pub(crate) struct Problem {
    pub(crate) phi: Mat<f64>,
    pub(crate) targets: Vec<f64>,
    pub(crate) blocks: Vec<f64>,
    pub(crate) noise: Noise,
    pub(crate) prior: Prior,
}

impl Problem {
    pub(crate) fn new(examples: usize, dimension: usize) -> Self {
        let roots = normal(2 * examples, 2, "roots");
        let mut blocks = Vec::new();
        for i in 0..examples {
            let root = roots.as_ref().subrows(2 * i, 2);
            let b = root * root.transpose() + Mat::<f64>::identity(2, 2) * faer::Scale(0.3);
            blocks.extend([b[(0, 0)], b[(0, 1)], b[(1, 0)], b[(1, 1)]]);
        }
        let half = dimension / 2;
        let stretches = [(half, 0), (dimension - half, 1)];
        let prior = Prior::grouped(&stretches, vec!["a".into(), "b".into()], vec![0.7, 2.5]).unwrap();
        let phi = normal(2 * examples, dimension, "phi");
        let signal = &phi * normal(dimension, 1, "weights");
        let targets =
            normals(2 * examples, "targets").into_iter().enumerate().map(|(i, e)| signal[(i, 0)] + e);
        Self {
            targets: targets.collect(),
            phi,
            noise: Noise::from_blocks(2, &blocks).unwrap(),
            blocks,
            prior,
        }
    }

    pub(crate) fn precisions(&self) -> Vec<f64> {
        self.prior.precision_of_each(0..self.phi.ncols())
    }

    /// The noise precision as one matrix of 2n x 2n.
    pub(crate) fn b(&self) -> Mat<f64> {
        let rows = self.phi.nrows();
        Mat::from_fn(rows, rows, |i, j| {
            if i / 2 == j / 2 { self.blocks[i / 2 * 4 + i % 2 * 2 + j % 2] } else { 0.0 }
        })
    }

    /// `M`.
    pub(crate) fn m(&self) -> Mat<f64> {
        self.phi.transpose() * self.b() * &self.phi
    }

    /// `H^-1`.
    pub(crate) fn covariance(&self) -> Mat<f64> {
        let a = self.precisions();
        let mut h = self.m();
        (0..a.len()).for_each(|i| h[(i, i)] += a[i]);
        inverse(&h)
    }
}

pub(crate) fn inverse(matrix: &Mat<f64>) -> Mat<f64> {
    matrix.partial_piv_lu().inverse()
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
