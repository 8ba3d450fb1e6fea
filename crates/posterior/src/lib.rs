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
//! | [`models`] | what is fitted, saved, loaded and asked; all of it is here at the top as well |
//! | [`linalg`], [`optim`] | matrices, randomness, optimisers |
//! | [`kernels`], [`likelihoods`], [`gp`] | Gaussian processes |
//! | [`networks`], [`onnx`] | neural networks: every derivative, training, safetensors; ONNX files |
//! | [`linear`], [`linearised`] | linear models and their evidence; linearised Laplace |
//! | [`decisions`] | Thompson sampling, ask and tell |
//! | [`data`], [`metrics`], [`report`] | tables, arrays and images, scores, pictures |
//! | [`experiments`] | published tables and figures, rerun |
//!
//! [`options`] says what a fit may be asked for; [`network`] joins networks with files; [`laplace`] gives a trained network error bars and saves them; [`AnyModel`] opens any model file.

pub use posterior_data as data;
pub use posterior_decisions as decisions;
pub use posterior_experiments as experiments;
pub use posterior_gp as gp;
pub use posterior_kernels as kernels;
pub use posterior_laplace as linearised;
pub use posterior_likelihoods as likelihoods;
pub use posterior_linalg as linalg;
pub use posterior_linear as linear;
pub use posterior_metrics as metrics;
pub use posterior_models as models;
pub use posterior_networks as networks;
pub use posterior_onnx as onnx;
pub use posterior_optim as optim;
pub use posterior_report as report;

pub use posterior_models::*;
