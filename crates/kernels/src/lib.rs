//! Covariance functions, their gradients, and the small text form that names them.
//!
//! ```
//! use faer::Mat;
//! use posterior_kernels::{KernelExpression, gram};
//!
//! let kernel = "matern32(lengthscale=2) + white(variance=0.1)".parse::<KernelExpression>()?.build::<f64>(&["x".into()])?;
//! let x = Mat::from_fn(3, 1, |i, _| i as f64);
//! let k = gram(&*kernel, x.as_ref());
//! let r = 3f64.sqrt() / 2.0;
//! assert!((k[(1, 0)] - (1.0 + r) * (-r).exp()).abs() < 1e-15 && (k[(1, 1)] - 1.1).abs() < 1e-15);
//! # Ok::<(), posterior_kernels::KernelTextError>(())
//! ```
//!
//! A new covariance function implements [`Kernel`]'s tile, diagonal and pullback; matrices, threads, solvers and fits follow.
//!
//! | module | idea |
//! |---|---|
//! | [`Kernel`] | one tile of a kernel matrix, its diagonal, and the pullback of an adjoint to parameters and inputs |
//! | [`BlockKernel`] | kernels of several functions at once, on points of any kind; every [`Kernel`] is one |
//! | [`LearnedBlockKernel`], [`Separable`] | those whose parameters and points are learned; a kernel of one function times a covariance of outputs |
//! | [`cross`], [`gram`], [`pullback`] ... | whole matrices: tiled, parallel, written once for all kernels |
//! | [`matrix`] | kernel matrices that are never stored, as operators: products, rows, columns |
//! | [`pullback_bilinear`], [`pullback_quadratic`] | gradients of `Σ u_i v_j k(x_i, z_j)` without an n x n adjoint |
//! | [`stationary`] | squared exponential, Matérn, rational quadratic: a profile of the scaled distance each |
//! | [`Periodic`], [`Linear`], [`Polynomial`], [`Constant`], [`White`] | the others |
//! | [`categorical`] | categories of a column of text, all alike or of low rank |
//! | [`infinite`] | networks of infinite width before training (NNGP): fully connected layers; convolutions of images |
//! | [`tanimoto`] | the kernel of counts: dense, sparse, with random hashes |
//! | [`features`] | random features, and functions drawn from the prior |
//! | [`inducing`] | a few points that stand for many |
//! | [`additive`] | sums of functions of few columns each, by order |
//! | [`SpectralMixture`] | a spectrum of several bumps |
//! | [`composite`], [`Warp`] | sums, products, scaling, warped columns |
//! | [`PointKernel`], [`KernelObject`], [`register`] | kernels of the caller's own, and how model files hold them |
//! | [`KernelExpression`] | `"matern32(ard) * periodic(x3) + linear"` |
//!
//! Formulas: spec `stochastic_gaussian_processes`, section 4; Rasmussen and Williams (2006), chapter 4; those of [`infinite`] stand there.
//!
//! Nothing of size n x n x D exists at any time, and an adjoint of size n x n only where the caller has one.

pub mod additive;
mod bilinear;
pub mod categorical;
pub mod composite;
mod constant;
mod driver;
pub mod features;
pub mod inducing;
pub mod infinite;
mod inputs;
mod kernel;
mod learned;
mod linear;
pub mod matrix;
mod object;
mod periodic;
mod pointwise;
mod polynomial;
mod prepared;
mod separable;
mod several;
mod spectral_mixture;
pub mod stationary;
pub mod tanimoto;
mod text;
mod warp;
mod white;

pub use bilinear::{pullback_bilinear, pullback_quadratic, pullback_tiles};
pub use constant::Constant;
pub use driver::{
    FillAdjoint, TILE, cross, cross_into, diagonal, gram, gram_lower_into, pullback, pullback_diagonal,
    pullback_gram,
};
pub use inputs::Columns;
pub use kernel::{Adjoints, Component, Kernel, Pair, Request};
pub use learned::{Directed, LearnedBlockKernel, SetAdjoints};
pub use linear::Linear;
pub use object::{KernelObject, is_registered, register};
pub use periodic::Periodic;
pub use pointwise::{PointAdjoints, PointKernel, Pointwise};
pub use polynomial::Polynomial;
pub use prepared::{Prepared, PreparedBlock};
pub use separable::{Separable, SeparablePoints};
pub use several::{BlockKernel, ScaledPoints};
pub use spectral_mixture::SpectralMixture;
pub use text::{KernelExpression, KernelTextError, is_distance, is_stationary_variance, kernel_name};
pub use warp::Warp;
pub use white::White;

#[cfg(test)]
mod tests;
