//! **Feature maps** `x -> phi(x)`: what a linear model is linear in.
//!
//! A model is `f(x) = g(x) + phi(x) (w - v)`: linear in its weights `w` around an expansion point `v`, at which its outputs are `g(x)`. A plain
//! linear model has `v = 0` and `g` zero or an offset; the linearisation of a network has its trained weights and its own outputs. A map is known
//! by two products, with `phi(x)` (outputs x weights) and with its transpose, for a whole batch and many vectors at once: that is all that
//! matrix-free methods need, so that the Jacobian of a network is a feature map like a stored matrix.
//!
//! | file | what |
//! |---|---|
//! | `dense` | [`DenseFeatures`]: a stored matrix |
//! | `source` | [`BatchSource`]: where batches of examples come from, for passes over data in pieces |

mod dense;
mod source;

pub use dense::DenseFeatures;
pub(crate) use source::chunks;
pub use source::{BatchSource, Numbered};

use crate::LinearError;
use faer::{Mat, MatRef};
use posterior_linalg::Real;

/// `phi(x)`, a matrix of outputs x weights for each example `x`, in the arithmetic of `T`.
pub trait FeatureMap<T: Real>: Send + Sync {
    /// A batch of inputs.
    type Inputs;

    /// Number of weights, `d`.
    fn dimension(&self) -> usize;

    /// Number of outputs, `C`.
    fn outputs(&self) -> usize;

    /// The weights `v` (d) at which the model's outputs are [`Linearised::outputs`]; `None` stands for zeros.
    fn expansion_point(&self) -> Option<&[f64]> {
        None
    }

    /// Examples that are best worked on at a time when `vectors` products are made of each.
    fn examples_at_once(&self, vectors: usize) -> usize;

    /// The features of a batch, ready for any number of products: what they share (the trace of a network, say) is computed here, once.
    ///
    /// # Errors
    /// What the map refuses: inputs of another shape or number.
    fn at<'a>(&'a self, inputs: &'a Self::Inputs) -> Result<Box<dyn Linearised<T> + 'a>, LinearError>;
}

/// The features of one batch of `n` examples. Rows are ordered example by example: row `i C + c` belongs to output `c` of example `i`. The
/// two products must be exact transposes of each other.
pub trait Linearised<T: Real> {
    /// The model's outputs at the expansion point, `g` (nC).
    fn outputs(&self) -> Vec<f64>;

    /// `Phi W` (nC x k) for `weights` of d x k.
    ///
    /// # Errors
    /// [`LinearError::Shape`] when the block has another number of rows, and whatever the map itself may refuse.
    fn apply(&self, weights: MatRef<'_, T>) -> Result<Mat<T>, LinearError>;

    /// `Phi' U` (d x k) for `u` of nC x k, summed over the examples of the batch.
    ///
    /// # Errors
    /// As [`Linearised::apply`].
    fn apply_transpose(&self, u: MatRef<'_, T>) -> Result<Mat<T>, LinearError>;
}
