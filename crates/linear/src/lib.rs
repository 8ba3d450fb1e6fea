//! **Weight space**: Gaussian inference in a linear model `f(x) = Phi(x) w` with prior `w ~ N(0, A^-1)`.
//!
//! Everything rests on two matrices: the data's curvature `M = Phi^T B Phi` (`B`: precision of the observations) and the prior's
//! precision `A`. The posterior covariance is `(M + A)^-1`, the evidence needs `log det(I + A^-1 M)`, and the effective dimension
//! `Tr((M + A)^-1 M)` says how many directions the data decided.
//!
//! ```
//! use faer::Mat;
//! use posterior_linear::evidence::DualModel;
//!
//! // A line through four points: as many functions as points, or as many weights as features; the small side is decomposed.
//! let features = Mat::from_fn(4, 2, |i, j| if j == 0 { 1.0 } else { i as f64 });
//! let targets = [0.1, 0.9, 2.1, 2.9];
//! let model = DualModel::new((&features * features.transpose()).as_ref(), &targets, "the line's kernel")?;
//! let (precision, noise) = (1e-3, 0.01);
//! let coefficients = model.coefficients(precision, noise);
//! let weight = |j: usize| (0..4).map(|i| features[(i, j)] * coefficients[i]).sum::<f64>() / precision;
//! assert!(weight(0).abs() < 0.1 && (weight(1) - 0.96).abs() < 0.02);
//! # Ok::<(), posterior_linear::structure::StructureError>(())
//! ```
//!
//! More data than features: [`structure`] and [`evidence`] in weight space; more features than data: the dual model above, or `gp`.
//!
//! | module | what |
//! |---|---|
//! | [`Prior`] | diagonal priors with one precision for each group of weights |
//! | [`structure`] | `M` in dense, diagonal, Kronecker-factored and low-rank blocks; its spectra; the posterior |
//! | [`evidence`] | the Laplace evidence of a structured curvature and its maximum; Gaussian noise in closed form, in weight space or by duality |
//! | [`features`] | feature maps by their products: a stored matrix here, the tangent of a network elsewhere; batches of examples |
//! | [`curvature`] | `M` of any feature map, summed over mini-batches in each form |
//! | [`low_rank`] | models of a few features, learned or not, in time linear in the rows: evidence, bounds, predictions |
//! | [`embedding`] | maps of rows to a few numbers, on which a kernel acts, with parameters that are learned |
//! | [`training`] | Adam that rows held back judge: validation scores, patience, smaller steps |
//! | [`latent`] | what a posterior says about the outputs of a batch |
//! | [`mode`] | the posterior mode under any likelihood: Newton's method by products alone |
//! | [`streaming`] | the exact posterior of rows that arrive one after the other, in bounded memory |
//! | [`check`] | sizes and finite numbers, with errors that name what is wrong |
//! | [`sampled`] | the posterior as samples by products alone, and precisions by expectation maximisation |

pub mod check;
pub mod curvature;
pub mod embedding;
mod error;
pub mod evidence;
pub mod features;
pub mod latent;
pub mod low_rank;
pub mod mode;
mod prior;
pub mod sampled;
pub mod streaming;
pub mod structure;
pub mod training;

pub use error::LinearError;
pub use features::{FeatureMap, Linearised};
pub use prior::{Prior, PriorError};

#[cfg(test)]
mod tests;
