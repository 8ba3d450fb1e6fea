//! **Weight space**: Gaussian inference in a linear model `f(x) = Phi(x) w` with prior `w ~ N(0, A^-1)`.
//!
//! Everything rests on two matrices: the data's curvature `M = Phi^T B Phi` (`B`: precision of the observations) and the prior's
//! precision `A`. The posterior covariance is `(M + A)^-1`, the evidence needs `log det(I + A^-1 M)`, and the effective dimension
//! `Tr((M + A)^-1 M)` says how many directions the data decided.
//!
//! | module | what |
//! |---|---|
//! | [`Prior`] | diagonal priors with one precision for each group of weights |
//! | [`structure`] | `M` in dense, diagonal, Kronecker-factored and low-rank blocks; its spectra; the posterior |
//! | [`evidence`] | the Laplace evidence of a structured curvature and its maximum |
//! | [`features`] | feature maps by their products: a stored matrix here, the tangent of a network elsewhere; batches of examples |
//! | [`curvature`] | `M` of any feature map, summed over mini-batches in each form |
//! | [`latent`] | what a posterior says about the outputs of a batch |
//! | [`noise`] | the precision `B` of the observations and its root, singular ones included |
//! | [`exact`] | the Gaussian posterior in closed form, in weight space or by duality; samples, evidence, updates |
//! | [`mode`] | the posterior mode under any likelihood: Newton's method by products alone |
//! | [`hyperparameters`] | prior precisions and noise from the evidence: MacKay, bounds, expectation maximisation |
//! | [`effective_dimension`] | the effective dimension from samples |

mod check;
pub mod curvature;
mod dense;
pub mod effective_dimension;
mod error;
pub mod evidence;
pub mod exact;
pub mod features;
pub mod hyperparameters;
pub mod latent;
pub mod mode;
pub mod noise;
mod prior;
pub mod structure;

pub use error::LinearError;
pub use exact::ExactPosterior;
pub use features::{FeatureMap, Linearised};
pub use noise::Noise;
pub use prior::{Prior, PriorError};

#[cfg(test)]
mod tests;
