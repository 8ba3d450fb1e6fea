//! What a fit needs.

use serde::{Deserialize, Serialize};

/// Memory and work of a fit or a search, known before it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Needs {
    /// Bytes of the curvature, its factors and copies while it is factored; in a search of what is learned, of matrices beside it, and of what all rows are known by.
    pub curvature_bytes: u64,
    /// Bytes of one batch's activations, sensitivities and gradients, or of what else is alive at one time only.
    pub batch_bytes: u64,
    /// Multiplications and additions.
    pub flops: f64,
}

impl Needs {
    /// Bytes at the peak, beside network and data.
    pub fn bytes(&self) -> u64 {
        self.curvature_bytes.saturating_add(self.batch_bytes)
    }
}
