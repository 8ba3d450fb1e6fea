//! Function space: Gaussian processes `f ~ GP(m, k)` observed through a likelihood.
//!
//! ```
//! use faer::Mat;
//! use posterior_gp::exact::ExactGp;
//! use posterior_gp::{MeanForm, Observations, Posterior};
//! use posterior_kernels::KernelExpression;
//! use posterior_likelihoods::Gaussian;
//!
//! let x = Mat::from_fn(20, 1, |i, _| i as f64 / 4.0);
//! let y = Mat::from_fn(20, 1, |i, _| x[(i, 0)].sin());
//! let kernel = "se(lengthscale=1)".parse::<KernelExpression>()?.build(&["x".into()])?;
//! let model = ExactGp::new(kernel, MeanForm::Zero, Gaussian::new(1e-4, 0.0), 1, 1);
//! let posterior = model.condition(Observations::new(x, y, None)?)?;
//!
//! let there = posterior.predict(Mat::from_fn(2, 1, |i, _| if i == 0 { 2.1 } else { 40.0 }).as_ref())?;
//! assert!((there.mean[(0, 0)] - 2.1f64.sin()).abs() < 0.01);
//! // Far from all data the prior is all there is.
//! assert!(there.latent_variance[0] < 1e-3 && there.latent_variance[1] > 0.99);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Some thousand rows: [`exact`]. More: [`inducing`] where the function is smooth for the spacing of its data, [`iterative`] otherwise. Users who want all of
//! that decided for them start at the crate `posterior`.
//!
//! | file | what |
//! |---|---|
//! | [`data`](Observations) | inputs, targets and per-row noise, checked once |
//! | [`mean`](Mean) | `m(x)`: zero, constant, linear |
//! | [`hyperprior`](Hyperprior) | priors on hyperparameters, added to what is maximised |
//! | `search` | hyperparameters of methods in closed form: constraints, priors, starts |
//! | [`prediction`](Prediction) | what every posterior answers |
//! | [`inducing`] | inducing points: collapsed and stochastic bounds, `O(n m²)` time and `O(m²)` memory |
//! | [`exact`] | Cholesky: everything in closed form, `O(n³)` time and `8n²` bytes |
//! | [`function_space`] | C functions under any likelihood, near which it is quadratic: exact covariances for any kernel of several functions |
//! | [`gaussianised`] | classes, events and counts: a bound on their evidence whose posterior is that of regression on Gaussian pseudo-targets |
//! | [`generalised`] | means and covariances that are free of each other: a risk of the data and a regulariser (Gaussian Wasserstein inference, projected regularisers) |
//! | [`laplace`] | any likelihood by the curvature at the mode, hyperparameters by its evidence |
//! | [`latent_mode`] | the posterior mode of such functions, by Newton's method on their kernel matrix |
//! | [`iterative`] | stochastic dual descent, gradient descent, conjugate gradients: products with the kernel matrix only |
//!
//! Weight space is the other wing of the house (`linear`): the same posterior seen from the other side of the duality.

mod data;
mod error;
pub mod exact;
pub mod function_space;
pub mod gaussianised;
pub mod generalised;
mod hyperprior;
pub mod inducing;
pub mod iterative;
pub mod laplace;
pub mod latent_mode;
mod low_rank;
mod mean;
mod parameters;
mod prediction;
mod rows;
mod search;

pub use data::{Observations, Parting};
pub use error::GpError;
pub use hyperprior::{Density, Hyperprior, WEAK_AMPLITUDE};
pub use mean::{Mean, MeanForm};
pub use prediction::{Averages, JointPrediction, Posterior, Prediction};
pub use rows::RowSource;
