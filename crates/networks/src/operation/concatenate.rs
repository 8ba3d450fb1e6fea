//! Values side by side along an axis.

use super::layer::{At, Layer, Mode, Output, Prepared, Saved, Term};
use crate::array::{Array, Piece, Precision, add_piece, batch_shape, extract, place};
use std::sync::Arc;

/// Joins the inputs along `axis` (counted from 0 without the batch axis); the other axes must agree.
pub(crate) fn prepare<T: Precision>(axis: usize, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
    let mut shape = inputs[0].to_vec();
    if axis >= shape.len() {
        return Err(format!("{shape:?} has no axis {axis}"));
    }
    shape[axis] = 0;
    for input in inputs {
        let mut other = input.to_vec();
        if let Some(length) = other.get_mut(axis) {
            shape[axis] += std::mem::take(length);
        }
        let mut rest = shape.clone();
        rest[axis] = 0;
        if other != rest {
            return Err(format!(
                "inputs of shapes {inputs:?} differ in more than axis {axis}: they cannot be joined along it"
            ));
        }
    }
    super::check_size(&shape)?;
    let inner: usize = shape[axis + 1..].iter().product();
    let total = shape[axis] * inner;
    let mut start = 0;
    let pieces = inputs
        .iter()
        .map(|input| {
            let piece = Piece { total, start, length: input[axis] * inner };
            start += piece.length;
            (piece, input.to_vec())
        })
        .collect();
    let layer = Arc::new(Joined { pieces, shape: shape.clone() });
    Ok(Prepared { shape, parameters: vec![], flops: 0, layer })
}

#[derive(Debug)]
struct Joined {
    pieces: Vec<(Piece, Vec<usize>)>,
    shape: Vec<usize>,
}

impl<T: Precision> Layer<T> for Joined {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], rows: usize, _: Mode) -> Output<T> {
        let mut out = Array::zeros(batch_shape(rows, &self.shape));
        for (x, (piece, _)) in inputs.iter().zip(&self.pieces) {
            place(x, *piece, &mut out);
        }
        (out, Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, input: usize, tangent: &Array<T>) -> Array<T> {
        let mut out = Array::zeros(batch_shape(tangent.rows(), &self.shape));
        place(tangent, self.pieces[input].0, &mut out);
        out
    }

    fn add_jvp_input(&self, _: &At<'_, T>, input: usize, tangent: &Array<T>, sum: &mut Term<T>) {
        let shape = || Array::zeros(batch_shape(tangent.rows(), &self.shape));
        add_piece(tangent, self.pieces[input].0, sum.get_or_insert_with(shape));
    }

    fn vjp_input(&self, _: &At<'_, T>, input: usize, cotangent: &Array<T>) -> Array<T> {
        let (piece, shape) = &self.pieces[input];
        extract(cotangent, *piece, shape)
    }
}
