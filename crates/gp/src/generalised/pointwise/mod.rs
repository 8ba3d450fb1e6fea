//! **Pointwise risks**: what an exact process says of the very points that it is conditioned on, point by point, by which the published program learns its priors (erratum E23).
//!
//! With `G = (K + S)⁻¹`, S the diagonal of noise variances s, and `β = G (U - m)` the process says of point i
//!
//! ```text
//! N(u_i - s_i β_i,  s_i (1 - s_i G_ii))
//! ```
//!
//! Every risk of these means and variances has its gradient in kernel, prior mean and noise by one way back ([`OwnMarginals::pull_back`]).
//!
//! | file | risk |
//! |---|---|
//! | `regression` | minus the mean log density of the targets, latent variances alone |
//! | `classes` | minus the mean log probability of classes, one process on one-hot targets for each |
//!
//! Source: spec `generalised_variational_inference`, sections 2.2 and 2.3.

mod classes;
mod regression;

pub use classes::pointwise_class_risk;
pub use regression::pointwise_predictive_risk;

use crate::exact::ExactGp;
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_kernels::{Request, gram, pullback_gram};
use posterior_linalg::cholesky::Cholesky;
use posterior_linalg::symmetric::mirror_lower;

/// Latent marginals of an exact process at its own n points, of t targets.
struct OwnMarginals<'a> {
    model: &'a ExactGp,
    data: &'a Observations,
    /// s, the noise variance of each point.
    noise: Vec<f64>,
    /// β, n x t.
    weights: Mat<f64>,
    /// G, n x n.
    inverse: Mat<f64>,
}

impl<'a> OwnMarginals<'a> {
    /// Conditions the process. Cost `O(n³)`.
    ///
    /// # Errors
    /// [`GpError::Cholesky`] when `K + S` cannot be factored; [`GpError::Shape`].
    fn of(model: &'a ExactGp, data: &'a Observations) -> Result<Self, GpError> {
        let (n, targets) = (data.rows(), data.targets().ncols());
        crate::data::same_width(
            "columns of the inputs",
            model.mean().input_dimension(),
            data.inputs().ncols(),
        )?;
        crate::data::same_width("columns of the targets", model.mean().target_count(), targets)?;
        data.plain()?;
        let shared = model.noise().noise_variance();
        let noise: Vec<f64> =
            (0..n).map(|i| shared + data.noise_variances().map_or(0.0, |known| known[i])).collect();
        let mut matrix = gram(model.kernel(), data.inputs());
        (0..n).for_each(|i| matrix[(i, i)] += noise[i]);
        let cholesky = Cholesky::of(matrix.as_ref(), model.jitter)?;
        let residuals = data.targets() - model.mean().evaluate(data.inputs());
        let weights = cholesky.solve(residuals.as_ref());
        let mut inverse = cholesky.into_inverse();
        mirror_lower(inverse.as_mut());
        Ok(Self { model, data, noise, weights, inverse })
    }

    /// How far the target of a point is above its mean, `s β`: with all its digits where noise is small.
    fn residual(&self, point: usize, target: usize) -> f64 {
        self.noise[point] * self.weights[(point, target)]
    }

    /// The latent mean.
    fn mean(&self, point: usize, target: usize) -> f64 {
        self.data.targets()[(point, target)] - self.residual(point, target)
    }

    /// The latent variance, that of all targets. Where noise drowns the kernel it may round to zero or just below.
    fn variance(&self, point: usize) -> f64 {
        let s = self.noise[point];
        s * (1.0 - s * self.inverse[(point, point)])
    }

    /// The gradient in the natural parameters of the model from slopes in means (n x t) and in variances (n). Cost `O(n³)` and the kernel's.
    fn pull_back(&self, of_means: MatRef<'_, f64>, of_variances: &[f64]) -> Vec<f64> {
        let Self { model, data, noise, weights: beta, inverse } = self;
        let (n, targets) = beta.shape();
        // Slopes in β, in the diagonal of G, and in s where it stands for itself.
        let of_beta = Mat::from_fn(n, targets, |i, t| -of_means[(i, t)] * noise[i]);
        let of_diagonal: Vec<f64> = (0..n).map(|i| -of_variances[i] * noise[i] * noise[i]).collect();
        let mut of_noise = 0.0;
        for i in 0..n {
            of_noise += of_variances[i] * (1.0 - 2.0 * noise[i] * inverse[(i, i)]);
            of_noise -= (0..targets).map(|t| of_means[(i, t)] * beta[(i, t)]).sum::<f64>();
        }
        // δG = -G δA G and δβ = -G δA β - G δm.
        let weights = inverse * &of_beta;
        let scaled = Mat::from_fn(n, n, |i, j| inverse[(i, j)] * of_diagonal[j]);
        let mut adjoint = &scaled * inverse;
        for j in 0..n {
            for i in 0..n {
                let cross: f64 = (0..targets)
                    .map(|t| 0.5 * (weights[(i, t)] * beta[(j, t)] + weights[(j, t)] * beta[(i, t)]))
                    .sum();
                adjoint[(i, j)] = -adjoint[(i, j)] - cross;
            }
        }
        let kernel = pullback_gram(
            model.kernel(),
            data.inputs(),
            &|rows, columns, mut tile| {
                tile.copy_from(adjoint.submatrix(rows.start, columns.start, rows.len(), columns.len()));
            },
            Request::PARAMETERS,
        );
        of_noise += (0..n).map(|i| adjoint[(i, i)]).sum::<f64>();
        let of_prior_mean = -&weights;
        let mean = model.mean().pullback(data.inputs(), of_prior_mean.as_ref());
        [kernel.parameters, mean, vec![of_noise]].concat()
    }
}
