//! The Jacobian of some points in its cheapest form, layer by layer.

use super::Outputs;
use super::products::uses;
use crate::array::{Array, Precision, Sets};
use crate::graph::trace::Reach;
use crate::graph::{Graph, Network, NetworkError, Selection, Trace};
use crate::operation::Operation;

/// Part of the selected parameters whose gradients share a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Weight (and bias) of a fully connected layer with one position: `delta a^T` (and `delta`), never formed.
    Dense { node: usize, bias: bool },
    /// Any other segment of the selection: gradients in full.
    Rows { part: usize },
}

/// The groups of a selection.
pub(super) fn groups(graph: &Graph, selection: &Selection) -> Vec<Group> {
    let uses = uses(graph);
    let whole = |parameter: usize| {
        uses[parameter] == 1 && selection.part(parameter).is_some_and(|part| part.indices.is_none())
    };
    let mut groups = Vec::new();
    let mut taken = vec![false; graph.parameters().len()];
    for (i, node) in graph.nodes().iter().enumerate() {
        if let Operation::Linear(_) = node.operation
            && graph.shape(node.inputs[0]).len() == 1
            && whole(node.parameters[0])
        {
            let bias = node.parameters.get(1).is_some_and(|&p| whole(p));
            taken[node.parameters[0]] = true;
            if bias {
                taken[node.parameters[1]] = true;
            }
            groups.push(Group::Dense { node: i, bias });
        }
    }
    for (position, part) in selection.parts().iter().enumerate() {
        if !taken[part.parameter] {
            groups.push(Group::Rows { part: position });
        }
    }
    groups
}

/// The numbers of one group.
#[derive(Clone, Debug)]
pub(super) enum Feature<T> {
    /// `a` `[examples, columns]`, `delta` `[rows, outputs]`, and 1 where the bias is in the group, else 0.
    Dense { inputs: Array<T>, sensitivities: Array<T>, bias: T },
    /// `[rows, entries]`.
    Rows(Array<T>),
}

/// The rows `J(x_n)^T v` of some points and outputs, in the form that costs least: for fully connected layers the layer's inputs and the
/// output's sensitivities, for others the gradients of one parameter after another.
///
/// Memory: for each row the widths of the fully connected layers plus the number of all other selected parameters.
#[derive(Clone, Debug)]
pub struct TangentFeatures<T> {
    pub(super) groups: Vec<Group>,
    pub(super) features: Vec<Feature<T>>,
    pub(super) examples: usize,
    pub(super) width: usize,
}

impl<T> TangentFeatures<T> {
    /// Number of rows: examples times outputs asked for.
    pub fn rows(&self) -> usize {
        self.examples * self.width
    }

    /// Rows for each example.
    pub fn width(&self) -> usize {
        self.width
    }
}

impl<T: Precision> TangentFeatures<T> {
    /// The same numbers in another precision.
    pub fn cast<U: Precision>(&self) -> TangentFeatures<U> {
        let feature = |feature: &Feature<T>| match feature {
            Feature::Dense { inputs, sensitivities, bias } => Feature::Dense {
                inputs: inputs.cast(),
                sensitivities: sensitivities.cast(),
                bias: U::from_f64(bias.to_f64()),
            },
            Feature::Rows(rows) => Feature::Rows(rows.cast()),
        };
        let features = self.features.iter().map(feature).collect();
        TangentFeatures { groups: self.groups.clone(), features, examples: self.examples, width: self.width }
    }
}

/// Values that the features of one row take: what the memory of a tangent kernel follows from.
pub fn tangent_feature_size(graph: &Graph, selection: &Selection) -> usize {
    groups(graph, selection)
        .iter()
        .map(|group| match group {
            Group::Dense { node, .. } => {
                let node = &graph.nodes()[*node];
                node.shape[0] + graph.shape(node.inputs[0])[0]
            }
            Group::Rows { part } => selection.parts()[*part].shape.iter().product(),
        })
        .sum()
}

impl<T: Precision> Network<T> {
    /// The features of points `x` for the given outputs.
    ///
    /// # Errors
    /// When the inputs or outputs do not fit or the network is in training mode.
    pub fn tangent_features(
        &self,
        x: &Array<T>,
        selection: &Selection,
        outputs: &Outputs<T>,
    ) -> Result<TangentFeatures<T>, NetworkError> {
        self.require_evaluation("tangent kernels")?;
        let cotangents = outputs.cotangents(x.rows(), self.graph().output_shape())?;
        Ok(self.trace(x.clone())?.features(selection, cotangents))
    }
}

impl<T: Precision> Trace<'_, T> {
    pub(super) fn features(&self, selection: &Selection, cotangents: Array<T>) -> TangentFeatures<T> {
        let graph = self.network().graph();
        let (rows, examples) = (cotangents.rows(), self.rows());
        let groups = groups(graph, selection);
        let mut features: Vec<Option<Feature<T>>> = groups.iter().map(|_| None).collect();
        self.pull(cotangents, &Reach::new(graph, Some(selection), false), |node, cotangent| {
            for (group, place) in groups.iter().zip(&mut features) {
                match group {
                    Group::Dense { node: dense, bias } if *dense == node => {
                        let inputs = self.at(node, |at| at.inputs[0].clone());
                        let bias = if *bias { T::ONE } else { T::ZERO };
                        *place = Some(Feature::Dense { inputs, sensitivities: cotangent.clone(), bias });
                    }
                    Group::Rows { part } => {
                        let part = &selection.parts()[*part];
                        for (slot, _) in graph.nodes()[node]
                            .parameters
                            .iter()
                            .enumerate()
                            .filter(|&(_, &p)| p == part.parameter)
                        {
                            let length = part.shape.iter().product();
                            let layer = self.network().layer(node);
                            let mut whole = if layer.overwrites_rows(slot) {
                                Array::any(vec![rows, length])
                            } else {
                                Array::zeros(vec![rows, length])
                            };
                            self.at(node, |at| {
                                layer.vjp_parameter(
                                    at,
                                    slot,
                                    cotangent,
                                    Sets::Rows,
                                    length,
                                    whole.values_mut(),
                                );
                            });
                            let own = match &part.indices {
                                None => whole,
                                Some(indices) => {
                                    let values = (0..rows).flat_map(|r| indices.iter().map(move |&i| (r, i)));
                                    let values = values.map(|(r, i)| whole.row(r)[i]).collect();
                                    Array::new(vec![rows, indices.len()], values)
                                }
                            };
                            match place {
                                Some(Feature::Rows(sum)) => {
                                    crate::array::add_to(sum.values_mut(), own.values())
                                }
                                _ => *place = Some(Feature::Rows(own)),
                            }
                        }
                    }
                    Group::Dense { .. } => {}
                }
            }
        });
        let (kept_groups, kept) = groups.into_iter().zip(features).filter_map(|(g, f)| Some((g, f?))).unzip();
        TangentFeatures { groups: kept_groups, features: kept, examples, width: rows / examples.max(1) }
    }
}
