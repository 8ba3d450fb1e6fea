//! **Honest error bars**: Gaussian processes on tables of any size, and trained networks with their uncertainty.
//!
//! ```
//! use posterior::Gp;
//!
//! // Inputs of two columns and a target.
//! let x: Vec<[f64; 2]> = (0..60).map(|i| [i as f64 / 10.0, (i * 7 % 13) as f64]).collect();
//! let y: Vec<f64> = x.iter().map(|[a, b]| a.sin() + 0.1 * b).collect();
//!
//! let process = Gp::builder().kernel("matern32(ard)").fit(&x, &y)?;
//! let predicted = process.predict(&[[2.05, 3.0], [60.0, 3.0]])?;
//! assert!((predicted.mean()?[0] - (2.05f64.sin() + 0.3)).abs() < 0.1);
//! // Far away nothing is known, and the error bar says so.
//! assert!(predicted.std()?[1] > 5.0 * predicted.std()?[0]);
//! let (lower, upper) = predicted.interval(0.95)?[0];
//! assert!(lower < predicted.mean()?[0] && predicted.mean()?[0] < upper);
//!
//! // Samples are functions: evaluate them anywhere, again and again.
//! let functions = process.functions(3, 0)?;
//! assert_eq!(functions.values(&[[1.0, 2.0]])?.ncols(), 3);
//! # Ok::<(), posterior::Error>(())
//! ```
//!
//! The same from a file: `Gp::builder().target("price").fit_file("houses.csv")?.predict_file("new.csv")?`. What is behind it, with every choice, plans,
//! progress and interruption, is [`Model`].
//!
//! Labels and counts: `Gp::builder().classify(&x, &labels)?.predict(&new)?.probabilities()?`.
//!
//! Every fit gives a [`Fitted`], whose verbs are `predict`, `sample`, `evaluate`, `calibrate`, `update`, `save` and `load`; every prediction is a [`Predictions`] with `mean`, `std`, `interval`, `quantile`,
//! `probabilities` and `save`.
//!
//! # A kernel of your own
//!
//! A kernel is a formula of two points and its derivatives. A registered reader makes it again from model files:
//!
//! ```
//! use posterior::kernels::{PointAdjoints, PointKernel, Pointwise, register};
//! use posterior::options::{InducingOptions, SvgpOptions};
//! use posterior::{Fitted, Gp, Method};
//! use std::sync::Arc;
//!
//! /// `1 / (1 + |x - z|² / l²)`
//! #[derive(Clone, Debug)]
//! struct Cauchy {
//!     lengthscale: f64,
//! }
//!
//! impl PointKernel for Cauchy {
//!     fn name(&self) -> &str {
//!         "cauchy"
//!     }
//!     fn parameters(&self) -> Vec<(&'static str, f64)> {
//!         vec![("lengthscale", self.lengthscale)]
//!     }
//!     fn set_parameters(&mut self, values: &[f64]) {
//!         self.lengthscale = values[0];
//!     }
//!     fn value(&self, x: &[f64], z: &[f64]) -> f64 {
//!         let square: f64 = x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum();
//!         1.0 / (1.0 + square / self.lengthscale.powi(2))
//!     }
//!     fn pullback(&self, x: &[f64], z: &[f64], adjoint: f64, out: &mut PointAdjoints<'_>) {
//!         let (k, squared) = (self.value(x, z), self.lengthscale.powi(2));
//!         out.parameters[0] += adjoint * 2.0 * k * (1.0 - k) / self.lengthscale;
//!         for (d, (a, b)) in x.iter().zip(z).enumerate() {
//!             let slope = -2.0 * adjoint * k * k * (a - b) / squared;
//!             out.x[d] += slope;
//!             out.z[d] -= slope;
//!         }
//!     }
//! }
//!
//! register("cauchy", |_| Ok(Arc::new(Pointwise(Cauchy { lengthscale: 1.0 }))))?;
//!
//! let x: Vec<[f64; 1]> = (0..200).map(|i| [i as f64 / 20.0]).collect();
//! let y: Vec<f64> = x.iter().map(|[a]| a.sin()).collect();
//! let kernel = Arc::new(Pointwise(Cauchy { lengthscale: 1.0 }));
//! let inducing = InducingOptions { inducing: Some(32), ..InducingOptions::default() };
//! let mut svgp = SvgpOptions { inducing, ..SvgpOptions::default() };
//! svgp.large.iterations = Some(1000);
//! let fitted = Gp::builder().kernel_object(kernel).method(Method::Svgp(svgp)).fit(&x, &y)?;
//! let file = std::env::temp_dir().join("posterior-cauchy.posterior");
//! fitted.save(&file)?;
//! let predicted = Fitted::load(&file)?.predict(&[[2.5], [50.0]])?;
//! assert!((predicted.mean()?[0] - 2.5f64.sin()).abs() < 0.3 && predicted.std()?[1] > predicted.std()?[0]);
//! # std::fs::remove_file(file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A kernel that is worth vector code implements [`Kernel`](kernels::Kernel) for both precisions, and [`KernelObject`](kernels::KernelObject).
//!
//! # Networks
//!
//! A network that was trained elsewhere gets error bars from the data that it was trained on:
//!
//! ```
//! use posterior::Laplace;
//! # use posterior::linalg::random::Streams;
//! # use posterior::networks::train::{Loss, Tabular, Targets, TrainOptions, train};
//! # use posterior::networks::{Architecture, Array, Network};
//! # use posterior::optim::{Rule, Schedule, Signal};
//! // Two classes that meet where the sum of both inputs is zero.
//! let x: Vec<[f64; 2]> = (0..80).map(|i| [(i % 9) as f64 / 4.0 - 1.0, (i * 7 % 80) as f64 / 40.0 - 1.0]).collect();
//! let classes: Vec<u32> = x.iter().map(|[a, b]| u32::from(a + b > 0.0)).collect();
//! # let text = "kind = 'perceptron'\ninputs = 2\nhidden = [10]\noutputs = 2\nactivation = 'tanh'";
//! # let network = Network::<f64>::initialised(Architecture::from_toml(text)?.graph()?, Streams::new(0))?;
//! # let inputs = Array::new(vec![80, 2], x.iter().flatten().copied().collect());
//! # let (loss, rule, schedule) = (Loss::CrossEntropy, Rule::adam(), Schedule::Constant);
//! # let options = TrainOptions { loss, epochs: 60, batch: 20, rule, learning_rate: 0.02, schedule, clip: None, patience: None, seed: 0 };
//! # let data = Tabular::new(inputs, Targets::Classes(classes.clone()));
//! # let network = train(network, &data, None, &options, None, &mut |_, _| Signal::Continue)?.network;
//!
//! // A network in memory that was trained on them; or the path of a file: Laplace::of("net.onnx").
//! let fitted = Laplace::of(&network).categorical().fit(&x, &classes)?;
//! let predicted = fitted.predict(&[[0.9, 0.8], [0.01, 0.0]])?;
//! let probabilities = predicted.probabilities()?;
//! // Sure of what lies far from the other class, and not of what lies between the two.
//! assert!(probabilities[1] > 0.9 && probabilities[3] < 0.8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is behind that is [`laplace`].
//!
//! | re-export | room |
//! |---|---|
//! | [`models`] | what is fitted, saved, loaded and asked |
//! | [`linalg`], [`optim`] | matrices, randomness, optimisers |
//! | [`kernels`], [`likelihoods`], [`gp`] | Gaussian processes |
//! | [`networks`], [`onnx`] | neural networks: every derivative, training, safetensors; ONNX files |
//! | [`linear`], [`linearised`] | linear models and their evidence; linearised Laplace |
//! | [`decisions`] | Thompson sampling, active learning, ask and tell |
//! | [`data`], [`metrics`], [`report`] | tables, arrays and images, scores, pictures |
//! | [`notes`] | what is said to people, and the command lines that fix what it is about |
//!
//! Progress and cancellation: [`GpBuilder::progress`], [`GpBuilder::cancel`]. Arrays of `ndarray` are inputs with the feature `ndarray`.
//!
//! [`options`] says what a fit may be asked for; [`network`] joins networks with files; [`laplace`] gives a trained network error bars and saves them; [`Saved`] opens any model file.

pub use posterior_data as data;
pub use posterior_decisions as decisions;
pub use posterior_gp as gp;
pub use posterior_kernels as kernels;
pub use posterior_laplace as linearised;
pub use posterior_likelihoods as likelihoods;
pub use posterior_linalg as linalg;
pub use posterior_linear as linear;
pub use posterior_metrics as metrics;
pub use posterior_models as models;
pub use posterior_networks as networks;
pub use posterior_notes as notes;
pub use posterior_onnx as onnx;
pub use posterior_optim as optim;
pub use posterior_report as report;
pub use posterior_tomography as tomography;

pub use posterior_models::{
    FitRequest, Method, Model, ModelError, Saved, StoreError, ensemble, laplace, network, options, scans,
    targets, text,
};

mod arrays;
mod control;
mod error;
mod fitted;
mod laplace_builder;
mod predictions;
mod process;
mod rows;

pub use arrays::{ArraysError, Inputs, Labels};
pub use error::Error;
pub use fitted::{Fitted, Functions};
pub use laplace_builder::{Laplace, LaplaceBuilder, Likelihoods, Trained};
pub use predictions::Predictions;
pub use process::{Gp, GpBuilder};
pub use rows::{Ragged, Rows};

/// The program of the README, compiled and run with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
