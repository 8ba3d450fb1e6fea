//! **Operators** on values that are computed from the data: each becomes one or a few operations of the graph.
//!
//! | file | operators |
//! |---|---|
//! | `classical` | scalers and linear models of the domain `ai.onnx.ml` |
//! | `elementwise` | activations, casts, dropout, powers |
//! | `attention`, `einsum` | as named |
//! | `binary` | sums, differences, products, quotients, extremes, of two values or with a constant |
//! | `choice` | comparisons, `Where`, triangles of matrices |
//! | `linear` | `Gemm`, `MatMul` |
//! | `convolution`, `pooling`, `resize` | as named |
//! | `normalisation`, `other_norms` | batch, layer, RMS, group and instance norm; norms without weights |
//! | `softmax` | softmax and its logarithm |
//! | `reduce` | means, sums, norms, extremes and products over axes |
//! | `recurrent` | `LSTM`, `GRU`, `RNN` |
//! | `shape` | reshapes and other orders of axes |
//! | `slicing` | slices, gathers, splits, joins, repetition |
//! | `pad` | padding |

mod attention;
mod binary;
mod choice;
mod classical;
mod convolution;
mod einsum;
mod elementwise;
mod linear;
mod normalisation;
mod other_norms;
mod pad;
mod pooling;
mod recurrent;
mod reduce;
mod resize;
mod shape;
mod slicing;
mod softmax;

use super::error::Fault;
use super::importer::{Importer, Known};
use super::layout::Tracked;
use super::node::Node;
pub(super) use choice::in_triangle;

/// Operators that are read, in the uses that inference has for them.
pub const SUPPORTED: &[&str] = &[
    "Abs",
    "Add",
    "And",
    "Attention",
    "AveragePool",
    "BatchNormalization",
    "Cast",
    "CastLike",
    "Ceil",
    "Celu",
    "Clip",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Conv",
    "ConvTranspose",
    "Cos",
    "DepthToSpace",
    "Div",
    "Dropout",
    "Einsum",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Expand",
    "Flatten",
    "Floor",
    "GRU",
    "Gather",
    "GatherND",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "Greater",
    "GreaterOrEqual",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "InstanceNormalization",
    "IsInf",
    "IsNaN",
    "LRN",
    "LSTM",
    "LayerNormalization",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "LogSoftmax",
    "LpNormalization",
    "LpPool",
    "MatMul",
    "Max",
    "MaxPool",
    "Mean",
    "MeanVarianceNormalization",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "PRelu",
    "Pad",
    "Pow",
    "RMSNormalization",
    "RNN",
    "Range",
    "Reciprocal",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Relu",
    "Reshape",
    "Resize",
    "Round",
    "Selu",
    "Shape",
    "Shrink",
    "Sigmoid",
    "Sign",
    "SimplifiedLayerNormalization",
    "Sin",
    "Size",
    "Slice",
    "Softmax",
    "Softplus",
    "Softsign",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Sum",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Tile",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Upsample",
    "Where",
    "Xor",
];

/// The outputs of a node, in order; outputs that inference has no use for are left out.
pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Vec<Known>, Fault> {
    if node.domain == classical::DOMAIN {
        return classical::translate(importer, node);
    }
    // A program has its RMS norm in a domain of its own.
    let rms = node.domain == "com.microsoft" && node.operator == "SimplifiedLayerNormalization";
    if !node.domain.is_empty() && !rms {
        return Err(Fault::Unsupported(format!(
            " (it is of the domain `{}`)",
            super::error::short(&node.domain)
        )));
    }
    if let Some(fused) = node.fused {
        return normalisation::fused(importer, node, fused).map(one);
    }
    match node.operator.as_str() {
        "Split" => slicing::split(importer, node),
        "LSTM" | "GRU" | "RNN" => recurrent::translate(importer, node),
        operator if SUPPORTED.binary_search(&operator).is_ok() => single(importer, node).map(one),
        _ => Err(Fault::Unsupported(String::new())),
    }
}

fn one(value: Tracked) -> Vec<Known> {
    vec![Known::Tracked(value)]
}

fn single(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    match node.operator.as_str() {
        "Add" | "Sub" | "Mul" | "Div" | "Sum" | "Mean" | "Max" | "Min" => binary::translate(importer, node),
        "Pow" => elementwise::power(importer, node),
        "Where" => choice::choose(importer, node),
        "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "And" | "Or" | "Xor" | "Not" => {
            choice::condition(importer, node)
        }
        "Trilu" => choice::triangle(importer, node),
        "Einsum" => einsum::translate(importer, node),
        "Attention" => attention::translate(importer, node),
        "Gemm" => linear::gemm(importer, node),
        "MatMul" => linear::mat_mul(importer, node),
        "Conv" | "ConvTranspose" => convolution::translate(importer, node),
        "MaxPool" | "AveragePool" | "LpPool" | "GlobalMaxPool" => pooling::translate(importer, node),
        "GlobalAveragePool" | "GlobalLpPool" => reduce::translate(importer, node),
        operator if operator.starts_with("Reduce") => reduce::translate(importer, node),
        "BatchNormalization" => normalisation::batch(importer, node),
        "LayerNormalization" => normalisation::layer(importer, node),
        "RMSNormalization" | "SimplifiedLayerNormalization" => normalisation::rms(importer, node),
        "LpNormalization" => other_norms::unit(importer, node),
        "MeanVarianceNormalization" => other_norms::mean_variance(importer, node),
        "LRN" => other_norms::local_response(importer, node),
        "InstanceNormalization" | "GroupNormalization" => normalisation::groups(importer, node),
        "Softmax" | "LogSoftmax" => softmax::translate(importer, node),
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Transpose" | "DepthToSpace" => {
            shape::translate(importer, node)
        }
        "Slice" => slicing::slice(importer, node),
        "Gather" | "GatherND" => slicing::gather(importer, node),
        "Concat" => slicing::concat(importer, node),
        "Pad" => pad::translate(importer, node),
        "Expand" => slicing::expand(importer, node),
        "Resize" | "Upsample" => resize::translate(importer, node),
        _ => elementwise::translate(importer, node),
    }
}
