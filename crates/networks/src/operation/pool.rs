//! Windows of pooling, and their means (the maxima are in `max_pool`).

use super::layer::Prepared;
use super::sparse::sparse;
use crate::array::{Precision, Windows};
use serde::{Deserialize, Serialize};

/// Windows of pooling on `[channels, (depth, height,) width]`: one to three spatial axes.
///
/// The lists have one entry for each spatial axis; an empty list stands for all ones (dilations) or all zeros (paddings).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Size of the window.
    pub kernel: Vec<usize>,
    /// Step of the window; the kernel's size where left out.
    #[serde(default)]
    pub stride: Option<Vec<usize>>,
    /// Padding on both sides (of minus infinity for maxima, of zeros for averages).
    #[serde(default)]
    pub padding: Vec<usize>,
    /// Padding behind, where that differs from `padding`.
    #[serde(default)]
    pub padding_after: Option<Vec<usize>>,
    /// Distance of the window's values.
    #[serde(default)]
    pub dilation: Vec<usize>,
    /// Whether a last window that is partly outside counts.
    #[serde(default)]
    pub ceil: bool,
    /// Average pooling: whether padded zeros count in the number of values.
    #[serde(default = "super::yes")]
    pub count_padding: bool,
}

impl Pool {
    /// A window of this size and step on as many axes, nothing around.
    pub fn new(kernel: Vec<usize>, stride: Vec<usize>) -> Self {
        Self {
            kernel,
            stride: Some(stride),
            padding: vec![],
            padding_after: None,
            dilation: vec![],
            ceil: false,
            count_padding: true,
        }
    }

    /// A square window on images.
    pub fn square(kernel: usize, stride: usize, padding: usize) -> Self {
        Self { padding: vec![padding; 2], ..Self::new(vec![kernel; 2], vec![stride; 2]) }
    }

    /// A list for three axes, filled in front.
    fn three(&self, list: &[usize], what: &str, usual: usize) -> Result<[usize; 3], String> {
        let (axes, mut out) = (self.kernel.len(), [usual; 3]);
        if !list.is_empty() {
            if list.len() != axes {
                return Err(format!(
                    "`{what}` has {} entries and `kernel` {axes}: give one for each spatial axis",
                    list.len()
                ));
            }
            out[3 - axes..].copy_from_slice(list);
        }
        Ok(out)
    }

    /// Padding behind the image along each of three axes.
    fn after(&self) -> Result<[usize; 3], String> {
        let after = self.padding_after.as_ref().unwrap_or(&self.padding);
        self.three(after, "padding_after", 0)
    }

    pub(super) fn windows(&self, shape: &[usize]) -> Result<Windows, String> {
        let axes = self.kernel.len();
        let image =
            ["", "[channels, length]", "[channels, height, width]", "[channels, depth, height, width]"];
        let image = image
            .get(axes)
            .filter(|_| axes > 0)
            .ok_or_else(|| format!("`kernel` has {axes} entries: windows have one to three axes"))?;
        if shape.len() != axes + 1 {
            return Err(format!("pooling with a kernel of {axes} axes needs {image}, not {shape:?}"));
        }
        let mut source = [1; 3];
        source[3 - axes..].copy_from_slice(&shape[1..]);
        let kernel = self.three(&self.kernel, "kernel", 1)?;
        let stride = self.three(self.stride.as_ref().unwrap_or(&self.kernel), "stride", 1)?;
        let dilation = self.three(&self.dilation, "dilation", 1)?;
        let (padding, after) = (self.three(&self.padding, "padding", 0)?, self.after()?);
        if [source, kernel, stride, dilation].concat().contains(&0) {
            return Err("sizes, strides and dilations must be at least 1".into());
        }
        let mut target = [0; 3];
        for i in 0..3 {
            let does_not_fit = || format!("a window of {:?} does not fit into {shape:?}", self.kernel);
            let reach = (kernel[i] - 1)
                .checked_mul(dilation[i])
                .filter(|&reach| reach < super::LARGEST_EXAMPLE)
                .ok_or_else(does_not_fit)?;
            let wider = padding[i].max(after[i]);
            if wider > reach.div_ceil(2) {
                return Err(format!(
                    "padding {wider} is more than half of the window, which reaches over {} values",
                    reach + 1
                ));
            }
            // The padding is at most half of a window that is no wider than the largest example: nothing below can overflow.
            let room = (source[i] + padding[i] + after[i]).checked_sub(reach + 1).ok_or_else(does_not_fit)?;
            target[i] = if self.ceil {
                let count = room.div_ceil(stride[i]) + 1;
                // The last window must begin inside the image or its padding before.
                if (count - 1) * stride[i] >= source[i] + padding[i] { count - 1 } else { count }
            } else {
                room / stride[i] + 1
            };
        }
        let windows = Windows { channels: shape[0], source, kernel, stride, dilation, padding, target };
        for i in 3 - axes..3 {
            if let Some(output) = (0..target[i]).find(|&o| windows.taps(i, o).is_empty()) {
                return Err(format!(
                    "window {output} along spatial axis {} of {shape:?} covers no value: use less padding or dilation",
                    i + axes - 3
                ));
            }
        }
        Ok(windows)
    }

    /// Shape of what the windows make of an example.
    pub(super) fn output(&self, windows: &Windows) -> Vec<usize> {
        [&[windows.channels][..], &windows.target[3 - self.kernel.len()..]].concat()
    }

    pub(crate) fn prepare_average<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let windows = self.windows(inputs[0])?;
        let (output, after) = (self.output(&windows), self.after()?);
        let count_padding = self.count_padding;
        let taps =
            |axis: usize| (0..windows.target[axis]).map(|o| windows.taps(axis, o).len()).sum::<usize>();
        let flops = match windows.kernel {
            [1, 1, 1] => 0,
            _ => 2 * super::count(&[windows.channels, taps(0), taps(1), taps(2)]),
        };
        sparse(1, inputs[0], output, super::count(&self.kernel), flops, move |entries| {
            // Windows may reach beyond the padding (with `ceil`): that part never counts.
            let inside = |axis: usize, i: usize| {
                let (from, all) =
                    (i * windows.stride[axis], windows.source[axis] + windows.padding[axis] + after[axis]);
                (all - from).div_ceil(windows.dilation[axis]).min(windows.kernel[axis])
            };
            for i in 0..windows.target.iter().product() {
                let place = windows.place(i);
                let mut found = Vec::new();
                windows.visit(place, |at| found.push(at));
                let count = match count_padding {
                    true => (0..3).map(|axis| inside(axis, place[axis])).product(),
                    false => found.len(),
                };
                entries.extend(found.iter().map(|&at| (i as u32, at as u32, 1.0 / count as f64)));
            }
        })
    }
}
