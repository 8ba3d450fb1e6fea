//! Several images side by side: number d of [`LANES`] of them, which become one or two vectors.
//!
//! Along an image vectors would have to be cut at the ends of its rows, and where a pool skips pairs of positions; across images nothing is cut.

use crate::PreparedBlock;
use posterior_linalg::Real;

/// Images side by side.
pub(super) const LANES: usize = crate::inputs::LANES;

/// One number of each image.
pub(super) type Lanes<T> = [T; LANES];

/// The second image of each pair: the same for all first ones, or another for each.
pub(super) trait Second<T>: Copy {
    /// Its number `d`, for each pair.
    fn get(self, d: usize) -> Lanes<T>;
}

/// One image for all.
#[derive(Clone, Copy, Debug)]
pub(super) struct One<'a, T>(pub(super) &'a [T]);

/// Another image for each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Each<'a, T>(pub(super) &'a [Lanes<T>]);

impl<T: Real> Second<T> for One<'_, T> {
    #[inline(always)]
    fn get(self, d: usize) -> Lanes<T> {
        [self.0[d]; LANES]
    }
}

impl<T: Real> Second<T> for Each<'_, T> {
    #[inline(always)]
    fn get(self, d: usize) -> Lanes<T> {
        self.0[d]
    }
}

/// How many of the points from `first` on stand side by side: the rest of the lanes repeat the last of them.
pub(super) fn present(rows: usize, first: usize) -> usize {
    LANES.min(rows - first)
}

/// The first `out.len()` numbers of the points from `first` on.
pub(super) fn load<T: Real>(points: PreparedBlock<'_, T>, first: usize, out: &mut [Lanes<T>]) {
    let count = present(points.rows(), first);
    for (d, lanes) in out.iter_mut().enumerate() {
        let column = &points.column(d)[first..first + count];
        *lanes = [column[count - 1]; LANES];
        lanes[..count].copy_from_slice(column);
    }
}

/// The first `out.len()` numbers of point `j`.
pub(super) fn load_one<T: Real>(points: PreparedBlock<'_, T>, j: usize, out: &mut [T]) {
    out.iter_mut().enumerate().for_each(|(d, value)| *value = points.column(d)[j]);
}
