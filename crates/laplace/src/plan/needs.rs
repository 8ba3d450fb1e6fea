//! What a search needs.

/// Memory and work of a search, known before it starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Needs {
    /// Bytes of what is learned, of matrices beside it, and of what all rows are known by.
    pub curvature_bytes: u64,
    /// Bytes of one batch, or of what else is alive at one time only.
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
