//! **Models**: what is fitted, saved, loaded and asked.
//!
//! | module | what |
//! |---|---|
//! | [`Model`] | a Gaussian process on a table: roles of columns, hyperparameters, posterior, file |
//! | [`options`] | what a fit may be asked for: one struct for each method |
//! | [`laplace`] | a trained network with error bars, and its file |
//! | [`network`] | networks and their files: training data, architectures, preparation |
//! | [`AnyModel`] | a model file of either kind |

mod any;
pub mod laplace;
mod memory;
mod model;
pub mod network;
pub mod options;

pub use any::AnyModel;
pub use memory::peak_memory_bytes;
pub use model::{
    CheckScores, CheckedOn, Chosen, Container, EXACT_ROWS, EvidenceSearchSummary, FORMAT_VERSION, FitCheck,
    FitStage, FitSummary, Header, Hyperparameter, Model, ModelError, ModelFileError, PredictOptions,
    PredictedInto, PredictionPlan, PredictionRequest, Predictions, Prepared, ProcessPosterior, ScalablePlan,
    ScalableSummary, Solver, Tensor, TensorValues, TriedMethod, VarianceMethod, VarianceSolves, choose,
};
pub use options::{FitRequest, Method};
