//! Weights that several nodes share (the steps of a recurrent layer, tied layers): their uses joined, as if they were positions of one layer.
//!
//! The gradient of a row is a sum over positions of all uses. Joined, it is one product for each row, and Kronecker factors see the uses as they see the positions of a
//! convolution; use by use it would be a matrix of the weight's size for every row and step.

use crate::array::{Array, Matrix, Piece, Precision, place, products_apart};
use crate::graph::Graph;
use crate::operation::{At, Factors, Layer, Operation};
use std::collections::BTreeMap;

/// The uses of shared weights that a pass back has met so far.
pub(super) struct SharedUses<T> {
    /// By parameter: whether its uses are joined.
    joined: Vec<bool>,
    met: BTreeMap<usize, Vec<Use<T>>>,
}

struct Use<T> {
    node: usize,
    inputs: Array<T>,
    sensitivities: Array<T>,
    positions: usize,
    transposed: bool,
}

/// All uses of one weight: what [`Factors::Outer`] says, with the positions of one use after another.
pub(super) struct Joined<T> {
    /// The weight.
    pub(super) parameter: usize,
    /// Its first node.
    pub(super) node: usize,
    /// `[examples, positions * columns]`.
    pub(super) inputs: Array<T>,
    /// `[rows, positions * outputs]`.
    pub(super) sensitivities: Array<T>,
    pub(super) positions: usize,
    pub(super) transposed: bool,
}

impl<T: Precision> SharedUses<T> {
    /// Weights are joined that are the first parameter of several nodes, all fully connected, or all convolutions of one kind without groups.
    pub(super) fn of(graph: &Graph) -> Self {
        let mut kinds: Vec<Vec<u8>> = vec![Vec::new(); graph.parameters().len()];
        for node in graph.nodes() {
            for (slot, &parameter) in node.parameters.iter().enumerate() {
                kinds[parameter].push(match &node.operation {
                    Operation::Linear(_) if slot == 0 => 1,
                    Operation::Convolution(c) if slot == 0 && c.groups == 1 && !c.transposed => 2,
                    Operation::Convolution(c) if slot == 0 && c.groups == 1 => 3,
                    _ => 0,
                });
            }
        }
        let joined = |kinds: Vec<u8>| kinds.len() > 1 && kinds[0] > 0 && kinds.iter().all(|k| *k == kinds[0]);
        Self { joined: kinds.into_iter().map(joined).collect(), met: BTreeMap::new() }
    }

    /// Keeps a use, if the parameter is one whose uses are joined.
    #[inline(never)]
    pub(super) fn keep(
        &mut self,
        (node, parameter, slot): (usize, usize, usize),
        layer: &dyn Layer<T>,
        at: &At<'_, T>,
        cotangent: &Array<T>,
    ) -> bool {
        if !self.joined[parameter] {
            return false;
        }
        let Some(Factors::Outer { inputs, sensitivities, positions, transposed }) =
            layer.factors(at, slot, cotangent)
        else {
            return false;
        };
        let (inputs, sensitivities) = (inputs.into_owned(), sensitivities.into_owned());
        let own = Use { node, inputs, sensitivities, positions, transposed };
        self.met.entry(parameter).or_default().push(own);
        true
    }

    /// The weights whose uses were met, each use after the other in the order of the nodes.
    pub(super) fn joined(self) -> impl Iterator<Item = Joined<T>> {
        self.met.into_iter().filter_map(|(parameter, mut uses)| {
            uses.reverse();
            let first = uses.first()?;
            let (node, transposed) = (first.node, first.transposed);
            let positions = uses.iter().map(|u| u.positions).sum();
            let inputs = side_by_side(uses.iter().map(|u| &u.inputs));
            let sensitivities = side_by_side(uses.iter().map(|u| &u.sensitivities));
            Some(Joined { parameter, node, inputs, sensitivities, positions, transposed })
        })
    }
}

/// The rows of several arrays one after another.
fn side_by_side<'a, T: Precision>(arrays: impl Iterator<Item = &'a Array<T>> + Clone) -> Array<T> {
    let rows = arrays.clone().next().map_or(0, Array::rows);
    let total = arrays.clone().map(Array::row_len).sum();
    let (mut out, mut start) = (Array::any(vec![rows, total]), 0);
    for array in arrays {
        let length = array.row_len();
        place(array, Piece { total, start, length }, &mut out);
        start += length;
    }
    out
}

impl<T: Precision> Joined<T> {
    /// Adds the gradient of each row to `out[row * stride..]`.
    #[inline(never)]
    pub(super) fn add_gradients(&self, out: &mut [T], stride: usize) {
        let (rows, positions) = (self.sensitivities.rows(), self.positions);
        let width = rows / self.inputs.rows().max(1);
        let (columns, outputs) =
            (self.inputs.row_len() / positions, self.sensitivities.row_len() / positions);
        products_apart(out, stride, columns * outputs, true, |r| {
            let inputs = Matrix::new(self.inputs.row(r / width), positions, columns);
            let sensitivities = Matrix::new(self.sensitivities.row(r), positions, outputs);
            match self.transposed {
                false => (sensitivities.transposed(), inputs),
                true => (inputs.transposed(), sensitivities),
            }
        });
    }

    /// The gradients, `[rows, entries]`.
    #[inline(never)]
    pub(super) fn gradients(&self) -> Array<T> {
        let positions = self.positions * self.positions;
        let length = self.inputs.row_len() * self.sensitivities.row_len() / positions.max(1);
        let mut out = Array::zeros(vec![self.sensitivities.rows(), length]);
        self.add_gradients(out.values_mut(), length);
        out
    }
}
