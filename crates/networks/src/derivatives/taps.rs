//! What passes through a layer: the inputs and output sensitivities that Kronecker factors are made of, and squared norms.

use super::products::uses;
use super::shared::{Joined, SharedUses};
use crate::PerNetworkPrecision;
use crate::array::{Array, Precision, Sets, row_dots};
use crate::graph::trace::Reach;
use crate::graph::{Network, NetworkError, Selection, Trace};
use crate::operation::{At, Factors, Layer};
use posterior_linalg::compiled_here;
use posterior_linalg::tiles::pieces;
use std::borrow::Cow;

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

/// One use of one parameter, on the way back, or all uses of a weight that several nodes share: what its gradients by example are made of, without a copy where the layer
/// keeps it.
pub struct TapAt<'a, T: Precision>(Source<'a, T>);

enum Source<'a, T: Precision> {
    Use { layer: &'a dyn Layer<T>, at: &'a At<'a, T>, slot: usize, cotangent: &'a Array<T>, length: usize },
    Joined(&'a Joined<T>),
}

/// The factors of a weight's gradients, as in [`Tap::Outer`], borrowed where possible.
pub struct OuterTap<'a, T: Precision> {
    /// `[examples, positions, columns]`, whatever the array's own shape says.
    pub inputs: Cow<'a, Array<T>>,
    /// `[examples * width, positions, outputs]`, likewise.
    pub sensitivities: Cow<'a, Array<T>>,
    /// Positions.
    pub positions: usize,
    /// Whether the weight is stored the other way round.
    pub transposed: bool,
}

impl<T: Precision> OuterTap<'_, T> {
    /// Length of one position's input.
    pub fn columns(&self) -> usize {
        self.inputs.len() / (self.inputs.rows() * self.positions).max(1)
    }

    /// Length of one position's sensitivity.
    pub fn outputs(&self) -> usize {
        self.sensitivities.len() / (self.sensitivities.rows() * self.positions).max(1)
    }
}

impl<'a, T: Precision> TapAt<'a, T> {
    /// The factors, if the parameter is a weight.
    #[inline(never)]
    pub fn outer(&self) -> Option<OuterTap<'a, T>> {
        match self.0 {
            Source::Use { layer, at, slot, cotangent, .. } => {
                let Factors::Outer { inputs, sensitivities, positions, transposed } =
                    layer.factors(at, slot, cotangent)?;
                Some(OuterTap { inputs, sensitivities, positions, transposed })
            }
            Source::Joined(joined) => Some(OuterTap {
                inputs: Cow::Borrowed(&joined.inputs),
                sensitivities: Cow::Borrowed(&joined.sensitivities),
                positions: joined.positions,
                transposed: joined.transposed,
            }),
        }
    }

    /// The gradients themselves, `[examples * width, entries]`.
    #[inline(never)]
    pub fn gradients(&self) -> Array<T> {
        match self.0 {
            Source::Use { layer, at, slot, cotangent, length } => {
                let mut rows = Array::zeros(vec![cotangent.rows(), length]);
                layer.vjp_parameter(at, slot, cotangent, Sets::Rows, length, rows.values_mut());
                rows
            }
            Source::Joined(joined) => joined.gradients(),
        }
    }
}

/// What is called with node, parameter and tap.
pub(super) type VisitTap<'a, T> = dyn FnMut(usize, usize, &TapAt<'_, T>) + 'a;

impl<T: Precision> Trace<'_, T> {
    /// Calls `visit(node, parameter, tap)` for every use of every selected parameter, last node first, while its sensitivities are at hand; after them once for every weight that several
    /// nodes share, with the first of them and all uses as positions of one layer.
    ///
    /// # Errors
    /// As [`Self::taps`].
    #[inline(never)]
    pub fn visit_taps(
        &self,
        selection: &Selection,
        cotangents: &Array<T>,
        visit: &mut VisitTap<'_, T>,
    ) -> Result<(), NetworkError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a] Trace::visit_here, (
            trace: &'a Trace<'b, T> = self,
            selection: &'a Selection = selection,
            cotangents: &'a Array<T> = cotangents,
            visit: &'a mut VisitTap<'a, T> = visit,
        ) -> Result<(), NetworkError>)
    }

    fn visit_here(
        &self,
        selection: &Selection,
        cotangents: &Array<T>,
        visit: &mut VisitTap<'_, T>,
    ) -> Result<(), NetworkError> {
        self.network().require_evaluation("layer taps")?;
        self.width("cotangents", cotangents, &self.output().shape()[1..])?;
        let graph = self.network().graph();
        let mut shared = SharedUses::of(graph);
        self.pull(cotangents.clone(), &Reach::new(graph, Some(selection), false), &mut |node, cotangent| {
            let layer = self.network().layer(node);
            for (slot, &parameter) in graph.nodes()[node].parameters.iter().enumerate().rev() {
                if selection.part(parameter).is_some() {
                    let length = graph.parameters()[parameter].len();
                    self.at(node, |at| {
                        if !shared.keep((node, parameter, slot), layer, at, cotangent) {
                            let tap = Source::Use { layer, at, slot, cotangent, length };
                            visit(node, parameter, &TapAt(tap));
                        }
                    });
                }
            }
        });
        for joined in shared.joined() {
            visit(joined.node, joined.parameter, &TapAt(Source::Joined(&joined)));
        }
        Ok(())
    }

    /// The taps of every use of every selected parameter, as (node, parameter, tap), in the order of [`Self::visit_taps`] turned round.
    ///
    /// # Errors
    /// When the cotangents `[examples * width, outputs...]` do not fit or the network is in training mode. Masks inside a parameter are not applied.
    pub fn taps(
        &self,
        selection: &Selection,
        cotangents: &Array<T>,
    ) -> Result<Vec<(usize, usize, Tap<T>)>, NetworkError> {
        let mut taps = Vec::new();
        self.visit_taps(selection, cotangents, &mut |node, parameter, tap| {
            let tap = match tap.outer() {
                Some(outer) => {
                    let (columns, outputs, positions) = (outer.columns(), outer.outputs(), outer.positions);
                    let (examples, rows) = (outer.inputs.rows(), outer.sensitivities.rows());
                    Tap::Outer {
                        inputs: outer.inputs.into_owned().reshaped(vec![examples, positions, columns]),
                        sensitivities: outer
                            .sensitivities
                            .into_owned()
                            .reshaped(vec![rows, positions, outputs]),
                        transposed: outer.transposed,
                    }
                }
                None => Tap::Vector(tap.gradients()),
            };
            taps.push((node, parameter, tap));
        })?;
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
            let mut shared = SharedUses::of(graph);
            trace.pull(cotangents, &reach, &mut |node, cotangent| {
                for (slot, &parameter) in graph.nodes()[node].parameters.iter().enumerate() {
                    let Some(position) = selection.parts().iter().position(|p| p.parameter == parameter)
                    else {
                        continue;
                    };
                    let (layer, part) = (self.layer(node), &selection.parts()[position]);
                    if trace.at(node, |at| shared.keep((node, parameter, slot), layer, at, cotangent)) {
                        continue;
                    }
                    let outer = uses[parameter] == 1
                        && part.indices.is_none()
                        && trace.at(node, |at| {
                            let Some(Factors::Outer {
                                inputs,
                                sensitivities,
                                positions: 1,
                                transposed: false,
                            }) = layer.factors(at, slot, cotangent)
                            else {
                                return false;
                            };
                            let (a, d) =
                                (row_dots(&inputs, &inputs), row_dots(&sensitivities, &sensitivities));
                            let place = &mut sums.values_mut()[position * outputs..(position + 1) * outputs];
                            d.iter().enumerate().for_each(|(r, &d)| place[r % outputs] += d * a[r / outputs]);
                            true
                        });
                    if outer {
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
            for joined in shared.joined() {
                if let Some(position) = selection.parts().iter().position(|p| p.parameter == joined.parameter)
                {
                    rest[position] = Some(joined.gradients());
                }
            }
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
