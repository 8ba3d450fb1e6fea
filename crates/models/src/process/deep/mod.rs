//! **Learned features**: deep basis kernels, and inducing points behind a network, from the request to the posterior and its file.
//!
//! | file | what |
//! |---|---|
//! | `basis` | the network: drawn, described or trained elsewhere; or none |
//! | `columns` | columns as a network wants them that was trained on columns |
//! | `dense` | the exact process behind a network: one way, by the evidence |
//! | `fit` | training in several ways, of which rows that are set aside choose one |
//! | `targets` | what depends on how targets scatter |
//! | `ways` | what became of each way, and which go on |
//! | `weights` | the best weights for features as they are, where these have no closed form |
//! | `work` | what it takes, for plans |
//! | `summary` | what became of that, for the header |

mod basis;
mod columns;
mod dense;
mod fit;
mod summary;
mod targets;
mod ways;
mod weights;
mod work;

pub(super) use basis::{Basis, Sizes, sizes};
pub(super) use columns::Columns;
pub(crate) use dense::fit_dense;
pub(crate) use fit::fit;
pub(super) use fit::{Task, Trained, apart};
pub use summary::{DeepSummary, TriedSetting};
pub(crate) use targets::Scatter;
pub(super) use targets::{Targets, floor, settings};
pub(super) use ways::nowhere;
pub(super) use work::WORKING_BYTES;
pub(crate) use work::{Work, work};
