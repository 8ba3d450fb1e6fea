//! **A sparse process whose mean is given**: error bars for a trained network (or any other function g) from its outputs at the training rows.
//!
//! M inducing points, each of which looks at one output, summarise the *covariance* only; the posterior mean is g, whatever the covariance. With `K_z` the prior covariance of the inducing
//! values and L free and lower triangular,
//!
//! ```text
//! H = I + Lᵀ K_z L    S = L H⁻¹ Lᵀ    V(x) = k(x, x) - k(x, Z) S k(Z, x)    KL = ½ log det H - ½ tr(K_z S)
//! loss = n/r Σ_batch -(1/α) log E[p(y | f)^α] + KL,   f ~ N(g(x), V(x))
//! ```
//!
//! With a network's tangent kernel that is variational linearised Laplace (VaLLA), with any other a fixed-mean process: the code is generic in its [kernel](posterior_kernels::LearnedBlockKernel).
//! Sources: Ortega, Rodríguez-Santana and Hernández-Lobato, *Variational linearized Laplace approximation*, ICML 2024 (spec `valla`, section 6), and *Fixed-mean Gaussian processes* (spec `fixed_mean_gp`).
//!
//! A step costs about `14 M³ + 6 r C M²` flops (of which products of two M x M matrices that need half of their result count half), the kernel's tiles and their
//! pullbacks; nothing depends on the number of rows. Memory: some ten matrices of M x M and six of M x rC.
//!
//! | file | what |
//! |---|---|
//! | `model` | [`FixedMeanModel`]: kernel, likelihood, inducing points with their outputs, L, amplitude, companion |
//! | `layout` | the one vector that a fit moves |
//! | `data` | [`FixedMeanData`], [`Batch`]: rows by number |
//! | `covariance` | H, S and the divergence |
//! | `data_term` | energies of a batch with their slopes |
//! | `companion` | the second process with a mean of its own, which keeps the kernel from fitting residuals only |
//! | `energy` | [`energy`]: the loss with all its gradients |
//! | `optimum` | [`ProjectedCurvature`]: the best L where the likelihood is quadratic, one pass |
//! | `fit`, `state`, `options` | [`fit_fixed_mean`]: mini-batches, early stopping, resumed bit for bit |
//! | `posterior` | [`SparseCovariance`]: predictions; [`PointCovariances`]: what they need of a kernel |

mod companion;
mod covariance;
mod data;
mod data_term;
mod energy;
mod error;
mod fit;
mod layout;
mod model;
mod optimum;
mod options;
mod posterior;
mod state;
#[cfg(test)]
mod tests;

pub use data::{Batch, FixedMeanData};
pub use data_term::Draws;
pub use energy::{EnergyGradient, FixedMeanEnergy, energy};
pub use error::FixedMeanError;
pub use fit::{FixedMeanIterate, FixedMeanProcessFit, Validate, fit_fixed_mean};
pub use model::{FixedMeanModel, Learned};
pub use optimum::{ClosedForm, CurvatureSoFar, ProjectedCurvature};
pub use options::FixedMeanFitOptions;
pub use posterior::{PointCovariances, SparseCovariance};
pub use state::{Best, FixedMeanState};
