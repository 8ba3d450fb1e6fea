//! Inputs and targets in batches, as likelihoods want them.

use crate::LaplaceError;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::tiles::pieces;
use posterior_networks::train::{Examples, Targets};
use posterior_networks::{Array, Network, Precision};
use std::ops::Range;

/// Values that the activations and sensitivities of one batch may take: 16 MB in single precision, so that a batch stays near the cache.
const BATCH_VALUES: usize = 1 << 22;

/// Some examples.
pub(crate) struct Batch<T> {
    /// Their numbers.
    pub(crate) range: Range<usize>,
    /// `[examples, ...]`.
    pub(crate) x: Array<T>,
    /// `[examples, target width]`.
    pub(crate) targets: Vec<f64>,
}

impl<T: Precision> Batch<T> {
    /// The target of the batch's example `i`.
    pub(crate) fn target(&self, i: usize) -> &[f64] {
        let width = self.targets.len() / self.range.len().max(1);
        &self.targets[i * width..(i + 1) * width]
    }

    /// Reads examples and checks each target.
    pub(crate) fn read(
        examples: &dyn Examples<T>,
        range: Range<usize>,
        likelihood: &OutputLikelihood,
    ) -> Result<Self, LaplaceError> {
        let indices: Vec<usize> = range.clone().collect();
        let (x, targets) = examples.batch(&indices, None);
        let targets = target_values(&targets);
        if targets.len() != range.len() * likelihood.target_width() {
            return Err(LaplaceError::Request(format!(
                "each example has {} target values, but the likelihood describes {}",
                targets.len() / range.len().max(1),
                likelihood.target_width()
            )));
        }
        let batch = Self { range, x, targets };
        for (i, example) in batch.range.clone().enumerate() {
            likelihood
                .check_target(batch.target(i))
                .map_err(|source| LaplaceError::Target { example, source })?;
        }
        Ok(batch)
    }
}

/// Targets as numbers, example by example.
pub(crate) fn target_values<T: Precision>(targets: &Targets<T>) -> Vec<f64> {
    match targets {
        Targets::Values(values) => values.values().iter().map(|v| v.to_f64()).collect(),
        Targets::Classes(classes) => classes.iter().map(|&c| f64::from(c)).collect(),
    }
}

/// Examples in a batch that has `width` rows for each of them.
pub(crate) fn batch_size<T: Precision>(network: &Network<T>, width: usize) -> usize {
    (BATCH_VALUES / (network.graph().activations() * width).max(1)).clamp(1, 2048)
}

/// Ranges that cover the examples from `start`.
pub(crate) fn ranges(start: usize, count: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    pieces(count.saturating_sub(start), size).map(move |r| r.start + start..r.end + start)
}

/// Outputs as doubles.
pub(crate) fn doubles<T: Precision>(values: &[T]) -> Vec<f64> {
    values.iter().map(|v| v.to_f64()).collect()
}

/// Network and likelihood fit each other.
pub(crate) fn check_outputs<T: Precision>(
    network: &Network<T>,
    likelihood: &OutputLikelihood,
) -> Result<usize, LaplaceError> {
    let outputs: usize = network.graph().output_shape().iter().product();
    if outputs == likelihood.outputs() {
        return Ok(outputs);
    }
    Err(LaplaceError::Request(format!(
        "the network has {outputs} outputs, the likelihood describes {}; choose the likelihood that the network was trained for",
        likelihood.outputs()
    )))
}
