//! `x_i · z_j` of one tile, before the first layer.
//!
//! Up to [`DIRECT`] dimensions they are summed column by column in the order of the dimensions, so that an entry's bits do not depend on its tile, and that of
//! two equal points is the points' own square to the last bit: that is how the layers behind know that two points coincide. Beyond, a matrix product is faster; there
//! only the entries of one observation with itself are summed that way.

use crate::PreparedBlock;
use crate::inputs::sum_dimensions;
use crate::kernel::column;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, Par};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;

/// Dimensions up to which inner products are summed directly.
pub(super) const DIRECT: usize = 32;

/// `Σ_d x_id²` of `rows` points, with the bits of the point's product with itself in [`fill`].
pub(super) fn squares<'a, T: Real>(
    rows: usize,
    count: usize,
    dimension: impl Fn(usize) -> &'a [T],
) -> Vec<T> {
    let mut out = vec![T::ZERO; rows];
    dispatch(
        #[inline(always)]
        || {
            for d in 0..count {
                let x = &dimension(d)[..out.len()];
                for i in 0..out.len() {
                    out[i] = x[i].mul_add(x[i], out[i]);
                }
            }
        },
    );
    out
}

/// `out_ij <- x_i · z_j` over the first `count` columns; `identical` are the entries of one observation with itself.
pub(super) fn fill<T: Real>(
    count: usize,
    x: PreparedBlock<'_, T>,
    z: PreparedBlock<'_, T>,
    identical: impl Iterator<Item = (usize, usize)>,
    mut out: MatMut<'_, T>,
) {
    if count > DIRECT {
        let (a, b) = (x.matrix().subcols(0, count), z.matrix().subcols(0, count));
        matmul(out.as_mut(), Accum::Replace, a, b.transpose(), T::ONE, Par::Seq);
        for (i, j) in identical {
            out[(i, j)] = (0..count).fold(T::ZERO, |sum, d| x.column(d)[i].mul_add(x.column(d)[i], sum));
        }
        return;
    }
    let dimensions: Vec<(&[T], &[T])> = (0..count).map(|d| (x.column(d), z.column(d))).collect();
    dispatch(
        #[inline(always)]
        || {
            for j in 0..out.ncols() {
                sum_dimensions(
                    count,
                    column(&mut out, j),
                    #[inline(always)]
                    |d| (dimensions[d].0, dimensions[d].1[j]),
                    #[inline(always)]
                    |x, z, sum| x.mul_add(z, sum),
                );
            }
        },
    );
}
