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
//! | `training_set` | examples with the targets of a likelihood, from tables, arrays and features |
//! | `fit` | request -> model; also for networks in memory |
//! | `automatic` | the comparison of `--method auto` |
//! | `cost` | memory and run time of a fit, without its data |
//! | `conditions` | what was asked of a search and only the files decide on |
//! | `memory` | networks and examples in memory instead of files |
//! | `validation` | rows that score a fit: given, recorded by training, or insisted upon |
//! | `noise` | the likelihood, with noise to begin with |
//! | `continued` | further data for a saved model |
//! | `decay` | the prior precision beside the weight decay of training |
//! | `checkpoint` | what a fit keeps on the way, in a file |

mod automatic;
mod checkpoint;
mod conditions;
mod continued;
mod cost;
mod decay;
pub(crate) mod fit;
mod memory;
mod noise;
pub(crate) mod request;
mod source;
mod training_set;
mod validation;

pub(crate) use conditions::settled;

pub use crate::calibration::NetworkRecalibration;
pub use crate::method::Fitted;
pub use crate::model::Networks;
pub use crate::network::Preprocess;
pub use crate::record::{
    DataRecord, Departure, ElementKind, HeldOutRecord, InputKind, InputRecord, NetworkHeader, NetworkRecord,
};
pub use crate::{ModelData, Predicted, Predictive, Truth};
pub use conditions::Needs;
pub use fit::NetworkDescription;
pub use memory::{Arrays, InMemory};
pub use request::{
    CurvatureChoice, DataSource, LaplaceRequest, LikelihoodKind, NetworkSource, NumberFormat,
    ValidationSource,
};
