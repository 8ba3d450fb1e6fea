//! **Feature maps** `x -> phi(x)`: what a linear model is linear in.
//!
//! A map is known by two products, with `phi(x)` (outputs x parameters) and with its transpose, for a whole batch and many vectors at
//! once. That is all that the matrix-free methods need, so that the Jacobian of a network is a feature map like a stored matrix.
//!
//! | file | map | batch |
//! |---|---|---|
//! | `dense` | [`DenseFeatures`]: a stored matrix | indices of examples |
//! | `fourier` | [`RandomFourier`]: random Fourier features of stationary kernels | inputs, one row each |
//! | `scaled` | [`ScaledFeatures`]: `phi(x) diag(s)`, as the g-prior wants | that of the inner map |
//! | `source` | [`BatchSource`]: where batches of examples come from, for passes over data in pieces | |
//!
//! An affine model `f0(x) + phi(x) w` needs no map of its own: `f0` is a number per output, given to
//! [`ModeProblem`](crate::mode::ModeProblem) or subtracted from Gaussian targets.

mod dense;
mod fourier;
mod scaled;
mod source;

pub use dense::DenseFeatures;
pub use fourier::{RandomFourier, Spectrum};
pub use scaled::{ScaledFeatures, curvature_diagonal, unit_curvature_scaling};
pub(crate) use source::chunks;
pub use source::{BatchSource, Indices, Rows};

use crate::LinearError;
use faer::{Mat, MatRef};

/// `phi(x)`, a matrix of outputs x parameters for each example `x`.
///
/// For a batch of `n` examples with `C` outputs each, rows are ordered example by example: row `i C + c` belongs to output `c` of
/// example `i`. The two products must be exact transposes of each other.
pub trait FeatureMap: Send + Sync {
    /// What a batch of examples is.
    type Batch: ?Sized;

    /// Number of parameters, `d`.
    fn dimension(&self) -> usize;

    /// Number of outputs, `C`.
    fn outputs(&self) -> usize;

    /// Number of examples in a batch, `n`.
    fn examples(&self, batch: &Self::Batch) -> usize;

    /// `Phi W` (nC x k) for `weights` of d x k.
    ///
    /// # Errors
    /// [`LinearError::Shape`] when the block has another number of rows, and whatever the map itself may refuse.
    fn apply(&self, batch: &Self::Batch, weights: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError>;

    /// `Phi' U` (d x k) for `u` of nC x k, summed over the examples of the batch.
    ///
    /// # Errors
    /// As [`FeatureMap::apply`].
    fn apply_transpose(&self, batch: &Self::Batch, u: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError>;

    /// `Phi` itself (nC x d), where the map can give it cheaply and it is at most [`MATRIX_ENTRIES`] numbers.
    ///
    /// # Errors
    /// As [`FeatureMap::apply`].
    fn matrix(&self, batch: &Self::Batch) -> Result<Option<Mat<f64>>, LinearError> {
        let _ = batch;
        Ok(None)
    }
}

/// Most entries of a matrix that [`FeatureMap::matrix`] gives: 2^27, one GiB.
pub const MATRIX_ENTRIES: usize = 1 << 27;

impl<F: FeatureMap + ?Sized> FeatureMap for &F {
    type Batch = F::Batch;

    fn dimension(&self) -> usize {
        (**self).dimension()
    }
    fn outputs(&self) -> usize {
        (**self).outputs()
    }
    fn examples(&self, batch: &Self::Batch) -> usize {
        (**self).examples(batch)
    }
    fn apply(&self, batch: &Self::Batch, weights: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        (**self).apply(batch, weights)
    }
    fn apply_transpose(&self, batch: &Self::Batch, u: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        (**self).apply_transpose(batch, u)
    }
    fn matrix(&self, batch: &Self::Batch) -> Result<Option<Mat<f64>>, LinearError> {
        (**self).matrix(batch)
    }
}
