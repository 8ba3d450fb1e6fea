//! Fully connected layers.

use super::building::{MOST_LAYERS, Weights, flatten, linear, wrong};
use crate::graph::{Graph, GraphBuilder, GraphError, Value};
use crate::operation::{Activation, Normalise, Operation, Over};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const KIND: &str = "perceptron";

/// Shape of an example: `784`, or `[1, 28, 28]` for images, which are flattened first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs(pub Vec<usize>);

impl From<usize> for Inputs {
    fn from(length: usize) -> Self {
        Self(vec![length])
    }
}

impl Serialize for Inputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0[..] {
            [length] => length.serialize(serializer),
            _ => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Inputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;
        impl<'de> Visitor<'de> for Shape {
            type Value = Inputs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a positive whole number or a shape as [1, 28, 28]")
            }

            fn visit_i64<E: Error>(self, length: i64) -> Result<Inputs, E> {
                usize::try_from(length)
                    .map(Inputs::from)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(length), &self))
            }

            fn visit_u64<E: Error>(self, length: u64) -> Result<Inputs, E> {
                usize::try_from(length).map(Inputs::from).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Inputs, A::Error> {
                let mut shape = Vec::new();
                while let Some(length) = list.next_element()? {
                    shape.push(length);
                }
                Ok(Inputs(shape))
            }
        }
        deserializer.deserialize_any(Shape)
    }
}

/// Linear layers with an activation between them, named as PyTorch's `nn.Sequential(nn.Linear, activation, nn.Linear, ...)`: `0.weight`,
/// `0.bias`, `2.weight`, ... With `layer_norm`, `nn.Sequential(nn.Linear, nn.LayerNorm, activation, ...)`: `0.weight`, `1.weight`,
/// `3.weight`, ... Images are flattened first; that step has no number.
///
/// ```
/// use posterior_networks::Architecture;
/// let text = "kind = \"perceptron\"\ninputs = [1, 28, 28]\nhidden = [200, 200]\noutputs = 10";
/// let graph = Architecture::from_toml(text)?.graph()?;
/// assert_eq!(graph.trainable(), 784 * 200 + 200 * 200 + 200 * 10 + 410);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Perceptron {
    /// Shape of an example, a number or a list.
    pub inputs: Inputs,
    /// Widths of the hidden layers; none leaves one linear map.
    #[serde(default)]
    pub hidden: Vec<usize>,
    /// Number of outputs.
    pub outputs: usize,
    /// Activation of the hidden layers.
    #[serde(default = "tanh", with = "super::activation_text")]
    pub activation: Activation,
    /// Whether a layer norm stands between each hidden linear layer and its activation.
    #[serde(default)]
    pub layer_norm: bool,
    /// Whether the layer norms have a learned gain and shift.
    #[serde(default = "yes")]
    pub layer_norm_affine: bool,
    /// Whether the hidden layers have biases.
    #[serde(default = "yes")]
    pub bias: bool,
    /// Whether the last layer has a bias.
    #[serde(default = "yes")]
    pub output_bias: bool,
}

fn tanh() -> Activation {
    Activation::Tanh
}

fn yes() -> bool {
    true
}

impl Perceptron {
    /// With biases and without layer norm.
    pub fn new(inputs: impl Into<Inputs>, hidden: &[usize], outputs: usize, activation: Activation) -> Self {
        Self {
            inputs: inputs.into(),
            hidden: hidden.to_vec(),
            outputs,
            activation,
            layer_norm: false,
            layer_norm_affine: true,
            bias: true,
            output_bias: true,
        }
    }

    pub(super) fn graph(&self) -> Result<Graph, GraphError> {
        if self.hidden.len() > MOST_LAYERS {
            return Err(wrong(KIND, format!("`hidden` has more than {MOST_LAYERS} layers")));
        }
        if self.inputs.0.is_empty() {
            return Err(wrong(KIND, "`inputs` is empty: give the number of inputs or a shape"));
        }
        let mut b = GraphBuilder::new(&self.inputs.0)?;
        let mut x = flatten(&mut b, "flatten", Value::INPUT)?;
        let mut position = 0usize;
        let mut next = || {
            position += 1;
            (position - 1).to_string()
        };
        for &width in &self.hidden {
            x = linear(&mut b, &next(), width, self.bias, Weights::Default, x)?;
            if self.layer_norm && self.layer_norm_affine {
                x = b.layer_norm(&next(), 1, 1e-5, x)?;
            } else if self.layer_norm {
                let norm = Normalise { over: Over::LastAxes(1), epsilon: 1e-5 };
                x = b.add(&next(), Operation::Normalise(norm), &[x])?;
            }
            x = b.activation(&next(), self.activation, x)?;
        }
        x = linear(&mut b, &next(), self.outputs, self.output_bias, Weights::Default, x)?;
        b.finish(x)
    }
}
