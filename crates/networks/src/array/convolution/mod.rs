//! **Correlations** in one, two or three dimensions without unfolding.
//!
//! The usual way to make a matrix product of a convolution copies every input value once for each tap of the kernel. Here one
//! example is copied once, with its padding, into a grid; the row of the unfolded matrix that belongs to (channel, tap)
//! is then a *shift* of that grid, and the product reads it in place:
//!
//! `y[o, t] = sum_q w[o, q] * grid[offset_q + t]`,   `q = (channel, tap)`.
//!
//! `t` runs over the grid, so a few columns between rows are computed in vain (one per row of the image with a 3 x 3 kernel).
//! Strides split the grid into phases, one for each remainder of the coordinate, in which a stride is a shift again; the transposed
//! map (derivative with respect to the input) is a correlation for each phase of its output. Bounds: the products run at the speed of
//! registers, `2 * outputs * q` operations for each grid position, against about 4 bytes moved for each value of input and output.
//!
//! Where many blocks of weights or of cotangents meet the same example (tangents, gradients by example), copying its patches pays after all (`patches`).

mod geometry;
mod kernel;
mod patches;
mod plan;
mod run;

#[cfg(test)]
mod tests;

pub(crate) use geometry::Geometry;
pub(crate) use kernel::Shifted;
pub(crate) use run::{Weights, correlate, correlate_transposed, unfold, weight_gradient};
