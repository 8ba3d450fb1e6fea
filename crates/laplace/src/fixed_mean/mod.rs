//! **A sparse process whose mean is the network** ([`posterior_gp::inducing::fixed_mean`]): error bars that are learned from a trained network's outputs.
//!
//! With the tangent kernel that is variational linearised Laplace (VaLLA); with a kernel on the inputs, or on the features before the last layer, a fixed-mean process, which needs no derivative
//! of the network. Predictions keep the network's own output as their mean. Specs: `valla`, `fixed_mean_gp`.
//!
//! | file | what |
//! |---|---|
//! | `options` | [`FixedMeanOptions`]: what a fit is asked for, with the published settings |
//! | `start` | inducing points by k-means in each class |
//! | `learn` | the fit for one kind of kernel: by steps, or in closed form |
//! | `search` | [`fit()`]: all of it in order |
//! | `posterior` | [`FixedMean`]: predictions, files |
//! | `report` | [`FixedMeanReport`]: how it went |
//! | `saved` | what is kept on the way |
//! | `plan` | [`plan()`]: memory and work before the start |

mod learn;
mod options;
mod plan;
mod posterior;
mod report;
mod saved;
mod search;
mod start;

pub use options::{FEW_ROWS, FixedMeanKernel, FixedMeanOptions};
pub use plan::plan;
pub use posterior::FixedMean;
pub use report::FixedMeanReport;
pub use search::{FixedMeanFit, fit};

pub(crate) use report::named;
