//! **Where to look next**: the scan angle that tells most about the image, one after the other (Antorán 2024, section 7.5).
//!
//! The image has the prior `N(0, K)`, `K = F Fᵀ`; of an angle β, `per_angle` detector elements are measured with noise of variance σ². After some angles its measurements have covariance `Σ_β = T_β K_{x|y} T_βᵀ`
//! without the noise; the [`Acquisition`] makes a number of it. No measurement enters: a whole design is known before the scan, but for a prior that is [refreshed](Designer::refresh) from what was seen.
//!
//! | file | what |
//! |---|---|
//! | `scanner` | [`Scanner`]: rows of the projector by angles; [`DenseScanner`] |
//! | `acquisition` | [`Acquisition`]: information gain, its diagonal form, variance; of a covariance or of samples |
//! | `designer` | [`Designer`]: scores, choice, addition, a new prior; its [state](DesignState) |
//! | `exact` | all `Σ_β` by whitened cross covariances: `R x c` numbers for R rows of all angles |
//! | `sampled` | posterior draws of the image, conditioned on each new angle, and the growing factor of C: `p m + c²` numbers |
//! | `plan` | [`DesignPlan`]: bytes and operations, before anything is allocated |
//! | `baselines` | [`equidistant`], [`largest_gaps`], [`random`] |
//! | `error` | [`DesignError`] |
//!
//! ```
//! use faer::mat;
//! use posterior_tomography::design::{Acquisition, DenseScanner, DesignMethod, DesignSettings, Designer};
//! use posterior_tomography::priors::Isotropic;
//! // Three "angles" of one ray each through two pixels: the longest ray first, and not the one that says the same again.
//! let scanner = DenseScanner::new(mat![[1.0, 0.0], [2.0, 2.0], [2.1, 2.0]], 3)?;
//! let prior = Isotropic::new(2, 1.0)?;
//! let (acquisition, method) = (Acquisition::Information, DesignMethod::Exact);
//! let settings = DesignSettings { acquisition, method, noise_variance: 0.1, stabiliser: 0.0, seed: 0 };
//! let mut designer = Designer::new(&scanner, &prior, settings, &[])?;
//! designer.step()?;
//! designer.step()?;
//! assert_eq!(designer.chosen(), [2, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acquisition;
mod baselines;
mod designer;
mod error;
mod exact;
mod plan;
mod sampled;
mod scanner;

#[cfg(test)]
mod tests;

pub use acquisition::Acquisition;
pub use baselines::{equidistant, largest_gaps, random};
pub use designer::{DesignMethod, DesignSettings, DesignState, Designer, Score};
pub use error::DesignError;
pub use plan::DesignPlan;
pub use scanner::{DenseScanner, Scanner};
