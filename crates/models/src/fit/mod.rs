//! **Fits of processes**: a table in, a model out; further rows for a saved exact process.
//!
//! | file | what |
//! |---|---|
//! | `candidates`, `signs` | what is tried where nothing is asked for, and what asks for it |
//! | `continued` | further rows for a saved exact process, its hyperparameters kept |
//! | `process` | table in, model out |

mod candidates;
mod continued;
mod process;
mod signs;

pub use continued::{ContinuationPlan, NewRows};
pub use process::FitCost;
