//! The bound of a batch with its gradients: the data term of `linear::low_rank` on whitened features, and the way back to kernel and Z.
//!
//! The adjoint D of the features goes back through `K_ZX`; what they share, the factor of `K_ZZ`, needs `D Aᵀ` alone, which the data term has without a product of that size. So a step takes for each root one
//! product with the features and one half product, besides one solve forwards and one backwards.

use super::StochasticGp;
use crate::inducing::InducingDistribution;
use crate::inducing::plan::block_rows;
use crate::inducing::prior::by_columns;
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_kernels::inducing::Whitening;
use posterior_kernels::{Request, diagonal, pullback_diagonal};
use posterior_linalg::tiles::pieces;
use posterior_linear::low_rank::{DataGradient, DataTerm, DataTermBuffers, ObservedRows};
use posterior_optim::Parameters;

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

impl Batch<'_> {
    fn observed(&self) -> ObservedRows<'_> {
        let Self { targets, noise, weights, offsets, .. } = *self;
        ObservedRows { targets, noise, weights, offsets }
    }
}

/// An estimate of the bound with its gradients.
#[derive(Clone, Debug)]
pub struct StochasticEvaluation {
    /// The bound, in nats.
    pub value: f64,
    /// The data term's gradient in q.
    pub of_q: DataGradient,
    /// The gradient in the natural parameters of the model, in their order; zeros where not wanted.
    pub parameters: Vec<f64>,
    /// What was added to the diagonal of `K_ZZ`, relative to its mean.
    pub relative_jitter: f64,
}

/// The m x r matrices of an evaluation. Who keeps them from one batch to the next saves the operating system from clearing as many pages again.
#[derive(Debug)]
pub(super) struct Buffers {
    features: Mat<f64>,
    of_data: DataTermBuffers,
}

impl Buffers {
    pub(super) fn new() -> Self {
        Self { features: Mat::new(), of_data: DataTermBuffers::default() }
    }

    fn features(&mut self, model: &StochasticGp, whitening: &Whitening, x: MatRef<'_, f64>) {
        let shape = (model.inducing.nrows(), x.nrows());
        if self.features.shape() != shape {
            self.features = Mat::zeros(shape.0, shape.1);
        }
        whitening.features_into(model.kernel(), model.inducing(), x, self.features.as_mut());
    }
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
    let term = DataTerm::new(distribution, &*model.likelihood, 0.0);
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
        buffers.features(model, &whitening, batch.inputs);
        let (means, variances) = (model.mean.evaluate(batch.inputs), diagonal(model.kernel(), batch.inputs));
        let Buffers { features, of_data } = &mut buffers;
        value += term.value(features.as_ref(), means, &variances, &batch.observed(), of_data);
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
    let term = DataTerm::new(distribution, &*model.likelihood, 0.0);
    buffers.features(model, &whitening, batch.inputs);
    let (means, variances) = (model.mean.evaluate(batch.inputs), diagonal(model.kernel(), batch.inputs));
    let scale = batch.rows as f64 / batch.inputs.nrows() as f64;
    let Buffers { features, of_data } = buffers;
    let slopes = term.slopes(features.as_ref(), means, &variances, &batch.observed(), scale, of_data);
    let value = slopes.value - distribution.divergence();

    let mut parameters = vec![0.0; model.values().len()];
    if wanted != Wanted::DISTRIBUTION {
        let (kernel, z) = (model.kernel(), model.inducing());
        let (moving, outer) = (wanted.inducing, term.outer(&slopes));
        let adjoint = term.features_adjoint(&slopes, of_data);
        let one = whitening.pull_back_factor(kernel, z, outer, moving);
        let two = whitening.pull_back_features(kernel, z, batch.inputs, adjoint, moving);
        let count = one.parameters.len();
        if wanted.hyperparameters {
            let of_variances = slopes.of_prior_variances();
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
    Ok(StochasticEvaluation { value, of_q: slopes.of_q, parameters, relative_jitter })
}
