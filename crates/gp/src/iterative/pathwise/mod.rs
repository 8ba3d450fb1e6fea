//! **Pathwise posteriors**: functions that can be evaluated and differentiated anywhere.
//!
//! ```text
//! mean       m(x) + k(x, X) α                     α   = K̃⁻¹ (y - m(X))
//! sample j   m(x) + f_j(x) + k(x, X) (α - u_j)    u_j = K̃⁻¹ (f_j(X) + ε_j)
//! ```
//!
//! with prior functions f_j from random features and noise ε_j. All columns belong to one solve, but mean and samples are separate columns: a
//! sum would let the data's part dominate the error. Variances come from the zero-mean parts `f_j - k(·, X) u_j`, without subtracting their mean. A
//! stochastic solver that stops early makes them larger, never smaller. On inducing inputs Z, X is replaced by Z in the formulas above.
//! Source: spec `stochastic_gaussian_processes`, sections 7, 8 and 17.
//!
//! | file | what |
//! |---|---|
//! | `model` | kernel, mean, noise; settings |
//! | `condition` | targets, the solve, appended data |
//! | `compressed` | the same functions on fewer points |
//! | `posterior` | mean, samples, gradients, variances of samples |
//! | `variance` | variances by solves |
//! | `lanczos` | variances from one Lanczos basis for all points |
//! | `log_evidence` | the log evidence with its standard error, by solves for random vectors |

mod compressed;
mod condition;
mod lanczos;
mod log_evidence;
mod model;
mod posterior;
mod variance;

pub use compressed::CompressedPosterior;
pub use condition::Support;
pub(super) use condition::{GeneratedTargets, narrow, prior_draws};
pub use lanczos::{LanczosBasis, LanczosVariances};
pub use log_evidence::{EvidenceObserver, LogEvidence, log_evidence};
pub use model::{KernelFeatures, PathwiseModel, PathwiseSettings};
pub use posterior::PathwisePosterior;
pub use variance::SolvedVariances;
