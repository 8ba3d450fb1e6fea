//! Gaussian processes under classes, events and counts by a **bound on the log evidence of the likelihood itself, whose posterior is that of regression on Gaussian pseudo-targets**.
//!
//! C latent functions with one kernel, independent a priori, `f_c ~ N(m̄_c, K)` at the rows. Labels become pseudo-targets M and pseudo-noise variances V (n x C) with one pseudo-count
//! ([`Gaussianised`](posterior_likelihoods::gaussianised::Gaussianised)); the posterior of exact regression on these is the approximation, and the pseudo-count is all there is to vary in it. With `D = diag(v_c)`,
//! `A = I + D^-½ K D^-½`, `P = D^-½ A⁻¹ D^-½` and `a = P (m_c - m̄_c)`, for each function
//!
//! ```text
//! q(f_c) = N(m̄_c + K a, S),     S = D^½ (I - A⁻¹) D^½,     s²_n = S_nn
//! KL_c   = ½ [log |A| - Σ_n s²_n / v_n + aᵀ K a]
//! L      = Σ_n w_n E_q log p(y_n | f_1, ..., f_C) - Σ_c KL_c   <=   log p(Y)
//! ```
//!
//! so that no variance of a pseudo-noise, however large, is ever inverted twice. With `g = ∂E/∂μ`, `h = ∂E/∂s²` of the expectations, `t = v h + ½`, `b = P K (g - a)` and `z = g - a - b`
//!
//! ```text
//! adjoint of K     ½ a aᵀ + ½ (z aᵀ + a zᵀ) + D^-½ [A⁻¹ diag(t) A⁻¹ - ½ A⁻¹] D^-½
//! in m̄             a + z
//! in m             b
//! in v_n           -b_n a_n + (1 / v_n) Σ_j t_j (I - A⁻¹)_jn²
//! ```
//!
//! and the slopes of m and v in the pseudo-count lead to its own. Where the pseudo-targets are the likelihood (Gaussian noise) `t = z = b = 0`, and value and gradient are the log evidence and its.
//!
//! The bound is comparable between pseudo-counts and matchings, as evidences of pseudo-targets are not: it needs no rows left out to choose. Cost `2 n³` flops for each function where Laplace's approximation takes a dozen.
//!
//! Source: Bui, *Likelihood approximations via Gaussian approximate inference*, appendix B; spec `likelihood_approximations`, section 6.4. Gradients derived here by matrix differentials.
//!
//! | file | what |
//! |---|---|
//! | `gaussian_labels` | pseudo-targets and pseudo-noise of all rows, with slopes in the pseudo-count |
//! | `bound` | the bound for any pseudo-targets and any likelihood, with all its adjoints |
//! | `model` | kernel, means, pseudo-count with their parameters |
//! | `fit` | all of them: L-BFGS |

mod bound;
mod fit;
mod gaussian_labels;
mod model;

pub use bound::{Bound, BoundAdjoints, bound};
pub use fit::{GaussianisedFit, fit_gaussianised};
pub use gaussian_labels::GaussianLabels;
pub use model::{GaussianisedBound, GaussianisedGp};

#[cfg(test)]
mod tests;
