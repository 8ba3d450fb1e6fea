//! **The pointwise predictive risk** of an exact process on the very points that it is conditioned on, by which the published program learns its priors (erratum E23).
//!
//! With `G = (K + σ² I)⁻¹` and `β = G (U - m)` the process says of point i `N(u_i - σ² β_i, σ² (1 - σ² G_ii))`, so that the risk is
//!
//! ```text
//! (1/M) Σ_i [ ½ log 2π v_i + ½ (σ² β_i)² / v_i ],    v_i = σ² (1 - σ² G_ii)
//! ```
//!
//! It has no lower bound as σ² goes to zero, which is why a threshold ends its minimisation; the evidence, the default, has one.
//!
//! Source: spec `generalised_variational_inference`, section 2.2. Cost `O(M³)` an evaluation.

use crate::exact::ExactGp;
use crate::{GpError, Observations};
use faer::Mat;
use posterior_kernels::{Request, gram, pullback_gram};
use posterior_linalg::cholesky::Cholesky;
use posterior_linalg::symmetric::mirror_lower;
use std::f64::consts::PI;

/// The risk, averaged over points and targets, with its gradient in the natural parameters of the model.
///
/// # Errors
/// [`GpError::Cholesky`] when `K + σ² I` cannot be factored; [`GpError::Shape`].
pub fn pointwise_predictive_risk(model: &ExactGp, data: &Observations) -> Result<(f64, Vec<f64>), GpError> {
    let (n, targets) = (data.rows(), data.targets().ncols());
    crate::data::same_width("columns of the inputs", model.mean().input_dimension(), data.inputs().ncols())?;
    crate::data::same_width("columns of the targets", model.mean().target_count(), targets)?;
    data.plain()?;
    let noise = model.noise().noise_variance();
    let mut matrix = gram(model.kernel(), data.inputs());
    (0..n).for_each(|i| matrix[(i, i)] += noise + data.noise_variances().map_or(0.0, |v| v[i]));
    let of_row = |i: usize| noise + data.noise_variances().map_or(0.0, |v| v[i]);
    let cholesky = Cholesky::of(matrix.as_ref(), model.jitter)?;
    let residuals = data.targets() - model.mean().evaluate(data.inputs());
    let beta = cholesky.solve(residuals.as_ref());
    let mut inverse = cholesky.into_inverse();
    mirror_lower(inverse.as_mut());
    let scale = 1.0 / (n * targets) as f64;
    let mut value = 0.0;
    // Slopes in β (n x t), in the diagonal of G, and in σ² where it stands for itself.
    let mut of_beta = Mat::zeros(n, targets);
    let (mut of_diagonal, mut of_noise) = (vec![0.0; n], 0.0);
    for i in 0..n {
        let (s, g) = (of_row(i), inverse[(i, i)]);
        let v = s * (1.0 - s * g);
        for t in 0..targets {
            let r = s * beta[(i, t)];
            value += scale * 0.5 * ((2.0 * PI * v).ln() + r * r / v);
            let of_v = scale * 0.5 * (1.0 - r * r / v) / v;
            let of_r = scale * r / v;
            of_beta[(i, t)] = of_r * s;
            of_diagonal[i] -= of_v * s * s;
            of_noise += of_v * (1.0 - 2.0 * s * g) + of_r * beta[(i, t)];
        }
    }
    // δG = -G δA G and δβ = -G δA β - G δm.
    let weights = &inverse * &of_beta;
    let scaled = Mat::from_fn(n, n, |i, j| inverse[(i, j)] * of_diagonal[j]);
    let mut adjoint = &scaled * &inverse;
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
    let of_mean = -&weights;
    let mean = model.mean().pullback(data.inputs(), of_mean.as_ref());
    let gradient = [kernel.parameters, mean, vec![of_noise]].concat();
    Ok((value, gradient))
}
