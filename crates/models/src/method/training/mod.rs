//! **What methods share when they train**: a budget of time, checkpoints, sizes, and what a fit leaves behind.
//!
//! | file | what |
//! |---|---|
//! | `bound` | the stochastic bound of inducing points |
//! | `budget` | one limit of time for all stages |
//! | `checkpoint` | where an interrupted fit stands |
//! | `sizes` | numbers of rows and bytes that plans and fits share |
//! | `outcome` | what a fit leaves behind |
//! | `hyperparameters` | values of hyperparameters by their names |

mod bound;
mod budget;
mod checkpoint;
mod hyperparameters;
mod outcome;
mod sizes;

pub(crate) use bound::train;
pub(crate) use budget::Allowance;
pub(crate) use checkpoint::{
    CheckpointWriter, Forecast, Found, FoundSearch, Keeping, Saved, Stage, Wanted, Watched, begin_anew,
};
pub(crate) use hyperparameters::set;
pub(crate) use outcome::ScalableFit;
pub(crate) use sizes::{
    EVIDENCE_PROBES, PLAIN_ROWS, PREDICTED, SIZES, few_rows_memory, may_search_again, table_bytes,
    trial_bytes, trial_sizes,
};
pub use sizes::{EXACT_POSTERIOR_ROWS, EXACT_ROWS};
