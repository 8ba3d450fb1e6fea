//! Windows of pooling, and their means (the maxima are in `max_pool`).

use super::layer::Prepared;
use super::sparse::sparse;
use crate::array::{Precision, Windows};
use serde::{Deserialize, Serialize};

/// Windows of pooling on images `[channels, height, width]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Height and width of the window.
    pub kernel: [usize; 2],
    /// Step of the window; the kernel's size where left out.
    #[serde(default)]
    pub stride: Option<[usize; 2]>,
    /// Padding on both sides (of minus infinity for maxima, of zeros for averages).
    #[serde(default)]
    pub padding: [usize; 2],
    /// Padding behind, where that differs from `padding`.
    #[serde(default)]
    pub padding_after: Option<[usize; 2]>,
    /// Distance of the window's values.
    #[serde(default = "Pool::dense")]
    pub dilation: [usize; 2],
    /// Whether a last window that is partly outside counts.
    #[serde(default)]
    pub ceil: bool,
    /// Average pooling: whether padded zeros count in the number of values.
    #[serde(default = "super::yes")]
    pub count_padding: bool,
}

impl Pool {
    fn dense() -> [usize; 2] {
        [1, 1]
    }

    /// A square window.
    pub fn square(kernel: usize, stride: usize, padding: usize) -> Self {
        Self {
            kernel: [kernel; 2],
            stride: Some([stride; 2]),
            padding: [padding; 2],
            padding_after: None,
            dilation: [1, 1],
            ceil: false,
            count_padding: true,
        }
    }

    pub(super) fn windows(&self, shape: &[usize]) -> Result<Windows, String> {
        let &[channels, height, width] = shape else {
            return Err(format!("pooling needs [channels, height, width], not {shape:?}"));
        };
        let (source, stride) = ([height, width], self.stride.unwrap_or(self.kernel));
        if [&source[..], &self.kernel, &stride, &self.dilation].concat().contains(&0) {
            return Err("sizes, strides and dilations must be at least 1".into());
        }
        let after = self.padding_after.unwrap_or(self.padding);
        let mut target = [0; 2];
        for i in 0..2 {
            if self.padding[i].max(after[i]) > self.kernel[i] / 2 {
                return Err(format!(
                    "padding {} is more than half of the window {}",
                    self.padding[i].max(after[i]),
                    self.kernel[i]
                ));
            }
            // The padding is at most half of a window that is at most a few images wide: nothing below can overflow.
            let room = (self.kernel[i] - 1)
                .checked_mul(self.dilation[i])
                .filter(|&reach| reach < super::LARGEST_EXAMPLE)
                .and_then(|reach| (source[i] + self.padding[i] + after[i]).checked_sub(reach + 1))
                .ok_or_else(|| format!("a window of {:?} does not fit into {shape:?}", self.kernel))?;
            target[i] = if self.ceil {
                let count = room.div_ceil(stride[i]) + 1;
                // The last window must begin inside the image or its padding before.
                if (count - 1) * stride[i] >= source[i] + self.padding[i] { count - 1 } else { count }
            } else {
                room / stride[i] + 1
            };
        }
        let windows = Windows {
            channels,
            source,
            kernel: self.kernel,
            stride,
            dilation: self.dilation,
            padding: self.padding,
            target,
        };
        for i in 0..2 {
            if let Some(output) = (0..target[i]).find(|&o| windows.taps(i, o).is_empty()) {
                return Err(format!(
                    "window {output} along spatial axis {i} of {shape:?} covers no value: use less padding or dilation"
                ));
            }
        }
        Ok(windows)
    }
}

impl Pool {
    pub(crate) fn prepare_average<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let windows = self.windows(inputs[0])?;
        let [height, width] = windows.target;
        let output = vec![windows.channels, height, width];
        let after = self.padding_after.unwrap_or(self.padding);
        let (padding, count_padding) = (self.padding, self.count_padding);
        let taps =
            |axis: usize| (0..windows.target[axis]).map(|o| windows.taps(axis, o).len()).sum::<usize>();
        let flops =
            if self.kernel == [1, 1] { 0 } else { 2 * super::count(&[windows.channels, taps(0), taps(1)]) };
        sparse(1, inputs[0], output, super::count(&self.kernel), flops, move |entries| {
            // Windows may reach beyond the padding (with `ceil`): that part never counts.
            let inside = |axis: usize, i: usize| {
                let (from, all) =
                    (i * windows.stride[axis], windows.source[axis] + padding[axis] + after[axis]);
                (all - from).div_ceil(windows.dilation[axis]).min(windows.kernel[axis])
            };
            for i in 0..height * width {
                let (y, x) = (i / width, i % width);
                let mut found = Vec::new();
                windows.visit(y, x, |at| found.push(at));
                let count = if count_padding { inside(0, y) * inside(1, x) } else { found.len() };
                entries.extend(found.iter().map(|&at| (i as u32, at as u32, 1.0 / count as f64)));
            }
        })
    }
}
