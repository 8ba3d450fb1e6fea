//! What passes through a layer: the inputs and output sensitivities that Kronecker factors are made of, and squared norms.

use super::products::uses;
use crate::array::{Array, Precision, Sets, row_dots};
use crate::graph::trace::Reach;
use crate::graph::{Network, NetworkError, Selection, Trace};
use crate::operation::Factors;
use posterior_linalg::tiles::pieces;

/// One parameter's gradients by example, in the form its layer makes them.
#[derive(Clone, Debug, PartialEq)]
pub enum Tap<T> {
    /// A weight: the gradient of row `r` is `sum_t sensitivities[r, t] inputs[r / width, t]^T`. For convolutions positions `t` are output positions and
    /// inputs are patches (the expansion of Grosse and Martens, 2016).
    Outer {
        /// `[examples, positions, columns]`.
        inputs: Array<T>,
        /// `[examples * width, positions, outputs]`.
        sensitivities: Array<T>,
        /// Whether the weight is stored the other way round, `[columns, outputs]` (transposed convolutions): its gradient is then the transpose.
        transposed: bool,
    },
    /// Any other parameter: the gradients, `[examples * width, entries]`.
    Vector(Array<T>),
}

impl<T: Precision> Trace<'_, T> {
    /// The taps of every use of every selected parameter, as (node, parameter, tap), first node first.
    ///
    /// # Errors
    /// When the cotangents `[examples * width, outputs...]` do not fit or the network is in training mode. Masks inside a parameter are not applied.
    pub fn taps(
        &self,
        selection: &Selection,
        cotangents: &Array<T>,
    ) -> Result<Vec<(usize, usize, Tap<T>)>, NetworkError> {
        self.network().require_evaluation("layer taps")?;
        self.width("cotangents", cotangents, &self.output().shape()[1..])?;
        let graph = self.network().graph();
        let mut taps = Vec::new();
        self.pull(cotangents.clone(), &Reach::new(graph, Some(selection), false), |node, cotangent| {
            let layer = self.network().layer(node);
            for (slot, &parameter) in graph.nodes()[node].parameters.iter().enumerate().rev() {
                if selection.part(parameter).is_none() {
                    continue;
                }
                let tap = match self.at(node, |at| layer.factors(at, slot, cotangent)) {
                    Some(Factors::Outer { inputs, sensitivities, positions, transposed }) => {
                        let (examples, rows) = (inputs.rows(), sensitivities.rows());
                        let columns = inputs.len() / (examples * positions).max(1);
                        let outputs = sensitivities.len() / (rows * positions).max(1);
                        Tap::Outer {
                            inputs: inputs.reshaped(vec![examples, positions, columns]),
                            sensitivities: sensitivities.reshaped(vec![rows, positions, outputs]),
                            transposed,
                        }
                    }
                    None => {
                        let length = graph.parameters()[parameter].len();
                        let mut rows = Array::zeros(vec![cotangent.rows(), length]);
                        self.at(node, |at| {
                            layer.vjp_parameter(at, slot, cotangent, Sets::Rows, length, rows.values_mut());
                        });
                        Tap::Vector(rows)
                    }
                };
                taps.push((node, parameter, tap));
            }
        });
        taps.reverse();
        Ok(taps)
    }
}

impl<T: Precision> Network<T> {
    /// `sum_n |d g_o(x_n) / d parameter|^2` for each segment of the selection and each output: `[segments, outputs]`.
    ///
    /// # Errors
    /// When the inputs do not fit or the network is in training mode.
    pub fn squared_norms(&self, x: &Array<T>, selection: &Selection) -> Result<Array<T>, NetworkError> {
        self.require_evaluation("squared gradient norms")?;
        let graph = self.graph();
        let (outputs, uses) = (graph.output_shape().iter().product::<usize>(), uses(graph));
        let mut sums = Array::zeros(vec![selection.parts().len(), outputs]);
        let reach = Reach::new(graph, Some(selection), false);
        for range in pieces(x.rows(), self.examples_for(outputs, selection)) {
            let trace = self.trace(x.slice_rows(range.clone()))?;
            let cotangents = super::Outputs::All.cotangents(range.len(), graph.output_shape())?;
            let mut rest: Vec<Option<Array<T>>> = vec![None; selection.parts().len()];
            trace.pull(cotangents, &reach, |node, cotangent| {
                for (slot, &parameter) in graph.nodes()[node].parameters.iter().enumerate() {
                    let Some(position) = selection.parts().iter().position(|p| p.parameter == parameter)
                    else {
                        continue;
                    };
                    let (layer, part) = (self.layer(node), &selection.parts()[position]);
                    if uses[parameter] == 1
                        && part.indices.is_none()
                        && let Some(Factors::Outer { inputs, sensitivities, positions: 1, transposed: false }) =
                            trace.at(node, |at| layer.factors(at, slot, cotangent))
                    {
                        let (a, d) = (row_dots(&inputs, &inputs), row_dots(&sensitivities, &sensitivities));
                        let place = &mut sums.values_mut()[position * outputs..(position + 1) * outputs];
                        d.iter().enumerate().for_each(|(r, &d)| place[r % outputs] += d * a[r / outputs]);
                        continue;
                    }
                    let length = graph.parameters()[parameter].len();
                    let mut rows = Array::zeros(vec![cotangent.rows(), length]);
                    trace.at(node, |at| {
                        layer.vjp_parameter(at, slot, cotangent, Sets::Rows, length, rows.values_mut());
                    });
                    crate::graph::trace::accumulate(&mut rest[position], rows);
                }
            });
            for (position, rows) in rest.into_iter().enumerate() {
                let (Some(rows), part) = (rows, &selection.parts()[position]) else { continue };
                let place = &mut sums.values_mut()[position * outputs..(position + 1) * outputs];
                for r in 0..rows.rows() {
                    let row = rows.row(r);
                    let mut sum = T::ZERO;
                    match &part.indices {
                        None => row.iter().for_each(|&v| sum += v * v),
                        Some(indices) => indices.iter().for_each(|&i| sum += row[i] * row[i]),
                    }
                    place[r % outputs] += sum;
                }
            }
        }
        Ok(sums)
    }
}
