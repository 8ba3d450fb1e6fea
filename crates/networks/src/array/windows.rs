//! Windows that slide over images, and groups of values: what pooling and the extremes over axes reduce.

use super::elementwise::first_wins;
use super::{Array, Precision, batch_shape, together};
use posterior_linalg::parallel;
use std::ops::Range;

/// Windows over `[channels, depth, height, width]`; images of fewer axes have axes of length 1 in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    pub(crate) channels: usize,
    pub(crate) source: [usize; 3],
    pub(crate) kernel: [usize; 3],
    pub(crate) stride: [usize; 3],
    pub(crate) dilation: [usize; 3],
    pub(crate) padding: [usize; 3],
    pub(crate) target: [usize; 3],
}

impl Windows {
    /// The taps of window `o` along `axis` that stand on values, not on padding.
    #[inline(always)]
    pub(crate) fn taps(&self, axis: usize, o: usize) -> Range<usize> {
        let (start, padding, dilation) = (o * self.stride[axis], self.padding[axis], self.dilation[axis]);
        let first = padding.saturating_sub(start).div_ceil(dilation);
        let end = (padding + self.source[axis]).saturating_sub(start).div_ceil(dilation);
        first..end.min(self.kernel[axis])
    }

    /// Where window `i` of a channel stands along each axis.
    #[inline(always)]
    pub(crate) fn place(&self, i: usize) -> [usize; 3] {
        let [_, height, width] = self.target;
        [i / (height * width), i / width % height, i % width]
    }

    /// Calls `visit(source position)` for the values of a channel that the window at `place` covers.
    #[inline(always)]
    pub(crate) fn visit(&self, place: [usize; 3], mut visit: impl FnMut(usize)) {
        let [_, height, width] = self.source;
        let at = |axis: usize, tap: usize| {
            place[axis] * self.stride[axis] + tap * self.dilation[axis] - self.padding[axis]
        };
        let (rows, columns) = (self.taps(1, place[1]), self.taps(2, place[2]));
        for plane in self.taps(0, place[0]) {
            let plane = at(0, plane) * height;
            for row in rows.clone() {
                let row = (plane + at(1, row)) * width;
                for column in columns.clone() {
                    visit(row + at(2, column));
                }
            }
        }
    }
}

/// Where each window's maximum stands: positions in the example, `[rows, outputs]`. The first of equal values wins.
pub(crate) struct MaximumWindows;

impl MaximumWindows {
    pub(crate) fn find<T: Precision>(windows: &Windows, x: &Array<T>) -> Vec<u32> {
        let plane = windows.source.iter().product::<usize>();
        let each = windows.target.iter().product::<usize>();
        let outputs = windows.channels * each;
        let mut positions = vec![0u32; x.rows() * outputs];
        parallel::chunks(&mut positions, outputs.max(1), together(x.row_len()), |r, out| {
            let row = x.row(r);
            for (channel, out) in out.chunks_exact_mut(each).enumerate() {
                let values = &row[channel * plane..(channel + 1) * plane];
                for (i, o) in out.iter_mut().enumerate() {
                    let mut best: Option<usize> = None;
                    windows.visit(windows.place(i), |at| {
                        // NaN wins, so that it is not lost on the way to the output.
                        if best.is_none_or(|b| !first_wins(values[b], values[at], true)) {
                            best = Some(at);
                        }
                    });
                    *o = (channel * plane + best.unwrap_or(0)) as u32;
                }
            }
        });
        positions
    }
}

/// Where the largest (or smallest) value of each group of positions stands in an example, `[rows, groups]`: `members` lists the groups one after
/// the other, `each` positions in each. The first of equal values wins.
pub(crate) fn extremes_of_groups<T: Precision>(
    x: &Array<T>,
    members: &[u32],
    each: usize,
    largest: bool,
) -> Vec<u32> {
    let groups = members.len() / each.max(1);
    let mut positions = vec![0u32; x.rows() * groups];
    parallel::chunks(&mut positions, groups.max(1), together(members.len()), |r, out| {
        let row = x.row(r);
        for (o, group) in out.iter_mut().zip(members.chunks_exact(each)) {
            *o = group[0];
            for &at in &group[1..] {
                if !first_wins(row[*o as usize], row[at as usize], largest) {
                    *o = at;
                }
            }
        }
    });
    positions
}

/// `y[r, i] = x[r, positions[r / width, i]]`.
pub(crate) fn take<T: Precision>(x: &Array<T>, positions: &[u32], example: &[usize]) -> Array<T> {
    let mut out = Array::any(batch_shape(x.rows(), example));
    let length = out.row_len();
    let width = x.rows() * length / positions.len().max(1);
    parallel::chunks(out.values_mut(), length.max(1), together(length), |r, out| {
        let (x, from) = (x.row(r), &positions[r / width * length..][..length]);
        out.iter_mut().zip(from).for_each(|(o, &p)| *o = x[p as usize]);
    });
    out
}

/// The transpose of [`take`]: `x[r, positions[r / width, i]] += y[r, i]`.
pub(crate) fn put<T: Precision>(y: &Array<T>, positions: &[u32], example: &[usize]) -> Array<T> {
    let mut out = Array::zeros(batch_shape(y.rows(), example));
    let (length, out_length) = (y.row_len(), out.row_len());
    let width = y.rows() * length / positions.len().max(1);
    parallel::chunks(out.values_mut(), out_length.max(1), together(out_length), |r, out| {
        let from = &positions[r / width * length..][..length];
        y.row(r).iter().zip(from).for_each(|(&v, &p)| out[p as usize] += v);
    });
    out
}
