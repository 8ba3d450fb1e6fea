//! **Effective dimension from samples**: `gamma = Tr(H^-1 M)` when neither matrix can be formed.
//!
//! With draws `z_j ~ N(0, H^-1)` there are two unbiased estimators. With `t_i = l_i / (l_i + a)` over the eigenvalues of `M`:
//!
//! | estimator | formula | variance | needs |
//! |---|---|---|---|
//! | [`prediction_space`] | mean of `sum_i (phi_i z)' B_i (phi_i z)` | `2/k sum t_i²` | a pass over the data |
//! | [`weight_space`] | `d` minus the mean of `z' A z` | `2/k sum (1 - t_i)²` | the samples only |
//!
//! The first is never negative and the better one exactly when `gamma < d/2`, as in every overparameterised network; the second splits by
//! groups of parameters.
//!
//! Source: Antorán (2024), equations 6.9 to 6.11; spec `linearised_laplace`, sections 5.3, 5.4 and 5.7.

use crate::features::{BatchSource, FeatureMap, chunks};
use crate::noise::Noise;
use crate::{LinearError, Prior, check};
use faer::MatRef;

/// An estimate with what each sample said.
#[derive(Clone, Debug, PartialEq)]
pub struct DimensionEstimate {
    /// The mean over samples.
    pub value: f64,
    /// The standard error of the mean from the scatter of the samples; `None` for a single sample.
    pub standard_error: Option<f64>,
    /// One unbiased estimate per sample.
    pub samples: Vec<f64>,
}

impl DimensionEstimate {
    fn new(samples: Vec<f64>) -> Self {
        let count = samples.len() as f64;
        let value = samples.iter().sum::<f64>() / count;
        let scatter: f64 = samples.iter().map(|s| (s - value).powi(2)).sum();
        let standard_error = (samples.len() > 1).then(|| (scatter / (count - 1.0) / count).sqrt());
        Self { value, standard_error, samples }
    }

    /// The value kept within `[1, d - 1]`, for an update of the prior precision that must stay positive and finite; and whether it was moved.
    pub fn clamped(&self, dimension: usize) -> (f64, bool) {
        let upper = (dimension as f64 - 1.0).max(1.0);
        let clamped = self.value.clamp(1.0, upper);
        (clamped, clamped != self.value)
    }
}

/// Effective dimension by the size of sampled predictions (equation 6.9). `samples` is d x k, zero-mean draws from the posterior.
///
/// Cost: k products with the features of all examples.
///
/// # Errors
/// [`LinearError::Empty`] without samples, [`LinearError::Shape`], [`LinearError::NotFinite`]; those of the feature map.
pub fn prediction_space<F: FeatureMap<f64>>(
    features: &F,
    source: &dyn BatchSource<F::Inputs>,
    noise: &Noise,
    samples: MatRef<'_, f64>,
) -> Result<DimensionEstimate, LinearError> {
    noise.check(source.examples(), features.outputs())?;
    check_samples(samples, features.dimension())?;
    let mut each = vec![0.0; samples.ncols()];
    for range in chunks(source.examples(), features.examples_at_once(samples.ncols())) {
        let (inputs, _) = source.batch(range.clone())?;
        let predictions = features.at(inputs)?.apply(samples)?;
        let whitened = noise.whiten(&range.collect::<Vec<_>>(), predictions.as_ref());
        each.iter_mut().enumerate().for_each(|(j, e)| *e += whitened.col(j).squared_norm_l2());
    }
    Ok(DimensionEstimate::new(each))
}

/// Effective dimension by the size of sampled weights (equation 6.10): no data needed, but it can be negative.
///
/// # Errors
/// [`LinearError::Empty`] without samples, [`LinearError::Shape`], [`LinearError::NotFinite`].
pub fn weight_space(samples: MatRef<'_, f64>, prior: &Prior) -> Result<DimensionEstimate, LinearError> {
    let groups = weight_space_by_group(samples, prior)?;
    let total = |j: usize| groups.iter().map(|g| g.samples[j]).sum();
    Ok(DimensionEstimate::new((0..samples.ncols()).map(total).collect()))
}

/// The effective dimension of each group of weights, `d_g` minus the mean of `z_g' A_g z_g` (equation 6.11).
///
/// # Errors
/// As [`weight_space`].
pub fn weight_space_by_group(
    samples: MatRef<'_, f64>,
    prior: &Prior,
) -> Result<Vec<DimensionEstimate>, LinearError> {
    check_samples(samples, prior.dimension())?;
    let sizes = prior.group_sizes();
    let mut each = vec![Vec::with_capacity(samples.ncols()); sizes.len()];
    for j in 0..samples.ncols() {
        let sample: Vec<f64> = samples.col(j).iter().copied().collect();
        for (group, norm) in prior.squared_norms(&sample).into_iter().enumerate() {
            each[group].push(sizes[group] as f64 - prior.precisions()[group] * norm);
        }
    }
    Ok(each.into_iter().map(DimensionEstimate::new).collect())
}

/// The variance `2/k sum t_i²` of [`prediction_space`] with `k` samples, from the eigenvalues of `M` and a scalar prior precision.
pub fn prediction_space_variance(eigenvalues: &[f64], precision: f64, samples: usize) -> f64 {
    let total: f64 = eigenvalues.iter().map(|l| (l / (l + precision)).powi(2)).sum();
    2.0 / samples as f64 * total
}

/// The variance `2/k sum (1 - t_i)²` of [`weight_space`] with `k` samples; eigenvalues missing from the `dimension` count as zero.
pub fn weight_space_variance(eigenvalues: &[f64], dimension: usize, precision: f64, samples: usize) -> f64 {
    let seen: f64 = eigenvalues.iter().map(|l| (precision / (l + precision)).powi(2)).sum();
    2.0 / samples as f64 * (seen + dimension.saturating_sub(eigenvalues.len()) as f64)
}

/// `(1/d) mean of z' H z`, which is 1 within `sqrt(2 / (d k))` for true posterior samples: a check of an iterative solver that costs
/// nothing beyond the effective dimension.
///
/// # Errors
/// As [`weight_space`]; [`LinearError::Shape`] when `predictions` came from another number of samples.
pub fn energy_ratio(
    predictions: &DimensionEstimate,
    samples: MatRef<'_, f64>,
    prior: &Prior,
) -> Result<f64, LinearError> {
    check::same("samples", predictions.samples.len(), samples.ncols())?;
    let weights = weight_space(samples, prior)?;
    let dimension = prior.dimension() as f64;
    Ok((predictions.value + dimension - weights.value) / dimension)
}

fn check_samples(samples: MatRef<'_, f64>, dimension: usize) -> Result<(), LinearError> {
    check::same("rows of the samples", dimension, samples.nrows())?;
    if samples.ncols() == 0 {
        return Err(LinearError::Empty { what: "samples" });
    }
    check::finite_matrix("sampled weight", samples)
}
