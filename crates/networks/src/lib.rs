//! **Neural networks as graphs**: forward passes and every derivative that Bayesian inference needs.
//!
//! ```
//! use posterior_linalg::random::Streams;
//! use posterior_networks::{Architecture, Array, Network, Outputs, Selection};
//!
//! let text = "kind = 'perceptron'\ninputs = 2\nhidden = [8]\noutputs = 1\nactivation = 'tanh'";
//! let network = Network::<f64>::initialised(Architecture::from_toml(text)?.graph()?, Streams::new(0))?;
//! let x = Array::new(vec![3, 2], vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
//! assert_eq!(network.forward(&x)?.shape(), [3, 1]);
//! // Every derivative that inference needs, for all weights or some of them.
//! let jacobian = network.jacobian(&x, &Selection::last_layer(network.graph())?, &Outputs::All, 1 << 20)?;
//! assert_eq!(jacobian.shape(), [3, 9]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A network that exists is read by [`safetensors`] or the crate `posterior-onnx`; a new kind of layer is an [`operation`].
//!
//! | module | holds |
//! |---|---|
//! | [`graph`] | structure ([`Graph`], [`GraphBuilder`]), networks with numbers ([`Network`]), selections of parameters |
//! | [`derivatives`] | products with Jacobians, Gauss-Newton matrices, tangent kernels and their gradients |
//! | [`train`] | training of small networks |
//! | [`architecture`] | networks described by a few numbers, in TOML or in code |
//! | [`safetensors`] | weights in files: named tensors, as PyTorch exchanges them |
//! | `state_dict` | the same in files of `torch.save` |
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
mod state_dict;
mod tensors_in_file;
pub mod train;

pub use architecture::{Architecture, ArchitectureError};
pub use array::{Activation, Array, Matrix, WAITING_BYTES, add_gram, product, release_buffers};
pub use derivatives::{Curvature, OuterTap, Outputs, TangentFeatures, Tap, TapAt};
pub use graph::{
    Graph, GraphBuilder, GraphError, LayerTable, Network, NetworkError, Node, OutputLink, Selection, Trace,
    Value, describe, layer_lines,
};
pub use operation::{Mode, Operation};
pub use precision::{PerNetworkPrecision, Precision};
