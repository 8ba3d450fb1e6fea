//! **Stochastic gradient descent** on the primal objective, and the variants of gradients, optimisers and averages that papers compare.
//!
//! ```text
//! primal   ½ ‖z - K α‖²_W + ½ σ² ‖α‖²_K      gradient K (W (K α - z) + σ² α)      W = σ² / noise
//! dual     ½ αᵀ K̃ α - αᵀ z                   gradient K̃ α - z
//! ```
//!
//! σ² is the mean noise variance, so W is the identity when the noise is the same everywhere. Both have the minimiser `K̃⁻¹ z`. Source:
//! spec `stochastic_gaussian_processes`, sections 14.1 to 14.3 (primal), 15.2 (estimates of the dual's gradient) and 16 (optimisers and
//! averages). For solving, [`crate::iterative::DualDescentOptions`] is the method; what is here shows why.
//!
//! | file | what |
//! |---|---|
//! | `engine` | optimisers, averages and clipping on dense gradients |
//! | `estimate` | stochastic gradients of both objectives |
//! | `run` | options, step sizes, divergence, restarts, checkpoints |

mod engine;
mod estimate;
mod iteration;
mod run;

pub(in crate::iterative) use engine::EngineSettings;
pub use engine::{Averaging, DescentRule};
pub(in crate::iterative) use estimate::squared_features;
pub use estimate::{Gradient, NoisePlacement, Regulariser, gradient_estimate};
pub(in crate::iterative) use iteration::{EngineMethod, check_batch};
pub use run::DescentOptions;
pub(super) use run::solve_by_descent;
