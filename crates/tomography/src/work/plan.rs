//! Bytes and operations, before the start.

use crate::TomographyError;
use posterior_networks::Graph;
use serde::Serialize;

/// What a command will take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Its largest blocks, by name.
    pub blocks: Vec<(String, u64)>,
    /// Floating-point operations, at most: solvers end sooner where they converge sooner.
    pub flops: u64,
}

impl Plan {
    /// Of blocks and operations.
    pub fn new(blocks: Vec<(&str, u64)>, flops: u64) -> Self {
        Self { blocks: blocks.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect(), flops }
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

/// Operations of one product forward and one back through a network and a projector with so many weights of rays: what a product with the covariance of the measurements costs.
pub fn measured_flops(graph: &Graph, ray_weights: u64) -> u64 {
    graph.flops().saturating_mul(4).saturating_add(ray_weights.saturating_mul(4))
}
