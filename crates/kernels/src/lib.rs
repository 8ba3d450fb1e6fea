//! Covariance functions, their gradients, and the small text form that names them.
//!
//! | module | idea |
//! |---|---|
//! | [`Kernel`] | one tile of a kernel matrix, its diagonal, and the pullback of an adjoint to parameters and inputs |
//! | [`BlockKernel`] | kernels of several functions at once, on points of any kind; every [`Kernel`] is one |
//! | [`cross`], [`gram`], [`pullback`] ... | whole matrices: tiled, parallel, written once for all kernels |
//! | [`matrix`] | kernel matrices that are never stored, as operators: products, rows, columns |
//! | [`pullback_bilinear`], [`pullback_quadratic`] | gradients of `Σ u_i v_j k(x_i, z_j)` without an n x n adjoint |
//! | [`stationary`] | squared exponential, Matérn, rational quadratic: a profile of the scaled distance each |
//! | [`Periodic`], [`Linear`], [`Polynomial`], [`Constant`], [`White`] | the others |
//! | [`tanimoto`] | the kernel of counts: dense, sparse, with random hashes |
//! | [`features`] | random features, and functions drawn from the prior |
//! | [`inducing`] | a few points that stand for many |
//! | [`composite`] | sums, products, scaling |
//! | [`KernelExpression`] | `"matern32(ard) * periodic(x3) + linear"` |
//!
//! Formulas: spec `stochastic_gaussian_processes`, section 4; Rasmussen and Williams (2006), chapter 4.
//!
//! Nothing of size n x n x D exists at any time, and an adjoint of size n x n only where the caller has one.

mod bilinear;
pub mod composite;
mod constant;
mod driver;
pub mod features;
pub mod inducing;
mod inputs;
mod kernel;
mod linear;
pub mod matrix;
mod periodic;
mod polynomial;
mod prepared;
mod several;
pub mod stationary;
pub mod tanimoto;
mod text;
mod white;

pub use bilinear::{pullback_bilinear, pullback_quadratic, pullback_tiles};
pub use constant::Constant;
pub use driver::{
    FillAdjoint, TILE, cross, cross_into, diagonal, gram, gram_lower_into, pullback, pullback_diagonal,
    pullback_gram,
};
pub use inputs::Columns;
pub use kernel::{Adjoints, Kernel, Pair, Request};
pub use linear::Linear;
pub use periodic::Periodic;
pub use polynomial::Polynomial;
pub use prepared::{Prepared, PreparedBlock};
pub use several::{BlockKernel, ScaledPoints};
pub use text::{KernelExpression, KernelTextError};
pub use white::White;

#[cfg(test)]
mod tests;
