//! Fully connected layers with shortcuts: the backbone of deep kernels.

use super::building::{MOST_LAYERS, Weights, flatten, linear, wrong};
use super::perceptron::Inputs;
use crate::graph::{Graph, GraphBuilder, GraphError, Value};
use crate::operation::{Activation, Operation};
use serde::{Deserialize, Serialize};

const KIND: &str = "residual_perceptron";

/// `h = a(W x + b)`, then `h <- h + a(W h + b)` in each block, then `W h + b`.
///
/// Parameters: `input.weight`, `input.bias`, `blocks.0.weight`, `blocks.0.bias`, ..., `output.weight`, `output.bias`. With `tanh`, width 128 and three
/// blocks this is the network of deep kernels on tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResidualPerceptron {
    /// Shape of an example, a number or a list (flattened first).
    pub inputs: Inputs,
    /// Width of the hidden layers.
    #[serde(default = "usual_width")]
    pub width: usize,
    /// Number of blocks with a shortcut.
    #[serde(default = "one")]
    pub blocks: usize,
    /// Number of outputs.
    pub outputs: usize,
    /// The activation `a`.
    #[serde(default = "tanh", with = "super::activation_text")]
    pub activation: Activation,
    /// Whether the outputs are divided by the square root of their number, so that the squared length of the features does not grow with it.
    #[serde(default)]
    pub scale_outputs: bool,
}

fn usual_width() -> usize {
    128
}

fn one() -> usize {
    1
}

fn tanh() -> Activation {
    Activation::Tanh
}

impl ResidualPerceptron {
    pub(super) fn graph(&self) -> Result<Graph, GraphError> {
        if self.blocks > MOST_LAYERS {
            return Err(wrong(KIND, format!("`blocks` is more than {MOST_LAYERS}")));
        }
        if self.inputs.0.is_empty() {
            return Err(wrong(KIND, "`inputs` is empty: give the number of inputs or a shape"));
        }
        let mut b = GraphBuilder::new(&self.inputs.0)?;
        let x = flatten(&mut b, "flatten", Value::INPUT)?;
        let x = linear(&mut b, "input", self.width, true, Weights::Default, x)?;
        let mut h = b.activation("input.activation", self.activation, x)?;
        for i in 0..self.blocks {
            let name = format!("blocks.{i}");
            let y = linear(&mut b, &name, self.width, true, Weights::Default, h)?;
            let y = b.activation(&format!("{name}.activation"), self.activation, y)?;
            h = b.add(&format!("{name}.add"), Operation::Add, &[h, y])?;
        }
        let mut y = linear(&mut b, "output", self.outputs, true, Weights::Default, h)?;
        if self.scale_outputs {
            y = b.add("output.scale", Operation::Scale(1.0 / (self.outputs as f64).sqrt()), &[y])?;
        }
        b.finish(y)
    }
}
