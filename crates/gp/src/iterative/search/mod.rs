//! **Hyperparameters of all rows**: Adam on stochastic gradients of the log evidence.
//!
//! Each step solves `K̃ X = [y - m(X), probes]`, makes the gradient of it ([`crate::iterative::evidence_gradient`]; the mean's is the pullback of
//! `K̃⁻¹ (y - m(X))`), and moves the unconstrained parameters by Adam. Two things make it cheap and quiet:
//!
//! - **Warm starts.** Probes stay the same from step to step, so the solutions change as little as the parameters do, and the last ones are where
//!   the next solve begins.
//! - **Averaging.** The mean of the last part of the iterates, in the unconstrained parameters, is the result: fresh probes and solvers that stop
//!   early make single iterates noisy. Fixed probes have a root of their own, whose distance from the maximum shrinks as `1/√p` and that no averaging removes.
//!
//! Source: spec `stochastic_gaussian_processes`, section 9.5.
//!
//! | file | what |
//! |---|---|
//! | `options` | settings, their ranges, the plan |
//! | `run` | one step, and what comes out of all of them |
//! | `state` | where it stands, for going on later |

mod options;
mod run;
mod state;

pub use options::{ProbeKind, SearchOptions};
pub use run::{EvidenceSearch, SearchIterate, SearchStep, search_evidence};
pub use state::{SearchHeader, SearchState};
