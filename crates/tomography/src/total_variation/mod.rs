//! **Total variation**: pictures that are flat where measurements do not say otherwise,
//!
//! `x̃ = argmin (1/c) ‖T x - y‖² + λ TV(x)`, `TV(x) = Σ |differences of neighbours along each axis|`.
//!
//! | file | what |
//! |---|---|
//! | `variation` | [`TotalVariation`]: value, subgradient, differences and their transpose, in two and three dimensions |
//! | `problem` | [`Penalised`]: the objective |
//! | `primal_dual` | [`reconstruct`], the default: a method that knows how far from the optimum it is at most |
//! | `draws` | [`VariationPrior`]: pictures that it expects, by Hamiltonian Monte Carlo |
//! | `pixels` | [`reconstruct_by_adam`]: as published, Adam on the pixels |
//!
//! With noise of precision b the Bayesian reading `b ‖T x - y‖² + TV(x)` is `λ = 1/(b c)`.
//!
//! Source: spec `tomography`, sections 2 and 9.4.

mod draws;
mod pixels;
mod primal_dual;
mod problem;
#[cfg(test)]
mod tests;
mod variation;

pub use draws::{Chain, ChainOptions, VariationPrior};
pub use pixels::{AdamOptions, reconstruct_by_adam};
pub use primal_dual::{PrimalDualOptions, PrimalDualState, Reconstructed, reconstruct};
pub use problem::Penalised;
pub use variation::TotalVariation;
