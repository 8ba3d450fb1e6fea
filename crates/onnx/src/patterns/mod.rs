//! Operations that exporters take apart, put together again: the parts of a normalisation cannot be differentiated one by one (a square root
//! at zero), and an activation as one operation is faster and rounds once.

mod activations;
mod normalisations;

use super::constant::{MOST_AXES, Origin};
use super::definitions::TensorProto;
use super::external::DataFiles;
use super::node::{Fused, Node};
use std::collections::HashMap;

/// The nodes by their outputs, and numbers by name.
struct Graph<'a> {
    nodes: &'a [Node],
    producers: &'a HashMap<String, usize>,
    initialisers: &'a HashMap<&'a str, &'a TensorProto>,
    data: &'a DataFiles,
}

/// Marks the last node of every pattern as the whole: it then reads the pattern's input, and the other parts are needed no more.
pub(super) fn recognise(
    nodes: &mut [Node],
    producers: &HashMap<String, usize>,
    initialisers: &HashMap<&str, &TensorProto>,
    data: &DataFiles,
    notes: &mut Vec<String>,
) {
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    for i in 0..nodes.len() {
        let graph = Graph { nodes, producers, initialisers, data };
        let found = graph
            .normalisation(i)
            .or_else(|| graph.rms_normalisation(i))
            .or_else(|| graph.activation(i))
            .or_else(|| graph.guard(i));
        if let Some((what, fused, inputs, attributes)) = found {
            match counts.iter_mut().find(|(name, _)| *name == what) {
                Some((_, count)) => *count += 1,
                None => counts.push((what, 1)),
            }
            nodes[i].inputs = inputs;
            nodes[i].attributes = attributes;
            nodes[i].fused = Some(fused);
        }
    }
    for (what, count) in counts {
        notes.push(format!("put together from its parts: {what} ({count} times)"));
    }
}

type Found = (&'static str, Fused, Vec<String>, Vec<super::definitions::AttributeProto>);

impl<'a> Graph<'a> {
    /// The node that makes `name`, if it has this operator.
    fn made(&self, name: &str, operator: &str) -> Option<&'a Node> {
        let node = &self.nodes[*self.producers.get(name)?];
        (node.operator == operator && node.domain.is_empty() && node.fused.is_none()).then_some(node)
    }

    /// The single number called `name`.
    fn number(&self, name: &str) -> Option<f64> {
        let tensor = match self.initialisers.get(name) {
            Some(tensor) => *tensor,
            None => {
                let node = self.made(name, "Constant")?;
                match node.float("value_float") {
                    Some(value) => return Some(value),
                    None => node.tensor("value")?,
                }
            }
        };
        let single = tensor.dims.len() <= MOST_AXES && tensor.dims.iter().all(|&d| d == 1);
        single
            .then(|| super::tensor::decode(tensor, Origin::constant(""), "", self.data).ok()?.scalar())
            .flatten()
    }

    fn is(&self, name: &str, expected: f64) -> bool {
        self.number(name).is_some_and(|v| (v - expected).abs() <= 1e-5 * expected.abs())
    }

    /// Both orders of the inputs of a node with two.
    fn orders(node: &'a Node) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pair = node.input(0).zip(node.input(1)).filter(|_| node.inputs.len() == 2);
        pair.into_iter().flat_map(|(a, b)| [(a, b), (b, a)])
    }

    /// `x` where `name = x^2`.
    fn squared(&self, name: &str) -> Option<&'a str> {
        if let Some(power) = self.made(name, "Pow") {
            return power.input(0).filter(|_| power.input(1).is_some_and(|e| self.is(e, 2.0)));
        }
        let product = self.made(name, "Mul")?;
        product.input(0).filter(|x| product.input(1) == Some(x))
    }

    /// `x` where `name = x^3`.
    fn cubed(&self, name: &str) -> Option<&'a str> {
        if let Some(power) = self.made(name, "Pow") {
            return power.input(0).filter(|_| power.input(1).is_some_and(|e| self.is(e, 3.0)));
        }
        Self::orders(self.made(name, "Mul")?)
            .find_map(|(square, x)| (self.squared(square)? == x).then_some(x))
    }

    /// The axes called `name`, or the name itself where they are computed.
    fn axes(&self, name: &str) -> Result<Vec<i64>, String> {
        let tensor =
            self.initialisers.get(name).copied().or_else(|| self.made(name, "Constant")?.tensor("value"));
        let few = |t: &&TensorProto| t.dims.len() <= 1 && t.dims.iter().all(|&d| d <= MOST_AXES as i64);
        let decoded = tensor
            .filter(few)
            .and_then(|t| super::tensor::decode(t, Origin::constant(""), "", self.data).ok()?.whole().ok());
        decoded.ok_or_else(|| name.to_string())
    }

    /// Choices that exporters add around a function for numbers where it is not finite or not exact in single precision.
    fn guard(&self, i: usize) -> Option<Found> {
        let node = &self.nodes[i];
        if node.operator != "Where" || !node.domain.is_empty() {
            return None;
        }
        let (condition, yes, no) = (node.input(0)?, node.input(1)?, node.input(2)?);
        // Softmax of a row that is masked as a whole is NaN, which is replaced by 0.
        let nan = self.made(condition, "IsNaN").is_some_and(|n| n.input(0) == Some(no));
        if let Some(softmax) = self.made(no, "Softmax").filter(|_| nan && self.number(yes) == Some(0.0)) {
            let terms = softmax.input(0).and_then(|x| self.made(x, "Add")).map(|sum| sum.inputs.clone());
            let terms = terms.filter(|_| softmax.int("axis") == Some(-1)).unwrap_or_default();
            let inputs = std::iter::once(no.into()).chain(terms).collect();
            return Some(("a guarded softmax", Fused::GuardedSoftmax, inputs, vec![]));
        }
        // Softplus of a large number is the number, to single precision.
        let greater = self.made(condition, "Greater")?;
        let (left, threshold) = (greater.input(0)?, self.number(greater.input(1)?)?);
        let (softplus, sharpness) = match self.made(no, "Div") {
            Some(division) => (division.input(0)?, Some(self.number(division.input(1)?)?)),
            None => (no, None),
        };
        let argument = self.made(softplus, "Softplus")?.input(0)?;
        let scaled = match sharpness {
            None => argument == yes,
            Some(b) => {
                Self::orders(self.made(argument, "Mul")?).any(|(x, c)| x == yes && self.number(c) == Some(b))
            }
        };
        (scaled && left == argument && threshold >= 15.0)
            .then(|| ("a softplus with a threshold", Fused::Identity, vec![no.into()], vec![]))
    }
}
