//! **Models of large tables**: the posterior by iterative solvers or inducing points, with hyperparameters from neighbourhoods or bounds.
//!
//! | file | what |
//! |---|---|
//! | `summary`, `solver` | what became of it, and what weights were found with |
//! //! | `plan`, `sizes` | memory and work, before anything is done |
//! | `budget` | one limit of time for all stages |
//! | `fit` | hyperparameters, then weights, judged on rows that are held back |
//! | `following` | which search on all rows goes on from where blocks led |
//! | `checkpoint` | where an interrupted fit stands |

pub(super) mod budget;
pub(super) mod checkpoint;
pub(crate) mod fit;
mod following;
pub(crate) mod plan;
mod sizes;
mod solver;
mod summary;

pub(super) use checkpoint::Watched;
pub(super) use fit::{ScalableFit, check_numbers, fit_from_disk, fit_scalable, refused, set_hyperparameters};
pub use plan::ScalablePlan;
pub(super) use plan::{disk_part_bytes, whole_posterior};
pub(crate) use sizes::EVIDENCE_PROBES;
pub(super) use sizes::PLAIN_ROWS;
pub use sizes::{EXACT_POSTERIOR_ROWS, EXACT_ROWS};
pub use solver::Solver;
pub(super) use summary::TrainingSummary;
pub use summary::{EvidenceSearchSummary, ScalableSummary};
