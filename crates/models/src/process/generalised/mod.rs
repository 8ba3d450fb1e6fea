//! **Processes under any likelihood**: classes, events, counts, numbers with outliers.
//!
//! Three routes behind one flag. *Gaussianised*: every label becomes a number with noise of its own once, and regression does the rest, by any of its methods. *Variational*: the stochastic bound of inducing
//! points under the likelihood itself. *Laplace*: the curvature at the posterior's mode.
//!
//! Sources: spec `likelihood_approximations` (stand-ins); `stochastic_gaussian_processes`, section 11.2 (bound); Rasmussen and Williams (2006), chapter 3 (mode).
//!
//! | file | what |
//! |---|---|
//! | `target` | what a target is taken for: as asked, or as it looks |
//! | `observed` | rows, ready |
//! | `plan`, `cost` | which inference and method, why, and what they take |
//! | `stand_in`, `gaussianised` | labels as numbers with noise, and regression on them |
//! | `learned` | their pseudo-count by a bound on the labels' evidence |
//! | `variational`, `laplace` | the others |
//! | `events` | Cox processes: a window, nodes of its quadrature, and what events that were held back say |
//! | `trained` | features, or means and covariances that are free of each other, trained under the likelihood itself |
//! | `searching` | searches for hyperparameters, and what is to be told of them |
//! | `journal` | where an interrupted fit stands |
//! | `fit`, `inferred` | all of it, and what an inference leaves behind |
//! | `check` | how good it is on rows that had no part in it |
//! | `header` | how a fit went |
//! | `describe` | in words |

mod check;
mod cost;
mod describe;
mod events;
mod fit;
mod gaussianised;
mod header;
mod inferred;
mod journal;
pub(crate) mod laplace;
mod learned;
mod observed;
mod plan;
mod searching;
mod stand_in;
mod target;
pub(crate) mod trained;
pub(crate) mod variational;

pub(crate) use cost::{Cost, Size};
pub(super) use describe::{facts, notes};
pub use header::{
    BoundSummary, BoundedPseudoCount, FeatureSummary, GeneralisedSummary, LabelCheck, LabelScores,
    ModeSummary, PlainProcess, StandInSummary, TriedInference, TriedPseudoCount, VariationSummary,
};
pub(crate) use inferred::Inference;
pub(crate) use journal::Kept;
pub use observed::{Observed, no_exposure};
pub use plan::InferencePlan;
pub(super) use stand_in::NO_NOISE;
pub use target::{ChosenLikelihood, choose_likelihood};
