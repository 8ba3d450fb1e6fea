//! One node of the file, and its attributes.

use super::definitions::{AttributeProto, NodeProto, TensorProto};
use posterior_networks::Activation;

/// What several nodes were put together to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fused {
    /// Mean 0 and variance 1 over the axes in the attribute or second input `axes`.
    Normalise { epsilon: f64 },
    /// Mean square 1 over these axes.
    RmsNormalise { epsilon: f64 },
    /// An activation.
    Activation(Activation),
    /// A softmax (the first input) whose rows that are masked as a whole are zero; the other inputs are the terms of its argument.
    GuardedSoftmax,
    /// Nothing: the input itself.
    Identity,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Its name, or that of its first output.
    pub(super) name: String,
    pub(super) operator: String,
    /// Empty for ONNX itself.
    pub(super) domain: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) attributes: Vec<AttributeProto>,
    pub(super) fused: Option<Fused>,
}

impl Node {
    pub(super) fn new(node: &NodeProto) -> Self {
        let text = |t: &Option<String>| t.clone().unwrap_or_default();
        let (mut name, domain) = (text(&node.name), text(&node.domain));
        if name.is_empty() {
            name = node.output.iter().find(|o| !o.is_empty()).cloned().unwrap_or_else(|| text(&node.op_type));
        }
        Self {
            name,
            operator: text(&node.op_type),
            domain: if domain == "ai.onnx" { String::new() } else { domain },
            inputs: node.input.clone(),
            outputs: node.output.clone(),
            attributes: node.attribute.clone(),
            fused: None,
        }
    }

    fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.attributes.iter().find(|a| a.name.as_deref() == Some(name))
    }

    /// Name of input `i`; None where it is left out.
    pub(super) fn input(&self, i: usize) -> Option<&str> {
        self.inputs.get(i).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// A whole number.
    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name)?.i
    }

    /// A number.
    pub(super) fn float(&self, name: &str) -> Option<f64> {
        self.attribute(name)?.f.map(f64::from)
    }

    /// Whole numbers.
    pub(super) fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(|a| a.ints.as_slice())
    }

    /// Numbers.
    pub(super) fn floats(&self, name: &str) -> Option<&[f32]> {
        self.attribute(name).map(|a| a.floats.as_slice())
    }

    /// How many whole numbers or texts an attribute holds.
    pub(super) fn length(&self, name: &str) -> Option<usize> {
        self.attribute(name).map(|a| a.ints.len().max(a.strings.len()))
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.attribute(name)?.s.as_ref().map(|s| String::from_utf8_lossy(s).into_owned())
    }

    /// Texts.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let strings = self.attribute(name).map(|a| a.strings.as_slice()).unwrap_or_default();
        strings.iter().map(|s| String::from_utf8_lossy(s).into_owned()).collect()
    }

    /// A tensor.
    pub(super) fn tensor(&self, name: &str) -> Option<&TensorProto> {
        self.attribute(name)?.t.as_ref()
    }
}
