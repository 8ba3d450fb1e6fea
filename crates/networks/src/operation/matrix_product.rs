//! Products of two activations, matrix by matrix: what attention is made of.

use super::layer::{At, Layer, Mode, Output, Prepared, Saved, Term};
use crate::array::{Array, Matrix, Precision, batch_shape, products};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `A B` on the last two axes, with equal axes before them; either factor may be transposed first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixProduct {
    /// Whether the last two axes of the first input are exchanged.
    #[serde(default)]
    pub transpose_left: bool,
    /// Whether the last two axes of the second input are exchanged.
    #[serde(default)]
    pub transpose_right: bool,
}

impl MatrixProduct {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let split = |shape: &[usize]| -> Option<(Vec<usize>, [usize; 2])> {
            let at = shape.len().checked_sub(2)?;
            Some((shape[..at].to_vec(), [shape[at], shape[at + 1]]))
        };
        let (Some((batch, left)), Some((other, right))) = (split(inputs[0]), split(inputs[1])) else {
            return Err(format!("a matrix product needs matrices, not {inputs:?}"));
        };
        let [rows, inner] = if self.transpose_left { [left[1], left[0]] } else { left };
        let [inner_right, columns] = if self.transpose_right { [right[1], right[0]] } else { right };
        if batch != other || inner != inner_right {
            return Err(format!("factors of shapes {:?} and {:?} do not fit {self:?}", inputs[0], inputs[1]));
        }
        let shape: Vec<usize> = batch.iter().copied().chain([rows, columns]).collect();
        super::check_size(&shape)?;
        let count: usize = batch.iter().product();
        let flops = super::count(&[2, count, rows, inner, columns]);
        let layer = Arc::new(Matrices {
            config: self.clone(),
            count,
            left,
            right,
            output: [rows, columns],
            shapes: [inputs[0].to_vec(), inputs[1].to_vec()],
            shape: shape.clone(),
        });
        Ok(Prepared { shape, parameters: vec![], flops, layer })
    }
}

#[derive(Debug)]
struct Matrices {
    config: MatrixProduct,
    /// Matrices in an example.
    count: usize,
    /// Stored rows and columns of each factor.
    left: [usize; 2],
    right: [usize; 2],
    output: [usize; 2],
    shapes: [Vec<usize>; 2],
    shape: Vec<usize>,
}

/// One factor of a block: its values, the stored size of its matrices, and whether it is transposed.
#[derive(Clone, Copy)]
struct Factor<'a, T> {
    array: &'a Array<T>,
    size: [usize; 2],
    transposed: bool,
}

impl Matrices {
    /// `left right` matrix by matrix, factors with fewer rows repeated.
    fn multiply<T: Precision>(&self, left: Factor<'_, T>, right: Factor<'_, T>, shape: &[usize]) -> Array<T> {
        let rows = left.array.rows().max(right.array.rows());
        let mut out = Array::any(batch_shape(rows, shape));
        let count = self.count;
        products(out.values_mut(), rows * count, false, |i| {
            let matrix = |factor: Factor<'_, T>| {
                let width = rows / factor.array.rows().max(1);
                let size = factor.size[0] * factor.size[1];
                let start = (i / count / width * count + i % count) * size;
                (start, size)
            };
            let (a, b) = (matrix(left), matrix(right));
            let a = Matrix::new(&left.array.values()[a.0..a.0 + a.1], left.size[0], left.size[1]);
            let b = Matrix::new(&right.array.values()[b.0..b.0 + b.1], right.size[0], right.size[1]);
            (
                if left.transposed { a.transposed() } else { a },
                if right.transposed { b.transposed() } else { b },
            )
        });
        out
    }

    fn left<'a, T>(&self, array: &'a Array<T>) -> Factor<'a, T> {
        Factor { array, size: self.left, transposed: self.config.transpose_left }
    }

    fn right<'a, T>(&self, array: &'a Array<T>) -> Factor<'a, T> {
        Factor { array, size: self.right, transposed: self.config.transpose_right }
    }

    /// The gradient in factor `input`, given the other factor and the cotangent of the product.
    fn pull<T: Precision>(&self, input: usize, other: &Array<T>, cotangent: &Array<T>) -> Array<T> {
        let c = Factor { array: cotangent, size: self.output, transposed: false };
        let shape = &self.shapes[input];
        if input == 0 {
            // dA = C B^T, or its transpose B C^T where A is stored transposed.
            let b = self.right(other);
            if self.config.transpose_left {
                self.multiply(b, Factor { transposed: true, ..c }, shape)
            } else {
                self.multiply(c, Factor { transposed: !b.transposed, ..b }, shape)
            }
        } else {
            let a = self.left(other);
            if self.config.transpose_right {
                self.multiply(Factor { transposed: true, ..c }, a, shape)
            } else {
                self.multiply(Factor { transposed: !a.transposed, ..a }, c, shape)
            }
        }
    }
}

impl<T: Precision> Layer<T> for Matrices {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        (self.multiply(self.left(inputs[0]), self.right(inputs[1]), &self.shape), Saved::Nothing)
    }

    fn jvp_input(&self, at: &At<'_, T>, input: usize, tangent: &Array<T>) -> Array<T> {
        let (a, b) = if input == 0 { (tangent, at.inputs[1]) } else { (at.inputs[0], tangent) };
        self.multiply(self.left(a), self.right(b), &self.shape)
    }

    fn vjp_input(&self, at: &At<'_, T>, input: usize, cotangent: &Array<T>) -> Array<T> {
        self.pull(input, at.inputs[1 - input], cotangent)
    }

    fn second_input(&self, _: &At<'_, T>, input: usize, tangents: &[Term<T>], c: &Array<T>) -> Term<T> {
        Some(self.pull(input, tangents[1 - input].as_ref()?, c))
    }
}
