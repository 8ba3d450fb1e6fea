//! Operations one after another with a reverse sweep, written for these tests alone.

use super::case::Point;
use crate::array::{Array, Sets};
use crate::operation::{Mode, Operation};

/// Leaves (given arrays, by name) and the values computed from them.
pub(super) struct Tape {
    mode: Mode,
    rows: usize,
    values: Vec<Array<f64>>,
    names: Vec<(String, usize)>,
    steps: Vec<Step>,
}

struct Step {
    point: Point<f64>,
    inputs: Vec<usize>,
    parameters: Vec<usize>,
    output: usize,
}

impl Tape {
    pub(super) fn new(rows: usize, mode: Mode) -> Self {
        Self { mode, rows, values: vec![], names: vec![], steps: vec![] }
    }

    /// A given array: examples first where it is an input, as it is where it is a parameter.
    pub(super) fn leaf(&mut self, name: &str, value: Array<f64>) -> usize {
        self.values.push(value);
        self.names.push((name.into(), self.values.len() - 1));
        self.values.len() - 1
    }

    pub(super) fn value(&self, value: usize) -> &Array<f64> {
        &self.values[value]
    }

    /// The value computed last.
    pub(super) fn last(&self) -> &Array<f64> {
        &self.values[self.values.len() - 1]
    }

    /// Parameters are reshaped to what the operation needs.
    pub(super) fn apply(&mut self, operation: Operation, inputs: &[usize], parameters: &[usize]) -> usize {
        let shapes: Vec<&[usize]> = inputs.iter().map(|&i| &self.values[i].shape()[1..]).collect();
        let prepared = operation.prepare::<f64>(&shapes).unwrap_or_else(|e| panic!("{operation:?}: {e}"));
        assert_eq!(prepared.parameters.len(), parameters.len(), "{operation:?}: parameters");
        let shaped = prepared.parameters.iter().zip(parameters);
        let shaped = shaped.map(|(s, &p)| self.values[p].clone().reshaped(s.shape.clone())).collect();
        let arrays = inputs.iter().map(|&i| self.values[i].clone()).collect();
        let point = Point::new(prepared.layer, arrays, shaped, self.rows, self.mode);
        self.values.push(point.output.clone());
        let output = self.values.len() - 1;
        self.steps.push(Step { point, inputs: inputs.to_vec(), parameters: parameters.to_vec(), output });
        output
    }

    /// Gradients of `<cotangent, last value>` in all leaves, by name; parameters of batch norm's statistics get none.
    pub(super) fn gradients(&self, cotangent: Array<f64>) -> Vec<(String, Vec<f64>)> {
        let mut sums: Vec<Vec<f64>> = self.values.iter().map(|v| vec![0.0; v.len()]).collect();
        sums[self.values.len() - 1] = cotangent.into_values();
        for step in self.steps.iter().rev() {
            let c = Array::new(self.values[step.output].shape().to_vec(), sums[step.output].clone());
            for (i, &from) in step.inputs.iter().enumerate() {
                let pulled = step.point.at(|layer, at| layer.vjp_input(at, i, &c));
                sums[from].iter_mut().zip(pulled.values()).for_each(|(s, v)| *s += v);
            }
            for (slot, &from) in step.parameters.iter().enumerate().take(2) {
                let length = sums[from].len();
                step.point.at(|l, at| l.vjp_parameter(at, slot, &c, Sets::One, length, &mut sums[from]));
            }
        }
        self.names.iter().map(|(name, i)| (name.clone(), sums[*i].clone())).collect()
    }
}
