//! A forward pass kept for derivatives, and the two sweeps over it that every derivative is made of.

use super::network::Network;
use super::selection::Selection;
use super::structure::Graph;
use crate::array::{Array, Precision, add_to};
use crate::operation::{At, Saved};

/// The values of all nodes for a batch, with what the derivatives need besides.
#[derive(Debug)]
pub struct Trace<'a, T> {
    network: &'a Network<T>,
    values: Vec<Array<T>>,
    saved: Vec<Saved<T>>,
}

/// Which values a sweep has to visit.
pub(crate) struct Reach {
    values: Vec<bool>,
}

impl Reach {
    /// Values that depend on a selected parameter, or on the input if `input`.
    pub(crate) fn new(graph: &Graph, selection: Option<&Selection>, input: bool) -> Self {
        let mut values = vec![false; graph.nodes.len() + 1];
        values[0] = input;
        for (i, node) in graph.nodes.iter().enumerate() {
            let selected = node.parameters.iter().any(|&p| selection.is_some_and(|s| s.part(p).is_some()));
            values[i + 1] = selected || node.inputs.iter().any(|v| values[v.0]);
        }
        Self { values }
    }

    pub(crate) fn contains(&self, value: usize) -> bool {
        self.values[value]
    }
}

impl<'a, T: Precision> Trace<'a, T> {
    pub(super) fn new(network: &'a Network<T>, values: Vec<Array<T>>, saved: Vec<Saved<T>>) -> Self {
        Self { network, values, saved }
    }

    /// The network.
    pub fn network(&self) -> &'a Network<T> {
        self.network
    }

    /// Number of examples.
    pub fn rows(&self) -> usize {
        self.values[0].rows()
    }

    /// The inputs, `[examples, ...]`.
    pub fn input(&self) -> &Array<T> {
        &self.values[0]
    }

    /// The network's outputs, `[examples, ...]`.
    pub fn output(&self) -> &Array<T> {
        &self.values[self.network.graph.output.0]
    }

    /// The value of one node (by position), `[examples, ...]`.
    pub fn value(&self, node: usize) -> &Array<T> {
        &self.values[node + 1]
    }

    pub(crate) fn saved(&self, node: usize) -> &Saved<T> {
        &self.saved[node]
    }

    /// The first layer with a value that is NaN or infinite, by name.
    pub fn first_not_finite(&self) -> Option<&'a str> {
        let node = self.values.iter().skip(1).position(|v| v.first_not_finite().is_some())?;
        Some(&self.network.graph.nodes[node].name)
    }

    pub(crate) fn at<R>(&self, node: usize, f: impl FnOnce(&At<'_, T>) -> R) -> R {
        self.network.at(node, &self.values, &self.saved, f)
    }

    /// Backwards: `cotangent` has `width` rows for each example. `visit(node, cotangent of its output)` is called for every node in reach, last
    /// first; returns the cotangent of the input if that is in reach.
    #[inline(never)]
    pub(crate) fn pull(
        &self,
        cotangent: Array<T>,
        reach: &Reach,
        visit: &mut dyn FnMut(usize, &Array<T>),
    ) -> Option<Array<T>> {
        let graph = &self.network.graph;
        let mut cotangents: Vec<Option<Array<T>>> = vec![None; graph.nodes.len() + 1];
        cotangents[graph.output.0] = Some(cotangent);
        for (i, node) in graph.nodes.iter().enumerate().rev() {
            let Some(cotangent) = cotangents[i + 1].take().filter(|_| reach.contains(i + 1)) else {
                continue;
            };
            visit(i, &cotangent);
            for (position, input) in node.inputs.iter().enumerate().filter(|(_, v)| reach.contains(v.0)) {
                let sum = &mut cotangents[input.0];
                self.at(i, |at| self.network.layer(i).add_vjp_input(at, position, &cotangent, sum));
            }
        }
        cotangents[0].take()
    }

    /// Forwards: starts from the tangent of the input (if any); `add(node)` gives what the node's own parameters contribute to the tangent of its
    /// output. Returns the tangent of the network's output, and those of all other values that have one if `all`: else they are given back when nothing reads them any more.
    #[inline(never)]
    pub(crate) fn push(
        &self,
        input: Option<Array<T>>,
        all: bool,
        add: &mut dyn FnMut(usize) -> Option<Array<T>>,
    ) -> Vec<Option<Array<T>>> {
        let graph = &self.network.graph;
        let last_readers = graph.last_readers();
        let mut tangents: Vec<Option<Array<T>>> = Vec::with_capacity(graph.nodes.len() + 1);
        tangents.push(input);
        for (i, node) in graph.nodes.iter().enumerate() {
            let mut tangent = add(i);
            for (position, value) in node.inputs.iter().enumerate() {
                if let Some(t) = &tangents[value.0] {
                    self.at(i, |at| self.network.layer(i).add_jvp_input(at, position, t, &mut tangent));
                }
            }
            tangents.push(tangent);
            for value in node.inputs.iter().filter(|value| !all && last_readers[value.0] == i) {
                tangents[value.0] = None;
            }
        }
        tangents
    }
}

/// `place += term`, or `term` where there was nothing.
pub(crate) fn accumulate<T: Precision>(place: &mut Option<Array<T>>, term: Array<T>) {
    match place {
        Some(sum) => add_to(sum.values_mut(), term.values()),
        None => *place = Some(term),
    }
}
