//! **Learned features**: deep basis kernels, and inducing points behind a network, from the request to the posterior and its file.
//!
//! | file | what |
//! |---|---|
//! | `basis` | the network: drawn, described or trained elsewhere; or none |
//! | `columns` | columns as a network wants them that was trained on columns |
//! | `dense` | the exact process behind a network: one way, by the evidence |
//! | `fit` | training in several ways, of which rows that are set aside choose one |
//! | `targets` | what depends on how targets scatter |
//! | `candidates` | what became of each way, and which go on |
//! | `weights` | the best weights for features as they are, where these have no closed form |
//! | `work` | what it takes, for plans |

mod basis;
mod candidates;
mod columns;
mod dense;
mod fit;
mod targets;
mod weights;
mod work;

pub(crate) use basis::{Basis, Sizes, sizes};
pub(crate) use candidates::nowhere;
pub(crate) use columns::Columns;
pub(crate) use dense::fit_dense;
pub(crate) use fit::{Task, Trained, apart, fit};
pub(crate) use targets::{Scatter, Targets, floor};
pub(crate) use work::{WORKING_BYTES, Work, work};
