//! Networks and files: opening what was trained elsewhere, preparing data, training.
//!
//! | file | does |
//! |---|---|
//! | `open` | a network from safetensors or PyTorch's own files (with its architecture) or ONNX |
//! | `inputs` | files for a network with several inputs |
//! | `metadata` | what a network's file says beside its weights |
//! | `preparation` | what is done to data before a network sees it, stored with the network |
//! | `examples` | training and validation examples from tables, arrays and images |
//! | `train` | architecture + data -> trained network in a file |
//! | `reading` | examples as they stand in their files |
//! | `classes` | labels of a table and the classes that they are |
//! | `digest` | which files a network learned from |
//! | `forward` | arrays in, outputs out |
//! | `tensors` | weights among the tensors of a model's file |

mod classes;
mod digest;
mod examples;
mod forward;
mod inputs;
mod metadata;
mod open;
mod preparation;
mod reading;
mod tensors;
mod train;

pub(crate) use classes::{apply_classes, check_names, named, number_classes};
pub(crate) use digest::{digest, digests, is_part};
pub(crate) use inputs::predicted_shape;
pub(crate) use open::without_link;
pub use preparation::Preprocess;
pub(crate) use reading::{Raw, Wanted, class_numbers, file_name, image_shape, pixels};
pub(crate) use tensors::{
    NETWORK, add_network, graph_of, is_single, read_network, take_network, write_network,
};

pub use examples::{DataRequest, TrainingData, is_table};
pub use forward::{Forwarded, features, forward};
pub use inputs::{InputFile, InputRecord, read_examples};
pub use open::{NetworkFile, Opened, SetAside, Strip, TrainingRecord, open_network};
pub use preparation::Preparation;
pub use train::{CheckpointRequest, TrainPlan, TrainReport, TrainRequest, train_network};

use posterior_data::DataError;
use posterior_laplace::LaplaceError;
use posterior_networks::safetensors::SafetensorsError;
use posterior_networks::train::TrainError;
use posterior_networks::{ArchitectureError, GraphError, NetworkError};
use posterior_onnx::OnnxError;
use thiserror::Error;

/// What can go wrong between files and networks.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetworkFileError {
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The architecture file.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
    /// The architecture.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A safetensors file.
    #[error(transparent)]
    Safetensors(#[from] SafetensorsError),
    /// An ONNX file.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// The training run.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// Hyperparameters learned while training.
    #[error(transparent)]
    Laplace(#[from] LaplaceError),
    /// What was asked does not fit together.
    #[error("{0}")]
    Request(String),
}

/// What does not fit together, in words.
fn refuse<T>(problem: impl Into<String>) -> Result<T, NetworkFileError> {
    Err(NetworkFileError::Request(problem.into()))
}
