//! The grammar of `fit --network`.

use super::{FitRunArgs, InputArgs, SearchArgs};
use crate::output::Failure;
use clap::{ArgAction, Args, ValueEnum};
use posterior::data::TextOptions;
use posterior::laplace::{LikelihoodKind, Preprocess};
use posterior::likelihoods::{Integration, Link};
use posterior::linearised::{Choice, FisherEstimate, Mode, NoiseModel, PriorKind};
use posterior::options::{CalibrateName, numbers};
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CurvatureArg {
    /// The best of several, by data that the network has not seen or by the evidence
    Auto,
    /// All entries
    Full,
    /// The diagonal
    Diagonal,
    /// Kronecker factors
    Kronecker,
    /// A dense block for each layer
    Block,
    /// Last layer: all entries
    LastLayer,
    /// Last layer: Kronecker factors, for many classes
    LastLayerKronecker,
    /// Last layer: the diagonal
    LastLayerDiagonal,
    /// All entries among the `subnetwork-size` most important weights
    Subnetwork,
    /// `rank` leading eigenvectors plus a diagonal
    LowRank,
    /// The dual form by the tangent kernel, for few data
    FunctionSpace,
    /// A sparse process with the network as its mean, learned from its outputs
    FixedMean,
    /// The same with the tangent kernel: variational linearised Laplace
    Valla,
    /// A covariance around the network, learned beside a prior by Gaussian Wasserstein inference
    Gwi,
    /// `rank` leading directions of the tangent at `landmarks` training rows
    Ella,
    /// Samples, and a precision learned from them: for networks whose curvature cannot be stored
    Sampled,
    /// Independent Gaussian weights, fine-tuned (a baseline: predictions are no longer the network's)
    MeanField,
    /// No posterior: a temperature (or noise) chosen on --validation-data, which error bars must beat
    Temperature,
}

impl std::fmt::Display for CurvatureArg {
    /// As it is typed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_possible_value().map_or(Ok(()), |value| f.write_str(value.get_name()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FisherArg {
    /// Exact
    Exact,
    /// One sampled gradient for each example
    MonteCarlo,
    /// Gradients at the observed targets
    Empirical,
}

impl FisherArg {
    /// The library's choice, with the seed of what is sampled.
    pub(crate) fn estimate(self, seed: u64) -> FisherEstimate {
        match self {
            Self::Exact => FisherEstimate::Exact,
            Self::MonteCarlo => FisherEstimate::MonteCarlo { samples: 1, seed },
            Self::Empirical => FisherEstimate::Empirical,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TuneArg {
    /// By the evidence
    Evidence,
    /// By the evidence, with MacKay's updates
    Mackay,
    /// By validation data
    Validation,
    /// By cross-validation with `folds` folds
    CrossValidation,
    /// `precision` is final
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PredictiveArg {
    /// Closed forms; exact under Gaussian noise
    Probit,
    /// Laplace bridge (classes)
    Bridge,
    /// Averages over samples
    MonteCarlo,
    /// Plain network
    PlugIn,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LaplaceArgs {
    /// Trained network: .onnx, .safetensors, or .pt (PyTorch's state dictionary); or a folder of them, an ensemble
    #[arg(long, value_name = "FILE", conflicts_with = "head")]
    pub network: Option<PathBuf>,

    /// Its architecture, where the file does not hold it
    #[arg(long, value_name = "FILE.toml", requires = "network")]
    pub architecture: Option<PathBuf>,

    /// Which output of an ONNX file that has several
    #[arg(long, value_name = "NAME", requires = "network")]
    pub onnx_output: Option<String>,

    /// Drop the softmax at the end (--likelihood categorical does so anyway)
    #[arg(long, requires = "network")]
    pub strip_softmax: bool,

    /// Linear layer on the features in DATA: `weight` [classes, features] and `bias` [classes] (.safetensors, .npz)
    #[arg(long, value_name = "FILE")]
    pub head: Option<PathBuf>,

    /// Table (.csv, .parquet, with --target); images or arrays (IDX, CIFAR, .npy, .npz:NAME; also .gz), several of which are put together; features for --head
    #[arg(value_name = "DATA", required_unless_present = "input", num_args = 1.., value_delimiter = ',')]
    pub data: Vec<PathBuf>,

    #[command(flatten)]
    pub inputs: InputArgs,

    #[command(flatten)]
    pub text: TextOptions,

    /// Labels or targets, where DATA hold none
    #[arg(long, value_name = "FILE", num_args = 1.., value_delimiter = ',')]
    pub labels: Vec<PathBuf>,

    /// Table: column to predict, or a column for each output, with commas between them
    #[arg(long, value_name = "A,B")]
    pub target: Option<String>,

    /// Table: columns to predict from [default: all others]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub features: Option<Vec<String>>,

    /// How inputs are prepared for the network
    #[arg(long, value_enum, default_value = "auto")]
    pub preprocess: Preprocess,

    /// Images: mean of each channel, on the scale of 0 to 1
    #[arg(long, value_name = "X,Y,Z", value_delimiter = ',', allow_negative_numbers = true, value_parser = numbers::finite)]
    pub mean: Vec<f64>,

    /// Images: standard deviation of each channel
    #[arg(long, value_name = "X,Y,Z", value_delimiter = ',', value_parser = numbers::positive)]
    pub std: Vec<f64>,

    /// Names of the classes (of a table: its labels) in the order of the network's outputs [default: alphabetical]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub class_names: Vec<String>,

    /// What the network's outputs mean
    #[arg(long, value_enum)]
    pub likelihood: LikelihoodKind,

    /// Bernoulli: from outputs to probabilities
    #[arg(long, value_enum, default_value = "logit")]
    pub link: Link,

    /// How the posterior is approximated [default: auto]
    #[arg(long = "method", id = "method", value_enum)]
    pub curvature: Option<CurvatureArg>,

    /// Method auto: time for all candidates together, about [default: the first as long as it takes, the others 30]
    #[arg(long = "set seconds", value_name = "S", value_parser = numbers::seconds)]
    pub seconds: Option<f64>,

    /// Kronecker: how output curvature is sent back [default: exact]
    #[arg(long = "set fisher", value_enum)]
    pub fisher: Option<FisherArg>,

    /// Low rank: eigenvectors [default: 50]; ella: directions [default: 20]
    #[arg(long = "set rank", value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub rank: Option<usize>,

    /// Function space: training points drawn at random [default: all]
    #[arg(long = "set points", value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub points: Option<usize>,

    /// Sub-network: weights [default: 1000]
    #[arg(long = "set subnetwork-size", value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_STEPS))]
    pub subnetwork_size: Option<usize>,

    /// Sub-network: which weights [default: variance]
    #[arg(long = "set subnetwork-choice", value_enum)]
    pub subnetwork_choice: Option<Choice>,

    #[command(flatten)]
    pub searches: SearchArgs,

    /// Only parameters whose names match one of these patterns are uncertain
    #[arg(long = "set weights", value_name = "GLOB", value_delimiter = ',')]
    pub weights: Vec<String>,

    /// Leave gains and offsets of normalisation layers certain
    #[arg(long = "set without-affine", value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub without_affine: bool,

    /// Which weights share a prior precision
    #[arg(long = "set prior", value_enum, default_value = "auto")]
    pub prior: PriorKind,

    /// Prior precision at the start of its search; a closed form (see `mode=auto`) searches everywhere [default: 1]
    #[arg(long = "set precision", value_name = "X", value_parser = numbers::positive)]
    pub precision: Option<f64>,

    /// How precisions and noise are chosen [default: evidence]
    #[arg(long, value_enum)]
    pub tune: Option<TuneArg>,

    /// Data that the network was not trained on, to score the fit and to choose methods, recalibration and (--tune validation) precisions [default: the validation rows of `posterior train`]
    #[arg(long, value_name = "FILE", num_args = 1.., value_delimiter = ',')]
    pub validation_data: Vec<PathBuf>,

    /// Labels of --validation-data
    #[arg(long, value_name = "FILE", num_args = 1.., value_delimiter = ',', requires = "validation_data")]
    pub validation_labels: Vec<PathBuf>,

    /// Whether rows that the network has not seen recalibrate what it predicts: a temperature and sets of classes, factors of the standard deviations of numbers. Not for a folder of networks
    #[arg(long, value_enum, default_value_t)]
    pub calibrate: CalibrateName,

    /// Share of DATA for --tune validation; needs --allow-seen-rows
    #[arg(long, value_name = "F", conflicts_with = "validation_data", value_parser = numbers::share)]
    pub validation_fraction: Option<f64>,

    /// Tune on rows that the network was trained on, whose scores are worthless
    #[arg(long)]
    pub allow_seen_rows: bool,

    /// Parts for cross-validation [default: 5]
    #[arg(long = "set folds", value_name = "N", value_parser = numbers::whole(2..=1000))]
    pub folds: Option<usize>,

    /// Whose norm the evidence charges for
    #[arg(long = "set mode", value_enum, default_value = "auto")]
    pub mode: Mode,

    /// Gaussian: what is learned of the noise [default: scale]
    #[arg(long = "set noise", value_enum)]
    pub noise: Option<NoiseModel>,

    /// Gaussian: noise variance at the start, in the network's units [default: the mean squared residual]
    #[arg(long = "set initial-noise", value_name = "X", value_parser = numbers::positive)]
    pub initial_noise: Option<f64>,

    /// How uncertainty becomes a prediction [default: monte-carlo for up to 100 classes, else probit]
    #[arg(long, value_enum)]
    pub predictive: Option<PredictiveArg>,

    /// Draws of --predictive monte-carlo [default: 1000]
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub predictive_samples: Option<usize>,

    /// Weight decay that the network was trained with, if its file does not say: only to be compared with the prior
    #[arg(long = "set weight-decay", value_name = "X", value_parser = numbers::not_negative)]
    pub weight_decay: Option<f64>,

    /// Single precision for the network [default: that of its file]
    #[arg(long, conflicts_with = "float64")]
    pub float32: bool,

    /// Double precision for the network
    #[arg(long)]
    pub float64: bool,

    /// Most memory that the fit may need, in gigabytes
    #[arg(long, value_name = "GB", default_value = "8", value_parser = numbers::bytes)]
    pub memory: u64,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Where Ctrl-C saves the sums [default: OUTPUT.checkpoint]
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,

    /// Resume from the checkpoint, if there is one
    #[arg(long)]
    pub resume: bool,

    #[command(flatten)]
    pub run: FitRunArgs,
}

/// The predictive that was asked for, if one was.
pub(crate) fn chosen_integration(
    predictive: Option<PredictiveArg>,
    samples: Option<usize>,
    seed: u64,
) -> Result<Option<Integration>, Failure> {
    let sampled = predictive == Some(PredictiveArg::MonteCarlo);
    only(samples.is_some(), "predictive-samples", sampled, "--predictive monte-carlo")?;
    let samples = samples.unwrap_or(PREDICTIVE_SAMPLES);
    Ok(predictive.map(|predictive| match predictive {
        PredictiveArg::Probit => Integration::Probit,
        PredictiveArg::Bridge => Integration::LaplaceBridge,
        PredictiveArg::MonteCarlo => Integration::MonteCarlo { samples, seed },
        PredictiveArg::PlugIn => Integration::PlugIn,
    }))
}

/// Draws of a predictive where no number is given.
const PREDICTIVE_SAMPLES: usize = 1000;

/// Refuses a flag that belongs to another choice.
pub(crate) fn only(given: bool, flag: &str, belongs: bool, to: &str) -> Result<(), Failure> {
    if given && !belongs { Err(Failure::usage(format!("--{flag} belongs to {to}"))) } else { Ok(()) }
}
