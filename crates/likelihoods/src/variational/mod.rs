//! **Expected log densities** under a Gaussian `q(f)` with independent latent values: what variational inference asks of a
//! likelihood, and the predictions that belong to it.
//!
//! | file | what |
//! |---|---|
//! | [`VariationalLikelihood`] | one of the likelihoods below, as written in a configuration |
//! | `softmax` | `E[log Σ exp f]` and `E[softmax f]` for any number of classes by two nested one-dimensional integrals |
//! | `trapezoid` | expectations under a Gaussian, exact to rounding for integrands that are analytic in a strip |
//!
//! | likelihood | expectation | slopes |
//! |---|---|---|
//! | Gaussian, Poisson | closed form | closed form |
//! | Bernoulli, logit or probit | trapezoid rule | the same |
//! | Student-t | one exponentially convergent integral | of the sum |
//! | softmax | exponentially convergent integrals; no Monte Carlo | of the sum |

mod likelihood;
mod softmax;
mod trapezoid;

pub use likelihood::{VariationalLikelihood, VariationalWorkspace};
pub(crate) use trapezoid::nodes;
