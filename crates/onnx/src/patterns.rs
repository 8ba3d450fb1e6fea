//! Operations that exporters take apart, put together again: the parts of a normalisation cannot be differentiated one by one (a square root
//! at zero), and an activation as one operation is faster and rounds once.

use super::constant::{MOST_AXES, Origin};
use super::definitions::TensorProto;
use super::external::DataFiles;
use super::node::{Fused, Node};
use posterior_networks::Activation;
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
        let found = graph.normalisation(i).or_else(|| graph.activation(i)).or_else(|| graph.guard(i));
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
        let single = tensor.dims.iter().all(|&d| d == 1);
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

    /// `(x - mean x) / sqrt(mean (x - mean x)^2 + epsilon)`.
    fn normalisation(&self, i: usize) -> Option<Found> {
        let last = &self.nodes[i];
        let (difference, root) = match last.operator.as_str() {
            "Div" => (last.input(0)?, last.input(1)?),
            "Mul" => {
                Self::orders(last).find_map(|(a, b)| Some((a, self.made(b, "Reciprocal")?.input(0)?)))?
            }
            _ => return None,
        };
        let sum = self.made(root, "Sqrt")?.input(0)?;
        let (variance, epsilon) = Self::orders(self.made(sum, "Add")?)
            .find_map(|(v, e)| Some((self.made(v, "ReduceMean")?, self.number(e)?)))?;
        let centred = |name: &str| -> Option<(&'a str, &'a Node)> {
            let subtraction = self.made(name, "Sub")?;
            let (x, mean) = (subtraction.input(0)?, self.made(subtraction.input(1)?, "ReduceMean")?);
            (mean.input(0) == Some(x)).then_some((x, mean))
        };
        let (x, mean) = centred(difference)?;
        let square = self.squared(variance.input(0)?)?;
        let same_axes = |a: &Node, b: &Node| {
            a.ints("axes") == b.ints("axes")
                && a.inputs.get(1).map(|n| self.axes(n)) == b.inputs.get(1).map(|n| self.axes(n))
        };
        let keeps = |node: &Node| node.int("keepdims").unwrap_or(1) == 1;
        let again = centred(square)?;
        let fits = again.0 == x && same_axes(again.1, mean) && same_axes(variance, mean);
        if !(fits && keeps(mean) && keeps(variance) && keeps(again.1)) {
            return None;
        }
        let mut inputs = vec![x.to_string()];
        inputs.extend(mean.inputs.get(1).cloned());
        Some(("a normalisation", Fused::Normalise { epsilon }, inputs, mean.attributes.clone()))
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

    /// GELU in both forms, and SiLU.
    fn activation(&self, i: usize) -> Option<Found> {
        let product = &self.nodes[i];
        if product.operator != "Mul" || !product.domain.is_empty() {
            return None;
        }
        let silu = |x: &str, s: &str| self.made(s, "Sigmoid").is_some_and(|s| s.input(0) == Some(x));
        if let Some((x, _)) = Self::orders(product).find(|&(x, s)| silu(x, s)) {
            return Some(("a SiLU", Fused::Activation(Activation::Silu), vec![x.into()], vec![]));
        }
        let inner = |name: &str| self.made(name, "Mul").and_then(|n| n.input(0).zip(n.input(1)));
        let factors = Self::orders(product).filter_map(|(a, b)| inner(b).map(|(c, d)| [a, c, d]));
        for [a, b, c] in factors {
            for [x, sum, half] in [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]] {
                if self.is(half, 0.5)
                    && let Some(kind) = self.one_plus(sum, x)
                {
                    return Some(("a GELU", Fused::Activation(kind), vec![x.into()], vec![]));
                }
            }
        }
        None
    }

    /// Which GELU it is where `name` is `1 + erf(x / sqrt 2)` or `1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))`.
    fn one_plus(&self, name: &str, x: &str) -> Option<Activation> {
        let (function, _) = Self::orders(self.made(name, "Add")?).find(|&(_, one)| self.is(one, 1.0))?;
        if let Some(erf) = self.made(function, "Erf") {
            let argument = erf.input(0)?;
            let divided = self.made(argument, "Div").is_some_and(|d| {
                d.input(0) == Some(x) && d.input(1).is_some_and(|c| self.is(c, std::f64::consts::SQRT_2))
            });
            let scaled = || {
                let (found, _) = Self::orders(self.made(argument, "Mul")?)
                    .find(|&(_, c)| self.is(c, std::f64::consts::FRAC_1_SQRT_2))?;
                (found == x).then_some(())
            };
            return (divided || scaled().is_some()).then_some(Activation::Gelu);
        }
        let argument = self.made(self.made(function, "Tanh")?.input(0)?, "Mul")?;
        let (sum, _) =
            Self::orders(argument).find(|&(_, c)| self.is(c, (2.0 / std::f64::consts::PI).sqrt()))?;
        let cubic = |name: &str| {
            let (cube, _) = Self::orders(self.made(name, "Mul")?).find(|&(_, c)| self.is(c, 0.044_715))?;
            self.cubed(cube)
        };
        Self::orders(self.made(sum, "Add")?)
            .any(|(a, b)| a == x && cubic(b) == Some(x))
            .then_some(Activation::GeluTanh)
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
        if nan && self.number(yes) == Some(0.0) && self.made(no, "Softmax").is_some() {
            return Some(("a guarded softmax", Fused::Identity, vec![no.into()], vec![]));
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
