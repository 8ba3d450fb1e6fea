//! **Feature maps** `x -> phi(x)`: what a linear model is linear in.
//!
//! A model is `f(x) = g(x) + phi(x) (w - v)`: linear in its weights `w` around an expansion point `v`, at which its outputs are `g(x)`. A plain
//! linear model has `v = 0` and `g` zero or an offset; the linearisation of a network has its trained weights and its own outputs. A map is known
//! by two products, with `phi(x)` (outputs x weights) and with its transpose, for a whole batch and many vectors at once: that is all that
//! matrix-free methods need, so that the Jacobian of a network is a feature map like a stored matrix. Structured curvatures and predictions need rows of it as
//! well, from which they follow unless a map says how they are had for less.
//!
//! | file | what |
//! |---|---|
//! | `dense` | [`DenseFeatures`]: a stored matrix |
//! | `outputs_at` | [`OutputsAt`]: another map's, with the outputs of the linear model at other weights |
//! | `projected`, `landmarks` | [`Projected`]: a few combinations of another map's features; [`LandmarkBasis`]: the leading ones at some examples |
//! | `source` | [`BatchSource`]: where batches of examples come from, for passes over data in pieces |

mod dense;
mod landmarks;
mod outputs_at;
mod projected;
mod source;

pub use dense::DenseFeatures;
pub use landmarks::{LandmarkBasis, balanced_landmarks};
pub use outputs_at::OutputsAt;
pub use projected::Projected;
pub(crate) use source::chunks;
pub use source::{BatchSource, Numbered, VisitPiece};

use crate::LinearError;
use crate::curvature::{BlockSum, FisherEstimate, Form, OutputCurvature, Roots, Segment, by_rows};
use crate::latent::{Posteriors, Wanted, add_rows};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use std::ops::Range;

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

    /// The same where products go through a map of the outputs and back ([`Linearised::apply_through`]).
    fn examples_through_at_once(&self, vectors: usize) -> usize {
        self.examples_at_once(vectors)
    }

    /// Which weights belong together, in order and without gaps: by default all of them.
    fn segments(&self) -> Vec<Segment> {
        let (name, layer) = ("all weights".into(), String::new());
        vec![Segment { name, layer, range: 0..self.dimension(), whole: true, matrix: None }]
    }

    /// Examples that are best worked on at a time when a curvature is summed from `width` rows of each.
    fn examples_for_curvature(&self, _estimate: FisherEstimate, width: usize) -> usize {
        self.examples_at_once(width)
    }

    /// The features of a batch, ready for any number of products: what they share (the trace of a network, say) is computed here, once.
    ///
    /// # Errors
    /// What the map refuses: inputs of another shape or number.
    fn at<'a>(&'a self, inputs: Self::Inputs) -> Result<Box<dyn Linearised<T> + 'a>, LinearError>;
}

/// The features of one batch of `n` examples. Rows are ordered example by example: row `i C + c` belongs to output `c` of example `i`. The
/// two products must be exact transposes of each other.
pub trait Linearised<T: Real> {
    /// Examples n, and outputs C of each.
    fn shape(&self) -> (usize, usize);

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

    /// `Phi' m(Phi W)` (d x k): `map(examples, moved)` puts in the place of some examples' `Phi W` (outputs of these examples x k) what goes back. All examples come once, in order, in as many pieces as the map
    /// likes: one that has its features at hand between the two products need not make them twice.
    ///
    /// # Errors
    /// As [`Linearised::apply`].
    fn apply_through(
        &self,
        weights: MatRef<'_, T>,
        map: &mut dyn FnMut(Range<usize>, &mut Mat<T>),
    ) -> Result<Mat<T>, LinearError> {
        let mut moved = self.apply(weights)?;
        map(0..self.shape().0, &mut moved);
        self.apply_transpose(moved.as_ref())
    }

    /// Rows `R' Phi` over a range of the weights, for directions `R` of each example or (None) for each of its outputs: `visit(examples, rows)` sees those of a few examples at a time, in order.
    ///
    /// # Errors
    /// Whatever the map itself may refuse.
    fn rows(
        &self,
        along: Option<&Roots<T>>,
        weights: Range<usize>,
        visit: &mut dyn FnMut(Range<usize>, MatRef<'_, T>),
    ) -> Result<(), LinearError>;

    /// Adds the batch's curvature `sum_n Phi_n' B_n Phi_n`, in some form, to sums that were laid out for the map's segments. By rows, unless a map knows what is cheaper: maps whose segments are
    /// weight matrices must, for the Kronecker form.
    ///
    /// # Errors
    /// As [`Linearised::rows`]; [`LinearError::Factors`].
    fn add_curvature(
        &self,
        form: Form,
        observed: &OutputCurvature<'_>,
        sums: &mut [BlockSum],
    ) -> Result<(), LinearError> {
        by_rows::add_curvature(self, form, observed, sums)
    }

    /// Adds the covariances `Phi H^-1 Phi'` of each example's outputs to one list for each posterior, `[examples, C]` or `[examples, C, C]`. By rows, unless a map knows what is cheaper.
    ///
    /// # Errors
    /// As [`Linearised::rows`].
    fn add_covariances(
        &self,
        posteriors: &Posteriors<T>,
        wanted: Wanted,
        out: &mut [Vec<f64>],
    ) -> Result<(), LinearError> {
        posteriors
            .conditioned()
            .try_for_each(|(weights, blocks)| add_rows(self, weights, blocks, wanted, out))
    }
}
