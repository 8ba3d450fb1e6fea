//! Distances between the predictions of two methods, for judging an approximation by its reference.

mod divergence;
mod wasserstein;

pub use divergence::{mean_symmetric_kl, symmetric_kl};
pub use wasserstein::{squared_wasserstein2_gaussians, wasserstein2_marginals};
