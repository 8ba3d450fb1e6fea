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
//! | [`evidence`] | the Laplace evidence of a structured curvature and its maximum; Gaussian noise in closed form, in weight space or by duality |
//! | [`features`] | feature maps by their products: a stored matrix here, the tangent of a network elsewhere; batches of examples |
//! | [`curvature`] | `M` of any feature map, summed over mini-batches in each form |
//! | [`latent`] | what a posterior says about the outputs of a batch |
//! | [`mode`] | the posterior mode under any likelihood: Newton's method by products alone |

mod check;
pub mod curvature;
mod error;
pub mod evidence;
pub mod features;
pub mod latent;
pub mod mode;
mod prior;
pub mod structure;

pub use error::LinearError;
pub use features::{FeatureMap, Linearised};
pub use prior::{Prior, PriorError};

#[cfg(test)]
mod tests;
