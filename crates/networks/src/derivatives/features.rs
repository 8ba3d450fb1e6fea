//! The Jacobian of some points in its cheapest form, layer by layer.

use super::Outputs;
use super::products::uses;
use super::shared::SharedUses;
use crate::PerNetworkPrecision;
use crate::array::{Array, Precision, Sets};
use crate::graph::trace::Reach;
use crate::graph::{Graph, Network, NetworkError, SelectedParameter, Selection, Trace};
use crate::operation::Operation;
use posterior_linalg::compiled_here;
use posterior_linalg::tiles::pieces;

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
    sizes(graph, selection).iter().sum()
}

/// Those of them that belong to fully connected layers, of which no gradients are formed.
pub fn connected_feature_size(graph: &Graph, selection: &Selection) -> usize {
    sizes(graph, selection)[0]
}

/// Of fully connected layers, and of everything else.
fn sizes(graph: &Graph, selection: &Selection) -> [usize; 2] {
    let mut out = [0, 0];
    for group in groups(graph, selection) {
        match group {
            Group::Dense { node, .. } => {
                let node = &graph.nodes()[node];
                out[0] += node.shape[0] + graph.shape(node.inputs[0])[0];
            }
            Group::Rows { part } => out[1] += selection.parts()[part].shape.iter().product::<usize>(),
        }
    }
    out
}

impl<T: Precision> Network<T> {
    /// The features of points `x` for the given outputs. Activations are kept of as many points at one time as fit.
    ///
    /// # Errors
    /// When the inputs or outputs do not fit or the network is in training mode.
    pub fn tangent_features(
        &self,
        x: &Array<T>,
        selection: &Selection,
        outputs: &Outputs<T>,
    ) -> Result<TangentFeatures<T>, NetworkError> {
        let rows = outputs.cotangents(x.rows(), self.graph().output_shape())?.rows();
        self.features_by_pieces(x, selection, outputs, self.featured_at_once(rows / x.rows().max(1)))
    }

    /// Points with `width` rows each that pass the network together on the way to their features.
    pub fn featured_at_once(&self, width: usize) -> usize {
        (self.examples_at_once() / (1 + width)).max(1)
    }

    pub(super) fn features_by_pieces(
        &self,
        x: &Array<T>,
        selection: &Selection,
        outputs: &Outputs<T>,
        each: usize,
    ) -> Result<TangentFeatures<T>, NetworkError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a] Network::features_here, (
            network: &'a Network<T> = self,
            x: &'a Array<T> = x,
            selection: &'a Selection = selection,
            outputs: &'a Outputs<T> = outputs,
            each: usize = each,
        ) -> Result<TangentFeatures<T>, NetworkError>)
    }

    fn features_here(
        &self,
        x: &Array<T>,
        selection: &Selection,
        outputs: &Outputs<T>,
        each: usize,
    ) -> Result<TangentFeatures<T>, NetworkError> {
        self.require_evaluation("tangent kernels")?;
        let shape = self.graph().output_shape();
        if x.rows() <= each {
            let cotangents = outputs.cotangents(x.rows(), shape)?;
            return Ok(self.trace(x.clone())?.features(selection, cotangents));
        }
        let mut whole: Option<TangentFeatures<T>> = None;
        for points in pieces(x.rows(), each) {
            let cotangents = outputs.of_examples(points.clone(), x.rows()).cotangents(points.len(), shape)?;
            let piece = self.trace(x.slice_rows(points.clone()))?.features(selection, cotangents);
            whole.get_or_insert_with(|| piece.room_for(x.rows())).place(points.start, &piece);
        }
        whole.ok_or_else(|| NetworkError::Shape { what: "points", expected: vec![1], found: vec![0] })
    }
}

impl<T: Precision> TangentFeatures<T> {
    /// As many points with features of the same form, whose numbers are still to be placed.
    fn room_for(&self, examples: usize) -> Self {
        let room = |x: &Array<T>, rows: usize| Array::any(vec![rows, x.row_len()]);
        let rows = examples * self.width;
        let feature = |feature: &Feature<T>| match feature {
            Feature::Dense { inputs, sensitivities, bias } => Feature::Dense {
                inputs: room(inputs, examples),
                sensitivities: room(sensitivities, rows),
                bias: *bias,
            },
            Feature::Rows(own) => Feature::Rows(room(own, rows)),
        };
        let features = self.features.iter().map(feature).collect();
        Self { groups: self.groups.clone(), features, examples, width: self.width }
    }

    /// Writes the numbers of some points, the first of which is `first` here.
    fn place(&mut self, first: usize, piece: &Self) {
        let width = self.width;
        let copy = |to: &mut Array<T>, from: &Array<T>, row: usize| {
            let start = row * from.row_len();
            to.values_mut()[start..start + from.values().len()].copy_from_slice(from.values());
        };
        for (to, from) in self.features.iter_mut().zip(&piece.features) {
            match (to, from) {
                (
                    Feature::Dense { inputs, sensitivities, .. },
                    Feature::Dense { inputs: own, sensitivities: theirs, .. },
                ) => {
                    copy(inputs, own, first);
                    copy(sensitivities, theirs, first * width);
                }
                (Feature::Rows(rows), Feature::Rows(own)) => copy(rows, own, first * width),
                _ => unreachable!("pieces of one set have features of one form"),
            }
        }
    }
}

impl<T: Precision> Trace<'_, T> {
    pub(super) fn features(&self, selection: &Selection, cotangents: Array<T>) -> TangentFeatures<T> {
        let graph = self.network().graph();
        let (rows, examples) = (cotangents.rows(), self.rows());
        let groups = groups(graph, selection);
        let mut features: Vec<Option<Feature<T>>> = groups.iter().map(|_| None).collect();
        let mut shared = SharedUses::of(graph);
        let selected = |part: &SelectedParameter, whole: Array<T>| match &part.indices {
            None => whole,
            Some(indices) => {
                let values = (0..rows).flat_map(|r| indices.iter().map(move |&i| (r, i)));
                let values = values.map(|(r, i)| whole.row(r)[i]).collect();
                Array::new(vec![rows, indices.len()], values)
            }
        };
        self.pull(cotangents, &Reach::new(graph, Some(selection), false), &mut |node, cotangent| {
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
                            let place_of = (node, part.parameter, slot);
                            if self.at(node, |at| shared.keep(place_of, layer, at, cotangent)) {
                                continue;
                            }
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
                            let own = selected(part, whole);
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
        for joined in shared.joined() {
            let of = |g: &Group| matches!(g, Group::Rows { part } if selection.parts()[*part].parameter == joined.parameter);
            if let (Some(place), Some(part)) = (groups.iter().position(of), selection.part(joined.parameter))
            {
                features[place] = Some(Feature::Rows(selected(part, joined.gradients())));
            }
        }
        let (kept_groups, kept) = groups.into_iter().zip(features).filter_map(|(g, f)| Some((g, f?))).unzip();
        TangentFeatures { groups: kept_groups, features: kept, examples, width: rows / examples.max(1) }
    }
}
