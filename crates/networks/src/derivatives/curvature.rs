//! Output curvatures: the matrices in the middle of a Gauss-Newton matrix.

use crate::array::{Array, Precision, softmax, softmax_tangent};
use crate::graph::NetworkError;
use posterior_likelihoods::softmax_root;
use posterior_linalg::Real;
use std::ops::Range;

/// `L_n`, the second derivative of a negative log likelihood in the outputs of example `n`, positive semidefinite.
#[derive(Clone, Debug, PartialEq)]
pub enum Curvature<T> {
    /// A multiple of the identity: Gaussian noise of variance `1 / factor`.
    Identity(T),
    /// `diag(p) - p p^T` with `p` the softmax of the outputs: cross-entropy.
    Softmax,
    /// `R_n R_n^T` with given roots `[examples, outputs, columns]`: any likelihood.
    Roots(Array<T>),
}

impl<T: Precision> Curvature<T> {
    pub(super) fn check(&self, examples: usize, outputs: usize) -> Result<(), NetworkError> {
        match self {
            Self::Roots(roots) if roots.shape().len() != 3 || roots.shape()[..2] != [examples, outputs] => {
                let (expected, found) = (vec![examples, outputs, outputs], roots.shape().to_vec());
                Err(NetworkError::Shape { what: "roots of the output curvature", expected, found })
            }
            _ => Ok(()),
        }
    }

    /// `L_n t` for a block of tangents of the examples in `range`, whose outputs are `outputs`.
    pub(super) fn apply(&self, outputs: &Array<T>, range: Range<usize>, tangents: Array<T>) -> Array<T> {
        match self {
            Self::Identity(factor) => crate::array::scale(tangents, *factor),
            Self::Softmax => {
                let count = outputs.row_len();
                softmax_tangent(tangents, count, &softmax(outputs, count))
            }
            Self::Roots(roots) => {
                let width = tangents.rows() / range.len().max(1);
                let (count, columns) = (roots.shape()[1], roots.shape()[2]);
                let mut out = Array::zeros(tangents.shape().to_vec());
                for r in 0..tangents.rows() {
                    let root = roots.row(range.start + r / width);
                    let t = tangents.row(r);
                    let place = &mut out.values_mut()[r * count..(r + 1) * count];
                    for s in 0..columns {
                        let mut along = T::ZERO;
                        (0..count).for_each(|c| along += root[c * columns + s] * t[c]);
                        (0..count).for_each(|c| place[c] += root[c * columns + s] * along);
                    }
                }
                out
            }
        }
    }

    /// The number of columns of each example's root, for `count` outputs.
    pub(super) fn columns(&self, count: usize) -> usize {
        match self {
            Self::Identity(_) => count,
            // One output is certain, and its root a column of zeros.
            Self::Softmax => count.saturating_sub(1).max(1),
            Self::Roots(roots) => roots.shape()[2],
        }
    }

    /// The columns of the roots of the examples in `range` as cotangents, `[examples * columns, outputs]`.
    pub(super) fn roots(&self, outputs: &Array<T>, range: Range<usize>) -> Array<T> {
        let (examples, count) = (outputs.rows(), outputs.row_len());
        let columns = self.columns(count);
        let mut shape = outputs.shape().to_vec();
        shape[0] = examples * columns;
        let mut out = Array::zeros(shape);
        let (mut root, mut wide) = (vec![T::ZERO; count * columns], vec![0.0; count * columns]);
        for (n, rows) in out.values_mut().chunks_exact_mut(root.len().max(1)).enumerate() {
            match self {
                Self::Identity(factor) => {
                    (0..count).for_each(|c| root[c * columns + c] = Real::sqrt(*factor))
                }
                Self::Softmax if count > 1 => {
                    let logits: Vec<f64> = outputs.row(n).iter().map(|f| f.to_f64()).collect();
                    softmax_root(&logits, &mut wide);
                    root.iter_mut().zip(&wide).for_each(|(r, w)| *r = T::from_f64(*w));
                }
                Self::Softmax => {}
                Self::Roots(roots) => root.copy_from_slice(roots.row(range.start + n)),
            }
            for (s, row) in rows.chunks_exact_mut(count).enumerate() {
                row.iter_mut().enumerate().for_each(|(c, o)| *o = root[c * columns + s]);
            }
        }
        out
    }
}
