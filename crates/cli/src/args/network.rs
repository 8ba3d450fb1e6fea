//! The grammar of the commands for networks.

use super::{InputArgs, ThreadArgs};
use clap::{Args, ValueEnum};
use posterior::data::TextOptions;
use posterior::likelihoods::gaussianised::Matching;
use posterior::networks::train::LossName;
use posterior::options::numbers;
use std::path::PathBuf;

/// Precision of a network's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrecisionArg {
    /// Single
    F32,
    /// Double
    F64,
}

#[derive(Debug, Args)]
pub(crate) struct ForwardArgs {
    /// Network: .onnx, .safetensors, or .pt (PyTorch's state dictionary)
    #[arg(value_name = "NETWORK")]
    pub network: PathBuf,

    /// Its architecture, where the file does not hold it
    #[arg(long, value_name = "FILE.toml")]
    pub architecture: Option<PathBuf>,

    /// Which output of an ONNX file that has several
    #[arg(long, value_name = "NAME")]
    pub onnx_output: Option<String>,

    /// Inputs, examples first: .npy, .npz:NAME, or images (IDX, CIFAR; also .gz)
    #[arg(value_name = "DATA", required_unless_present = "input")]
    pub data: Option<PathBuf>,

    #[command(flatten)]
    pub inputs: InputArgs,

    /// Where the outputs go: an array (.npy), or a table with a column for each number (.csv, .tsv, .parquet)
    #[arg(long = "output", short = 'o', id = "output", value_name = "FILE")]
    pub out: PathBuf,

    /// Write what the last layer reads instead of what it makes of it: features for `fit`, `stream` and `label`
    #[arg(long)]
    pub features: bool,

    /// Labels of the inputs, for a column `label` of the table (CIFAR files hold theirs)
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,

    /// Replace the file of --output even if it is no array
    #[arg(long)]
    pub force: bool,

    /// Precision of the network's numbers
    #[arg(long, value_enum, default_value = "f32")]
    pub precision: PrecisionArg,

    /// Drop a softmax at the end, which must be there, so that outputs are logits
    #[arg(long)]
    pub strip_softmax: bool,

    /// Most memory that reading the inputs may need, in gigabytes
    #[arg(long, value_name = "GB", default_value = "8", value_parser = numbers::bytes)]
    pub memory: u64,

    #[command(flatten)]
    pub threads: ThreadArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RuleArg {
    /// Adaptive moments; weight decay joins the gradient
    Adam,
    /// Adaptive moments; weight decay shrinks the weights
    Adamw,
    /// Gradient descent with Nesterov momentum
    Sgd,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ScheduleArg {
    /// The learning rate throughout
    Constant,
    /// Down to 0 along half a cosine
    Cosine,
    /// Up and down again
    OneCycle,
    /// Drops at intervals
    Step,
}

#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// Architecture of the network to train (TOML)
    #[arg(value_name = "ARCHITECTURE")]
    pub architecture: PathBuf,

    /// Table (.csv, .parquet, with --target), or images and arrays (IDX, CIFAR, .npy, .npz:NAME; also .gz); several are put together
    #[arg(value_name = "DATA", required = true, num_args = 1.., value_delimiter = ',')]
    pub data: Vec<PathBuf>,

    #[command(flatten)]
    pub text: TextOptions,

    /// Labels of images that hold none (IDX, .npy)
    #[arg(long, value_name = "FILE", num_args = 1.., value_delimiter = ',')]
    pub labels: Vec<PathBuf>,

    /// Table: column to predict
    #[arg(long, value_name = "COL")]
    pub target: Option<String>,

    /// Table: columns to predict from [default: all others]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub features: Option<Vec<String>>,

    /// What is minimised
    #[arg(long, value_enum)]
    pub loss: LossName,

    /// Loss gaussianised: how a Gaussian is chosen for a label [default: variational]
    #[arg(long, value_enum)]
    pub matching: Option<Matching>,

    /// Loss gaussianised: what every class has been seen before its label; small is close to the labels' likelihood and hard to learn [default: 0.1]
    #[arg(long, value_name = "X", value_parser = numbers::positive)]
    pub pseudo_count: Option<f64>,

    /// Where the trained network goes
    #[arg(long = "output", short = 'o', id = "output", value_name = "FILE.safetensors")]
    pub out: PathBuf,

    /// Replace the file of --output even if it is no network that was trained here
    #[arg(long)]
    pub force: bool,

    /// Passes over the data
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = numbers::whole(1..=numbers::MOST_STEPS))]
    pub epochs: usize,

    /// Examples of a step
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub batch: usize,

    /// What a step does
    #[arg(long, value_enum, default_value = "adam")]
    pub optimizer: RuleArg,

    /// Step size
    #[arg(long, value_name = "X", default_value_t = 1e-3, value_parser = numbers::positive)]
    pub learning_rate: f64,

    /// Weight decay
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = numbers::not_negative)]
    pub weight_decay: f64,

    /// Optimizer sgd: momentum [default: 0.9]
    #[arg(long, value_name = "X", value_parser = numbers::share_or_none)]
    pub momentum: Option<f64>,

    /// How the step size changes
    #[arg(long, value_enum, default_value = "constant")]
    pub schedule: ScheduleArg,

    /// Schedule one-cycle: share of the steps spent rising [default: 0.3]
    #[arg(long, value_name = "X", value_parser = numbers::share)]
    pub warm_up: Option<f64>,

    /// Schedule step: steps between drops [default: 1000]
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_STEPS))]
    pub drop_every: Option<usize>,

    /// Schedule step: what each drop multiplies by [default: 0.1]
    #[arg(long, value_name = "X", value_parser = numbers::positive)]
    pub drop_factor: Option<f64>,

    /// Shorten longer gradients to this length
    #[arg(long, value_name = "X", value_parser = numbers::positive)]
    pub clip: Option<f64>,

    /// Share of the examples set aside for validation; the network's file records which, so that `fit --network` can use them
    #[arg(long, value_name = "F", conflicts_with = "validation_data", value_parser = numbers::share_or_none)]
    pub validation_fraction: Option<f64>,

    /// Validation data of their own
    #[arg(long, value_name = "FILE", num_args = 1.., value_delimiter = ',')]
    pub validation_data: Vec<PathBuf>,

    /// Labels of --validation-data
    #[arg(long, value_name = "FILE", num_args = 1.., value_delimiter = ',', requires = "validation_data")]
    pub validation_labels: Vec<PathBuf>,

    /// Stop after so many epochs without a better validation loss (of classes: NLL of the labels, whatever the loss)
    #[arg(long, value_name = "EPOCHS", value_parser = numbers::whole(1..=numbers::MOST_STEPS))]
    pub patience: Option<usize>,

    /// Table: the labels in the order of the network's outputs [default: by value or alphabet]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub class_names: Vec<String>,

    /// Images: mean of each channel, on the scale of 0 to 1
    #[arg(long, value_name = "X,Y,Z", value_delimiter = ',', allow_negative_numbers = true, value_parser = numbers::finite)]
    pub mean: Vec<f64>,

    /// Images: standard deviation of each channel
    #[arg(long, value_name = "X,Y,Z", value_delimiter = ',', value_parser = numbers::positive)]
    pub std: Vec<f64>,

    /// Images: mirror half of them while training
    #[arg(long)]
    pub flip: bool,

    /// Images: shift by up to so many pixels while training
    #[arg(long, value_name = "PIXELS", default_value_t = 0, value_parser = numbers::whole(0..=10000))]
    pub shift: usize,

    /// Precision of the network's numbers
    #[arg(long, value_enum, default_value = "f32")]
    pub precision: PrecisionArg,

    /// Seed of initial weights, order and augmentation
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Where the state is kept [default: OUTPUT.checkpoint]
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,

    /// Steps between checkpoints
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = numbers::whole(1..=numbers::MOST_STEPS))]
    pub checkpoint_every: usize,

    /// Resume from the checkpoint, if there is one
    #[arg(long)]
    pub resume: bool,

    /// Most memory that reading the data may need, and that weights and activations may need beside them, in GB
    #[arg(long, value_name = "GB", default_value = "8", value_parser = numbers::bytes)]
    pub memory: u64,

    #[command(flatten)]
    pub threads: ThreadArgs,

    #[command(flatten)]
    pub online: super::OnlineArgs,
}
