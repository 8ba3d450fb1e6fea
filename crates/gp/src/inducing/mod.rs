//! **Inducing points**: a Gaussian process summarised by its values at m inputs Z.
//!
//! Whitened inducing values `v = L⁻¹ f(Z)`, `K_ZZ = L Lᵀ`, have the prior `N(0, I)`; a point x sees them through its features
//! `a(x) = L⁻¹ k(Z, x)`. With `q(v) = N(m, R Rᵀ)`
//!
//! ```text
//! E f(x) = m(x) + a(x)ᵀ m          var f(x) = k(x, x) - ‖a(x)‖² + ‖Rᵀ a(x)‖²
//! ```
//!
//! Both methods bound the log evidence from below; they differ in where q comes from.
//!
//! | module | q | cost of a step | likelihoods |
//! |---|---|---|---|
//! | [`collapsed`] | optimal, in closed form | `O(n m²)` | Gaussian |
//! | [`stochastic`] | natural gradients or Adam on mini-batches of r rows | `O(r m² + m³)` | any [`posterior_likelihoods::Likelihood`] |
//!
//! [`streaming`] is what both leave behind going on with rows that arrive later. [`fixed_mean`] summarises the covariance only, of a process of C functions whose posterior mean is given: error bars for a trained network.
//!
//! | file | what |
//! |---|---|
//! | `prior` | [`SparseGp`]: prior, likelihood and inducing inputs, the model of both bounds |
//! | `posterior` | [`InducingPosterior`]: what both methods leave behind |
//! | `pathwise` | [`PathwiseSamples`]: draws that are functions |
//! | `plan` | memory and work, stated before anything is allocated |

pub mod collapsed;
mod error;
pub mod fixed_mean;
mod pathwise;
mod plan;
mod posterior;
mod prior;
pub mod stochastic;
pub mod streaming;

pub use error::InducingError;
pub use pathwise::PathwiseSamples;
pub use plan::Plan;
pub(crate) use posterior::check_targets;
pub use posterior::{InducingPosterior, LatentMarginals};
pub use posterior_linear::low_rank::WeightDistribution as InducingDistribution;
pub use prior::SparseGp;

/// What is always added to the diagonal of `K_ZZ`, relative to its mean: inducing points that move may meet.
pub const DEFAULT_JITTER: f64 = 1e-8;
