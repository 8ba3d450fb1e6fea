//! **Where not to trust the picture**: from a sinogram and the network that explains it to draws of the pictures that it leaves possible, in one go that can be interrupted.
//!
//! ```text
//! scales or Jacobian -> hyperparameters and noise -> draws of the posterior -> standard deviation of each pixel
//! ```
//!
//! | file | what |
//! |---|---|
//! | `options` | [`UncertaintyOptions`]: which prior, how many draws |
//! | `plan` | [`plan`]: bytes and operations |
//! | `g_prior` | scales, expectation maximisation, its state |
//! | `filters` | variances and lengthscales by the evidence |
//! | `pictures` | draws, a few at a time |
//! | `infer` | [`infer`]: all of it |

mod filters;
mod g_prior;
mod infer;
mod options;
mod pictures;
mod plan;

pub use g_prior::fit_g_prior;
pub use infer::{PriorReport, Uncertainty, UncertaintyReport, infer};
pub use options::{FilterOptions, ImagePriorChoice, UncertaintyOptions};
pub use plan::plan;

#[cfg(test)]
mod tests;
