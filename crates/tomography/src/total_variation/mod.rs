//! **Total variation**: how rough a picture is, and the smoothest picture that explains a sinogram.
//!
//! | file | what |
//! |---|---|
//! | `value` | [`TotalVariation`]: value and subgradient; [`neighbours`] |
//! | `primal_dual` | [`PrimalDual`]: the minimum, with a bound on how far it is |
//! | `adam` | [`AdamOnPixels`]: as published |
//!
//! Source: Antorán (2024), equations 7.2 and 7.3; spec `tomography`, sections 2 and 9.4.

mod adam;
mod primal_dual;
mod value;

pub use adam::{AdamOnPixels, AdamOnPixelsOptions};
pub use primal_dual::{PrimalDual, PrimalDualOptions, PrimalDualState};
pub use value::{TotalVariation, neighbours};

#[cfg(test)]
mod tests;
