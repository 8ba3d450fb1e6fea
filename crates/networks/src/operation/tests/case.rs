//! One operation in one configuration, its definition, and the point at which it is tried.

use super::numbers::random;
use crate::array::{Array, Precision, batch_shape};
use crate::operation::{At, Layer, Mode, Operation, Prepared, Saved};
use std::sync::Arc;

/// The output of one example from the inputs of one example and the parameters, written as in a textbook.
pub(super) type Definition = dyn Fn(&[Array<f64>], &[Array<f64>]) -> Array<f64>;

/// What inputs are filled with, so that differences do not step over a kink.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fill {
    /// Uniform on (-2, 2).
    Uniform,
    /// At least 0.1 from zero.
    Nonzero,
    /// At least 0.3.
    Positive,
    /// All values of an example at least 0.05 apart.
    Distinct,
    /// Whole numbers below a bound; no derivative is taken.
    Whole(usize),
}

pub(super) struct Case {
    pub(super) name: String,
    pub(super) operation: Operation,
    pub(super) inputs: Vec<Vec<usize>>,
    pub(super) fill: Fill,
    pub(super) examples: usize,
    pub(super) definition: Box<Definition>,
}

impl Case {
    pub(super) fn new(
        operation: Operation,
        inputs: &[&[usize]],
        definition: impl Fn(&[Array<f64>], &[Array<f64>]) -> Array<f64> + 'static,
    ) -> Self {
        let name = format!("{operation:?} of {inputs:?}");
        let inputs = inputs.iter().map(|i| i.to_vec()).collect();
        Self { name, operation, inputs, fill: Fill::Uniform, examples: 2, definition: Box::new(definition) }
    }

    pub(super) fn filled(self, fill: Fill) -> Self {
        Self { fill, ..self }
    }

    pub(super) fn examples(self, examples: usize) -> Self {
        Self { examples, ..self }
    }

    pub(super) fn prepare<T: Precision>(&self) -> Prepared<T> {
        let shapes: Vec<&[usize]> = self.inputs.iter().map(Vec::as_slice).collect();
        self.operation.prepare(&shapes).unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }

    /// Inputs for so many examples.
    pub(super) fn draw(&self, examples: usize) -> Vec<Array<f64>> {
        let one = |(i, shape): (usize, &Vec<usize>)| {
            let mut x = random(batch_shape(examples, shape), 100 + i as u64);
            let length: usize = shape.iter().product();
            for (k, v) in x.values_mut().iter_mut().enumerate() {
                *v = match self.fill {
                    Fill::Uniform => 2.0 * *v,
                    Fill::Nonzero => v.signum() * (0.1 + v.abs()),
                    Fill::Positive => 0.3 + 2.0 * v.abs(),
                    // A permutation of 0..length (7919 is a prime and no divisor of a length here).
                    Fill::Distinct => 0.1 * ((k * 7919 + 13) % length) as f64 + 0.02 * *v - 1.0,
                    Fill::Whole(bound) => ((0.5 + 0.5 * *v) * bound as f64).floor(),
                };
            }
            x
        };
        self.inputs.iter().enumerate().map(one).collect()
    }

    /// The operation at drawn inputs and parameters.
    pub(super) fn point(&self, mode: Mode) -> Point<f64> {
        let prepared = self.prepare::<f64>();
        let parameters = prepared.parameters.iter().enumerate().map(|(i, p)| {
            let mut values = random(p.shape.clone(), 200 + i as u64);
            if p.name == "running_var" {
                values.values_mut().iter_mut().for_each(|v| *v = 0.5 + v.abs());
            }
            values
        });
        let parameters = parameters.collect();
        Point::new(prepared.layer, self.draw(self.examples), parameters, self.examples, mode)
    }
}

/// A layer with everything that [`At`] borrows.
pub(super) struct Point<T> {
    pub(super) layer: Arc<dyn Layer<T>>,
    pub(super) inputs: Vec<Array<T>>,
    pub(super) parameters: Vec<Array<T>>,
    pub(super) rows: usize,
    pub(super) mode: Mode,
    pub(super) output: Array<T>,
    saved: Saved<T>,
}

impl<T: Precision> Point<T> {
    pub(super) fn new(
        layer: Arc<dyn Layer<T>>,
        inputs: Vec<Array<T>>,
        parameters: Vec<Array<T>>,
        rows: usize,
        mode: Mode,
    ) -> Self {
        let (output, saved) = {
            let inputs: Vec<&Array<T>> = inputs.iter().collect();
            let parameters: Vec<&Array<T>> = parameters.iter().collect();
            layer.forward(&inputs, &parameters, rows, mode)
        };
        Self { layer, inputs, parameters, rows, mode, output, saved }
    }

    /// The same layer elsewhere.
    pub(super) fn with(&self, inputs: Vec<Array<T>>, parameters: Vec<Array<T>>, rows: usize) -> Self {
        Self::new(self.layer.clone(), inputs, parameters, rows, self.mode)
    }

    pub(super) fn at<R>(&self, f: impl FnOnce(&dyn Layer<T>, &At<'_, T>) -> R) -> R {
        let inputs: Vec<&Array<T>> = self.inputs.iter().collect();
        let parameters: Vec<&Array<T>> = self.parameters.iter().collect();
        let at = At { inputs: &inputs, parameters: &parameters, output: &self.output, saved: &self.saved };
        f(&*self.layer, &at)
    }
}
