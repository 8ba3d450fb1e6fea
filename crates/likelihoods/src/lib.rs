//! How observations scatter around latent function values: `p(y | f)`.
//!
//! | file | what |
//! |---|---|
//! | [`Likelihood`] | log density, its derivatives, its expectation under a Gaussian, the predictive moments |
//! | [`Gaussian`] | additive noise |
//! | [`GaussHermite`] | expectations under a Gaussian by quadrature, for likelihoods without closed forms |

mod gaussian;
mod likelihood;
mod quadrature;

pub use gaussian::Gaussian;
pub use likelihood::{Expectation, Likelihood, Moments};
pub use quadrature::GaussHermite;
