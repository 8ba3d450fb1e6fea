//! Every form of block against dense matrices in brute force.

mod evidence;
mod forms;

use super::*;
use faer::Mat;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

/// Standard normal entries.
pub(super) fn normal(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
    let mut rng = Streams::new(seed).stream("test");
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

/// `F F^T` of a given rank.
pub(super) fn semidefinite(n: usize, rank: usize, seed: u64) -> Mat<f64> {
    let f = normal(n, rank, seed);
    &f * f.transpose()
}

/// One structure with all four forms (weights: 5 dense, 4 diagonal, 3 x 4 Kronecker, 6 low rank), and its dense matrix.
pub(super) fn mixed() -> (Structure, Mat<f64>) {
    let dense = semidefinite(5, 3, 1);
    let diagonal = vec![0.3, 0.0, 2.0, 1.5];
    let (g, q) = (semidefinite(3, 2, 2), semidefinite(4, 4, 3));
    let (factor, residual) = (normal(6, 2, 4), vec![0.1, 0.2, 0.0, 0.4, 0.5, 0.6]);
    let mut full = Mat::zeros(27, 27);
    for i in 0..5 {
        (0..5).for_each(|j| full[(i, j)] = dense[(i, j)]);
    }
    (0..4).for_each(|i| full[(5 + i, 5 + i)] = diagonal[i]);
    for (i, j) in (0..12).flat_map(|i| (0..12).map(move |j| (i, j))) {
        full[(9 + i, 9 + j)] = g[(i / 4, j / 4)] * q[(i % 4, j % 4)];
    }
    let low = &factor * factor.transpose();
    for (i, j) in (0..6).flat_map(|i| (0..6).map(move |j| (i, j))) {
        full[(21 + i, 21 + j)] = low[(i, j)] + if i == j { residual[i] } else { 0.0 };
    }
    let block = |name: &str, range, matrix| Block { name: name.into(), range, matrix };
    let structure = Structure::new(vec![
        block("dense", 0..5, BlockMatrix::Dense(Dense::new(dense))),
        block("diagonal", 5..9, BlockMatrix::Diagonal(Diagonal::new(diagonal))),
        block("kronecker", 9..21, BlockMatrix::Kronecker(Kronecker::new(g, q, "kronecker").unwrap())),
        block("low rank", 21..27, BlockMatrix::LowRank(LowRank::new(factor, residual))),
    ]);
    (structure.unwrap(), full)
}

/// A prior whose groups cut through every block but the Kronecker one.
pub(super) fn grouped_prior() -> Prior {
    let stretches = [(3, 0), (4, 1), (2, 0), (12, 2), (2, 1), (4, 2)];
    Prior::grouped(&stretches, vec!["a".into(), "b".into(), "c".into()], vec![0.7, 1.9, 0.4]).unwrap()
}

/// `H^-1` and `log det(I + A^-1 s M)` by general elimination.
pub(super) fn brute_force(full: &Mat<f64>, prior: &Prior, strength: f64) -> (Mat<f64>, f64) {
    use faer::linalg::solvers::DenseSolveCore;
    let a = prior.precision_of_each(0..full.nrows());
    let h = Mat::from_fn(full.nrows(), full.nrows(), |i, j| {
        strength * full[(i, j)] + if i == j { a[i] } else { 0.0 }
    });
    let ratio = Mat::from_fn(full.nrows(), full.nrows(), |i, j| h[(i, j)] / a[i]);
    (h.partial_piv_lu().inverse(), ratio.determinant().ln())
}
