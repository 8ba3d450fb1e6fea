//! Function space: Gaussian processes `f ~ GP(m, k)` observed through a likelihood.
//!
//! | file | what |
//! |---|---|
//! | [`data`](Observations) | inputs, targets and per-row noise, checked once |
//! | [`mean`](Mean) | `m(x)`: zero, constant, linear |
//! | [`hyperprior`](Hyperprior) | beliefs about hyperparameters, added to what is maximised |
//! | [`prediction`](Prediction) | what every posterior answers |
//! | [`inducing`] | inducing points: collapsed and stochastic bounds, `O(n m²)` time and `O(m²)` memory |
//! | [`exact`] | Cholesky: everything in closed form, `O(n³)` time and `8n²` bytes |
//! | [`function_space`] | C functions under any likelihood, near which it is quadratic: exact covariances for any kernel of several functions |
//! | [`iterative`] | stochastic dual descent, gradient descent, conjugate gradients: products with the kernel matrix only |
//!
//! Weight space is the other wing of the house (`linear`): the same posterior seen from the other side of the duality.

mod data;
mod error;
pub mod exact;
pub mod function_space;
mod hyperprior;
pub mod inducing;
pub mod iterative;
mod mean;
mod parts;
mod prediction;

pub use data::Observations;
pub use error::GpError;
pub use hyperprior::{Density, Hyperprior};
pub use mean::{Mean, MeanForm};
pub use prediction::{JointPrediction, Posterior, Prediction};
