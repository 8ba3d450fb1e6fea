//! Rows of a table, looked up by number.

use super::layer::{At, Initial, Layer, Mode, Output, ParameterSpecification, Prepared, Saved};
use crate::array::{Array, Precision, Sets, add_rows, batch_shape, look_up};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Replaces every value (a whole number from 0 to `entries - 1`) by its row of the weight `[entries, width]`. The derivative in the input is zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// Rows of the table.
    pub entries: usize,
    /// Columns of the table.
    pub width: usize,
}

impl Embedding {
    pub(crate) fn prepare<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        if self.entries == 0 || self.width == 0 {
            return Err("a table needs entries and a width".into());
        }
        let shape: Vec<usize> = inputs[0].iter().copied().chain([self.width]).collect();
        super::check_size(&shape)?;
        let parameters = vec![ParameterSpecification {
            name: "weight",
            shape: vec![self.entries, self.width],
            trainable: true,
            initial: Initial::Normal(1.0),
        }];
        let layer = Arc::new(Table { config: self.clone(), input: inputs[0].to_vec(), shape: shape.clone() });
        Ok(Prepared { shape, parameters, flops: 0, layer })
    }
}

#[derive(Debug)]
struct Table {
    config: Embedding,
    input: Vec<usize>,
    shape: Vec<usize>,
}

impl<T: Precision> Layer<T> for Table {
    fn forward(&self, inputs: &[&Array<T>], parameters: &[&Array<T>], rows: usize, _: Mode) -> Output<T> {
        let mut out = Array::zeros(batch_shape(rows, &self.shape));
        look_up(inputs[0], parameters[0].values(), self.config.entries, Sets::One, &mut out);
        (out, Saved::Nothing)
    }

    fn jvp_input(&self, _: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        Array::zeros(batch_shape(tangent.rows(), &self.shape))
    }

    fn vjp_input(&self, _: &At<'_, T>, _: usize, cotangent: &Array<T>) -> Array<T> {
        Array::zeros(batch_shape(cotangent.rows(), &self.input))
    }

    fn jvp_parameter(
        &self,
        at: &At<'_, T>,
        _: usize,
        tangent: &Array<T>,
        sets: Sets,
        rows: usize,
    ) -> Array<T> {
        let mut out = Array::zeros(batch_shape(rows, &self.shape));
        look_up(at.inputs[0], tangent.values(), self.config.entries, sets, &mut out);
        out
    }

    fn vjp_parameter(
        &self,
        at: &At<'_, T>,
        _: usize,
        c: &Array<T>,
        sets: Sets,
        stride: usize,
        out: &mut [T],
    ) {
        add_rows(at.inputs[0], c, self.config.entries, sets, stride, out);
    }
}
