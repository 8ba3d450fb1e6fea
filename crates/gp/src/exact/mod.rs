//! **Exact Gaussian processes** by Cholesky factorisation.
//!
//! With `K̃ = k(X, X) + diag(noise)` and `r = y - m(X)`:
//!
//! ```text
//! weights          α  = K̃⁻¹ r
//! posterior mean   m(x) + k(x, X) α
//! posterior cov    k(x, x') - k(x, X) K̃⁻¹ k(X, x')
//! log evidence     -½ rᵀα - ½ log det K̃ - (n/2) log 2π
//! ```
//!
//! One n x n buffer serves for kernel matrix, factor and inverse in turn: `8n²` bytes and `n³` flops for the
//! evidence with its gradient, half as much work and the same memory to condition. Several targets share the
//! inputs, the kernel and the noise, so further targets cost `O(n²)` only.
//!
//! Source: Rasmussen and Williams, *Gaussian Processes for Machine Learning* (2006), chapters 2 and 5; spec
//! `stochastic_gaussian_processes`, sections 3.2 and 9.1.
//!
//! | file | what |
//! |---|---|
//! | `model` | kernel, mean and noise with their parameters |
//! | `plan` | memory and work, stated before anything is allocated |
//! | `evidence` | log evidence and exact gradient |
//! | `one_step_ahead` | each row predicted from those before it |
//! | `leave_one_out` | closed-form predictions of each row from the others; their score as an objective |
//! | `objective` | a criterion, summed over sets of rows, as an objective of the free hyperparameters |
//! | `fit` | hyperparameters: L-BFGS or Adam, restarts, hyperpriors |
//! | `posterior` | predictions, joint covariance, samples |
//! | `several` | several processes with one kernel, each with noise of its own |
//! | `embedded` | a process on what a learned map makes of the rows: exact deep kernel learning |
//! | `update` | appending and removing rows without refitting |
//! | `weighted` | rows that count as several |

mod embedded;
mod evidence;
mod fit;
mod leave_one_out;
mod model;
mod objective;
mod one_step_ahead;
mod plan;
mod posterior;
mod several;
mod update;
mod weighted;

pub use embedded::{
    EmbeddedFit, EmbeddedOptions, EmbeddedPosterior, EmbeddedTraining, embedded_objective, fit_embedded,
};
pub use evidence::{Evaluation, log_evidence, log_evidence_and_gradient};
pub use fit::{Criterion, Fit, FitOptions, Optimizer, fit};
pub use leave_one_out::{LeaveOneOut, leave_one_out_and_gradient};
pub use model::ExactGp;
pub(crate) use objective::{Part, maximise};
pub use one_step_ahead::OneStepAhead;
pub use plan::Plan;
pub(crate) use plan::bytes;
pub use posterior::ExactPosterior;
pub use several::{SeveralObservations, log_evidence_of_several};

#[cfg(test)]
mod tests;
