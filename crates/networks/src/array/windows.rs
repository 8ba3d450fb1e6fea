//! Windows that slide over images: what pooling reduces.

use super::{Array, Precision, batch_shape};
use rayon::prelude::*;
use std::ops::Range;

/// Windows over `[channels, height, width]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    pub(crate) channels: usize,
    pub(crate) source: [usize; 2],
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) padding: [usize; 2],
    pub(crate) target: [usize; 2],
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

    /// Calls `visit(source position)` for the values of the plane that window `(y, x)` covers.
    #[inline(always)]
    pub(crate) fn visit(&self, y: usize, x: usize, mut visit: impl FnMut(usize)) {
        let columns = self.taps(1, x);
        for ky in self.taps(0, y) {
            let row = (y * self.stride[0] + ky * self.dilation[0] - self.padding[0]) * self.source[1];
            for kx in columns.clone() {
                visit(row + x * self.stride[1] + kx * self.dilation[1] - self.padding[1]);
            }
        }
    }
}

/// Where each window's maximum stands: positions in the example, `[rows, outputs]`. The first of equal values wins.
pub(crate) struct MaximumWindows;

impl MaximumWindows {
    pub(crate) fn find<T: Precision>(windows: &Windows, x: &Array<T>) -> Vec<u32> {
        let plane = windows.source[0] * windows.source[1];
        let [height, width] = windows.target;
        let outputs = windows.channels * height * width;
        let mut positions = vec![0u32; x.rows() * outputs];
        positions.par_chunks_exact_mut(outputs.max(1)).enumerate().for_each(|(r, out)| {
            let row = x.row(r);
            for (channel, out) in out.chunks_exact_mut(height * width).enumerate() {
                let values = &row[channel * plane..(channel + 1) * plane];
                for (i, o) in out.iter_mut().enumerate() {
                    let mut best: Option<usize> = None;
                    windows.visit(i / width, i % width, |at| {
                        // NaN wins, so that it is not lost on the way to the output.
                        if best.is_none_or(|b| {
                            values[at] > values[b]
                                || (values[at].to_f64().is_nan() && !values[b].to_f64().is_nan())
                        }) {
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

/// `y[r, i] = x[r, positions[r / width, i]]`.
pub(crate) fn take<T: Precision>(x: &Array<T>, positions: &[u32], example: &[usize]) -> Array<T> {
    let mut out = Array::any(batch_shape(x.rows(), example));
    let length = out.row_len();
    let width = x.rows() * length / positions.len().max(1);
    out.values_mut().par_chunks_exact_mut(length.max(1)).enumerate().for_each(|(r, out)| {
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
    out.values_mut().par_chunks_exact_mut(out_length.max(1)).enumerate().for_each(|(r, out)| {
        let from = &positions[r / width * length..][..length];
        y.row(r).iter().zip(from).for_each(|(&v, &p)| out[p as usize] += v);
    });
    out
}
