//! Variances and lengthscales of filters by the evidence.

use super::infer::{PriorReport, Saved};
use super::options::FilterOptions;
use crate::TomographyError;
use crate::linearised::{
    ChargedWeights, ConvolutionWeights, DistanceGrams, FilterHyperparameters, FilterPrior, MeasuredTangent,
    RoughnessTerms, StoredEvidence,
};
use crate::running::{Checkpointer, Stage, Watch};
use faer::Mat;
use posterior_optim::{Progress, Reason, State};
use posterior_store::Tensors;
use serde::{Deserialize, Serialize};

/// What the search found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FilterReport {
    /// Names of the blocks.
    pub blocks: Vec<String>,
    /// Variance and lengthscale of each.
    pub filters: FilterHyperparameters,
    /// Variance of the measurements' noise.
    pub noise_variance: f64,
    /// The evidence (with the density of lengthscales where it was asked for), nats.
    pub evidence: f64,
    /// Steps taken.
    pub steps: usize,
    /// Why the search ended.
    pub reason: Reason,
}

/// Finds the hyperparameters, from what was kept on. The Jacobian is not kept, and made again: its sums are of measurements x measurements for each block and distance.
pub(super) fn find(
    measured: &MeasuredTangent<'_, f32>,
    weights: &ConvolutionWeights,
    sinogram: &[f64],
    own: &FilterOptions,
    saved: Saved,
    checkpointer: &mut Checkpointer,
    watch: &mut Watch<'_>,
) -> Result<(FilterPrior, FilterReport), TomographyError> {
    if let Some(PriorReport::Filters(report)) = saved.prior {
        return Ok((FilterPrior::new(weights, report.filters.clone())?, report));
    }
    let (tangent, projector) = (measured.tangent(), measured.projector());
    let (c, pixels) = projector.shape();
    let all = if own.roughness > 0.0 { c + pixels } else { c };
    let unit = |size: usize, at: usize| Mat::from_fn(size, 1, |i, _| f64::from(u8::from(i == at)));
    let grams = {
        let back = |i: usize| projector.multiply_transpose(unit(c, i).as_ref());
        let jacobian = tangent.rows_along(c, &back, &mut |done| watch(Stage::Jacobian, done, all, None))?;
        DistanceGrams::new(weights, jacobian.as_ref())
    };
    let shape: Vec<usize> = tangent.picture_shape();
    let terms = if own.roughness > 0.0 {
        let pixel = |i: usize| unit(pixels, i);
        let jacobian =
            tangent.rows_along(pixels, &pixel, &mut |done| watch(Stage::Jacobian, c + done, all, None))?;
        Some(RoughnessTerms::new(weights, &shape, jacobian.as_ref()))
    } else {
        None
    };
    let targets = measured.linear_targets(sinogram)?;
    let residual: Vec<f64> = sinogram.iter().zip(measured.measured_picture()).map(|(y, g)| y - g).collect();
    let evidence = StoredEvidence {
        grams: &grams,
        projector: None,
        targets: &targets,
        residual: &residual,
        charged: ChargedWeights::Optimum,
        roughness: terms.as_ref().map(|terms| (terms, own.roughness)),
    };
    let blocks = weights.blocks();
    let start = evidence.start(FilterHyperparameters::start(blocks.len()), None);
    let mut failed = None;
    let mut tell = |progress: &Progress, state: &State| {
        let signal = watch(Stage::Hyperparameters, progress.step, own.steps, progress.value);
        let kept = || (Saved { search: Some(state.clone()), ..Saved::default() }, Tensors::default());
        checkpointer.offer_or_keep(signal, kept, &mut failed)
    };
    let found = evidence.search(own.learned, &start, own.steps, saved.search, &mut tell);
    if let Some(error) = failed {
        return Err(error);
    }
    let found = found?;
    let report = FilterReport {
        blocks: blocks.iter().map(|b| b.name.clone()).collect(),
        noise_variance: found.hyperparameters.log_noise_variance.exp(),
        evidence: found.evidence,
        steps: found.steps,
        reason: found.reason,
        filters: found.hyperparameters.filters,
    };
    Ok((FilterPrior::new(weights, report.filters.clone())?, report))
}
