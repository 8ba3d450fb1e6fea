//! `y = x W^T + b` on the last axis.

use super::layer::{
    At, Factors, Initial, Layer, Mode, Output, ParameterSpecification, Prepared, Saved, Term,
};
use crate::array::{
    Array, Channels, Matrix, Precision, Sets, batch_shape, channel_affine, channel_sums, outer, product,
    products, products_apart,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// A fully connected layer on the last axis: weight `[outputs, inputs]`, bias `[outputs]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Linear {
    /// Width of the last axis of the output.
    pub outputs: usize,
    /// Whether there is a bias.
    #[serde(default = "super::yes")]
    pub bias: bool,
}

impl Linear {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        let (&columns, leading) = inputs[0].split_last().ok_or("a linear layer needs at least one axis")?;
        if columns == 0 || self.outputs == 0 {
            return Err("a linear layer needs at least one input and one output".into());
        }
        let shape: Vec<usize> = leading.iter().copied().chain([self.outputs]).collect();
        super::check_size(&shape)?;
        let bound = 1.0 / (columns as f64).sqrt();
        let mut parameters = vec![ParameterSpecification {
            name: "weight",
            shape: vec![self.outputs, columns],
            trainable: true,
            initial: Initial::Uniform(bound),
        }];
        if self.bias {
            parameters.push(ParameterSpecification {
                name: "bias",
                shape: vec![self.outputs],
                trainable: true,
                initial: Initial::Uniform(bound),
            });
        }
        let positions: usize = leading.iter().product();
        let flops = super::count(&[2, positions, columns, self.outputs]);
        let layer = Arc::new(Dense {
            shape: shape.clone(),
            input: inputs[0].to_vec(),
            columns,
            outputs: self.outputs,
            positions,
        });
        Ok(Prepared { shape, parameters, flops, layer })
    }
}

#[derive(Debug)]
struct Dense {
    shape: Vec<usize>,
    input: Vec<usize>,
    columns: usize,
    outputs: usize,
    positions: usize,
}

impl Dense {
    fn channels(&self) -> Channels {
        Channels { channels: self.outputs, inner: 1 }
    }

    /// `x W^T` (or `y W` backwards) with the same weights for all rows.
    fn shared<T: Precision>(&self, x: &Array<T>, weights: &[T], back: bool) -> Array<T> {
        let (from, to, shape) = if back {
            (self.outputs, self.columns, &self.input)
        } else {
            (self.columns, self.outputs, &self.shape)
        };
        let mut out = Array::any(batch_shape(x.rows(), shape));
        let rows = x.rows() * self.positions;
        let weights = Matrix::new(weights, self.outputs, self.columns);
        let weights = if back { weights } else { weights.transposed() };
        assert_eq!(out.len(), rows * to);
        product(out.values_mut(), false, Matrix::new(x.values(), rows, from), weights);
        out
    }

    /// The same with sets of weights.
    fn with_sets<T: Precision>(
        &self,
        x: &Array<T>,
        weights: &Array<T>,
        sets: Sets,
        rows: usize,
        back: bool,
    ) -> Array<T> {
        let (from, shape) = if back { (self.outputs, &self.input) } else { (self.columns, &self.shape) };
        let width = rows / x.rows().max(1);
        let mut out = Array::any(batch_shape(rows, shape));
        // One product gives all tangents where each example has one position.
        if let (Sets::Tangents(k), 1, false) = (sets, self.positions, back)
            && k == width
        {
            let weights = Matrix::new(weights.values(), k * self.outputs, self.columns);
            product(out.values_mut(), false, Matrix::new(x.values(), x.rows(), from), weights.transposed());
            return out;
        }
        products(out.values_mut(), rows, false, |r| {
            let weights = Matrix::new(weights.row(sets.of(r)), self.outputs, self.columns);
            (
                Matrix::new(x.row(r / width), self.positions, from),
                if back { weights } else { weights.transposed() },
            )
        });
        out
    }
}

impl<T: Precision> Layer<T> for Dense {
    fn forward(&self, inputs: &[&Array<T>], parameters: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        let out = self.shared(inputs[0], parameters[0].values(), false);
        let out = match parameters.get(1) {
            Some(bias) => channel_affine(&out, self.channels(), None, Some(bias.values()), Sets::One),
            None => out,
        };
        (out, Saved::Nothing)
    }

    fn jvp_input(&self, at: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        self.shared(tangent, at.parameters[0].values(), false)
    }

    fn vjp_input(&self, at: &At<'_, T>, _: usize, cotangent: &Array<T>) -> Array<T> {
        self.shared(cotangent, at.parameters[0].values(), true)
    }

    fn jvp_parameter(
        &self,
        at: &At<'_, T>,
        slot: usize,
        tangent: &Array<T>,
        sets: Sets,
        rows: usize,
    ) -> Array<T> {
        if slot == 0 {
            return self.with_sets(at.inputs[0], tangent, sets, rows, false);
        }
        let zero = Array::zeros(batch_shape(rows, &self.shape));
        channel_affine(&zero, self.channels(), None, Some(tangent.values()), sets)
    }

    fn vjp_parameter(
        &self,
        at: &At<'_, T>,
        slot: usize,
        c: &Array<T>,
        sets: Sets,
        stride: usize,
        out: &mut [T],
    ) {
        if slot == 1 {
            return channel_sums(c, None, self.channels(), sets, stride, out);
        }
        let x = at.inputs[0];
        let (rows, length) = (c.rows(), self.outputs * self.columns);
        let width = rows / x.rows().max(1);
        match sets {
            Sets::Rows if self.positions == 1 => outer(c, x, stride, out),
            Sets::Rows => products_apart(out, stride, length, true, |r| {
                (
                    Matrix::new(c.row(r), self.positions, self.outputs).transposed(),
                    Matrix::new(x.row(r / width), self.positions, self.columns),
                )
            }),
            Sets::One if width == 1 => product(
                &mut out[..length],
                true,
                Matrix::new(c.values(), rows * self.positions, self.outputs).transposed(),
                Matrix::new(x.values(), rows * self.positions, self.columns),
            ),
            Sets::Tangents(k) if k == width && self.positions == 1 && stride == length => product(
                out,
                true,
                Matrix::new(c.values(), x.rows(), k * self.outputs).transposed(),
                Matrix::new(x.values(), x.rows(), self.columns),
            ),
            Sets::One | Sets::Tangents(_) => {
                // The rows of tangent k of all examples together: one product for each k.
                let x = Matrix::new(x.values(), x.rows() * self.positions, self.columns);
                for k in 0..width {
                    let rows: Vec<T> = (k..rows).step_by(width).flat_map(|r| c.row(r)).copied().collect();
                    let rows = Matrix::new(&rows, rows.len() / self.outputs, self.outputs);
                    let start = sets.of(k) * stride;
                    product(&mut out[start..start + length], true, rows.transposed(), x);
                }
            }
        }
    }

    fn overwrites_rows(&self, slot: usize) -> bool {
        slot == 0 && self.positions == 1
    }

    fn second_parameter(
        &self,
        _: &At<'_, T>,
        slot: usize,
        tangent: &Array<T>,
        _: usize,
        c: &Array<T>,
    ) -> Term<T> {
        (slot == 0).then(|| self.with_sets(c, tangent, Sets::Rows, c.rows(), true))
    }

    fn factors<'a>(&self, at: &'a At<'_, T>, slot: usize, cotangent: &'a Array<T>) -> Option<Factors<'a, T>> {
        (slot == 0).then(|| Factors::Outer {
            inputs: Cow::Borrowed(at.inputs[0]),
            sensitivities: Cow::Borrowed(cotangent),
            positions: self.positions,
            transposed: false,
        })
    }
}
