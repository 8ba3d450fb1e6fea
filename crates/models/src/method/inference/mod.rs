//! **Processes under any likelihood**: classes, events, counts, numbers with outliers.
//!
//! Three routes behind one flag. *Gaussianised*: every label becomes a number with noise of its own once, and regression does the rest, by any of its methods. *Variational*: the stochastic bound of inducing
//! points under the likelihood itself. *Laplace*: the curvature at the posterior's mode.
//!
//! Sources: spec `likelihood_approximations` (pseudo-targets); `stochastic_gaussian_processes`, section 11.2 (bound); Rasmussen and Williams (2006), chapter 3 (mode).
//!
//! | file | what |
//! |---|---|
//! | `target` | what a target is taken for: as asked, or as it looks |
//! | `observed` | rows, ready |
//! | `plan`, `cost` | which inference and method, why, and what they take |
//! | `gaussian_labels`, `gaussianised` | Gaussian label approximation, and regression on them |
//! | `pseudo_count` | their pseudo-count by a bound on the labels' evidence |
//! | `variational`, `laplace` | the others |
//! | `events` | Cox processes: a window, nodes of its quadrature, and what events that were held back say |
//! | `trained` | features, or means and covariances that are free of each other, trained under the likelihood itself |
//! | `search` | searches for hyperparameters, and what is to be told of them |
//! | `journal` | where an interrupted fit stands |
//! | `fit`, `outcome` | all of it, and what an inference leaves behind |
//! | `check` | how good it is on rows that had no part in it |

mod check;
mod cost;
mod events;
mod fit;
mod gaussian_labels;
mod gaussianised;
mod journal;
pub(crate) mod laplace;
mod observed;
mod outcome;
mod plan;
mod pseudo_count;
mod search;
mod target;
mod trained;
pub(crate) mod variational;

pub(crate) use check::Judged;
pub(crate) use cost::{Cost, Size};
pub(crate) use gaussian_labels::NO_NOISE;
pub(crate) use journal::FitMonitor;
pub use observed::{Observed, no_exposure};
pub(crate) use outcome::Inference;
pub use plan::InferencePlan;
pub(crate) use target::with_outliers;
pub use target::{ChosenLikelihood, choose_likelihood};
pub(crate) use trained::{features, variation};
