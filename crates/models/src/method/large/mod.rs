//! **Models of large tables**: the posterior by iterative solvers or inducing points, with hyperparameters from neighbourhoods or bounds.
//!
//! | file | what |
//! |---|---|
//! | `fit` | hyperparameters, then weights, judged on rows that are held back |
//! | `refinement` | which search on all rows goes on from where blocks led |
//! | `choice` | which method, and why |
//! | `prepared_table` | a table that is read part by part |
//! | `run_time` | what this machine does in a second |
//! | `plan` | memory and work of a fit to a large table |

mod choice;
mod fit;
mod plan;
mod prepared_table;
mod refinement;
mod run_time;

pub(crate) use choice::unused_by_exact;
pub use choice::{Chosen, choose};
pub(crate) use fit::bounds::{collapsed, stochastic};
pub(crate) use fit::learned::fit;
pub(crate) use fit::{
    Fitting, Outcome, by_solver, check_numbers, fit_from_disk, fit_scalable, refuse_settings,
};
pub use plan::ScalablePlan;
pub(crate) use plan::{StepSize, closing_flops, stochastic_bound, whole_posterior};
pub use prepared_table::PreparedTable;
pub(crate) use prepared_table::{in_memory, not_from_disk};
pub(crate) use run_time::{expected, expected_seconds, in_words, rate};
