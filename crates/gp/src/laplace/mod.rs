//! Gaussian processes under any likelihood by **Laplace's approximation**, with hyperparameters by its evidence.
//!
//! C latent functions with one kernel, independent a priori, `F = m + K A` (n x C). At the mode `A` is the gradient of the log-likelihood; its curvature there is `W`, diagonal or, for
//! classes, `D - D R (RᵀDR)⁻¹ RᵀD` with R the sum over classes. With `B_c = I + √D_c K √D_c`, `E_c = √D_c B_c⁻¹ √D_c` and `S = Σ_c E_c`
//!
//! ```text
//! (K + W⁻¹)⁻¹      Q = E - E R S⁻¹ RᵀE                                        (Q = E where W is diagonal)
//! Newton's step    A = b - Q K b,      b = W (F - m) + ∇ log p
//! log evidence     log p(Y | F) - ½ Σ A (F - m) - ½ [Σ_c log |B_c| + log |S| - log |RᵀDR|]
//! covariance       k(x, x) - k(x, X) Q k(X, x)
//! ```
//!
//! so that no matrix is larger than n x n: C factors where W is diagonal, C + 1 for classes. What the mode moves with hyperparameters is in the gradient.
//!
//! Source: Rasmussen and Williams, *Gaussian Processes for Machine Learning* (2006), sections 3.4, 3.5 and 5.5.1 (the determinant with the part that their algorithm 3.3 leaves out).
//!
//! | file | what |
//! |---|---|
//! | `model` | kernel, means, likelihood with their parameters |
//! | `curvature` | W and everything that is factored of it |
//! | `mode` | Newton's method |
//! | `evidence` | log evidence and gradient |
//! | `fit` | hyperparameters: L-BFGS |
//! | `posterior` | predictions, draws, rows left out |

mod curvature;
mod evidence;
mod fit;
mod mode;
mod model;
mod posterior;

pub use evidence::{LaplaceEvaluation, laplace_evidence, laplace_evidence_and_gradient};
pub use fit::{LaplaceFit, fit_laplace};
pub use mode::Mode;
pub use model::LaplaceGp;
pub use posterior::{LaplaceParts, LaplacePosterior, LatentPrediction};

#[cfg(test)]
mod tests;
