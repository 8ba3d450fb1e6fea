//! **Natural gradients** of q: steps along its natural parameters, in which the bound of a conjugate model is solved by one step of
//! length 1.
//!
//! In whitened coordinates, precision `Λ = (R Rᵀ)⁻¹` and `θ = Λ mean`, a step of length ρ is
//!
//! ```text
//! Λ <- (1 - ρ) Λ + ρ (I - 2G)          θ <- (1 - ρ) θ + ρ (g - 2 G mean)
//! ```
//!
//! with the data term's gradients g in the mean and G in the covariance (Khan and Lin 2017; Salimbeni, Eleftheriadis and Hensman
//! 2018). Where the log density is concave, `-G` is positive semi-definite and so is every Λ on the way.

use super::WeightDistribution;
use faer::Mat;
use faer::linalg::matmul::triangular::BlockStructure::{Rectangular, TriangularLower, TriangularUpper};
use posterior_linalg::cholesky::CholeskyError;
use posterior_linalg::dense::product;
use posterior_linalg::triangular::{
    inverse_of_lower, lower_product, pack_lower, root_of_inverse, symmetric_product,
};

/// What data say about q.
#[derive(Clone, Debug)]
pub struct DataGradient {
    /// The data term's gradient in the means of q, m x C.
    pub mean: Mat<f64>,
    /// The data term's gradient G in the covariances of q, one symmetric m x m matrix for each root; summed over the functions that share the root.
    pub covariances: Vec<Mat<f64>>,
}

impl DataGradient {
    /// The bound's gradient in the means of q (m x C): that of the data less `kl` times that of the divergence.
    pub fn of_mean(&self, distribution: &WeightDistribution, kl: f64) -> Mat<f64> {
        Mat::from_fn(self.mean.nrows(), self.mean.ncols(), |i, j| {
            self.mean[(i, j)] - kl * distribution.mean[(i, j)]
        })
    }

    /// The bound's gradient in the lower triangles of the roots: `tril(2 G R) - kl · count · (R - diag(1/R_ii))`. Cost `m³` a root.
    pub fn of_roots(&self, distribution: &WeightDistribution, kl: f64) -> Vec<Mat<f64>> {
        let count = kl * distribution.sharing() as f64;
        self.covariances
            .iter()
            .zip(&distribution.roots)
            .map(|(g, root)| {
                let mut out = lower_product((g.as_ref(), Rectangular), (root.as_ref(), TriangularLower), 2.0);
                for j in 0..root.ncols() {
                    for i in j..root.nrows() {
                        out[(i, j)] -= count * root[(i, j)];
                    }
                    out[(j, j)] += count / root[(j, j)];
                }
                out
            })
            .collect()
    }

    /// Appends `scale` times the gradient in the numbers of [`WeightDistribution::unconstrained_into`].
    pub fn unconstrained_into(
        &self,
        distribution: &WeightDistribution,
        kl: f64,
        scale: f64,
        out: &mut Vec<f64>,
    ) {
        let start = out.len();
        let means = self.of_mean(distribution, kl);
        (0..means.ncols()).for_each(|c| out.extend_from_slice(means.col_as_slice(c)));
        for (root, mut slope) in distribution.roots.iter().zip(self.of_roots(distribution, kl)) {
            (0..root.ncols()).for_each(|j| slope[(j, j)] *= root[(j, j)]);
            pack_lower(slope.as_ref(), out);
        }
        out[start..].iter_mut().for_each(|g| *g *= scale);
    }
}

/// Halvings of a step that would leave the positive-definite matrices, before it is an error.
const HALVINGS: usize = 30;

/// Moves q by a natural-gradient step of `length` in (0, 1]. A step after which a precision would not be positive definite, which
/// only likelihoods without concave log densities ask for, is halved until it is. Returns the shortest length taken.
/// Cost about `2m³` flops a root.
///
/// # Errors
/// When no length is short enough: the gradients are not finite.
pub fn natural_step(
    distribution: &mut WeightDistribution,
    gradient: &DataGradient,
    length: f64,
) -> Result<f64, CholeskyError> {
    let count = distribution.sharing() as f64;
    let mut shortest = length;
    for index in 0..distribution.roots.len() {
        let g = &gradient.covariances[index];
        let m = g.nrows();
        let latents: Vec<usize> =
            (0..distribution.latents()).filter(|&c| distribution.root_of(c) == index).collect();
        let inverse = inverse_of_lower(distribution.roots[index].as_ref());
        let upper = (inverse.transpose(), TriangularUpper);
        let old = symmetric_product(upper, (inverse.as_ref(), TriangularLower), 1.0);
        let mut rho = length;
        let mut halvings = 0;
        let root = loop {
            let toward = |i: usize, j: usize| f64::from(u8::from(i == j)) - 2.0 * g[(i, j)] / count;
            let precision = Mat::from_fn(m, m, |i, j| (1.0 - rho) * old[(i, j)] + rho * toward(i, j));
            match root_of_inverse(precision.as_ref()) {
                Ok(root) => break root,
                Err(error) if halvings == HALVINGS => return Err(error),
                Err(_) => (rho, halvings) = (0.5 * rho, halvings + 1),
            }
        };
        shortest = shortest.min(rho);
        for &c in &latents {
            let mut mean = distribution.mean.as_mut().subcols_mut(c, 1);
            let natural = product(old.as_ref(), mean.as_ref());
            let pulled = product(g.as_ref(), mean.as_ref());
            let theta = Mat::from_fn(m, 1, |i, _| {
                let toward = gradient.mean[(i, c)] - 2.0 * pulled[(i, 0)] / count;
                (1.0 - rho) * natural[(i, 0)] + rho * toward
            });
            mean.copy_from(product(root.as_ref(), (root.transpose() * theta).as_ref()));
        }
        distribution.roots[index] = root;
    }
    Ok(shortest)
}
