//! Operations without parameters that are sparse linear maps of an example: slices, transposes, means, broadcasts; and reshaping.

use super::layer::{At, Layer, Mode, Output, Prepared, Saved, Term};
use super::sparse::{flat, positions, sparse};
use crate::array::{Array, Piece, Precision, add_piece, batch_shape, extract, place};
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

impl Transpose {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let shape = inputs[0];
        let mut sorted = self.axes.clone();
        sorted.sort_unstable();
        if sorted != (0..shape.len()).collect::<Vec<_>>() {
            return Err(format!("`axes` {:?} is not an order of the axes of {shape:?}", self.axes));
        }
        let output: Vec<usize> = self.axes.iter().map(|&a| shape[a]).collect();
        let (axes, input) = (self.axes.clone(), shape.to_vec());
        sparse(0, shape, output.clone(), 1, 0, move |entries| {
            positions(&output, |to, at| {
                let mut from = vec![0; at.len()];
                at.iter().zip(&axes).for_each(|(&i, &axis)| from[axis] = i);
                entries.push((to as u32, flat(&input, from.into_iter()), 1.0));
            });
        })
    }
}

impl Slice {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let shape = inputs[0];
        let &length = shape.get(self.axis).ok_or_else(|| format!("{shape:?} has no axis {}", self.axis))?;
        let (start, step) = (self.start, self.step);
        let index = move |i: usize| step.checked_mul(i as isize).and_then(|d| start.checked_add_signed(d));
        let last = index(self.length.saturating_sub(1));
        if self.length == 0 || self.step == 0 || self.start >= length || last.is_none_or(|l| l >= length) {
            return Err(format!("{self:?} leaves axis {} of {shape:?}", self.axis));
        }
        let mut output = shape.to_vec();
        output[self.axis] = self.length;
        if step == 1 || self.length == 1 {
            let inner: usize = shape[self.axis + 1..].iter().product();
            let piece = Piece { total: length * inner, start: start * inner, length: self.length * inner };
            let layer = Arc::new(Part { piece, input: shape.to_vec(), output: output.clone() });
            super::check_size(shape)?;
            return Ok(Prepared { shape: output, parameters: vec![], flops: 0, layer });
        }
        let (inner, taken) = (shape[self.axis..].to_vec(), output[self.axis..].to_vec());
        sparse(self.axis, shape, output, 1, 0, move |entries| {
            positions(&taken, |to, at| {
                let from =
                    at.iter().enumerate().map(|(i, &at)| if i == 0 { index(at).unwrap_or(0) } else { at });
                entries.push((to as u32, flat(&inner, from), 1.0));
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
        super::check_size(shape)?;
        let terms = super::count(shape) / super::count(&kept).max(1);
        let each = 1.0 / terms as f64;
        let output = if self.keep { kept.clone() } else { dropped };
        let same = self.axes.iter().copied().min().unwrap_or(0);
        let (axes, inner) = (self.axes.clone(), shape[same..].to_vec());
        let flops = if terms == 1 { 0 } else { 2 * super::count(shape) };
        sparse(same, shape, output, terms, flops, move |entries| {
            positions(&inner, |from, at| {
                let to =
                    at.iter().enumerate().map(|(axis, &i)| if axes.contains(&(axis + same)) { 0 } else { i });
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
        let (input, output) = (shape.to_vec(), self.shape.clone());
        sparse(0, shape, self.shape.clone(), 1, 0, move |entries| {
            positions(&output, |to, at| {
                let from = at[offset..].iter().zip(&input).map(|(&i, &s)| if s == 1 { 0 } else { i });
                entries.push((to as u32, flat(&input, from), 1.0));
            });
        })
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

/// Neighbouring entries of an axis.
#[derive(Debug)]
struct Part {
    piece: Piece,
    input: Vec<usize>,
    output: Vec<usize>,
}

impl<T: Precision> Layer<T> for Part {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        (extract(inputs[0], self.piece, &self.output), Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        extract(tangent, self.piece, &self.output)
    }

    fn vjp_input(&self, _: &At<'_, T>, _: usize, cotangent: &Array<T>) -> Array<T> {
        let mut out = Array::zeros(batch_shape(cotangent.rows(), &self.input));
        place(cotangent, self.piece, &mut out);
        out
    }

    fn add_vjp_input(&self, _: &At<'_, T>, _: usize, cotangent: &Array<T>, sum: &mut Term<T>) {
        let shape = || Array::zeros(batch_shape(cotangent.rows(), &self.input));
        add_piece(cotangent, self.piece, sum.get_or_insert_with(shape));
    }
}

#[derive(Debug)]
struct Reshaped {
    input: Vec<usize>,
    output: Vec<usize>,
}

impl<T: Precision> Layer<T> for Reshaped {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], rows: usize, _: Mode) -> Output<T> {
        (inputs[0].clone().reshaped(crate::array::batch_shape(rows, &self.output)), Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        tangent.clone().reshaped(crate::array::batch_shape(tangent.rows(), &self.output))
    }

    fn vjp_input(&self, _: &At<'_, T>, _: usize, cotangent: &Array<T>) -> Array<T> {
        cotangent.clone().reshaped(crate::array::batch_shape(cotangent.rows(), &self.input))
    }
}
