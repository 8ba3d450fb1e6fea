//! **Kernel matrices that are never stored**: products `K v`, rows and columns, for any number of points.
//!
//! | type | matrix |
//! |---|---|
//! | [`KernelMatrix`] | `k(x, x)`, symmetric: an operator with [`RowAccess`]; kept in memory if it fits a stated budget |
//! | [`CrossMatrix`] | `k(x, z)`, new points by old: an operator |
//! | [`SymmetricTiles`] | the two lines that anything else (counts, bits) has to write to be such a matrix: [`TiledMatrix`] |
//!
//! A tile of values is computed into 256 KiB that stay in the second-level cache, multiplied at once with its piece of the block of vectors, and
//! forgotten. Points are prepared once (divided by lengthscales).
//!
//! **Bound.** An entry costs `2D + 25` flops for its value (a difference and a fused multiply-add a dimension, one square root, one exponential)
//! and `2k` for k vectors. A product with a symmetric matrix computes half of the values, so `n²((2D + 25)/2 + 2k)` flops; rows
//! `r n (2D + 25 + 2k)`. Bytes from memory: vectors are read once for each row of tiles, `n²/512 · k b` for elements of b bytes, and
//! points likewise; below a byte for 100 flops, so arithmetic decides. With one vector the values dominate, with 65 the
//! matrix product. In memory (`n² b` bytes) a product with one vector is bound by reading: `n² b / bandwidth`.
//!
//! **Measured** (`benches/matrix.rs`; n = 41,000, D = 9, Matérn-3/2, f32, two cores of a virtual machine whose matrix product reaches 110 GFLOP/s in f64, so about
//! 220 in f32): all rows with one vector 0.54 s, 73 GFLOP/s, a third of the bound (square root and exponential are chains of dependent operations, and
//! differences use no fused multiply-add); with 65 vectors 1.53 s, 167 GFLOP/s, three quarters. 512 rows: 10.8 ms (87 GFLOP/s) and 24.8 ms (147).

mod cross;
mod gathered;
mod kernel_matrix;
mod product;
mod tiled;
mod tiles;

pub use cross::CrossMatrix;
pub use kernel_matrix::KernelMatrix;
pub use tiled::{SymmetricTiles, TiledMatrix};
pub(crate) use tiles::{TileSource, multiply, multiply_transpose, row_blocks};

#[cfg(doc)]
use posterior_linalg::operator::RowAccess;

#[cfg(test)]
mod tests;
