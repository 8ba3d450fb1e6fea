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
//! **Measured** (`benches/matrix.rs`; n = 41,000, D = 9, f32, two cores whose matrix product reached 181 GFLOP/s in the same run): Matérn-3/2, all rows, with one
//! vector 0.47 to 0.50 s, 81 GFLOP/s, 45 % of the bound (square root and exponential are chains of dependent operations, and differences use no fused
//! multiply-add); with 65 vectors 1.77 s, 144 GFLOP/s, 80 %. 512 rows: 12.8 ms (74 GFLOP/s) and 27.7 ms (131). With one vector, the flops of a value beside the share of the bound:
//!
//! | kernel | flops a value | seconds | share |
//! |---|---|---|---|
//! | squared exponential | 2D + 20 | 0.44 | 44 % |
//! | Matérn-1/2 | 2D + 22 | 0.50 | 41 % |
//! | Matérn-3/2 | 2D + 25 | 0.50 | 43 % |
//! | Matérn-5/2 | 2D + 27 | 0.52 | 44 % |
//! | rational quadratic (logarithm and exponential) | 2D + 45 | 1.15 | 27 % |
//! | linear | 2D | 0.23 | 44 % |
//! | polynomial of degree 3 | 2D + 3 | 0.32 | 36 % |
//!
//! Tanimoto, 8,192 rows of 1,024 counts, about 50 of them not 0: as dense vectors 1.6 s (3D flops a value, no fused ones: 63 GFLOP/s, 70 % of what additions alone can reach), as
//! sparse ones 0.12 s, as bits 0.071 s (D/64 words a value, 7.6 words a nanosecond; eight words take nine vector operations without a population count of vectors).

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
