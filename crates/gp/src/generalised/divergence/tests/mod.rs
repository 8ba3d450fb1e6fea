//! Every closed form against sampling, brute force, finite differences or many digits.

mod averages;
mod batches;
mod extremes;
mod inducing;
mod references;
mod sampling;
mod slopes;

use super::{Direction, Divergence, Normal};
use faer::{Mat, MatRef};
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

/// One of each, with several orders.
pub(super) fn all() -> Vec<Divergence> {
    let mut all = vec![
        Divergence::KullbackLeibler { direction: Direction::PriorToPosterior },
        Divergence::KullbackLeibler { direction: Direction::PosteriorToPrior },
        Divergence::Bhattacharyya,
        Divergence::Hellinger,
        Divergence::Wasserstein,
        Divergence::SquaredDifference,
        Divergence::SymmetricKullbackLeibler,
    ];
    all.extend([0.05, 0.5, 0.8, 0.999_999, 1.000_001, 1.4].map(|order| Divergence::Renyi { order }));
    all
}

/// Of `N(mean, variance)` from a prior.
pub(super) fn value(divergence: Divergence, prior: (f64, f64), posterior: (f64, f64)) -> f64 {
    divergence.between(normal(prior), normal(posterior)).value
}

pub(super) fn normal((mean, variance): (f64, f64)) -> Normal {
    Normal { mean, variance }
}

/// Standard normal numbers.
pub(super) fn noise(name: &str, rows: usize, columns: usize) -> Mat<f64> {
    let mut rng = Streams::new(7).stream(name);
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

/// `a b`, entry by entry.
pub(super) fn times(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), b.ncols(), |i, j| (0..a.ncols()).map(|k| a[(i, k)] * b[(k, j)]).sum())
}

/// The slope of a function at 0, by four values: the error is of fourth order in the step.
pub(super) fn slope(step: f64, f: impl Fn(f64) -> f64) -> f64 {
    (8.0 * (f(step) - f(-step)) - (f(2.0 * step) - f(-2.0 * step))) / (12.0 * step)
}

/// Whether two numbers agree relative to the second, or absolutely where that is below 1 in magnitude.
pub(super) fn near(name: &str, found: f64, expected: f64, tolerance: f64) {
    let error = (found - expected).abs() / expected.abs().max(1.0);
    assert!(error <= tolerance, "{name}: {found:e}, not {expected:e}");
}

/// The inverse and the logarithm of the determinant of a positive definite matrix, by Gauss and Jordan.
pub(super) fn inverted(matrix: &Mat<f64>) -> (Mat<f64>, f64) {
    let n = matrix.nrows();
    let (mut left, mut inverse) = (matrix.clone(), Mat::<f64>::identity(n, n));
    let mut log_determinant = 0.0;
    for k in 0..n {
        let pivot = left[(k, k)];
        log_determinant += pivot.ln();
        for j in 0..n {
            left[(k, j)] /= pivot;
            inverse[(k, j)] /= pivot;
        }
        for i in (0..n).filter(|i| *i != k) {
            let factor = left[(i, k)];
            for j in 0..n {
                left[(i, j)] -= factor * left[(k, j)];
                inverse[(i, j)] -= factor * inverse[(k, j)];
            }
        }
    }
    (inverse, log_determinant)
}

/// The same on 1 to 4 threads, bit for bit.
pub(super) fn on_any_threads(work: impl Fn() -> Vec<f64> + Sync) {
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(&work).into_iter().map(f64::to_bits).collect::<Vec<_>>()
    };
    let one = on(1);
    (2..=4).for_each(|threads| assert!(on(threads) == one, "{threads} threads give other bits"));
}

/// All numbers of a matrix.
pub(super) fn numbers(matrix: &Mat<f64>) -> impl Iterator<Item = f64> {
    matrix.col_iter().flat_map(|column| column.iter().copied())
}
