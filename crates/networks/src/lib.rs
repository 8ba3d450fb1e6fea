//! **Neural networks as graphs**: forward passes and every derivative that Bayesian inference needs.
//!
//! | module | holds |
//! |---|---|
//! | [`graph`] | structure ([`Graph`], [`GraphBuilder`]), networks with numbers ([`Network`]), selections of parameters |
//! | [`derivatives`] | products with Jacobians, Gauss-Newton matrices, tangent kernels and their gradients |
//! | [`train`] | training of small networks |
//! | [`architecture`] | networks described by a few numbers, in TOML or in code |
//! | [`safetensors`] | weights in files: named tensors, as PyTorch exchanges them |
//! | [`operation`] | what nodes compute, each with its derivatives |
//! | `precision` | [`Precision`]: single and double, each compiled here and nowhere else |
//! | `array` | the array kernels: the one module that touches numbers in bulk |

pub mod architecture;
mod array;
pub mod derivatives;
pub mod graph;
pub mod operation;
mod precision;
pub mod safetensors;
pub mod train;

pub use architecture::{Architecture, ArchitectureError};
pub use array::{Activation, Array, Matrix, add_gram, product};
pub use derivatives::{Curvature, OuterTap, Outputs, TangentFeatures, Tap, TapAt};
pub use graph::{
    Graph, GraphBuilder, GraphError, LayerTable, Network, NetworkError, Node, OutputLink, Selection, Trace,
    Value, describe,
};
pub use operation::{Mode, Operation};
pub use precision::{PerNetworkPrecision, Precision};
