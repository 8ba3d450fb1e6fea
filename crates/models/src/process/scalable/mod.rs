//! **Models of large tables**: the posterior by iterative solvers or inducing points, with hyperparameters from neighbourhoods or bounds.
//!
//! | file | what |
//! |---|---|
//! | `summary`, `solver` | what became of it, and what weights were found with |
//! | `choice` | which method, and why |
//! | `plan`, `sizes` | memory and work, before anything is done |
//! | `budget` | one limit of time for all stages |
//! | `fit` | hyperparameters, then weights, judged on rows that are held back |
//! | `following` | which search on all rows goes on from where blocks led |
//! | `checkpoint` | where an interrupted fit stands |

pub(super) mod budget;
pub(super) mod checkpoint;
mod choice;
mod fit;
mod following;
mod plan;
mod sizes;
mod solver;
mod summary;

pub(super) use checkpoint::Watched;
pub(super) use choice::unused_by_exact;
pub use choice::{Chosen, choose};
pub(super) use fit::{ScalableFit, check_numbers, fit_from_disk, fit_scalable, refused, set_hyperparameters};
pub use plan::ScalablePlan;
pub(super) use plan::{disk_part_bytes, training_work, whole_posterior};
pub(super) use sizes::{EVIDENCE_PROBES, PLAIN_ROWS};
pub use sizes::{EXACT_POSTERIOR_ROWS, EXACT_ROWS};
pub use solver::Solver;
pub(super) use summary::TrainingSummary;
pub use summary::{EvidenceSearchSummary, ScalableSummary};
