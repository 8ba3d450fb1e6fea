//! **Error bars for trained networks**: linearised Laplace from files to a model that is saved, loaded and asked like any other.
//!
//! ```no_run
//! use posterior_models::Model;
//! use posterior_models::laplace::{LaplaceRequest, LikelihoodKind};
//! let request = LaplaceRequest::new("net.onnx", ["images.gz"], ["labels.gz"], LikelihoodKind::Categorical);
//! let model = Model::fit_laplace(&request, &mut |plan| eprintln!("{plan}"), &mut |_, _, _| posterior_optim::Signal::Continue)?;
//! model.save("net.posterior".as_ref())?;
//! let networks = model.networks().expect("networks");
//! let data = networks.read(&["test.gz".into()], &[], false, &posterior_data::ReadOptions::for_arrays())?;
//! let predictions = networks.predict(&data, None)?;
//! # Ok::<(), posterior_models::ModelError>(())
//! ```
//!
//! | file | does |
//! |---|---|
//! | `request` | what is asked of a fit |
//! | `source` | the network, from a file or as a head on features |
//! | `training` | examples with the targets of a likelihood, from tables, arrays and features |
//! | `fit` | request -> model; also for networks in memory |
//! | `automatic` | the comparison of `--curvature auto` |
//! | `conditions` | what was asked of a search and only the files decide on |
//! | `memory` | networks and examples in memory instead of files |
//! | `held_out` | rows that score a fit: given, recorded by training, or insisted upon |
//! | `predict_plan` | memory and seconds of predictions, before they are made |
//! | `input_record` | kind and range of the inputs at the fit, and how far others leave them |
//! | `noise` | the likelihood, with noise to begin with |
//! | `continued` | further data for a saved model |
//! | `decay` | the prior precision beside the weight decay of training |
//! | `model`, `header` | what a model is |
//! | `file` | model file and back: nothing of the data is needed to go on |
//! | `checkpoint` | what a fit keeps on the way, in a file |
//! | `asked`, `describe`, `describe_search`, `describe_ensemble` | what any model can be asked; networks in words |
//! | `inputs` | inputs (and truths) to ask the model about |
//! | `output` | from latent values to predictions; mixtures |
//! | `predict`, `samples` | predictions; functions and joint covariances |
//! | `joint` | scores of several labels together |

mod asked;
mod automatic;
mod checkpoint;
mod conditions;
mod continued;
mod decay;
mod describe;
mod describe_ensemble;
mod describe_search;
mod fit;
mod header;
mod held_out;
mod input_record;
mod inputs;
mod joint;
mod memory;
mod model;
mod noise;
mod output;
mod predict;
mod predict_plan;
mod request;
mod samples;
mod source;
mod training;

pub(crate) use conditions::settled;
pub(crate) use inputs::NetworkInputs;
pub(crate) use output::NetworkOutput;

pub use crate::calibration::NetworkRecalibration;
pub use crate::data::{ModelData, Truth};
pub use crate::method::Fitted;
pub use crate::predictive::{Predicted, Predictive};
pub use conditions::Needs;
pub use fit::NetworkDescription;
pub use header::{DataRecord, HeldOutRecord, InputKind, NetworkHeader, NetworkRecord};
pub use input_record::{Departure, ElementKind, InputRecord};
pub use memory::{Arrays, InMemory};
pub use model::Networks;
pub use request::{
    CurvatureChoice, DataSource, LaplaceRequest, LikelihoodKind, NetworkSource, NumberFormat, Preprocess,
    ValidationSource,
};
