//! **Neural networks as graphs**: forward passes and every derivative that Bayesian inference needs.
//!
//! | module | holds |
//! |---|---|
//! | [`graph`] | structure ([`Graph`], [`GraphBuilder`]), networks with numbers ([`Network`]), selections of parameters |
//! | [`derivatives`] | products with Jacobians, Gauss-Newton matrices, tangent kernels and their gradients |
//! | [`train`] | training of small networks |
//! | [`operation`] | what nodes compute, each with its derivatives |
//! | `array` | the array kernels: the one module that touches numbers in bulk |

mod array;
pub mod derivatives;
pub mod graph;
pub mod operation;
pub mod train;

pub use array::{Activation, Array, Precision};
pub use derivatives::{Curvature, Outputs, TangentFeatures, Tap};
pub use graph::{Graph, GraphBuilder, GraphError, Network, NetworkError, Selection, Trace, Value};
pub use operation::{Mode, Operation};
