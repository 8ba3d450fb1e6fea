//! The whole fit: weights, curvature, mode, hyperparameters.
//!
//! | file | what |
//! |---|---|
//! | `options` | [`FitOptions`]: what is asked for |
//! | `choices` | the default mode and prior |
//! | `curvature` | a curvature in whichever form, and posteriors conditioned on it |
//! | `fitting` | what all steps share |
//! | `by_kernel`, `conjugate`, `solve` | mode and hyperparameters by the evidence |
//! | `tune`, `held_out` | hyperparameters and noise that need predictions |
//! | `learned` | posteriors that are found by a search of their own |
//! | `run` | [`fit()`]: the steps in order |
//! | `result`, `summary`, `samples` | [`Laplace`], what was done, draws |
//! | `extend`, `restore` | further data; a posterior from a file |

mod by_kernel;
mod choices;
mod conjugate;
mod curvature;
mod extend;
mod fitting;
mod held_out;
mod learned;
mod options;
mod restore;
mod result;
mod run;
mod samples;
mod solve;
mod summary;
mod tune;

pub use options::{Approximation, FitOptions, NoiseModel, Tune};
pub use restore::{RestoredCurvature, SavedPosterior};
pub use result::Laplace;
pub use run::fit;
pub use summary::{FitSummary, LearnedReport, ModeSummary};

pub(crate) use choices::{Choices, LARGEST, kernel_bytes, kernels};
