//! **Fits of processes**: a table in, a model out; further rows for a saved exact process.
//!
//! | file | what |
//! |---|---|
//! | `continued` | further rows for a saved exact process, its hyperparameters kept |
//! | `process` | table in, model out |

mod continued;
mod process;

pub use continued::{ContinuationPlan, NewRows};
pub use process::FitCost;
