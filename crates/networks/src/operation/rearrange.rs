//! Operations without parameters that are sparse linear maps of an example: slices, pads, transposes, means, average pools, interpolation.

use super::layer::{At, Layer, Mode, Prepared, Saved};
use crate::array::{Array, Precision, SparseMap, Windows};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Reorders the axes of an example: axis `i` of the output is axis `axes[i]` of the input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transpose {
    /// The axes of the input in their new order, counted from 0 without the batch axis.
    pub axes: Vec<usize>,
}

/// Takes `start, start + step, ...`, `length` of them, along one axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// The axis, counted from 0 without the batch axis.
    pub axis: usize,
    /// First index.
    #[serde(default)]
    pub start: usize,
    /// Distance of the indices; negative values walk back.
    #[serde(default = "Slice::forward")]
    pub step: isize,
    /// How many.
    pub length: usize,
}

impl Slice {
    fn forward() -> isize {
        1
    }
}

/// Adds zeros around an example.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// Zeros before each axis.
    pub before: Vec<usize>,
    /// Zeros behind each axis.
    pub after: Vec<usize>,
}

/// The mean over some axes (all spatial ones: global average pooling).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mean {
    /// The axes, counted from 0 without the batch axis.
    pub axes: Vec<usize>,
    /// Whether they stay as axes of length 1.
    #[serde(default)]
    pub keep: bool,
}

/// Repeats axes of length 1 (and adds axes in front) up to a shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broadcast {
    /// The shape of the output.
    pub shape: Vec<usize>,
}

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
        let mut target = [0; 2];
        for i in 0..2 {
            if self.padding[i] > self.kernel[i] / 2 {
                return Err(format!(
                    "padding {} is more than half of the window {}",
                    self.padding[i], self.kernel[i]
                ));
            }
            // So that no window is much larger than the image, whatever a file says.
            if self.padding[i] > source[i] {
                return Err(format!("padding {} is more than the image, {}", self.padding[i], source[i]));
            }
            let reach =
                (self.kernel[i] - 1).checked_mul(self.dilation[i]).ok_or("the window is too large")? + 1;
            let room = (source[i] + 2 * self.padding[i])
                .checked_sub(reach)
                .ok_or_else(|| format!("a window of {:?} does not fit into {shape:?}", self.kernel))?;
            target[i] = if self.ceil {
                let count = room.div_ceil(stride[i]) + 1;
                // The last window must begin inside the image or its padding before.
                if (count - 1) * stride[i] >= source[i] + self.padding[i] { count - 1 } else { count }
            } else {
                room / stride[i] + 1
            };
        }
        Ok(Windows {
            channels,
            source,
            kernel: self.kernel,
            stride,
            dilation: self.dilation,
            padding: self.padding,
            target,
        })
    }
}

/// Enlarges (or shrinks) the spatial axes by interpolation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resize {
    /// New lengths of the spatial axes (all but the first).
    pub sizes: Vec<usize>,
    /// Which values are taken.
    pub interpolation: Interpolation,
    /// Input length over output length by axis, where it is not the ratio of the lengths.
    #[serde(default)]
    pub scales: Option<Vec<f64>>,
}

/// How a value between the grid's is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interpolation {
    /// The value at `floor(position * ratio)`.
    Nearest,
    /// Linear along each axis between pixel centres (`align_corners = false`).
    Linear,
    /// Linear along each axis with the corner pixels in place (`align_corners = true`).
    LinearAligned,
}

impl Resize {
    /// `(source, weight)` of each position of one axis.
    fn axis(&self, from: usize, to: usize, axis: usize) -> Vec<Vec<(usize, f64)>> {
        let ratio = self.scales.as_ref().map_or(from as f64 / to as f64, |s| s[axis]);
        (0..to)
            .map(|i| {
                let position = match self.interpolation {
                    Interpolation::Nearest => {
                        return vec![(((i as f64 * ratio).floor() as usize).min(from - 1), 1.0)];
                    }
                    Interpolation::Linear => ((i as f64 + 0.5) * ratio - 0.5).clamp(0.0, (from - 1) as f64),
                    Interpolation::LinearAligned if to == 1 => 0.0,
                    Interpolation::LinearAligned => i as f64 * (from - 1) as f64 / (to - 1) as f64,
                };
                let low = (position.floor() as usize).min(from - 1);
                let part = position - low as f64;
                if part > 0.0 && low + 1 < from {
                    vec![(low, 1.0 - part), (low + 1, part)]
                } else {
                    vec![(low, 1.0)]
                }
            })
            .collect()
    }
}

/// Entries of one map at most: a gigabyte or two while it is built.
const MOST_ENTRIES: u64 = 1 << 26;

/// Refuses maps whose number of entries, the product of `counts`, is beyond reason.
fn check_entries(counts: &[usize]) -> Result<(), String> {
    let entries = super::count(counts);
    if entries > MOST_ENTRIES {
        return Err(format!("it would need a map of {entries} entries, more than {MOST_ENTRIES}"));
    }
    Ok(())
}

/// Builds the layer from the entries of its map. The map is the same for all positions of the first `same` axes and is stored once: its
/// entries count positions within the other axes.
fn sparse<T: Precision>(
    same: usize,
    input: &[usize],
    output: Vec<usize>,
    entries: impl FnOnce(&mut Vec<(u32, u32, f64)>),
) -> Result<Prepared<T>, String> {
    super::check_size(input)?;
    super::check_size(&output)?;
    check_entries(&input[same..])?;
    check_entries(&output[same..])?;
    let mut list = Vec::new();
    entries(&mut list);
    let blocks = input[..same].iter().product();
    let flops = (2 * blocks * list.iter().filter(|e| e.2 != 1.0).count()) as u64;
    let map = SparseMap::new(input[same..].iter().product(), output[same..].iter().product(), list);
    let layer = Arc::new(Sparse { map, blocks, input: input.to_vec(), output: output.clone() });
    Ok(Prepared { shape: output, parameters: vec![], flops, layer })
}

/// Calls `visit(flat position, coordinates)` for every entry of a shape.
fn positions(shape: &[usize], mut visit: impl FnMut(usize, &[usize])) {
    let mut at = vec![0; shape.len()];
    for flat in 0..shape.iter().product() {
        visit(flat, &at);
        for axis in (0..shape.len()).rev() {
            at[axis] += 1;
            if at[axis] < shape[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
}

/// Flat position of coordinates.
fn flat(shape: &[usize], at: impl Iterator<Item = usize>) -> u32 {
    shape.iter().zip(at).fold(0, |sum, (&length, i)| sum * length + i) as u32
}

impl Transpose {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let shape = inputs[0];
        let mut sorted = self.axes.clone();
        sorted.sort_unstable();
        if sorted != (0..shape.len()).collect::<Vec<_>>() {
            return Err(format!("`axes` {:?} is not an order of the axes of {shape:?}", self.axes));
        }
        let output: Vec<usize> = self.axes.iter().map(|&a| shape[a]).collect();
        sparse(0, shape, output.clone(), |entries| {
            positions(&output, |to, at| {
                let mut from = vec![0; at.len()];
                at.iter().zip(&self.axes).for_each(|(&i, &axis)| from[axis] = i);
                entries.push((to as u32, flat(shape, from.into_iter()), 1.0));
            });
        })
    }
}

impl Slice {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let shape = inputs[0];
        let &length = shape.get(self.axis).ok_or_else(|| format!("{shape:?} has no axis {}", self.axis))?;
        let index =
            |i: usize| self.step.checked_mul(i as isize).and_then(|d| self.start.checked_add_signed(d));
        let last = index(self.length.saturating_sub(1));
        if self.length == 0 || self.step == 0 || self.start >= length || last.is_none_or(|l| l >= length) {
            return Err(format!("{self:?} leaves axis {} of {shape:?}", self.axis));
        }
        let mut output = shape.to_vec();
        output[self.axis] = self.length;
        let inner = &shape[self.axis..];
        sparse(self.axis, shape, output.clone(), |entries| {
            positions(&output[self.axis..], |to, at| {
                let from =
                    at.iter().enumerate().map(|(i, &at)| if i == 0 { index(at).unwrap_or(0) } else { at });
                entries.push((to as u32, flat(inner, from), 1.0));
            });
        })
    }
}

impl Pad {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let shape = inputs[0];
        if self.before.len() != shape.len() || self.after.len() != shape.len() {
            return Err(format!("`before` and `after` need one entry for each axis of {shape:?}"));
        }
        let output: Option<Vec<usize>> = shape
            .iter()
            .zip(self.before.iter().zip(&self.after))
            .map(|(&s, (&b, &a))| s.checked_add(b)?.checked_add(a))
            .collect();
        let output = output.ok_or("the padding is too large")?;
        let same = self.before.iter().zip(&self.after).take_while(|&(&b, &a)| b == 0 && a == 0).count();
        sparse(same, shape, output.clone(), |entries| {
            positions(&shape[same..], |from, at| {
                let to = flat(&output[same..], at.iter().zip(&self.before[same..]).map(|(&i, &b)| i + b));
                entries.push((to, from as u32, 1.0));
            });
        })
    }
}

impl Mean {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let shape = inputs[0];
        if self.axes.is_empty() || self.axes.iter().any(|&a| a >= shape.len()) {
            return Err(format!("cannot take the mean over axes {:?} of {shape:?}", self.axes));
        }
        let kept: Vec<usize> = shape
            .iter()
            .enumerate()
            .map(|(axis, &s)| if self.axes.contains(&axis) { 1 } else { s })
            .collect();
        let dropped: Vec<usize> =
            shape.iter().enumerate().filter(|(axis, _)| !self.axes.contains(axis)).map(|(_, &s)| s).collect();
        let each = kept.iter().product::<usize>() as f64 / shape.iter().product::<usize>() as f64;
        let output = if self.keep { kept.clone() } else { dropped };
        let same = self.axes.iter().copied().min().unwrap_or(0);
        sparse(same, shape, output, |entries| {
            positions(&shape[same..], |from, at| {
                let to = at
                    .iter()
                    .enumerate()
                    .map(|(axis, &i)| if self.axes.contains(&(axis + same)) { 0 } else { i });
                entries.push((flat(&kept[same..], to), from as u32, each));
            });
        })
    }
}

impl Broadcast {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let shape = inputs[0];
        let offset = self.shape.len().checked_sub(shape.len());
        let fits = offset.is_some_and(|offset| {
            shape.iter().zip(&self.shape[offset..]).all(|(&from, &to)| from == to || from == 1)
        });
        let (Some(offset), true) = (offset, fits) else {
            return Err(format!("{shape:?} does not broadcast to {:?}", self.shape));
        };
        super::check_size(&self.shape)?;
        sparse(0, shape, self.shape.clone(), |entries| {
            positions(&self.shape, |to, at| {
                let from = at[offset..].iter().zip(shape).map(|(&i, &s)| if s == 1 { 0 } else { i });
                entries.push((to as u32, flat(shape, from), 1.0));
            });
        })
    }
}

impl Pool {
    pub(crate) fn prepare_average<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let windows = self.windows(inputs[0])?;
        let [height, width] = windows.target;
        let output = vec![windows.channels, height, width];
        check_entries(&[height, width, self.kernel[0], self.kernel[1]])?;
        // Windows may reach beyond the padding (with `ceil`): that part never counts.
        let inside = |axis: usize, i: usize| {
            let (from, all) = (i * windows.stride[axis], windows.source[axis] + 2 * self.padding[axis]);
            (0..self.kernel[axis]).filter(|k| from + k * self.dilation[axis] < all).count()
        };
        sparse(1, inputs[0], output, |entries| {
            for i in 0..height * width {
                let (y, x) = (i / width, i % width);
                let mut found = Vec::new();
                windows.visit(y, x, |at| found.push(at));
                let count = if self.count_padding { inside(0, y) * inside(1, x) } else { found.len() };
                entries.extend(found.iter().map(|&at| (i as u32, at as u32, 1.0 / count as f64)));
            }
        })
    }
}

impl Resize {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let shape = inputs[0];
        let Some((&channels, spatial)) = shape.split_first() else {
            return Err("resizing needs channels and spatial axes".into());
        };
        if self.sizes.len() != spatial.len() || self.sizes.contains(&0) || spatial.contains(&0) {
            return Err(format!(
                "`sizes` {:?} must give a length for each spatial axis of {shape:?}",
                self.sizes
            ));
        }
        if let Some(scales) = &self.scales
            && (scales.len() != spatial.len() || scales.iter().any(|s| !(s.is_finite() && *s > 0.0)))
        {
            return Err(format!(
                "`scales` {scales:?} must give a positive number for each spatial axis of {shape:?}"
            ));
        }
        let output: Vec<usize> = [channels].into_iter().chain(self.sizes.iter().copied()).collect();
        super::check_size(&output)?;
        check_entries(&[output[1..].iter().product(), 1 << spatial.len().min(32)])?;
        let axes: Vec<_> = spatial
            .iter()
            .zip(&self.sizes)
            .enumerate()
            .map(|(i, (&from, &to))| self.axis(from, to, i))
            .collect();
        sparse(1, shape, output.clone(), |entries| {
            positions(&output[1..], |to, at| {
                let mut terms = vec![(0, 1.0)];
                for (axis, (&i, &length)) in axes.iter().zip(at.iter().zip(spatial)) {
                    terms = terms
                        .iter()
                        .flat_map(|&(from, weight)| {
                            axis[i].iter().map(move |&(j, w)| (from * length + j, weight * w))
                        })
                        .collect();
                }
                entries.extend(terms.into_iter().map(|(from, weight)| (to as u32, from as u32, weight)));
            });
        })
    }
}

#[derive(Debug)]
struct Sparse {
    map: SparseMap,
    /// Parts of an example that the map acts on, each by itself.
    blocks: usize,
    input: Vec<usize>,
    output: Vec<usize>,
}

impl<T: Precision> Layer<T> for Sparse {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> (Array<T>, Saved<T>) {
        (self.map.apply(inputs[0], self.blocks, &self.output), Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        self.map.apply(tangent, self.blocks, &self.output)
    }

    fn vjp_input(&self, _: &At<'_, T>, _: usize, cotangent: &Array<T>) -> Array<T> {
        self.map.apply_transposed(cotangent, self.blocks, &self.input)
    }
}

/// The same values in another shape of the example.
pub(crate) fn prepare_reshape<T: Precision>(
    shape: &[usize],
    inputs: &[&[usize]],
) -> Result<Prepared<T>, String> {
    super::check_size(shape)?;
    if shape.iter().product::<usize>() != inputs[0].iter().product::<usize>() {
        return Err(format!("{:?} and {shape:?} hold different numbers of values", inputs[0]));
    }
    let layer = Arc::new(Reshaped { input: inputs[0].to_vec(), output: shape.to_vec() });
    Ok(Prepared { shape: shape.to_vec(), parameters: vec![], flops: 0, layer })
}

#[derive(Debug)]
struct Reshaped {
    input: Vec<usize>,
    output: Vec<usize>,
}

impl<T: Precision> Layer<T> for Reshaped {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], rows: usize, _: Mode) -> (Array<T>, Saved<T>) {
        (inputs[0].clone().reshaped(crate::array::batch_shape(rows, &self.output)), Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        tangent.clone().reshaped(crate::array::batch_shape(tangent.rows(), &self.output))
    }

    fn vjp_input(&self, _: &At<'_, T>, _: usize, cotangent: &Array<T>) -> Array<T> {
        cotangent.clone().reshaped(crate::array::batch_shape(cotangent.rows(), &self.input))
    }
}
