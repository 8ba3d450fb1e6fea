//! The best Gaussian over the weights for features and likelihood as they are, where it has no closed form: natural-gradient steps on the bound of all rows, each of which makes it larger.
//!
//! Under Gaussian noise one step of length 1 is the exact posterior; of likelihoods whose logarithm is concave a few steps are enough. Source: spec `deep_kernel_decomposition`, section 4.5.

use faer::Mat;
use posterior_linalg::tiles::pieces;
use posterior_linear::LinearError;
use posterior_linear::low_rank::{
    Correction, DataGradient, DataTerm, DataTermBuffers, LowRankData, LowRankOptions, LowRankPosterior,
    LowRankRows, ResidualVariance, WeightDistribution, natural_step,
};
use std::time::Instant;

/// Passes over the rows at most.
const PASSES: usize = 12;

/// Nats for each row that a step must gain for another to follow.
const GAIN: f64 = 1e-3;

/// The shortest step that is tried.
const SHORTEST: f64 = 0.03;

/// The bound of all rows with its data's gradient in the weights.
fn bound(
    posterior: &LowRankPosterior,
    q: &WeightDistribution,
    data: &dyn LowRankRows,
    (residual_variance, trace_weight): (ResidualVariance, f64),
) -> Result<(f64, DataGradient), LinearError> {
    let features = posterior.features();
    let (m, latents) = (q.rank(), q.latents());
    let term = DataTerm::new(q, posterior.likelihood(), 0.0);
    let mut gradient =
        DataGradient { mean: Mat::zeros(m, latents), covariances: vec![Mat::zeros(m, m); q.roots().len()] };
    let (mut value, mut buffers) = (-q.divergence(), DataTermBuffers::default());
    for rows in pieces(data.row_count(), features.rows_at_once()) {
        let count = rows.len();
        let block = data.rows_in(rows)?;
        let LowRankData { inputs, observed } = block.data();
        let values = features.values(inputs)?;
        let squares = (0..count).map(|i| values.features.col(i).squared_norm_l2());
        let with_rest = |(i, k): (usize, f64)| {
            let residual_variance = match residual_variance {
                ResidualVariance::None => 0.0,
                ResidualVariance::Uniform { largest } => (largest - k).max(0.0),
                ResidualVariance::Own => (values.variances[i] - k).max(0.0),
            };
            k + trace_weight * residual_variance
        };
        let variances: Vec<f64> = squares.enumerate().map(with_rest).collect();
        let zero = Mat::zeros(count, latents);
        let own = term.slopes(values.features.as_ref(), zero, &variances, &observed, 1.0, &mut buffers);
        value += own.value;
        gradient.mean += own.of_q.mean;
        gradient.covariances.iter_mut().zip(own.of_q.covariances).for_each(|(sum, g)| *sum += g);
    }
    Ok((value, gradient))
}

/// What training was told that features leave out, whether or not predictions have it.
fn told_of(
    posterior: &LowRankPosterior,
    data: &dyn LowRankRows,
    options: &LowRankOptions,
) -> Result<ResidualVariance, LinearError> {
    Ok(match (options.correction, posterior.residual_variance()) {
        (Correction::None, _) => ResidualVariance::None,
        (Correction::Own, _) => ResidualVariance::Own,
        (Correction::Uniform, known @ ResidualVariance::Uniform { .. }) => known,
        (Correction::Uniform, _) => {
            let (features, mut largest) = (posterior.features(), 0.0);
            for rows in pieces(data.row_count(), features.rows_at_once()) {
                let values = features.values(data.rows_in(rows)?.data().inputs)?.features;
                let squares = (0..values.ncols()).map(|i| values.col(i).squared_norm_l2());
                largest = squares.fold(largest, f64::max);
            }
            ResidualVariance::Uniform { largest }
        }
    })
}

/// The same posterior with the weights that the bound of all rows prefers, as far as steps begun before the deadline lead. Cost of a pass: the features, `3 n m²` flops and `4 m³` for each covariance.
///
/// # Errors
/// For features that fail; where nothing better is found the weights stay.
pub(crate) fn refitted(
    posterior: &LowRankPosterior,
    data: &dyn LowRankRows,
    options: &LowRankOptions,
    deadline: Option<Instant>,
) -> Result<LowRankPosterior, LinearError> {
    let mut q = posterior.distribution().clone();
    let told = (told_of(posterior, data, options)?, options.trace_weight);
    let (mut value, mut gradient) = bound(posterior, &q, data, told)?;
    let mut length = 1.0;
    for _ in 0..PASSES {
        if deadline.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        let mut next = q.clone();
        // A precision that no length makes positive definite ends it as a step too short does.
        let stepped = natural_step(&mut next, &gradient, length).is_ok();
        let found = if stepped { Some(bound(posterior, &next, data, told)?) } else { None };
        match found.filter(|(found, _)| *found > value || !value.is_finite() && found.is_finite()) {
            Some((found, slopes)) => {
                let gain = (found - value) / data.row_count() as f64;
                (q, value, gradient) = (next, found, slopes);
                if gain < GAIN {
                    break;
                }
                length = f64::min(2.0 * length, 1.0);
            }
            None if length > SHORTEST => length *= 0.4,
            None => break,
        }
    }
    let (features, likelihood) = (posterior.features().clone_box(), posterior.likelihood().clone_box());
    LowRankPosterior::new(features, q, likelihood, posterior.residual_variance())
}
