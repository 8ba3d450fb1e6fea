//! The grammar of `posterior tomography`.

use super::ThreadArgs;
use clap::{Args, Subcommand, ValueEnum};
use posterior::options::numbers;
use posterior::scans::{DesignRequest, ProjectRequest, ScanFiles};
use posterior::tomography::Filter;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum TomographyCommand {
    /// Make the sinogram of a picture or a phantom
    #[command(
        after_help = "Example:\n  posterior tomography project scan.toml --phantom walnut --noise 0.05 -o sinogram.npy --image-out truth.png"
    )]
    Project(TomographyProjectArgs),
    /// Make a picture of a sinogram
    #[command(
        after_help = "Examples:\n  posterior tomography reconstruct scan.toml sinogram.npy -o picture.png\n  posterior tomography reconstruct scan.toml sinogram.npy --method deep-image-prior --network-out net.safetensors -o picture.tiff\n\nA run that was stopped or killed goes on with the same command, to the same numbers."
    )]
    Reconstruct(Box<TomographyReconstructArgs>),
    /// Say where a picture must not be trusted: the posterior around the network that made it
    #[command(
        after_help = "Example:\n  posterior tomography uncertainty scan.toml sinogram.npy --network net.safetensors -o deviation.png --report report.html\n\nA run that was stopped or killed goes on with the same command, to the same numbers."
    )]
    Uncertainty(Box<TomographyUncertaintyArgs>),
    /// Choose the angles at which to look next
    #[command(
        after_help = "Example:\n  posterior tomography design scanner.toml pilot.npy --measured 0,40,80,120,160 --network pilot.safetensors --count 5\n\nA run that was stopped or killed goes on with the same command, to the same angles."
    )]
    Design(Box<TomographyDesignArgs>),
}

/// What a long run leaves, and what it may take.
#[derive(Debug, Args)]
pub(crate) struct ScanRunArgs {
    /// Where the report goes
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,

    /// Where the state is kept while it runs [default: beside --output]
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,

    /// Replace files of other kinds
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub limits: ScanLimitArgs,
}

/// What a command may take.
#[derive(Debug, Args)]
pub(crate) struct ScanLimitArgs {
    /// Most memory, in gigabytes
    #[arg(long, value_name = "GB", default_value = "8", value_parser = numbers::bytes)]
    pub memory: u64,

    #[command(flatten)]
    pub threads: ThreadArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TomographyProjectArgs {
    #[command(flatten)]
    pub request: ProjectRequest,

    /// Replace files of other kinds
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub limits: ScanLimitArgs,
}

/// How a picture is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TomographyMethodArg {
    /// Filtered back-projection
    Filtered,
    /// Total variation: flat where measurements do not say otherwise
    TotalVariation,
    /// A U-Net that explains the measurements
    DeepImagePrior,
}

#[derive(Debug, Args)]
pub(crate) struct TomographyReconstructArgs {
    #[command(flatten)]
    pub scan: ScanFiles,

    /// How
    #[arg(long, value_enum, default_value = "total-variation")]
    pub method: TomographyMethodArg,

    /// Filter of --method filtered [default: ram-lak]
    #[arg(long, value_enum)]
    pub filter: Option<Filter>,

    /// Weight of total variation, for pictures of brightness 1 [default: by measurements that are held back]
    #[arg(long, value_name = "LAMBDA")]
    pub weight: Option<f64>,

    /// Steps at most [default: 5000 of total variation, 3000 of the deep image prior]
    #[arg(long, value_name = "N")]
    pub iterations: Option<usize>,

    /// Total variation by Adam on the pixels, as published, with no bound on what is left
    #[arg(long)]
    pub adam: bool,

    /// Step size of Adam [default: 1e-3]
    #[arg(long, value_name = "RATE")]
    pub learning_rate: Option<f64>,

    /// Channels of the U-Net, scale by scale [default: 32,32,32]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub channels: Option<Vec<usize>>,

    /// Channels of its skips, deepest first [default: 4 each]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub skips: Option<Vec<usize>>,

    /// A U-Net without group norms
    #[arg(long)]
    pub no_norm: bool,

    /// Pictures of ellipses to pretrain on [default: none]
    #[arg(long, value_name = "N")]
    pub pretrain: Option<usize>,

    /// A network to begin with
    #[arg(long, value_name = "FILE.safetensors", conflicts_with = "pretrain")]
    pub start: Option<PathBuf>,

    /// Seed of weights and of what is held back
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// The truth, for comparison (.npy, .tiff, .png)
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// Where the picture goes (.npy, .tiff, .png)
    #[arg(long = "output", short = 'o', id = "output", value_name = "FILE")]
    pub out: PathBuf,

    /// Where the network of the deep image prior goes
    #[arg(long, value_name = "FILE.safetensors")]
    pub network_out: Option<PathBuf>,

    #[command(flatten)]
    pub running: ScanRunArgs,
}

/// Priors over the network's weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WeightPriorArg {
    /// One precision for weights that are scaled by what they move
    GPrior,
    /// A variance and a lengthscale for each block; stores the Jacobian
    Filters,
}

#[derive(Debug, Args)]
pub(crate) struct TomographyUncertaintyArgs {
    #[command(flatten)]
    pub scan: ScanFiles,

    /// The network that `reconstruct --method deep-image-prior` wrote of this sinogram
    #[arg(long, value_name = "FILE.safetensors")]
    pub network: PathBuf,

    /// Prior over its weights
    #[arg(long, value_enum, default_value = "g-prior")]
    pub prior: WeightPriorArg,

    /// Draws of the picture
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub samples: usize,

    /// Samples of each turn of expectation maximisation [default: 4]
    #[arg(long, value_name = "N")]
    pub samples_em: Option<usize>,

    /// Turns at most [default: 12]
    #[arg(long, value_name = "N")]
    pub turns: Option<usize>,

    /// By descent on the weights, for volumes with more measurements than a preconditioner can hold: so many steps
    #[arg(long, value_name = "STEPS")]
    pub descent: Option<usize>,

    /// Variance of the measurements' noise [default: learned]
    #[arg(long, value_name = "VARIANCE")]
    pub noise_variance: Option<f64>,

    /// Weight of the prior that expects smooth pictures (TV-PredCP), with --prior filters; 0: marginal likelihood [default: 1]
    #[arg(long, value_name = "WEIGHT")]
    pub roughness: Option<f64>,

    /// Directions of the preconditioner [default: a quarter of the measurements, 1000 at most]
    #[arg(long, value_name = "N")]
    pub rank: Option<usize>,

    /// Relative residual of solves [default: 0.01]
    #[arg(long, value_name = "SHARE")]
    pub tolerance: Option<f64>,

    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// The truth, for comparison (.npy, .tiff, .png)
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// Where the standard deviations go (.npy, .tiff, .png)
    #[arg(long = "output", short = 'o', id = "output", value_name = "FILE")]
    pub out: PathBuf,

    /// Where the picture goes
    #[arg(long, value_name = "FILE")]
    pub picture_out: Option<PathBuf>,

    /// Where the draws go, one after the other
    #[arg(long, value_name = "FILE.npy")]
    pub samples_out: Option<PathBuf>,

    #[command(flatten)]
    pub running: ScanRunArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TomographyDesignArgs {
    #[command(flatten)]
    pub request: DesignRequest,

    /// Where the state is kept while it runs [default: beside the sinogram]
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,

    #[command(flatten)]
    pub limits: ScanLimitArgs,
}
