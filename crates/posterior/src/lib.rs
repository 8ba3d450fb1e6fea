//! The library's face: one crate to depend on, and the [`Model`] that is fitted, saved, loaded and asked.
//!
//! ```
//! use posterior::{FitRequest, Model};
//! use posterior::data::{Selection, Split, synthetic};
//! use posterior::linalg::random::Streams;
//!
//! let table = synthetic::curve_with_gap(60, Streams::new(0));
//! let request = FitRequest { selection: Selection { target: "y".into(), ..Default::default() }, ..Default::default() };
//! let model = Model::fit(&table, &Split::all(table.rows()).train, &request, &mut |_, _| posterior::optim::Signal::Continue)?;
//! let predictions = model.predict(&table, None)?;
//! assert_eq!(predictions.mean.len(), 60);
//! # Ok::<(), posterior::ModelError>(())
//! ```
//!
//! | re-export | room |
//! |---|---|
//! | [`linalg`], [`optim`] | matrices, randomness, optimisers |
//! | [`kernels`], [`likelihoods`], [`gp`] | Gaussian processes |
//! | [`networks`] | neural networks: every derivative, training, ONNX and safetensors |
//! | [`linear`], [`linearised`] | linear models and their evidence; linearised Laplace |
//! | [`decisions`] | Thompson sampling, ask and tell |
//! | [`data`], [`metrics`], [`report`] | tables, arrays and images, scores, pictures |
//!
//! [`options`] says what a fit may be asked for; [`network`] joins networks with files; [`laplace`] gives a trained network error bars and saves them; [`AnyModel`] opens any model file;
//! [`experiment`] reruns published tables and figures.

pub use posterior_data as data;
pub use posterior_decisions as decisions;
pub use posterior_gp as gp;
pub use posterior_kernels as kernels;
pub use posterior_laplace as linearised;
pub use posterior_likelihoods as likelihoods;
pub use posterior_linalg as linalg;
pub use posterior_linear as linear;
pub use posterior_metrics as metrics;
pub use posterior_networks as networks;
pub use posterior_optim as optim;
pub use posterior_report as report;

mod any;
pub mod experiment;
pub mod laplace;
mod memory;
mod model;
pub mod network;
pub mod options;

pub use any::AnyModel;
pub use memory::peak_memory_bytes;
pub use model::{
    CheckScores, CheckedOn, Chosen, Container, EXACT_ROWS, EvidenceSearchSummary, FORMAT_VERSION, FitCheck,
    FitEvent, FitSummary, Header, Hyperparameter, Model, ModelError, ModelFileError, PredictOptions,
    PredictedInto, PredictionPlan, PredictionRequest, Predictions, Prepared, ProcessPosterior, ScalablePlan,
    ScalableSummary, Solver, Tensor, TensorValues, TriedMethod, VarianceMethod, VarianceSolves, choose,
};
pub use options::{FitRequest, Method};
