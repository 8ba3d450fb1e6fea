//! The gradient of a function of tangent kernel blocks in the points.
//!
//! Let `K = J(x) J(z)^T`, with rows `v^T J`, and let `A` be the gradient of a loss in `K`. With `G_r = sum_s A[s, r] J(x)^T v_s`, the direction that row
//! `r` of `z` meets, the loss changes with `z` as `sum_r v_r^T J(z) G_r` does for fixed `G`. So the gradient is that of a Jacobian-vector
//! product whose tangent differs by row: tangents go forward, cotangents come back, and with them the adjoint of the values, which collects
//! second derivatives on its way. For a perceptron these are the three recursions of the tangent-kernel gradient; here any operation takes part.

use super::Outputs;
use super::features::{Feature, Group, TangentFeatures};
use super::products::spread;
use super::tangent_kernel::turn;
use crate::array::{Array, Matrix, Precision, Sets, batch_shape, fold_rows, product};
use crate::graph::trace::{Reach, accumulate};
use crate::graph::{Network, NetworkError, Selection, Trace};

/// What one group of parameters does to the rows of `z`.
enum Direction<T> {
    /// Fully connected: `A^T` weighted by products of inputs or of sensitivities, when those are known.
    Dense { group: usize, bias: T },
    /// The directions themselves, `[rows of z, parameter shape]`.
    Given(Array<T>),
}

/// Constant points by their features, and the gradient of a loss in the kernel between them and the points that it is pulled back to, `[rows of x, rows of z]`.
pub type KernelAdjoint<'a, T> = (&'a TangentFeatures<T>, &'a Array<T>);

impl<T: Precision> Network<T> {
    /// The gradient in the points `z`, `[examples of z, input...]`, of a loss in the kernels `K = J(x) J(z)^T` between them and several sets x, which enter by their features and are constant. For a kernel of `z` with
    /// itself pass its own features and `adjoint + adjoint^T`.
    ///
    /// Cost: about six forward passes for each row of `z`, whatever the number of sets, and products of the size of the kernels times the layer widths.
    ///
    /// # Errors
    /// When shapes do not fit, the features belong to another selection, or the network is in training mode.
    pub fn tangent_kernel_pullback(
        &self,
        selection: &Selection,
        (z, of_z): (&Array<T>, &Outputs<T>),
        sets: &[KernelAdjoint<'_, T>],
    ) -> Result<Array<T>, NetworkError> {
        self.require_evaluation("gradients of tangent kernels")?;
        let cotangents = of_z.cotangents(z.rows(), self.graph().output_shape())?;
        let rows = cotangents.rows();
        for (x, adjoint) in sets {
            if adjoint.shape() != [x.rows(), rows] {
                let (expected, found) = (vec![x.rows(), rows], adjoint.shape().to_vec());
                return Err(NetworkError::Shape {
                    what: "the adjoint of the tangent kernel",
                    expected,
                    found,
                });
            }
        }
        let trace = self.trace(z.clone())?;
        let turned = |(x, adjoint): &KernelAdjoint<'_, T>| turn(adjoint, 0..x.rows());
        let sets = sets.iter().map(|set| Set { x: set.0, adjoint: turned(set) }).collect();
        Ok(Pullback { trace: &trace, selection, sets, rows }.run(cotangents))
    }
}

/// Constant points, and the transpose of the adjoint, `[rows of z, rows of x]`.
struct Set<'a, T> {
    x: &'a TangentFeatures<T>,
    adjoint: Vec<T>,
}

impl<T: Precision> Set<'_, T> {
    /// The numbers of a fully connected layer.
    fn dense(&self, group: usize) -> (&Array<T>, &Array<T>) {
        let Feature::Dense { inputs, sensitivities, .. } = &self.x.features[group] else {
            unreachable!("a dense group has dense features")
        };
        (inputs, sensitivities)
    }
}

struct Pullback<'a, 'n, T> {
    trace: &'a Trace<'n, T>,
    selection: &'a Selection,
    sets: Vec<Set<'a, T>>,
    rows: usize,
}

impl<T: Precision> Pullback<'_, '_, T> {
    fn width(&self) -> usize {
        self.rows / self.trace.rows().max(1)
    }

    /// The direction of each (node, slot).
    fn directions(&self) -> Vec<Vec<Option<Direction<T>>>> {
        let graph = self.trace.network().graph();
        let mut all: Vec<Vec<Option<Direction<T>>>> =
            graph.nodes().iter().map(|node| node.parameters.iter().map(|_| None).collect()).collect();
        let Some(first) = self.sets.first() else { return all };
        for (position, (group, feature)) in first.x.groups.iter().zip(&first.x.features).enumerate() {
            match (group, feature) {
                (Group::Dense { node, .. }, Feature::Dense { bias, .. }) => {
                    all[*node][0] = Some(Direction::Dense { group: position, bias: *bias });
                }
                (Group::Rows { part }, Feature::Rows(_)) => {
                    let part = &self.selection.parts()[*part];
                    // G = A^T J(x), one row for each row of z.
                    let mut own = vec![T::ZERO; self.rows * part.length];
                    for set in &self.sets {
                        let Feature::Rows(gradients) = &set.x.features[position] else {
                            unreachable!("sets have features of the same form")
                        };
                        let adjoint = Matrix::new(&set.adjoint, self.rows, set.x.rows());
                        let gradients = Matrix::new(gradients.values(), set.x.rows(), part.length);
                        product(&mut own, true, adjoint, gradients);
                    }
                    let mut flat = Array::zeros(vec![self.rows, self.selection.len()]);
                    for (own, flat) in own
                        .chunks_exact(part.length)
                        .zip(flat.values_mut().chunks_exact_mut(self.selection.len()))
                    {
                        flat[part.offset..part.offset + part.length].copy_from_slice(own);
                    }
                    for (node, slots) in graph.nodes().iter().zip(&mut all) {
                        for (&parameter, slot) in node.parameters.iter().zip(slots) {
                            if parameter == part.parameter {
                                *slot = spread(self.selection, graph, parameter, &flat).map(Direction::Given);
                            }
                        }
                    }
                }
                _ => unreachable!("groups and features have the same form"),
            }
        }
        all
    }

    /// `A^T` with entry `[r, s]` multiplied by `factors[r / width of z, s / width of x] + constant`.
    fn weighted(&self, set: &Set<'_, T>, factors: &[T], constant: T) -> Vec<T> {
        let (examples, width) = (set.x.examples, set.x.width);
        let mut out = set.adjoint.clone();
        for (r, out) in out.chunks_exact_mut(set.x.rows().max(1)).enumerate() {
            let factors = &factors[r / self.width() * examples..][..examples];
            for (out, &factor) in out.chunks_exact_mut(width).zip(factors) {
                out.iter_mut().for_each(|o| *o *= factor + constant);
            }
        }
        out
    }

    /// What a fully connected layer adds to the tangent of its output: `sum_s A[s, r] (a_s . a_r + bias) delta_s`.
    fn dense_tangent(&self, node: usize, group: usize, bias: T) -> Array<T> {
        let own = self.trace.at(node, |at| at.inputs[0].clone());
        let own = Matrix::new(own.values(), own.rows(), own.row_len());
        let mut out = Array::zeros(vec![self.rows, self.trace.network().graph().nodes()[node].shape[0]]);
        for set in &self.sets {
            let (inputs, sensitivities) = set.dense(group);
            let mut along = vec![T::ZERO; self.trace.rows() * inputs.rows()];
            let others = Matrix::new(inputs.values(), inputs.rows(), inputs.row_len());
            product(&mut along, false, own, others.transposed());
            let weights = self.weighted(set, &along, bias);
            let weights = Matrix::new(&weights, self.rows, set.x.rows());
            let sensitivities = Matrix::new(sensitivities.values(), set.x.rows(), sensitivities.row_len());
            product(out.values_mut(), true, weights, sensitivities);
        }
        out
    }

    /// What it adds to the adjoint of its input: `sum_s A[s, r] (delta_s . delta_r) a_s`.
    fn dense_adjoint(&self, columns: usize, group: usize, cotangent: &Array<T>) -> Array<T> {
        let mut out = Array::zeros(vec![self.rows, columns]);
        for set in &self.sets {
            let (inputs, sensitivities) = set.dense(group);
            let (outputs, others) = (sensitivities.row_len(), set.x.rows());
            let mut weights = vec![T::ZERO; self.rows * others];
            let sensitivities = Matrix::new(sensitivities.values(), others, outputs).transposed();
            product(&mut weights, false, Matrix::new(cotangent.values(), self.rows, outputs), sensitivities);
            weights.iter_mut().zip(&set.adjoint).for_each(|(w, a)| *w *= *a);
            let (examples, width) = (set.x.examples, set.x.width);
            let folded: Vec<T> = match width {
                1 => weights,
                _ => weights.chunks_exact(width).map(|rows| rows.iter().copied().sum()).collect(),
            };
            let inputs = Matrix::new(inputs.values(), examples, columns);
            product(out.values_mut(), true, Matrix::new(&folded, self.rows, examples), inputs);
        }
        out
    }

    fn run(&self, cotangents: Array<T>) -> Array<T> {
        let network = self.trace.network();
        let graph = network.graph();
        let directions = self.directions();
        let tangents = self.trace.push(None, true, |node| {
            let mut sum = None;
            for (slot, direction) in directions[node].iter().enumerate() {
                let term = match direction {
                    None => continue,
                    Some(Direction::Dense { group, bias }) => self.dense_tangent(node, *group, *bias),
                    Some(Direction::Given(rows)) => self.trace.at(node, |at| {
                        network.layer(node).jvp_parameter(at, slot, rows, Sets::Rows, self.rows)
                    }),
                };
                accumulate(&mut sum, term);
            }
            sum
        });
        let reach = Reach::new(graph, Some(self.selection), true);
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
                    let mut add = |term: Array<T>| accumulate(&mut adjoints[input.0], term);
                    if let Some(adjoint) = &adjoint {
                        add(layer.vjp_input(at, position, adjoint));
                    }
                    if input_tangents.iter().any(Option::is_some)
                        && let Some(term) = layer.second_input(at, position, &input_tangents, &sensitivity)
                    {
                        add(term);
                    }
                    for (slot, direction) in directions[i].iter().enumerate() {
                        match direction {
                            None => {}
                            Some(Direction::Dense { group, .. }) => {
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
                    accumulate(&mut sensitivities[input.0], layer.vjp_input(at, position, &sensitivity));
                });
            }
        }
        match adjoints[0].take() {
            Some(rows) => fold_rows(&rows, self.width()),
            None => Array::zeros(batch_shape(self.trace.rows(), graph.input_shape())),
        }
    }
}
