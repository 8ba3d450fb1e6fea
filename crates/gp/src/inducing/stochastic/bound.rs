//! The bound of a batch with its gradients, written out by hand.
//!
//! With `T = R Rᵀ - I`, features A of the batch, slopes g in the means and h in the variances (both times n/r):
//!
//! ```text
//! variance  k_ii + a_iᵀ T a_i
//! of A      Σ_c mean_c g_cᵀ + 2 T_c A diag(h_c)          D, m x r
//! D Aᵀ      Σ_c mean_c (A g_c)ᵀ + 2 T_c G_c              no product of that size: G_c = A diag(h_c) Aᵀ is there already
//! ```
//!
//! so that a step takes for each root one product `T A` and one half product for G, besides one solve forwards and one backwards.

use super::StochasticGp;
use crate::inducing::InducingDistribution;
use crate::inducing::distribution::{add_lower_product, lower_product, symmetric_product};
use crate::inducing::plan::block_rows;
use crate::inducing::prior::by_columns;
use crate::inducing::whitening::Whitening;
use crate::{GpError, Observations};
use faer::linalg::matmul::dot;
use faer::linalg::matmul::triangular::BlockStructure::{Rectangular, TriangularLower, TriangularUpper};
use faer::{Accum, Conj, Mat, MatRef};
use posterior_kernels::{Request, diagonal, pullback_diagonal};
use posterior_likelihoods::{Likelihood, Slopes};
use posterior_linalg::dense::{multiply_into, product};
use posterior_linalg::tiles::pieces;
use posterior_optim::Parameters;
use rayon::prelude::*;

/// Rows of one parallel piece of expectations.
const CHUNK: usize = 64;

/// Rows that a bound is estimated from.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Inputs, r x D.
    pub inputs: MatRef<'a, f64>,
    /// Targets, r x width.
    pub targets: MatRef<'a, f64>,
    /// Known noise variances of the rows (r), for Gaussian noise.
    pub noise: Option<&'a [f64]>,
    /// What the log-likelihood of each row is multiplied by (r); 1 where there are none.
    pub weights: Option<&'a [f64]>,
    /// What is added to the latent values of each row before the likelihood sees them (r); 0 where there are none.
    pub offsets: Option<&'a [f64]>,
    /// Rows of the whole data, n: the batch's sum is multiplied by n/r.
    pub rows: usize,
}

/// Which gradients are needed beyond those of q.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Of kernel, means and likelihood.
    pub hyperparameters: bool,
    /// Of the inducing inputs.
    pub inducing: bool,
}

impl Wanted {
    /// Only those of q.
    pub const DISTRIBUTION: Self = Self { hyperparameters: false, inducing: false };
    /// All.
    pub const ALL: Self = Self { hyperparameters: true, inducing: true };
}

/// An estimate of the bound with its gradients.
#[derive(Clone, Debug)]
pub struct StochasticEvaluation {
    /// The bound, in nats.
    pub value: f64,
    /// The data term's gradient in the means of q, m x C.
    pub mean: Mat<f64>,
    /// The data term's gradient G in the covariances of q, one symmetric m x m matrix for each root; summed over the
    /// functions that share the root.
    pub covariances: Vec<Mat<f64>>,
    /// The gradient in the natural parameters of the model, in their order; zeros where not wanted.
    pub parameters: Vec<f64>,
    /// What was added to the diagonal of `K_ZZ`, relative to its mean.
    pub relative_jitter: f64,
}

impl StochasticEvaluation {
    /// The bound's gradient in the means of q (m x C): that of the data less that of the divergence.
    pub fn mean_gradient(&self, distribution: &InducingDistribution) -> Mat<f64> {
        &self.mean - &distribution.mean
    }

    /// The bound's gradient in the lower triangles of the roots: `tril(2 G R) - count · (R - diag(1/R_ii))`. Cost `m³` a root.
    pub fn root_gradients(&self, distribution: &InducingDistribution) -> Vec<Mat<f64>> {
        let count = distribution.sharing() as f64;
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
}

/// What a batch says before anything is differentiated back to kernel and Z.
struct Forward<'a> {
    features: MatRef<'a, f64>,
    /// `T A` of each root, m x r.
    products: &'a [Mat<f64>],
    means: Mat<f64>,
    /// r x roots.
    variances: Mat<f64>,
}

/// The m x r matrices of an evaluation. Who keeps them from one batch to the next saves the operating system from clearing as many pages again.
#[derive(Debug)]
pub(super) struct Buffers {
    features: Mat<f64>,
    products: Vec<Mat<f64>>,
    scaled: Mat<f64>,
}

impl Buffers {
    pub(super) fn new() -> Self {
        Self { features: Mat::new(), products: Vec::new(), scaled: Mat::new() }
    }

    fn fit(&mut self, rows: usize, columns: usize, roots: usize) {
        self.products.resize_with(roots, Mat::new);
        for buffer in [&mut self.features, &mut self.scaled].into_iter().chain(&mut self.products) {
            if buffer.shape() != (rows, columns) {
                *buffer = Mat::zeros(rows, columns);
            }
        }
    }
}

/// `R Rᵀ - I` of each root, both triangles.
fn differences(distribution: &InducingDistribution) -> Vec<Mat<f64>> {
    let of_root = |root: &Mat<f64>| {
        let lower = (root.as_ref(), TriangularLower);
        let mut t = symmetric_product(lower, (root.transpose(), TriangularUpper), 1.0);
        for i in 0..t.nrows() {
            t[(i, i)] -= 1.0;
        }
        t
    };
    distribution.roots.iter().map(of_root).collect()
}

fn forward<'a>(
    model: &StochasticGp,
    whitening: &Whitening,
    distribution: &InducingDistribution,
    differences: &[Mat<f64>],
    x: MatRef<'_, f64>,
    features: &'a mut Mat<f64>,
    products: &'a mut [Mat<f64>],
) -> Forward<'a> {
    whitening.features_into(model.kernel(), model.inducing(), x, features.as_mut());
    let features = features.as_ref();
    let r = features.ncols();
    let mut means = model.mean.evaluate(x);
    multiply_into(means.as_mut(), Accum::Add, features.transpose(), distribution.mean(), 1.0);
    let prior = diagonal(model.kernel(), x);
    let mut variances = Mat::zeros(r, differences.len());
    for (index, (t, product)) in differences.iter().zip(products.iter_mut()).enumerate() {
        multiply_into(product.as_mut(), Accum::Replace, t.as_ref(), features, 1.0);
        let out = variances.col_as_slice_mut(index);
        out.par_iter_mut().with_min_len(CHUNK).enumerate().for_each(|(i, out)| {
            let (a, b) = (features.col(i), product.col(i));
            let value = prior[i] + dot::inner_prod(a.transpose(), Conj::No, b, Conj::No);
            // Not `f64::max`, which would turn NaN into certainty.
            *out = if value < 0.0 { 0.0 } else { value };
        });
    }
    Forward { features, products, means, variances }
}

/// Expectations over a batch: their sum, slopes in means (r x C), in variances (r x roots), in the likelihood's parameters.
struct Expectations {
    value: f64,
    means: Mat<f64>,
    variances: Mat<f64>,
    parameters: Vec<f64>,
}

/// What a piece of the rows says: the same, row after row and one slope in the variance for each latent value.
struct Piece {
    value: f64,
    means: Vec<f64>,
    variances: Vec<f64>,
    parameters: Vec<f64>,
}

/// All slopes times `scale`. Pieces are summed in their order, so that the result does not depend on the number of threads.
fn expectations(
    model: &StochasticGp,
    distribution: &InducingDistribution,
    batch: &Batch<'_>,
    forward: &Forward<'_>,
    scale: f64,
) -> Expectations {
    let (r, latents, roots) = (batch.inputs.nrows(), distribution.latents(), distribution.roots.len());
    let width = batch.targets.ncols();
    let own = model.likelihood.values().len();
    let pieces: Vec<_> = pieces(r, CHUNK).collect();
    let parts: Vec<Piece> = pieces
        .par_iter()
        .map(|rows| {
            let (mut y, mut mean, mut variance) = (vec![0.0; width], vec![0.0; latents], vec![0.0; latents]);
            let (mut value, mut parameters) = (0.0, vec![0.0; own]);
            let mut of_row = vec![0.0; own];
            let mut mean_slopes = vec![0.0; rows.len() * latents];
            let mut variance_slopes = vec![0.0; rows.len() * latents];
            for (k, i) in rows.clone().enumerate() {
                y.iter_mut().enumerate().for_each(|(j, y)| *y = batch.targets[(i, j)]);
                let offset = batch.offsets.map_or(0.0, |offsets| offsets[i]);
                for c in 0..latents {
                    mean[c] = forward.means[(i, c)] + offset;
                    variance[c] = forward.variances[(i, distribution.root_of(c))];
                }
                let row = k * latents..(k + 1) * latents;
                let noisier = batch.noise.and_then(|noise| model.likelihood.with_row_noise(noise[i]));
                let likelihood: &dyn Likelihood = noisier.as_deref().unwrap_or(&*model.likelihood);
                of_row.fill(0.0);
                let (of_means, of_variances) =
                    (&mut mean_slopes[row.clone()], &mut variance_slopes[row.clone()]);
                let slopes = Slopes { means: of_means, variances: of_variances, parameters: &mut of_row };
                let weight = batch.weights.map_or(1.0, |weights| weights[i]);
                value += weight * likelihood.expected_log_density(&y, &mean, &variance, slopes);
                if batch.weights.is_some() {
                    let scaled = mean_slopes[row.clone()].iter_mut().chain(&mut variance_slopes[row]);
                    scaled.for_each(|slope| *slope *= weight);
                }
                parameters.iter_mut().zip(&of_row).for_each(|(sum, own)| *sum += weight * own);
            }
            Piece { value, means: mean_slopes, variances: variance_slopes, parameters }
        })
        .collect();
    let mut out = Expectations {
        value: 0.0,
        means: Mat::zeros(r, latents),
        variances: Mat::zeros(r, roots),
        parameters: vec![0.0; own],
    };
    for (rows, part) in pieces.into_iter().zip(parts) {
        out.value += scale * part.value;
        out.parameters.iter_mut().zip(part.parameters).for_each(|(t, p)| *t += scale * p);
        for (k, i) in rows.enumerate() {
            for c in 0..latents {
                out.means[(i, c)] = scale * part.means[k * latents + c];
                out.variances[(i, distribution.root_of(c))] += scale * part.variances[k * latents + c];
            }
        }
    }
    out
}

/// The bound on all of `data`, in blocks of rows: `(1 + 2 roots) n m²` flops and `O(m²)` memory.
///
/// # Errors
/// When data and distribution do not fit the model ([`StochasticGp::check`]) or `K_ZZ` cannot be factored.
pub fn stochastic_bound(
    model: &StochasticGp,
    distribution: &InducingDistribution,
    data: &Observations,
) -> Result<f64, GpError> {
    model.check(data)?;
    model.check_distribution(distribution)?;
    let whitening = model.whitening()?;
    let differences = differences(distribution);
    let mut value = -distribution.divergence();
    let mut buffers = Buffers::new();
    for rows in pieces(data.rows(), block_rows(model.inducing.nrows())) {
        let batch = Batch {
            inputs: data.inputs().subrows(rows.start, rows.len()),
            targets: data.targets().subrows(rows.start, rows.len()),
            noise: data.noise_variances().map(|noise| &noise[rows.clone()]),
            weights: data.weights().map(|weights| &weights[rows.clone()]),
            offsets: data.offsets().map(|offsets| &offsets[rows.clone()]),
            rows: rows.len(),
        };
        buffers.fit(model.inducing.nrows(), rows.len(), differences.len());
        let Buffers { features, products, .. } = &mut buffers;
        let forward =
            forward(model, &whitening, distribution, &differences, batch.inputs, features, products);
        value += expectations(model, distribution, &batch, &forward, 1.0).value;
    }
    Ok(value)
}

/// The bound as a batch estimates it, with its gradients. The data must have passed [`StochasticGp::check`].
///
/// Cost `(2 + 3 roots) r m²` flops, some `(3 + 5 roots) m³`, and the kernel with its pullback; without gradients beyond those of q,
/// `(1 + 3 roots) r m²` and `m³`.
///
/// # Errors
/// [`GpError::Cholesky`] when `K_ZZ` cannot be factored, [`GpError::Shape`] or [`GpError::Empty`] for unusable sizes.
///
/// # Panics
/// For targets that have not passed the check: a class that does not exist, say.
pub fn stochastic_bound_and_gradient(
    model: &StochasticGp,
    distribution: &InducingDistribution,
    batch: Batch<'_>,
    wanted: Wanted,
) -> Result<StochasticEvaluation, GpError> {
    bound_and_gradient_in(&mut Buffers::new(), model, distribution, batch, wanted)
}

/// [`stochastic_bound_and_gradient`] in buffers that are kept.
pub(super) fn bound_and_gradient_in(
    buffers: &mut Buffers,
    model: &StochasticGp,
    distribution: &InducingDistribution,
    batch: Batch<'_>,
    wanted: Wanted,
) -> Result<StochasticEvaluation, GpError> {
    model.check_distribution(distribution)?;
    crate::data::same_width("columns of the inputs", model.inducing.ncols(), batch.inputs.ncols())?;
    crate::data::same_width("rows of the targets", batch.inputs.nrows(), batch.targets.nrows())?;
    if batch.inputs.nrows() == 0 {
        return Err(GpError::Empty { what: "the batch" });
    }
    if let Some(noise) = batch.noise {
        crate::data::same_width("noise variances", batch.inputs.nrows(), noise.len())?;
    }
    if let Some(weights) = batch.weights {
        crate::data::same_width("weights", batch.inputs.nrows(), weights.len())?;
    }
    let whitening = model.whitening()?;
    let differences = differences(distribution);
    buffers.fit(model.inducing.nrows(), batch.inputs.nrows(), differences.len());
    let Buffers { features, products, scaled } = buffers;
    let forward = forward(model, &whitening, distribution, &differences, batch.inputs, features, products);
    let scale = batch.rows as f64 / batch.inputs.nrows() as f64;
    let slopes = expectations(model, distribution, &batch, &forward, scale);
    let value = slopes.value - distribution.divergence();

    let a = forward.features;
    let mean = product(a, slopes.means.as_ref());
    let covariances: Vec<Mat<f64>> = (0..differences.len())
        .map(|index| {
            let slopes = slopes.variances.col_as_slice(index);
            for_each_column(scaled, |i, column| {
                let pairs = column.iter_mut().zip(a.col(i).iter());
                pairs.for_each(|(scaled, a)| *scaled = slopes[i] * a);
            });
            symmetric_product((scaled.as_ref(), Rectangular), (a.transpose(), Rectangular), 1.0)
        })
        .collect();

    let mut parameters = vec![0.0; model.values().len()];
    if wanted != Wanted::DISTRIBUTION {
        let (kernel, z) = (model.kernel(), model.inducing());
        let (q_mean, moving) = (distribution.mean(), wanted.inducing);
        let mut outer = lower_product((q_mean, Rectangular), (mean.transpose(), Rectangular), 1.0);
        for (t, g) in differences.iter().zip(&covariances) {
            add_lower_product(&mut outer, (t.as_ref(), Rectangular), (g.as_ref(), Rectangular), 2.0);
        }
        // The adjoint of A gathers in the buffer of the scaled features.
        let adjoint = scaled;
        multiply_into(adjoint.as_mut(), Accum::Replace, q_mean, slopes.means.transpose(), 1.0);
        for (index, product) in forward.products.iter().enumerate() {
            let slopes = slopes.variances.col_as_slice(index);
            for_each_column(adjoint, |i, column| {
                let pairs = column.iter_mut().zip(product.col_as_slice(i));
                pairs.for_each(|(a, p)| *a += 2.0 * slopes[i] * p);
            });
        }
        let one = whitening.pull_back_factor(kernel, z, outer, moving);
        let two = whitening.pull_back_features(kernel, z, batch.inputs, adjoint, moving);
        let count = one.parameters.len();
        if wanted.hyperparameters {
            let of_variances: Vec<f64> =
                (0..a.ncols()).map(|i| slopes.variances.row(i).iter().sum()).collect();
            let three =
                pullback_diagonal(kernel, batch.inputs, &of_variances, Request::PARAMETERS).parameters;
            for (i, out) in parameters[..count].iter_mut().enumerate() {
                *out = one.parameters[i] + two.parameters[i] + three[i];
            }
            let means = model.mean.pullback(batch.inputs, slopes.means.as_ref());
            parameters[count..count + means.len()].copy_from_slice(&means);
            let start = count + means.len();
            parameters[start..start + slopes.parameters.len()].copy_from_slice(&slopes.parameters);
        }
        if let (Some(one), Some(two)) = (one.x, two.x) {
            let inducing = by_columns(&(one + two));
            let start = parameters.len() - inducing.len();
            parameters[start..].copy_from_slice(&inducing);
        }
    }
    let relative_jitter = whitening.relative_jitter;
    Ok(StochasticEvaluation { value, mean, covariances, parameters, relative_jitter })
}

/// Calls `work(i, column i)`, some columns on each thread.
fn for_each_column(matrix: &mut Mat<f64>, work: impl Fn(usize, &mut [f64]) + Sync) {
    let columns = matrix.as_mut().par_col_iter_mut().with_min_len(CHUNK).enumerate();
    columns.for_each(|(i, column)| {
        if let Some(column) = column.try_as_col_major_mut() {
            work(i, column.as_slice_mut());
        }
    });
}
