//! **A network's tangent** at its trained weights, `h(w, x) = g(x) + J(x) (w - v)`: a linear model whose features are the Jacobian. It is what
//! linearised Laplace, and every other method that asks a trained network for its uncertainty, does its inference in.
//!
//! | file | what |
//! |---|---|
//! | `features` | [`Tangent`]: the Jacobian as a [`FeatureMap`](posterior_linear::FeatureMap), by products in the network's own precision |
//! | `segments` | which weights belong together, and which are weight matrices |
//! | `curvature` | a batch's curvature in each form, from what passes the layers on the way back |
//! | `covariances`, `outer` | covariances of a batch's outputs, without gradients of fully connected layers |
//! | `kernel` | [`TangentKernel`]: `J(x) J(z)^T` as a [`BlockKernel`](posterior_kernels::BlockKernel), with gradients in its inputs |
//! | `gram` | [`tangent_gram`]: that of all examples, in doubles, rows in pieces |
//! | `learned` | [`NetworkEmbedding`]: outputs with the way back to the weights; [`NetworkFeatures`], [`DeepInducing`]: outputs, or inducing points behind them, as features that are trained ([`posterior_linear::low_rank`]); [`MappedKernel`]: a kernel behind them |
//! | `head` | [`Head`]: an output layer alone needs no way back |
//! | `observations` | [`Batch`], [`Observed`]: inputs and checked targets, batch by batch |
//!
//! ```
//! use posterior_linalg::random::Streams;
//! use posterior_linear::FeatureMap;
//! use posterior_networks::{Architecture, Array, Network, Selection};
//! use posterior_tangent::Tangent;
//!
//! let architecture = Architecture::from_toml("kind = 'perceptron'\ninputs = 2\nhidden = [3]\noutputs = 1\nactivation = 'tanh'")?;
//! let network = Network::<f64>::initialised(architecture.graph()?, Streams::new(0))?;
//! let selection = Selection::all(network.graph());
//! let tangent = Tangent::new(&network, &selection);
//! let x = Array::new(vec![2, 2], vec![0.1, -0.4, 0.7, 0.2]);
//! let outputs = network.forward(&x)?;
//! // At the trained weights the linear model is the network.
//! assert_eq!(tangent.at(x)?.outputs(), outputs.values());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod covariances;
mod curvature;
mod features;
mod gram;
mod head;
mod kernel;
mod learned;
mod observations;
mod outer;
mod segments;

pub use features::Tangent;
pub use gram::{GramPlan, tangent_gram};
pub use head::Head;
pub use kernel::TangentKernel;
pub use learned::{DeepInducing, MappedKernel, NetworkEmbedding, NetworkFeatures};
pub use observations::{
    Batch, ObservationError, Observed, batch_size, check_outputs, doubles, passing_batch_size, ranges,
    target_values, through_batch_size,
};
pub use segments::{segments, weight_matrix};
