//! Kernels of all hyperparameters from a few stored matrices.

use super::filters::{FilterHyperparameters, correlations, distances};
use super::weights::{ConvolutionWeights, WeightBlock};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::dense::product;
use posterior_linalg::parallel;

/// Numbers of a stretch of weights that is multiplied at a time: 32 MB in single precision.
const PIECE: usize = 1 << 23;

/// One block: distances within its filters, and for each `sum over filters and pairs of positions (p, q) at that distance of phi_p phi_q'` (n x n).
#[derive(Clone, Debug)]
pub struct BlockGrams {
    /// The block's name.
    pub name: String,
    /// Distances, ascending from 0.
    pub distances: Vec<f64>,
    /// As many matrices.
    pub matrices: Vec<Mat<f64>>,
}

/// `phi phi'` in parts, such that `phi A^-1 phi' = sum_k a_k^-1 sum_D rho(D / psi_k) G_kD` for any variances and lengthscales: a search among them costs sums of n x n numbers and never meets the network.
///
/// Filters of 3 x 3 have six distances: a U-Net of three scales has 33 matrices.
#[derive(Clone, Debug)]
pub struct DistanceGrams {
    blocks: Vec<BlockGrams>,
    rows: usize,
}

impl DistanceGrams {
    /// Of Jacobian rows as columns (d x n). Cost: `2 n² d` flops for each distance; memory `8 n²` bytes for each matrix ([`Self::bytes`]).
    pub fn new<T: Real>(weights: &ConvolutionWeights, rows: MatRef<'_, T>) -> Self {
        let blocks = weights.blocks().iter().map(|block| of_block(block, rows)).collect();
        Self { blocks, rows: rows.ncols() }
    }

    /// Bytes of the matrices for n rows.
    pub fn bytes(weights: &ConvolutionWeights, n: usize) -> u64 {
        let matrices: usize = weights.blocks().iter().map(|b| distances(&b.kernel).0.len()).sum();
        (8 * matrices as u64).saturating_mul((n as u64).saturating_pow(2))
    }

    /// Rows, n.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The blocks.
    pub fn blocks(&self) -> &[BlockGrams] {
        &self.blocks
    }

    /// `phi A^-1 phi'` (n x n).
    pub fn kernel(&self, hyperparameters: &FilterHyperparameters) -> Mat<f64> {
        let mut factors = Vec::new();
        for (k, block) in self.blocks.iter().enumerate() {
            let [values, ..] = correlations(&block.distances, hyperparameters.log_lengthscales[k]);
            let variance = hyperparameters.log_variances[k].exp();
            factors.extend(block.matrices.iter().zip(values).map(|(m, v)| (m, variance * v)));
        }
        let mut out = Mat::zeros(self.rows, self.rows);
        parallel::columns(out.as_mut(), 1, |j, column| {
            let Some(column) = column.try_as_col_major_mut() else { return };
            let column = column.as_slice_mut();
            for (matrix, factor) in &factors {
                column.iter_mut().zip(matrix.col_as_slice(j)).for_each(|(o, v)| *o += factor * v);
            }
        });
        out
    }

    /// `tr(W d K / d theta)` for a symmetric W (n x n) and theta every log variance, then every log lengthscale.
    pub fn slopes(&self, hyperparameters: &FilterHyperparameters, weight: MatRef<'_, f64>) -> [Vec<f64>; 2] {
        let by_block = |k: usize| {
            let block = &self.blocks[k];
            let [values, slopes, _] = correlations(&block.distances, hyperparameters.log_lengthscales[k]);
            let variance = hyperparameters.log_variances[k].exp();
            let matrices = &block.matrices;
            let own = parallel::map(matrices.len(), 1, |i| inner(matrices[i].as_ref(), weight));
            let sum = |f: &[f64]| variance * own.iter().zip(f).map(|(a, b)| a * b).sum::<f64>();
            (sum(&values), sum(&slopes))
        };
        let (variances, lengthscales) = (0..self.blocks.len()).map(by_block).unzip();
        [variances, lengthscales]
    }
}

/// `tr(A' B)`, column by column.
fn inner(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> f64 {
    let column = |j: usize| a.col(j).iter().zip(b.col(j).iter()).map(|(a, b)| a * b).sum::<f64>();
    (0..a.ncols()).map(column).sum()
}

fn of_block<T: Real>(block: &WeightBlock, rows: MatRef<'_, T>) -> BlockGrams {
    let (positions, n) = (block.positions(), rows.ncols());
    let (distances, which) = distances(&block.kernel);
    let mut matrices = vec![Mat::<f64>::zeros(n, n); distances.len()];
    let stretch = (PIECE / n.max(1) / positions).max(1) * positions;
    for range in block.ranges() {
        for start in range.clone().step_by(stretch) {
            let own = rows.subrows(start, stretch.min(range.end - start));
            for (d, sum) in matrices.iter_mut().enumerate() {
                let moved = if d == 0 { own.to_owned() } else { neighbours(own, positions, &which, d) };
                let part = product(own.transpose(), moved.as_ref());
                parallel::columns(sum.as_mut(), 1, |j, sum| {
                    sum.iter_mut().zip(part.col(j).iter()).for_each(|(s, p)| *s += p.to_f64());
                });
            }
        }
    }
    // Sums of both orders of a pair differ by rounding.
    matrices.iter_mut().for_each(|m| posterior_linalg::symmetric::average_with_transpose(m.as_mut()));
    BlockGrams { name: block.name.clone(), distances, matrices }
}

/// In the place of each position of each filter the sum of those at a distance from it.
fn neighbours<T: Real>(rows: MatRef<'_, T>, positions: usize, which: &[usize], distance: usize) -> Mat<T> {
    let near: Vec<Vec<usize>> = (0..positions)
        .map(|p| (0..positions).filter(|q| which[p * positions + q] == distance).collect())
        .collect();
    let mut out = Mat::zeros(rows.nrows(), rows.ncols());
    parallel::columns(out.as_mut(), 1, |j, mut out| {
        let own = rows.col(j);
        for filter in (0..rows.nrows()).step_by(positions) {
            for (p, near) in near.iter().enumerate() {
                let mut sum = T::ZERO;
                near.iter().for_each(|q| sum += own[filter + q]);
                out[filter + p] = sum;
            }
        }
    });
    out
}
