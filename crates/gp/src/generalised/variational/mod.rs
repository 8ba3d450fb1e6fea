//! **Variational kernels** `r(x, x')`: covariances that are trained, while the prior's kernel k, its hyperparameters and the inducing points Z stay as they are.
//!
//! With `q(x, x') = k(x, x') - k(x, Z) K_ZZ⁻¹ k(Z, x')`, what inducing points leave of the prior, and features `φ(x) = k(Z, x)`, or `L⁻¹ k(Z, x)` with `K_ZZ = L Lᵀ` ([`Coordinates`]):
//!
//! | [`Family`] | `r(x, x')` | trained | a variance costs |
//! |---|---|---|---|
//! | Cholesky (5.3) | `q + φ(x)ᵀ S Sᵀ φ(x')`, S lower triangular | M(M+1)/2 | O(M²) |
//! | diagonal (5.4) | `q + φ(x)ᵀ diag(v) φ(x')` | M | O(M) |
//! | log | `q + φ(x)ᵀ E Eᵀ φ(x')`, `E = exp(G)` entry by entry | M² | O(M²) |
//! | kernelised (5.5) | `q + r₀(x, x')` | those of `r₀` | O(1) |
//! | sparse posterior (5.6) | `r₀ - r₀(x, Z) r₀(Z, Z)⁻¹ r₀(Z, x')` | those of `r₀` | O(M²), and O(M³) a step |
//! | fixed sparse posterior (5.7) | `r₀ - r₀(x, Z) K_ZZ⁻¹ r₀(Z, x')` | those of `r₀` | O(M²) |
//!
//! `q` and `φ` do not change, so [`Known`] has them once for all rows. The last family is no covariance once `r₀` has left k (erratum E13: for `r₀ = c k` and `c > 1` the variance at Z is
//! `c (1 - c) k`): variances are raised to a floor, where they have no slope, and counted.
//!
//! Source: spec `generalised_variational_inference`, section 7. Its (3.9) speaks of the covariance of inducing values, (5.3) of that of weights on `k(Z, x)`: these are the latter.

mod conditioned;
mod evaluated;
mod kernel;
mod known;

pub use evaluated::Evaluated;
pub(super) use evaluated::FLOOR;
pub use kernel::{Family, VariationalKernel};
pub(super) use known::residual_covariance;
pub use known::{Coordinates, Known};
