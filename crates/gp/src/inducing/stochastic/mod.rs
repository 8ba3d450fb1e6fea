//! The **stochastic bound** (SVGP): a free Gaussian over whitened inducing values, any likelihood, mini-batches.
//!
//! ```text
//! log p(y) >= n/|I| Σ_{i∈I} E_q log p(y_i | f(x_i)) - KL(q ‖ N(0, I))
//! ```
//!
//! in expectation over uniformly drawn batches I. C latent functions share kernel and inducing inputs and are independent in q. With
//! slopes g in means and h in variances of the expectations, the data term's gradient is `A g` in the mean of q and
//! `G = A diag(h) Aᵀ` in its covariance; G serves natural gradients, Adam, and the way back to kernel and Z
//! ([`DataTerm`](posterior_linear::low_rank::DataTerm)). A step costs `(2 + 3C) r m²` and a few `m³` flops.
//!
//! Source: Hensman, Fusi and Lawrence (2013), *Gaussian processes for big data*; Hensman, Matthews and Ghahramani (2015),
//! *Scalable variational Gaussian process classification*; natural gradients: Salimbeni, Eleftheriadis and Hensman (2018);
//! spec `stochastic_gaussian_processes`, section 11.2.
//!
//! | file | what |
//! |---|---|
//! | `model` | kernel, means, likelihood and inducing inputs with their parameters |
//! | `bound` | the bound of a batch with all its gradients |
//! | `options` | how to fit |
//! | `state` | where a fit stands, as plain data |
//! | `fit` | one step, and what comes out of all of them |

mod bound;
mod fit;
mod model;
mod options;
mod state;

pub use bound::{Batch, StochasticEvaluation, Wanted, stochastic_bound, stochastic_bound_and_gradient};
pub use fit::{StochasticFit, StochasticIterate, fit_stochastic};
pub use model::StochasticGp;
pub use options::{StochasticOptions, VariationalOptimizer};
pub use posterior_linear::low_rank::natural_step;
pub use state::StochasticState;

#[cfg(test)]
mod tests;
