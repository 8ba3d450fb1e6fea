//! Bytes and operations, before the start.

use crate::{Projector, TomographyError};
use serde::Serialize;

/// What a command will take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Its largest blocks, by name.
    pub blocks: Vec<(String, u64)>,
    /// Floating-point operations, about: solvers are counted with all their steps, or with those that they usually need.
    pub flops: u64,
    /// Passes through the network, counted as forward passes of one picture.
    pub network_passes: u64,
    /// Projections and back-projections of one picture.
    pub projections: u64,
    /// Operations of dense matrices beside them, of those above.
    pub dense_flops: u64,
}

impl Plan {
    /// Of blocks, passes through a network of so many operations, projections of so many, and other operations.
    pub fn new(
        blocks: Vec<(&str, u64)>,
        (network_passes, each_pass): (u64, u64),
        (projections, each_projection): (u64, u64),
        others: u64,
    ) -> Self {
        let network = network_passes.saturating_mul(each_pass);
        let flops =
            network.saturating_add(projections.saturating_mul(each_projection)).saturating_add(others);
        let blocks = blocks.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
        Self { blocks, flops, network_passes, projections, dense_flops: others }
    }

    /// Bytes of all blocks together, which may not all live at the same time.
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Refuses what does not fit.
    ///
    /// # Errors
    /// [`TomographyError::Memory`] with the largest block and the way out.
    pub fn within(&self, limit: u64, remedy: &str) -> Result<(), TomographyError> {
        let bytes = self.bytes();
        if bytes <= limit {
            return Ok(());
        }
        let largest = self.blocks.iter().max_by_key(|b| b.1);
        Err(TomographyError::Memory {
            bytes,
            limit,
            largest: largest.map_or_else(String::new, |(name, _)| name.clone()),
            largest_bytes: largest.map_or(0, |b| b.1),
            remedy: remedy.into(),
        })
    }
}

/// The product of counts that users may have chosen, at most the largest number.
pub(crate) fn times(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |product, factor| product.saturating_mul(*factor))
}

/// Steps, samples and pictures that anyone can have meant.
pub(crate) const MOST_STEPS: usize = 10_000_000;

/// Refuses counts of zero, and those that nobody can have meant.
///
/// # Errors
/// [`TomographyError::Option`].
pub(crate) fn meant(name: &'static str, count: usize) -> Result<(), TomographyError> {
    if (1..=MOST_STEPS).contains(&count) {
        return Ok(());
    }
    Err(TomographyError::Option { name, value: count as f64, expected: "it lies between 1 and 10,000,000" })
}

/// Operations of a projection: four for each ray and line that it crosses.
pub(crate) fn projection_flops(projector: &Projector) -> u64 {
    let geometry = projector.geometry();
    let longest = geometry.image_shape().iter().max().copied().unwrap_or(0) as u64;
    times(&[4, geometry.measurements() as u64, longest])
}
