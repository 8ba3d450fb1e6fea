//! **Generalised variational inference** on a table: a prior whose hyperparameters are learned first, then a mean and a covariance, in several ways of which rows that are set aside choose one, and variances that are tempered on these.
//!
//! | file | what |
//! |---|---|
//! | `prior` | the process that regularises: hyperparameters, inducing points |
//! | `kernel` | its kernel, perhaps behind a network |
//! | `mean` | the variational mean, a network among others |
//! | `task` | all ways to train, and the best |
//! | `fit` | numbers with Gaussian noise; labels go by `inference` |
//! | `work` | what it takes, for plans |

mod fit;
mod kernel;
mod mean;
mod prior;
mod task;
mod work;

pub(crate) use fit::{fit, source};
pub(crate) use task::Task;
pub(crate) use work::work;
