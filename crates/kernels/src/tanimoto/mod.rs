//! The **Tanimoto** (min-max, weighted Jaccard) kernel: `k(x, z) = Σ_d min(x_d, z_d) / Σ_d max(x_d, z_d)` of non-negative counts.
//!
//! | type | for |
//! |---|---|
//! | [`Tanimoto`] | dense columns, as a [`crate::Kernel`]; `tanimoto` in the text form |
//! | [`SparseCounts`] | rows of few counts |
//! | [`TanimotoMatrix`], [`TanimotoCross`] | their kernel matrices as operators: products, rows, columns, never stored |
//! | [`Hashes`], [`SparseFeatures`] | random hashes that agree with probability k, and the features made of them |
//!
//! With `S = Σ min` it is `S / (|x| + |z| - S)`, so only coordinates that both have matter. Spec, sections 4 and 6.2.

mod counts;
mod features;
mod hashes;
mod kernel;
mod matrix;

pub use counts::{CountError, SparseCounts};
pub use features::SparseFeatures;
pub use hashes::Hashes;
pub use kernel::Tanimoto;
pub use matrix::{TanimotoCross, TanimotoMatrix};

#[cfg(test)]
mod tests;
