//! Inputs and targets in batches, as likelihoods want them.

use posterior_likelihoods::{LikelihoodError, OutputLikelihood};
use posterior_linalg::tiles::pieces;
use posterior_linear::LinearError;
use posterior_linear::features::{BatchSource, VisitPiece};
use posterior_networks::train::{Examples, Targets};
use posterior_networks::{Array, Network, Precision, Selection};
use std::ops::Range;

/// Values that the activations and sensitivities of one batch may take: 16 MB in single precision, so that a batch stays near the cache.
const BATCH_VALUES: usize = 1 << 22;

/// The same where products with several vectors pass: 64 MB.
const PASSING_VALUES: usize = 1 << 24;

/// Operations that a batch should make for each weight of each vector. Every batch reads and writes a vector's weights five or six times on the way in and out of the network; this is ten times the work for which there would be time meanwhile.
const OPERATIONS_FOR_A_VALUE: u64 = 1000;

/// The same where vectors are cut up by layer before and joined after.
const OPERATIONS_BY_FEATURES: f64 = 4000.0;

/// What does not fit between data, network and likelihood.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObservationError {
    /// Targets of another width.
    #[error("each example has {found} target values, but the likelihood describes {expected}")]
    Targets {
        /// Numbers of one target.
        found: usize,
        /// What the likelihood describes.
        expected: usize,
    },
    /// A target that the likelihood does not know.
    #[error("example {example}: {source}")]
    Target {
        /// Number of the example, from 0.
        example: usize,
        /// What is wrong with it.
        source: LikelihoodError,
    },
    /// Outputs of another number.
    #[error(
        "the network has {found} outputs, the likelihood describes {expected}; choose the likelihood that the network was trained for"
    )]
    Outputs {
        /// Outputs of the network.
        found: usize,
        /// What the likelihood describes.
        expected: usize,
    },
}

impl From<ObservationError> for LinearError {
    fn from(error: ObservationError) -> Self {
        match error {
            ObservationError::Target { example, source } => Self::Target { example, error: source },
            other => Self::Features(Box::new(other)),
        }
    }
}

/// Examples as a likelihood wants them, for passes over data.
pub struct Observed<'a, T> {
    /// The examples.
    pub examples: &'a dyn Examples<T>,
    /// What checks their targets.
    pub likelihood: &'a OutputLikelihood,
}

impl<T: Precision> BatchSource<Array<T>> for Observed<'_, T> {
    fn examples(&self) -> usize {
        self.examples.len()
    }

    fn batch(&self, range: Range<usize>) -> Result<(Array<T>, Vec<f64>), LinearError> {
        let Batch { x, targets, .. } = Batch::read(self.examples, range, self.likelihood)?;
        Ok((x, targets))
    }

    fn picked(
        &self,
        examples: &[usize],
        at_once: usize,
        visit: &mut VisitPiece<'_, Array<T>>,
    ) -> Result<(), LinearError> {
        for piece in examples.chunks(at_once.max(1)) {
            let (x, targets) = gather(self.examples, piece, self.likelihood)?;
            visit(piece, x, &targets)?;
        }
        Ok(())
    }
}

/// Some examples.
pub struct Batch<T> {
    /// Their numbers.
    pub range: Range<usize>,
    /// `[examples, ...]`.
    pub x: Array<T>,
    /// `[examples, target width]`.
    pub targets: Vec<f64>,
}

impl<T: Precision> Batch<T> {
    /// The target of the batch's example `i`.
    pub fn target(&self, i: usize) -> &[f64] {
        let width = self.targets.len() / self.range.len().max(1);
        &self.targets[i * width..(i + 1) * width]
    }

    /// Reads examples and checks each target.
    ///
    /// # Errors
    /// Targets of another width, or one that cannot be.
    pub fn read(
        examples: &dyn Examples<T>,
        range: Range<usize>,
        likelihood: &OutputLikelihood,
    ) -> Result<Self, ObservationError> {
        let (x, targets) = gather(examples, &range.clone().collect::<Vec<_>>(), likelihood)?;
        Ok(Self { range, x, targets })
    }
}

/// Inputs and checked targets of the examples with these numbers.
fn gather<T: Precision>(
    examples: &dyn Examples<T>,
    numbers: &[usize],
    likelihood: &OutputLikelihood,
) -> Result<(Array<T>, Vec<f64>), ObservationError> {
    let (x, targets) = examples.batch(numbers, None);
    let (targets, width) = (target_values(&targets), likelihood.target_width());
    if targets.len() != numbers.len() * width {
        let found = targets.len() / numbers.len().max(1);
        return Err(ObservationError::Targets { found, expected: width });
    }
    for (&example, target) in numbers.iter().zip(targets.chunks_exact(width.max(1))) {
        likelihood.check_target(target).map_err(|source| ObservationError::Target { example, source })?;
    }
    Ok((x, targets))
}

/// Targets as numbers, example by example.
pub fn target_values<T: Precision>(targets: &Targets<T>) -> Vec<f64> {
    match targets {
        Targets::Values(values) => values.values().iter().map(|v| v.to_f64()).collect(),
        Targets::Classes(classes) => classes.iter().map(|&c| f64::from(c)).collect(),
    }
}

/// Examples in a batch that has `width` rows for each of them.
pub fn batch_size<T: Precision>(network: &Network<T>, width: usize) -> usize {
    (BATCH_VALUES / (network.graph().activations() * width).max(1)).clamp(1, 2048)
}

/// Examples in a batch whose activations are kept once, and of which `width` rows for each pass from layer to layer, on the way of as many vectors: enough to make reading and writing the vectors little beside the
/// work, and no more.
pub fn passing_batch_size<T: Precision>(network: &Network<T>, width: usize) -> usize {
    let graph = network.graph();
    let fits = PASSING_VALUES / (graph.activations() + graph.live_values() * width).max(1);
    let values: usize = graph.parameters().iter().map(|p| p.len()).sum();
    let enough = (values as u64).saturating_mul(OPERATIONS_FOR_A_VALUE) / graph.flops().max(1);
    fits.min((enough as usize).max(16)).clamp(1, 2048)
}

/// Examples in a batch of which products with so many vectors go through the outputs and back, with the same aims: by way of features, whose memory is theirs whatever the number of vectors, larger ones.
pub fn through_batch_size<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    vectors: usize,
) -> usize {
    let (way, piece) = network.products_through_at_once(selection, vectors);
    if !way.by_features {
        return passing_batch_size(network, vectors);
    }
    let values = selection.len() as f64 * vectors as f64;
    let enough = (OPERATIONS_BY_FEATURES * values / way.flops.max(1.0)) as usize;
    // The activations of a batch are kept beside those of a piece.
    let fits = PASSING_VALUES / network.graph().activations().max(1);
    fits.min(enough.max(16)).max(piece).clamp(1, 2048)
}

/// Ranges that cover the examples from `start`.
pub fn ranges(start: usize, count: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    pieces(count.saturating_sub(start), size).map(move |r| r.start + start..r.end + start)
}

/// Outputs as doubles.
pub fn doubles<T: Precision>(values: &[T]) -> Vec<f64> {
    values.iter().map(|v| v.to_f64()).collect()
}

/// The number of outputs, where network and likelihood fit each other.
///
/// # Errors
/// [`ObservationError::Outputs`].
pub fn check_outputs<T: Precision>(
    network: &Network<T>,
    likelihood: &OutputLikelihood,
) -> Result<usize, ObservationError> {
    let outputs: usize = network.graph().output_shape().iter().product();
    if outputs == likelihood.outputs() {
        return Ok(outputs);
    }
    Err(ObservationError::Outputs { found: outputs, expected: likelihood.outputs() })
}
