//! **Priors of an image** that are no network's: Gaussian, zero mean, covariance `K = F Fᵀ`, given by the root F (pixels x whitened weights) as a
//! [`LinearOperator`](posterior_linalg::operator::LinearOperator).
//!
//! | file | prior | a product with F, each column |
//! |---|---|---|
//! | `isotropic` | [`Isotropic`]: `K = σ² I` | p |
//! | `matern` | [`Matern`], [`MaternRoot`]: `K = σ² exp(-‖p - p'‖ / ℓ)` | `O(n log n)`, n pixels of the torus |
//! | `torus` | [`Torus`]: images on a larger, closed grid, where covariances are filters | |
//! | `evidence` | [`PilotEvidence`]: lengthscale, variance and noise from a pilot scan | |
//! | `error` | [`PriorError`] | |
//!
//! ```
//! use faer::mat;
//! use posterior_linalg::operator::LinearOperator;
//! use posterior_tomography::priors::Matern;
//! // Three pixels in a row: neighbours correlate by 1/e, the ends by 1/e².
//! let root = Matern { height: 1, width: 3, lengthscale: 1.0, variance: 1.0 }.root(4.0)?;
//! let covariance = root.multiply(root.multiply_transpose(mat![[1.0], [0.0], [0.0]].as_ref()).as_ref());
//! assert!((covariance[(1, 0)] - (-1f64).exp()).abs() < 1e-12 && (covariance[(2, 0)] - (-2f64).exp()).abs() < 1e-12);
//! assert_eq!(root.embedding().clipped, 0);
//! # Ok::<(), posterior_tomography::priors::PriorError>(())
//! ```
//!
//! Pixels are row-major, distances in pixels. Source: Antorán (2024), section 7.5.

mod error;
mod evidence;
mod isotropic;
mod matern;
mod torus;

#[cfg(test)]
mod tests;

pub use error::PriorError;
pub use evidence::{MaternFit, NoiseModel, PilotEvidence};
pub use isotropic::Isotropic;
pub use matern::{Embedding, Matern, MaternProduct, MaternRoot};
pub use torus::Torus;
