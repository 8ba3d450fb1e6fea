//! Priors over filters.

use super::evidence::LEAST_LOG_VARIANCE;
use super::weights::{ConvolutionWeights, WeightBlock};
use crate::TomographyError;
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use serde::{Deserialize, Serialize};

/// Added to the correlation of a position with itself, so that long lengthscales stay positive definite.
pub const FILTER_JITTER: f64 = 1e-6;

/// Variance and lengthscale of each block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilterHyperparameters {
    /// `log a_k^-1`.
    pub log_variances: Vec<f64>,
    /// `log psi_k`, in positions of a filter; of no meaning for filters of one position.
    pub log_lengthscales: Vec<f64>,
}

impl FilterHyperparameters {
    /// Where searches begin: variance 1, lengthscale 0.1.
    pub fn start(blocks: usize) -> Self {
        Self { log_variances: vec![0.0; blocks], log_lengthscales: vec![0.1f64.ln(); blocks] }
    }

    /// Blocks whose variance is [`LEAST_LOG_VARIANCE`]: a search would have made it smaller.
    pub fn blocks_at_bound(&self) -> usize {
        self.log_variances.iter().filter(|v| **v <= LEAST_LOG_VARIANCE).count()
    }
}

/// Distances that occur between positions of a filter, ascending from 0, and for each pair of positions (row by row) which it is.
pub(crate) fn distances(kernel: &[usize]) -> (Vec<f64>, Vec<usize>) {
    let positions: usize = kernel.iter().product();
    let at = |mut p: usize| {
        let mut place = vec![0usize; kernel.len()];
        for (axis, length) in kernel.iter().enumerate().rev() {
            (place[axis], p) = (p % length, p / length);
        }
        place
    };
    let squared =
        |p: usize, q: usize| at(p).iter().zip(at(q)).map(|(a, b)| a.abs_diff(b).pow(2)).sum::<usize>();
    let pairs: Vec<usize> =
        (0..positions * positions).map(|k| squared(k / positions, k % positions)).collect();
    let mut known = pairs.clone();
    known.sort_unstable();
    known.dedup();
    let which = pairs.iter().map(|s| known.partition_point(|k| k < s)).collect();
    (known.into_iter().map(|s| (s as f64).sqrt()).collect(), which)
}

/// Correlation at each distance and its first and second derivatives in the logarithm of the lengthscale.
///
/// `rho = exp(-D / psi)`: `d rho / d log psi = rho D / psi`, and once more `rho (D / psi) (D / psi - 1)`. Distance 0 has the jitter, which does not change.
pub(crate) fn correlations(distances: &[f64], log_lengthscale: f64) -> [Vec<f64>; 3] {
    let lengthscale = log_lengthscale.exp();
    let ratio = |d: f64| if d == 0.0 { 0.0 } else { d / lengthscale };
    let rho = |d: f64| (-ratio(d)).exp();
    let each = |f: &dyn Fn(f64) -> f64| distances.iter().map(|d| f(*d)).collect::<Vec<f64>>();
    // Beyond all numbers a ratio times its correlation is zero, not infinity times zero.
    let slope = |d: f64| if rho(d) == 0.0 { 0.0 } else { rho(d) * ratio(d) };
    let bend = |d: f64| if rho(d) == 0.0 { 0.0 } else { rho(d) * ratio(d) * (ratio(d) - 1.0) };
    let with_jitter = |d: f64| if d == 0.0 { 1.0 + FILTER_JITTER } else { rho(d) };
    [each(&with_jitter), each(&slope), each(&bend)]
}

/// `w ~ N(0, A^-1)` with `A^-1` block-diagonal: within each filter of block k covariances `a_k^-1 exp(-D / psi_k)` of the distance D between its positions, the same for all filters of the block.
///
/// Source: Antorán (2024), equation 7.7; spec `tomography`, section 5.3.
#[derive(Clone, Debug)]
pub struct FilterPrior {
    blocks: Vec<WeightBlock>,
    dimension: usize,
    hyperparameters: FilterHyperparameters,
    /// Lower triangles `L L' = A_k^-1`, positions x positions.
    roots: Vec<Mat<f64>>,
}

impl FilterPrior {
    /// Of the weights, for hyperparameters of each block.
    ///
    /// # Errors
    /// [`TomographyError::Shape`] for other numbers of hyperparameters, [`TomographyError::Option`] for those that are not finite.
    pub fn new(
        weights: &ConvolutionWeights,
        hyperparameters: FilterHyperparameters,
    ) -> Result<Self, TomographyError> {
        let blocks = weights.blocks().to_vec();
        let FilterHyperparameters { log_variances, log_lengthscales } = &hyperparameters;
        crate::error::same_count("log variances of blocks", blocks.len(), log_variances.len())?;
        crate::error::same_count("log lengthscales of blocks", blocks.len(), log_lengthscales.len())?;
        let roots = blocks
            .iter()
            .zip(log_variances.iter().zip(log_lengthscales))
            .map(|(block, (variance, lengthscale))| {
                let own = covariance(block, *variance, *lengthscale);
                if !own.is_all_finite() {
                    let expected = "finite: the search for hyperparameters has left all numbers";
                    let value = if variance.is_finite() { *lengthscale } else { *variance };
                    return Err(TomographyError::Option { name: "log hyperparameter", value, expected });
                }
                let factored = Cholesky::of(own.as_ref(), JitterPolicy::NONE)?;
                let n = block.positions();
                Ok(Mat::from_fn(n, n, |i, j| if i >= j { factored.factor()[(i, j)] } else { 0.0 }))
            })
            .collect::<Result<Vec<_>, TomographyError>>()?;
        Ok(Self { blocks, dimension: weights.len(), hyperparameters, roots })
    }

    /// The hyperparameters.
    pub fn hyperparameters(&self) -> &FilterHyperparameters {
        &self.hyperparameters
    }

    /// `A_k^-1` of one block (positions x positions).
    pub fn block_covariance(&self, block: usize) -> Mat<f64> {
        let (v, l) = (&self.hyperparameters.log_variances, &self.hyperparameters.log_lengthscales);
        covariance(&self.blocks[block], v[block], l[block])
    }

    /// The factor L of one block.
    pub fn block_root(&self, block: usize) -> MatRef<'_, f64> {
        self.roots[block].as_ref()
    }

    /// Multiplies each filter of each block by a matrix of its block, or its transpose.
    fn by_filter(&self, matrices: &[Mat<f64>], transposed: bool, mut weights: MatMut<'_, f64>) {
        let mut old = vec![0.0; self.blocks.iter().map(WeightBlock::positions).max().unwrap_or(0)];
        for column in weights.as_mut().col_iter_mut() {
            // Blocks of weights are contiguous here: they are made so.
            let Some(column) = column.try_as_col_major_mut() else { continue };
            let column = column.as_slice_mut();
            for (block, matrix) in self.blocks.iter().zip(matrices) {
                let n = block.positions();
                for range in block.ranges() {
                    for filter in column[range].chunks_exact_mut(n) {
                        old[..n].copy_from_slice(filter);
                        for i in 0..n {
                            let entry = |j: usize| if transposed { matrix[(j, i)] } else { matrix[(i, j)] };
                            filter[i] = (0..n).map(|j| entry(j) * old[j]).sum();
                        }
                    }
                }
            }
        }
    }

    /// `A^-1/2 u = L u` (d x k), in place.
    pub fn apply_root(&self, weights: MatMut<'_, f64>) {
        self.by_filter(&self.roots, false, weights);
    }

    /// `L' w` (d x k), in place.
    pub fn apply_root_transpose(&self, weights: MatMut<'_, f64>) {
        self.by_filter(&self.roots, true, weights);
    }

    /// `A^-1 w` (d x k), in place.
    pub fn apply_covariance(&self, weights: MatMut<'_, f64>) {
        let own: Vec<Mat<f64>> = (0..self.blocks.len()).map(|k| self.block_covariance(k)).collect();
        self.by_filter(&own, false, weights);
    }

    /// Weights, d.
    pub fn dimension(&self) -> usize {
        self.dimension
    }
}

fn covariance(block: &WeightBlock, log_variance: f64, log_lengthscale: f64) -> Mat<f64> {
    let (distances, which) = distances(&block.kernel);
    let [values, ..] = correlations(&distances, log_lengthscale);
    let n = block.positions();
    Mat::from_fn(n, n, |i, j| log_variance.exp() * values[which[i * n + j]])
}

/// A Gaussian prior over the weights, known by its root.
#[derive(Clone, Debug)]
pub enum WeightPrior {
    /// Correlated within filters.
    Filters(FilterPrior),
    /// Independent, with these standard deviations (d): the g-prior.
    Independent(Vec<f64>),
}

impl WeightPrior {
    /// Weights, d.
    pub fn dimension(&self) -> usize {
        match self {
            Self::Filters(prior) => prior.dimension(),
            Self::Independent(deviations) => deviations.len(),
        }
    }

    /// `A^-1/2 u` (d x k), in place.
    pub fn apply_root(&self, weights: MatMut<'_, f64>) {
        match self {
            Self::Filters(prior) => prior.apply_root(weights),
            Self::Independent(deviations) => scale_rows(weights, deviations),
        }
    }

    /// `(A^-1/2)' w` (d x k), in place.
    pub fn apply_root_transpose(&self, weights: MatMut<'_, f64>) {
        match self {
            Self::Filters(prior) => prior.apply_root_transpose(weights),
            Self::Independent(deviations) => scale_rows(weights, deviations),
        }
    }
}

fn scale_rows(mut weights: MatMut<'_, f64>, scales: &[f64]) {
    weights
        .as_mut()
        .col_iter_mut()
        .for_each(|column| column.iter_mut().zip(scales).for_each(|(v, s)| *v *= s));
}
