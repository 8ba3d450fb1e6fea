//! The gradient of a function of tangent kernel blocks in the points.
//!
//! Let `K = J(x) J(z)^T`, with rows `v^T J`, and let `A` be the gradient of a loss in `K`. With `G_r = sum_s A[s, r] J(x)^T v_s`, the direction that row
//! `r` of `z` meets, the loss changes with `z` as `sum_r v_r^T J(z) G_r` does for fixed `G`. So the gradient is that of a Jacobian-vector
//! product whose tangent differs by row: tangents go forward, cotangents come back, and with them the adjoint of the values, which collects
//! second derivatives on its way. For a perceptron these are the three recursions of the tangent-kernel gradient; here any operation takes part.

use super::Outputs;
use super::features::{Feature, Group, TangentFeatures};
use super::products::spread_rows;
use super::tangent_kernel::turn;
use crate::array::{Array, Matrix, Precision, Sets, batch_shape, fold_rows, product};
use crate::graph::trace::{Reach, accumulate};
use crate::graph::{Network, NetworkError, Selection, Trace};
use posterior_linalg::tiles::pieces;
use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

/// Arrays as large as the kept activations that are alive at one time on the way to a gradient: activations, tangents, and about as many of what moves between layers.
pub const ALIVE: usize = 4;

/// What a loss says about the tangent kernels between points `z` and others, summed before one pass back to `z`: the other points come set by set, each is constant, and what is kept of it
/// are its numbers at fully connected layers. Of everything else only the directions `G_r` remain, one number for each row of `z` and parameter.
#[derive(Clone, Debug)]
pub struct KernelAdjoints<'a, T: Precision> {
    selection: &'a Selection,
    rows: usize,
    /// The groups of the features, and the directions of those whose gradients are held in full: `[rows of z, entries]`.
    groups: Vec<(Group, Option<Array<T>>)>,
    sets: Vec<Set<'a, T>>,
}

/// Constant points at fully connected layers (None elsewhere), and the transpose of the adjoint, `[rows of z, rows of x]`.
#[derive(Clone, Debug)]
struct Set<'a, T: Precision> {
    layers: Vec<Option<Connected<'a, T>>>,
    adjoint: Vec<T>,
    examples: usize,
    width: usize,
}

/// Inputs and sensitivities of a fully connected layer, and 1 where its bias takes part.
#[derive(Clone, Debug)]
struct Connected<'a, T: Precision> {
    inputs: Cow<'a, Array<T>>,
    sensitivities: Cow<'a, Array<T>>,
    bias: T,
}

impl<'a, T: Precision> KernelAdjoints<'a, T> {
    /// For so many rows of `z`.
    pub fn new(selection: &'a Selection, rows: usize) -> Self {
        Self { selection, rows, groups: Vec::new(), sets: Vec::new() }
    }

    /// Adds a set of points x by its features, and the gradient of the loss in the kernel between it and `z`, `[rows of x, rows of z]`. For the kernel of `z` with itself give its own
    /// features and `adjoint + adjoint^T`.
    ///
    /// Cost: a product of the size of the adjoint times the number of the parameters that are not of fully connected layers. Memory: rows of `z` times these parameters, and the set's own
    /// numbers at fully connected layers.
    ///
    /// # Errors
    /// When the adjoint has another shape, or the features are of other parameters than those of sets before.
    pub fn add(&mut self, x: Cow<'a, TangentFeatures<T>>, adjoint: &Array<T>) -> Result<(), NetworkError> {
        let (rows, examples, width) = (x.rows(), x.examples, x.width);
        if adjoint.shape() != [rows, self.rows] {
            let (expected, found) = (vec![rows, self.rows], adjoint.shape().to_vec());
            return Err(NetworkError::Shape { what: "the adjoint of the tangent kernel", expected, found });
        }
        if self.groups.is_empty() {
            let length = |group: &Group| match group {
                Group::Rows { part } => Some(self.selection.parts()[*part].length),
                Group::Dense { .. } => None,
            };
            let begun = |group: &Group| {
                (group.clone(), length(group).map(|length| Array::zeros(vec![self.rows, length])))
            };
            self.groups = x.groups.iter().map(begun).collect();
        } else if !x.groups.iter().eq(self.groups.iter().map(|g| &g.0)) {
            let (expected, found) = (vec![self.groups.len()], vec![x.groups.len()]);
            return Err(NetworkError::Shape { what: "the features of a tangent kernel", expected, found });
        }
        let turned = turn(adjoint, 0..rows);
        let mut layers = Vec::new();
        let mut keep = |feature: Cow<'a, Feature<T>>, direction: &mut Option<Array<T>>| {
            if let (Feature::Rows(gradients), Some(sum)) = (&*feature, direction) {
                // G = A^T J(x), one row for each row of z.
                let gradients = Matrix::new(gradients.values(), rows, gradients.row_len());
                product(sum.values_mut(), true, Matrix::new(&turned, self.rows, rows), gradients);
            }
            layers.push(connected(feature));
        };
        match x {
            Cow::Borrowed(x) => {
                for (feature, (_, direction)) in x.features.iter().zip(&mut self.groups) {
                    keep(Cow::Borrowed(feature), direction);
                }
            }
            Cow::Owned(x) => {
                for (feature, (_, direction)) in x.features.into_iter().zip(&mut self.groups) {
                    keep(Cow::Owned(feature), direction);
                }
            }
        }
        if layers.iter().any(Option::is_some) {
            self.sets.push(Set { layers, adjoint: turned, examples, width });
        }
        Ok(())
    }
}

/// The numbers of a fully connected layer; None for what is held in full.
fn connected<T: Precision>(feature: Cow<'_, Feature<T>>) -> Option<Connected<'_, T>> {
    match feature {
        Cow::Borrowed(Feature::Dense { inputs, sensitivities, bias }) => {
            let (inputs, sensitivities) = (Cow::Borrowed(inputs), Cow::Borrowed(sensitivities));
            Some(Connected { inputs, sensitivities, bias: *bias })
        }
        Cow::Owned(Feature::Dense { inputs, sensitivities, bias }) => {
            Some(Connected { inputs: Cow::Owned(inputs), sensitivities: Cow::Owned(sensitivities), bias })
        }
        _ => None,
    }
}

impl<T: Precision> Network<T> {
    /// The gradient in the points `z`, `[examples of z, input...]`, of a loss in the kernels `K = J(x) J(z)^T` between them and the sets x that `adjoints` has seen.
    ///
    /// Cost: about six forward passes for each row of `z`, whatever the number of sets, and products of the size of the kernels times the layer widths. Memory: activations of as many points
    /// as fit, whatever their number.
    ///
    /// # Errors
    /// When shapes do not fit, the features belong to another selection, or the network is in training mode.
    pub fn tangent_kernel_pullback(
        &self,
        z: (&Array<T>, &Outputs<T>),
        adjoints: &KernelAdjoints<'_, T>,
    ) -> Result<Array<T>, NetworkError> {
        let width = adjoints.rows / z.0.rows().max(1);
        self.pullback_by_pieces(z, adjoints, self.pulled_back_at_once(width))
    }

    /// Points with `width` rows each whose gradients are found at one time.
    pub fn pulled_back_at_once(&self, width: usize) -> usize {
        (self.examples_at_once() / (ALIVE * width.max(1))).max(1)
    }

    pub(super) fn pullback_by_pieces(
        &self,
        (z, of_z): (&Array<T>, &Outputs<T>),
        adjoints: &KernelAdjoints<'_, T>,
        each: usize,
    ) -> Result<Array<T>, NetworkError> {
        self.require_evaluation("gradients of tangent kernels")?;
        let mut gradients = Vec::new();
        let mut found = 0;
        for points in pieces(z.rows(), each) {
            let outputs = of_z.of_examples(points.clone(), z.rows());
            let cotangents = outputs.cotangents(points.len(), self.graph().output_shape())?;
            let rows = found..found + cotangents.rows();
            found = rows.end;
            if found > adjoints.rows {
                break;
            }
            let trace = self.trace(z.slice_rows(points))?;
            gradients.extend(Pullback { trace: &trace, adjoints, rows }.run(cotangents).into_values());
        }
        if found != adjoints.rows {
            let (expected, found) = (vec![found], vec![adjoints.rows]);
            return Err(NetworkError::Shape { what: "the adjoint of the tangent kernel", expected, found });
        }
        Ok(Array::new(batch_shape(z.rows(), self.graph().input_shape()), gradients))
    }
}

/// What one group of parameters does to the rows of `z`.
enum Direction<T> {
    /// Fully connected: `A^T` weighted by products of inputs or of sensitivities, when those are known.
    Dense { group: usize },
    /// The directions themselves, `[rows of z, parameter shape]`, the same for all uses of a parameter.
    Given(Rc<Array<T>>),
}

/// Some rows of `z` on their way back.
struct Pullback<'a, 'n, T: Precision> {
    trace: &'a Trace<'n, T>,
    adjoints: &'a KernelAdjoints<'a, T>,
    /// Which of all.
    rows: Range<usize>,
}

impl<T: Precision> Pullback<'_, '_, T> {
    fn width(&self) -> usize {
        self.rows.len() / self.trace.rows().max(1)
    }

    /// A set's numbers at a fully connected layer, and the part of the adjoint that belongs to these rows.
    fn sets(&self, group: usize) -> impl Iterator<Item = (&Set<'_, T>, &Connected<'_, T>, &[T])> {
        self.adjoints.sets.iter().filter_map(move |set| {
            let others = set.examples * set.width;
            let adjoint = &set.adjoint[self.rows.start * others..self.rows.end * others];
            set.layers[group].as_ref().map(|layer| (set, layer, adjoint))
        })
    }

    /// The direction of each (node, slot).
    fn directions(&self) -> Vec<Vec<Option<Direction<T>>>> {
        let (graph, selection) = (self.trace.network().graph(), self.adjoints.selection);
        let mut all: Vec<Vec<Option<Direction<T>>>> =
            graph.nodes().iter().map(|node| node.parameters.iter().map(|_| None).collect()).collect();
        for (position, (group, direction)) in self.adjoints.groups.iter().enumerate() {
            match (group, direction) {
                (Group::Dense { node, .. }, _) => {
                    all[*node][0] = Some(Direction::Dense { group: position });
                }
                (Group::Rows { part }, Some(direction)) => {
                    let part = &selection.parts()[*part];
                    let rows = self.rows.clone().map(|r| direction.row(r));
                    let rows = Rc::new(spread_rows(part, graph, rows));
                    for (node, slots) in graph.nodes().iter().zip(&mut all) {
                        for (&parameter, slot) in node.parameters.iter().zip(slots) {
                            if parameter == part.parameter {
                                *slot = Some(Direction::Given(rows.clone()));
                            }
                        }
                    }
                }
                (Group::Rows { .. }, None) => {}
            }
        }
        all
    }

    /// `A^T` with entry `[r, s]` multiplied by `factors[r / width of z, s / width of x] + constant`.
    fn weighted(&self, set: &Set<'_, T>, adjoint: &[T], factors: &[T], constant: T) -> Vec<T> {
        let mut out = adjoint.to_vec();
        for (r, out) in out.chunks_exact_mut((set.examples * set.width).max(1)).enumerate() {
            let factors = &factors[r / self.width() * set.examples..][..set.examples];
            for (out, &factor) in out.chunks_exact_mut(set.width).zip(factors) {
                out.iter_mut().for_each(|o| *o *= factor + constant);
            }
        }
        out
    }

    /// What a fully connected layer adds to the tangent of its output: `sum_s A[s, r] (a_s . a_r + bias) delta_s`.
    fn dense_tangent(&self, node: usize, group: usize) -> Array<T> {
        let own = self.trace.at(node, |at| at.inputs[0].clone());
        let own = Matrix::new(own.values(), own.rows(), own.row_len());
        let rows = self.rows.len();
        let mut out = Array::zeros(vec![rows, self.trace.network().graph().nodes()[node].shape[0]]);
        for (set, Connected { inputs, sensitivities, bias }, adjoint) in self.sets(group) {
            let mut along = vec![T::ZERO; self.trace.rows() * inputs.rows()];
            let others = Matrix::new(inputs.values(), inputs.rows(), inputs.row_len());
            product(&mut along, false, own, others.transposed());
            let weights = self.weighted(set, adjoint, &along, *bias);
            let weights = Matrix::new(&weights, rows, sensitivities.rows());
            let sensitivities =
                Matrix::new(sensitivities.values(), sensitivities.rows(), sensitivities.row_len());
            product(out.values_mut(), true, weights, sensitivities);
        }
        out
    }

    /// What it adds to the adjoint of its input: `sum_s A[s, r] (delta_s . delta_r) a_s`.
    fn dense_adjoint(&self, columns: usize, group: usize, cotangent: &Array<T>) -> Array<T> {
        let rows = self.rows.len();
        let mut out = Array::zeros(vec![rows, columns]);
        for (set, Connected { inputs, sensitivities, .. }, adjoint) in self.sets(group) {
            let (outputs, others) = (sensitivities.row_len(), sensitivities.rows());
            let mut weights = vec![T::ZERO; rows * others];
            let sensitivities = Matrix::new(sensitivities.values(), others, outputs).transposed();
            product(&mut weights, false, Matrix::new(cotangent.values(), rows, outputs), sensitivities);
            weights.iter_mut().zip(adjoint).for_each(|(w, a)| *w *= *a);
            let folded: Vec<T> = match set.width {
                1 => weights,
                width => weights.chunks_exact(width).map(|rows| rows.iter().copied().sum()).collect(),
            };
            let inputs = Matrix::new(inputs.values(), set.examples, columns);
            product(out.values_mut(), true, Matrix::new(&folded, rows, set.examples), inputs);
        }
        out
    }

    fn run(&self, cotangents: Array<T>) -> Array<T> {
        let network = self.trace.network();
        let graph = network.graph();
        let directions = self.directions();
        let tangents = self.trace.push(None, true, &mut |node| {
            let mut sum = None;
            for (slot, direction) in directions[node].iter().enumerate() {
                let term = match direction {
                    None => continue,
                    Some(Direction::Dense { group }) => self.dense_tangent(node, *group),
                    Some(Direction::Given(rows)) => self.trace.at(node, |at| {
                        network.layer(node).jvp_parameter(at, slot, rows, Sets::Rows, self.rows.len())
                    }),
                };
                accumulate(&mut sum, term);
            }
            sum
        });
        let reach = Reach::new(graph, Some(self.adjoints.selection), true);
        let mut sensitivities: Vec<Option<Array<T>>> = vec![None; graph.nodes().len() + 1];
        let mut adjoints: Vec<Option<Array<T>>> = vec![None; graph.nodes().len() + 1];
        sensitivities[graph.output().0] = Some(cotangents);
        for (i, node) in graph.nodes().iter().enumerate().rev() {
            let Some(sensitivity) = sensitivities[i + 1].take().filter(|_| reach.contains(i + 1)) else {
                continue;
            };
            let adjoint = adjoints[i + 1].take();
            let layer = network.layer(i);
            let input_tangents: Vec<Option<Array<T>>> =
                node.inputs.iter().map(|v| tangents[v.0].clone()).collect();
            for (position, input) in node.inputs.iter().enumerate().filter(|(_, v)| reach.contains(v.0)) {
                self.trace.at(i, |at| {
                    if let Some(adjoint) = &adjoint {
                        layer.add_vjp_input(at, position, adjoint, &mut adjoints[input.0]);
                    }
                    let mut add = |term: Array<T>| accumulate(&mut adjoints[input.0], term);
                    if input_tangents.iter().any(Option::is_some)
                        && let Some(term) = layer.second_input(at, position, &input_tangents, &sensitivity)
                    {
                        add(term);
                    }
                    for (slot, direction) in directions[i].iter().enumerate() {
                        match direction {
                            None => {}
                            Some(Direction::Dense { group }) => {
                                add(self.dense_adjoint(at.inputs[0].row_len(), *group, &sensitivity));
                            }
                            Some(Direction::Given(rows)) => {
                                if let Some(term) =
                                    layer.second_parameter(at, slot, rows, position, &sensitivity)
                                {
                                    add(term);
                                }
                            }
                        }
                    }
                    layer.add_vjp_input(at, position, &sensitivity, &mut sensitivities[input.0]);
                });
            }
        }
        match adjoints[0].take() {
            Some(rows) => fold_rows(&rows, self.width()),
            None => Array::zeros(batch_shape(self.trace.rows(), graph.input_shape())),
        }
    }
}
