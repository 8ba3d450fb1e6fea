//! A transformer encoder on sets of tokens.

use super::Size;
use super::building::{MOST_LAYERS, Weights, linear, size_or, wrong};
use super::lenet::ten;
use crate::graph::{Graph, GraphBuilder, GraphError, Value};
use crate::operation::{Activation, Initial, Learned, Linear, MatrixProduct, Operation, Slice, Transpose};
use serde::{Deserialize, Serialize};

const KIND: &str = "transformer";

/// Transformer encoder on `[tokens, features]`: a linear embedding, a learned class token in front and no positions (so the order of the tokens does not matter), encoder
/// layers, and a linear layer on the class token.
///
/// Parameters: `embedding.weight`, `embedding.bias`, `class_token` of shape `[1, width]`, for each layer those of PyTorch's `nn.TransformerEncoder`
/// (`encoder.layers.0.self_attn.in_proj_weight`, `self_attn.in_proj_bias`, `self_attn.out_proj.weight`, `linear1`, `linear2`, `norm1`, `norm2`), `linear.weight`, `linear.bias`.
/// Tokens of 3 features, 2 layers and 2 heads give the published counts (Antorán 2023, chapter 5) 15 520, 27 090 and 45 900. Norms after
/// the sums and ReLU, PyTorch's defaults, are assumed; `norm_first` chooses the other order. Initialisation is PyTorch's. No dropout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transformer {
    /// Shape of an example: tokens, features.
    pub input: [usize; 2],
    /// One of the published sizes: width 30, hidden 60; 40, 80; 50, 120.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Width of the tokens and of the hidden layer of each encoder layer, instead of `size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widths: Option<[usize; 2]>,
    /// Encoder layers.
    #[serde(default = "two")]
    pub layers: usize,
    /// Heads of attention; they divide the width.
    #[serde(default = "two")]
    pub heads: usize,
    /// Number of classes.
    #[serde(default = "ten")]
    pub classes: usize,
    /// Activation of the hidden layers.
    #[serde(default = "relu", with = "super::activation_text")]
    pub activation: Activation,
    /// Whether the norms stand before attention and hidden layer instead of after the sums.
    #[serde(default)]
    pub norm_first: bool,
}

fn two() -> usize {
    2
}

fn relu() -> Activation {
    Activation::Relu
}

impl Transformer {
    /// One of the published networks on `tokens` tokens of 3 features.
    pub fn sized(size: Size, tokens: usize) -> Self {
        Self {
            input: [tokens, 3],
            size: Some(size),
            widths: None,
            layers: 2,
            heads: 2,
            classes: 10,
            activation: Activation::Relu,
            norm_first: false,
        }
    }

    pub(super) fn graph(&self) -> Result<Graph, GraphError> {
        let table = [[30, 60], [40, 80], [50, 120]];
        let [width, hidden] = size_or(KIND, self.size, self.widths, "`widths` ([width, hidden])", table)?;
        if self.layers > MOST_LAYERS {
            return Err(wrong(KIND, format!("`layers` is more than {MOST_LAYERS}")));
        }
        if self.heads == 0 || !width.is_multiple_of(self.heads) {
            return Err(wrong(KIND, format!("{} heads must divide the width {width}", self.heads)));
        }
        let mut b = GraphBuilder::new(&self.input)?;
        let positions = self.input[0].saturating_add(1);
        crate::operation::check_size(&[self.heads, positions, positions])
            .map_err(|problem| wrong(KIND, format!("attention of {positions} tokens: {problem}")))?;
        let x = linear(&mut b, "embedding", width, true, Weights::Default, Value::INPUT)?;
        let token = Operation::Learned(Learned { shape: vec![1, width] });
        let token = b.add_named("class_token", token, &[], &["class_token"])?;
        let mut x = b.add("join", Operation::Concatenate(0), &[token, x])?;
        for i in 0..self.layers {
            x = self.layer(&mut b, &format!("encoder.layers.{i}"), hidden, x)?;
        }
        let first = Slice { axis: 0, start: 0, step: 1, length: 1 };
        let x = b.add("class", Operation::Slice(first), &[x])?;
        let x = b.add("class.flat", Operation::Reshape(vec![width]), &[x])?;
        let x = linear(&mut b, "linear", self.classes, true, Weights::Default, x)?;
        b.finish(x)
    }

    fn layer(&self, b: &mut GraphBuilder, name: &str, hidden: usize, x: Value) -> Result<Value, GraphError> {
        let called = |part: &str| format!("{name}.{part}");
        let width = b.shape(x)[1];
        let norm = |b: &mut GraphBuilder, part: &str, x| b.layer_norm(&called(part), 1, 1e-5, x);
        let inner = if self.norm_first { norm(b, "norm1", x)? } else { x };
        let y = self.attention(b, &called("self_attn"), inner)?;
        let mut x = b.add(&called("add1"), Operation::Add, &[x, y])?;
        if !self.norm_first {
            x = norm(b, "norm1", x)?;
        }
        let inner = if self.norm_first { norm(b, "norm2", x)? } else { x };
        let y = linear(b, &called("linear1"), hidden, true, Weights::Default, inner)?;
        let y = b.activation(&called("activation"), self.activation, y)?;
        let y = linear(b, &called("linear2"), width, true, Weights::Default, y)?;
        let x = b.add(&called("add2"), Operation::Add, &[x, y])?;
        if self.norm_first { Ok(x) } else { norm(b, "norm2", x) }
    }

    /// Softmax attention of every token to every token, by head.
    fn attention(&self, b: &mut GraphBuilder, name: &str, x: Value) -> Result<Value, GraphError> {
        let called = |part: &str| format!("{name}.{part}");
        let (tokens, width) = (b.shape(x)[0], b.shape(x)[1]);
        let each = width / self.heads;
        let (weight, bias) = (called("in_proj_weight"), called("in_proj_bias"));
        let outputs = width.saturating_mul(3);
        let all = Operation::Linear(Linear { outputs, bias: true });
        let all = b.add_named(&called("in_proj"), all, &[x], &[&weight, &bias])?;
        // PyTorch: Xavier's bound for the stacked projections, zero for both biases.
        let bound = (6.0 / (outputs + width) as f64).sqrt();
        b.describe(&weight, true, Some(Initial::Uniform(bound)))?;
        b.describe(&bias, true, Some(Initial::Constant(0.0)))?;
        let all = b.add(&called("heads"), Operation::Reshape(vec![tokens, 3, self.heads, each]), &[all])?;
        let all =
            b.add(&called("by_head"), Operation::Transpose(Transpose { axes: vec![1, 2, 0, 3] }), &[all])?;
        let mut part = |i: usize, part: &str| -> Result<Value, GraphError> {
            let slice = Slice { axis: 0, start: i, step: 1, length: 1 };
            let value = b.add(&called(part), Operation::Slice(slice), &[all])?;
            b.add(
                &called(&format!("{part}.flat")),
                Operation::Reshape(vec![self.heads, tokens, each]),
                &[value],
            )
        };
        let (q, k, v) = (part(0, "query")?, part(1, "key")?, part(2, "value")?);
        let scores = MatrixProduct { transpose_left: false, transpose_right: true };
        let scores = b.add(&called("scores"), Operation::MatrixProduct(scores), &[q, k])?;
        let scores = b.add(&called("scaled"), Operation::Scale(1.0 / (each as f64).sqrt()), &[scores])?;
        let shares = b.add(&called("softmax"), Operation::Softmax, &[scores])?;
        let mixed =
            b.add(&called("mixed"), Operation::MatrixProduct(MatrixProduct::default()), &[shares, v])?;
        let mixed =
            b.add(&called("by_token"), Operation::Transpose(Transpose { axes: vec![1, 0, 2] }), &[mixed])?;
        let mixed = b.add(&called("joined"), Operation::Reshape(vec![tokens, width]), &[mixed])?;
        let out = linear(b, &called("out_proj"), width, true, Weights::Default, mixed)?;
        b.describe(&called("out_proj.bias"), true, Some(Initial::Constant(0.0)))?;
        Ok(out)
    }
}
