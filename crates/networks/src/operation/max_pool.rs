//! Maxima over windows.

use super::layer::{At, Layer, Mode, Output, Prepared, Saved};
use super::pool::Pool;
use crate::array::{Array, MaximumWindows, Precision, Windows, put, take};
use std::sync::Arc;

impl Pool {
    pub(crate) fn prepare_maximum<T: Precision>(&self, inputs: &[&[usize]]) -> Result<Prepared<T>, String> {
        super::check_size(inputs[0])?;
        let windows = self.windows(inputs[0])?;
        let shape = self.output(&windows);
        let flops = super::count(&[&shape[..], &self.kernel].concat());
        let layer = Arc::new(Maximum { windows, input: inputs[0].to_vec(), shape: shape.clone() });
        Ok(Prepared { shape, parameters: vec![], flops, layer })
    }
}

#[derive(Debug)]
struct Maximum {
    windows: Windows,
    input: Vec<usize>,
    shape: Vec<usize>,
}

fn positions<'a, T>(at: &At<'a, T>) -> &'a [u32] {
    match at.saved {
        Saved::Positions(positions) => positions,
        _ => unreachable!("the forward pass saves the positions of the maxima"),
    }
}

impl<T: Precision> Layer<T> for Maximum {
    fn forward(&self, inputs: &[&Array<T>], _: &[&Array<T>], _: usize, _: Mode) -> Output<T> {
        let positions = MaximumWindows::find(&self.windows, inputs[0]);
        (take(inputs[0], &positions, &self.shape), Saved::Positions(positions))
    }

    fn jvp_input(&self, at: &At<'_, T>, _: usize, tangent: &Array<T>) -> Array<T> {
        take(tangent, positions(at), &self.shape)
    }

    fn vjp_input(&self, at: &At<'_, T>, _: usize, cotangent: &Array<T>) -> Array<T> {
        put(cotangent, positions(at), &self.input)
    }
}
