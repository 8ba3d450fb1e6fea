//! **Inducing-point descent**: representer weights on m chosen inputs Z instead of all n rows.
//!
//! ```text
//! ½ ‖z - K_XZ α‖²_W + ½ σ² ‖α‖²_ZZ        gradient K_ZX W (K_XZ α - z) + σ² K_ZZ α
//! ```
//!
//! For data the minimiser is the mean of the collapsed posterior (Titsias); for targets `f(X) + ε` with a prior function f, `f + K_·Z (α_mean - α)` is a sample
//! of a posterior that is never more certain than the exact one. A step costs `O(r m (D + s))`, memory is `O(m s)`: independent of n. The noise of targets
//! may stand in the regulariser here, too: only the fixed m-vector `K_ZX W ε` enters the gradient, which is computed once.
//! Source: spec `stochastic_gaussian_processes`, section 17.
//!
//! | file | what |
//! |---|---|
//! | `targets` | targets by rows, stored or computed when needed |
//! | `gradient` | the problem and its stochastic gradients |
//! | `run` | options, step size, divergence, restarts, checkpoints |

mod gradient;
mod run;
mod targets;

pub use gradient::{InducingProblem, InducingRegulariser};
pub use run::{InducingDescentOptions, solve_inducing};
pub use targets::{StoredTargets, TargetRows};
