//! **Operators** on values that are computed from the data: each becomes one or a few operations of the graph.
//!
//! | file | operators |
//! |---|---|
//! | `elementwise` | activations, casts, dropout, powers |
//! | `binary` | sums, differences, products, quotients, of two values or with a constant |
//! | `linear` | `Gemm`, `MatMul` |
//! | `convolution`, `pooling`, `resize` | as named |
//! | `normalisation` | batch, layer, group and instance norm, softmax |
//! | `reduce` | means and sums over axes |
//! | `shape` | reshapes and other orders of axes |
//! | `parts` | slices, gathers, splits, joins, padding, repetition |

mod binary;
mod convolution;
mod elementwise;
mod linear;
mod normalisation;
mod parts;
mod pooling;
mod reduce;
mod resize;
mod shape;

use super::error::Fault;
use super::importer::{Importer, Known};
use super::layout::Tracked;
use super::node::Node;

/// Operators that are read, in the uses that inference has for them.
pub const SUPPORTED: &[&str] = &[
    "Add",
    "AveragePool",
    "BatchNormalization",
    "Cast",
    "CastLike",
    "Clip",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Conv",
    "ConvTranspose",
    "DepthToSpace",
    "Div",
    "Dropout",
    "Elu",
    "Erf",
    "Expand",
    "Flatten",
    "Gather",
    "GatherND",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "GroupNormalization",
    "Identity",
    "InstanceNormalization",
    "LayerNormalization",
    "LeakyRelu",
    "LogSoftmax",
    "MatMul",
    "MaxPool",
    "Mul",
    "Neg",
    "PRelu",
    "Pad",
    "Pow",
    "ReduceMean",
    "ReduceSum",
    "Relu",
    "Reshape",
    "Resize",
    "Selu",
    "Shape",
    "Sigmoid",
    "Size",
    "Slice",
    "Softmax",
    "Softplus",
    "Split",
    "Squeeze",
    "Sub",
    "Sum",
    "Tanh",
    "Transpose",
    "Unsqueeze",
    "Upsample",
];

/// The outputs of a node, in order; outputs that inference has no use for are left out.
pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Vec<Known>, Fault> {
    if !node.domain.is_empty() {
        return Err(Fault::Unsupported(format!(
            " (it is of the domain `{}`)",
            super::error::short(&node.domain)
        )));
    }
    if let Some(fused) = node.fused {
        return normalisation::fused(importer, node, fused).map(one);
    }
    match node.operator.as_str() {
        "Split" => parts::split(importer, node),
        operator if SUPPORTED.binary_search(&operator).is_ok() => single(importer, node).map(one),
        _ => Err(Fault::Unsupported(String::new())),
    }
}

fn one(value: Tracked) -> Vec<Known> {
    vec![Known::Tracked(value)]
}

fn single(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    match node.operator.as_str() {
        "Add" | "Sub" | "Mul" | "Div" | "Sum" => binary::translate(importer, node),
        "Gemm" => linear::gemm(importer, node),
        "MatMul" => linear::mat_mul(importer, node),
        "Conv" | "ConvTranspose" => convolution::translate(importer, node),
        "MaxPool" | "AveragePool" | "GlobalMaxPool" => pooling::translate(importer, node),
        "GlobalAveragePool" | "ReduceMean" | "ReduceSum" => reduce::translate(importer, node),
        "BatchNormalization" => normalisation::batch(importer, node),
        "LayerNormalization" => normalisation::layer(importer, node),
        "InstanceNormalization" | "GroupNormalization" => normalisation::groups(importer, node),
        "Softmax" | "LogSoftmax" => normalisation::softmax(importer, node),
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Transpose" | "DepthToSpace" => {
            shape::translate(importer, node)
        }
        "Slice" => parts::slice(importer, node),
        "Gather" | "GatherND" => parts::gather(importer, node),
        "Concat" => parts::concat(importer, node),
        "Pad" => parts::pad(importer, node),
        "Expand" => parts::expand(importer, node),
        "Resize" | "Upsample" => resize::translate(importer, node),
        _ => elementwise::translate(importer, node),
    }
}
