//! The grammar of `fit gp`.

use super::numbers;
use clap::{Args, ValueEnum};
use serde::Deserialize;
use std::path::PathBuf;

/// Flags of `fit gp`; the same names are the keys of the configuration file.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct FitArgs {
    /// Table to learn from: .csv, .tsv (also .gz), .parquet, .npy, .npz
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,

    /// Column to predict, by name or number (from 1)
    #[arg(long, value_name = "COL")]
    pub target: Option<String>,

    /// Columns to predict from [default: all others]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub features: Option<Vec<String>>,

    /// Column of known noise variances
    #[arg(long, value_name = "COL")]
    pub noise: Option<String>,

    /// Text column to turn into one 0/1 feature for each category; may be repeated
    #[arg(long, value_name = "COL", value_delimiter = ',')]
    pub one_hot: Option<Vec<String>>,

    /// What to do with missing cells [default: error]
    #[arg(long, value_enum)]
    pub missing: Option<MissingArg>,

    /// Kernel, such as "matern32(ard) * periodic(x3) + linear" [default: matern32(ard)]
    #[arg(long, value_name = "TEXT")]
    pub kernel: Option<String>,

    /// Prior mean [default: constant]
    #[arg(long, value_enum)]
    pub mean: Option<MeanArg>,

    /// How to compute the posterior [default: auto]
    #[arg(long, value_enum)]
    pub method: Option<MethodArg>,

    /// What to maximise [default: evidence]
    #[arg(long, value_enum)]
    pub objective: Option<ObjectiveArg>,

    /// What maximises it [default: lbfgs]
    #[arg(long, value_enum)]
    pub optimizer: Option<OptimizerArg>,

    /// Step size of Adam, also of a stochastic search [default: 0.1]
    #[arg(long, value_name = "X", value_parser = numbers::positive)]
    pub learning_rate: Option<f64>,

    /// Most steps of each search for hyperparameters [default: 200, of a stochastic one 100]; a solver's own are --iterations
    #[arg(long, value_name = "N", value_parser = numbers::whole(0..=numbers::MOST_STEPS))]
    pub steps: Option<usize>,

    /// Starts: the kernel's initial values, the same with little noise, then random ones [default: 2]
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=1000))]
    pub restarts: Option<usize>,

    /// Noise variance at the start, as a share of the target's variance [default: 0.1]
    #[arg(long, value_name = "X", value_parser = numbers::positive)]
    pub initial_noise: Option<f64>,

    /// Least noise variance, as a share of the target's variance [default: 1e-4]
    #[arg(long, value_name = "X", value_parser = numbers::not_negative)]
    pub noise_floor: Option<f64>,

    /// Beliefs about lengthscales that --config says nothing about [default: weak]
    #[arg(long, value_enum)]
    pub lengthscale_prior: Option<LengthscalePriorArg>,

    /// Most memory that the fit may need, in gigabytes [default: 8]
    #[arg(long, value_name = "GB", value_parser = numbers::gigabytes)]
    pub memory: Option<f64>,

    /// Posterior samples of methods for large tables; variances come from them [default: 64]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub samples: Option<usize>,

    /// Random features of prior functions [default: 2000]
    #[arg(long = "random-features", value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub random_features: Option<usize>,

    /// The form of random features of waves [default: paired]
    #[arg(long, value_enum, help_heading = "Large tables")]
    pub feature_form: Option<FeatureFormArg>,

    /// How their frequencies are drawn [default: independent]
    #[arg(long, value_enum, help_heading = "Large tables")]
    pub feature_frequencies: Option<FeatureFrequenciesArg>,

    /// Most time for the whole command, such as 90s, 5m or 2h: reading, search, solver, fallbacks [default: as long as it takes]
    #[arg(long, value_name = "TIME")]
    pub time_budget: Option<String>,

    /// Hold hyperparameters: NAME or NAME=VALUE in standard units, as `posterior inspect --json` has them, such as noise_variance=0.01 or "matern32.lengthscale[2]"
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    pub fix: Option<Vec<String>>,

    /// Bound hyperparameters: NAME=LOWER..UPPER, in standard units, such as noise_variance=1e-3..0.1
    #[arg(long, value_name = "NAME=L..U", value_delimiter = ',')]
    pub bound: Option<Vec<String>>,

    /// Steps of the solver or stochastic bound [default: 10000 for sdd, 20000 for sgd and inducing-sgd, 1000 for cg, 3000 for svgp]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(0..=numbers::MOST_STEPS))]
    pub iterations: Option<usize>,

    /// Rows of a batch [default: 512; svgp 1024]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub batch: Option<usize>,

    /// Step size of sdd and sgd times the number of rows [default: the largest that is safe]; of svgp's Adam [default: 0.01]
    #[arg(long, value_name = "X", help_heading = "Large tables", value_parser = numbers::positive)]
    pub step_size: Option<f64>,

    /// Momentum of sdd [default: 0.9]
    #[arg(long, value_name = "X", help_heading = "Large tables", value_parser = numbers::share_or_none)]
    pub momentum: Option<f64>,

    /// Relative residual at which a solver stops; inducing-sgd knows none [default: 1e-3 for cg, none for others]
    #[arg(long, value_name = "X", help_heading = "Large tables", value_parser = numbers::positive)]
    pub tolerance: Option<f64>,

    /// Preconditioner of cg and of stochastic searches [default: pivoted-cholesky]
    #[arg(long, value_enum, help_heading = "Large tables")]
    pub preconditioner: Option<PreconditionerArg>,

    /// Rank of the preconditioner [default: 100]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(0..=numbers::MOST_KEPT))]
    pub rank: Option<usize>,

    /// Precision of kernel products [default: f32]
    #[arg(long, value_enum, help_heading = "Large tables")]
    pub precision: Option<KernelPrecisionArg>,

    /// Gigabytes that may be used to keep the kernel matrix in memory [default: 0]
    #[arg(long, value_name = "GB", help_heading = "Large tables", value_parser = numbers::gigabytes_or_none)]
    pub cache: Option<f64>,

    /// Inducing points of inducing-sgd, sgpr, svgp [default: 512]
    #[arg(long, value_name = "M", help_heading = "Large tables", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub inducing: Option<usize>,

    /// How they are chosen, at most as many [default: k-means]
    #[arg(long, value_enum, help_heading = "Large tables")]
    pub inducing_choice: Option<InducingChoiceArg>,

    /// Radius of --inducing-choice cover in lengthscales; it grows while too many points are left [default: 0.5]
    #[arg(long, value_name = "X", help_heading = "Large tables", value_parser = numbers::positive)]
    pub cover_radius: Option<f64>,

    /// The larger the more rows --inducing-choice pruned keeps (0.5, 1 or 2 in the literature), up to --inducing [default: 1]
    #[arg(long, value_name = "X", help_heading = "Large tables", value_parser = numbers::positive)]
    pub pruning_ratio: Option<f64>,

    /// Keep inducing points where they were chosen, as those among counts always are
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Large tables")]
    pub fixed_inducing: Option<bool>,

    /// What moves the distribution of svgp's inducing values [default: natural]
    #[arg(long, value_enum, help_heading = "Large tables")]
    pub variational: Option<VariationalArg>,

    /// Length of natural-gradient steps, above 0 and at most 1 [default: 0.1]
    #[arg(long, value_name = "X", help_heading = "Large tables", value_parser = numbers::share_or_all)]
    pub natural_length: Option<f64>,

    /// How hyperparameters of iterative methods are learned [default: blocks]
    #[arg(long, value_enum, help_heading = "Large tables")]
    pub hyperparameter_search: Option<HyperparameterSearchArg>,

    /// Probes of a stochastic search [default: 16]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub probes: Option<usize>,

    /// What the probes are [default: signs]
    #[arg(long, value_enum, help_heading = "Large tables")]
    pub probe_kind: Option<ProbeKindArg>,

    /// Iterations of each step's solve of a stochastic search [default: 15]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(1..=numbers::MOST_STEPS))]
    pub search_iterations: Option<usize>,

    /// Blocks of each kind, uniform rows and neighbourhoods, whose joint evidence gives the hyperparameters of iterative methods [default: 4]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(1..=100_000))]
    pub blocks: Option<usize>,

    /// Rows of each [default: 500]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub block_size: Option<usize>,

    /// Uniform rows of the larger block that the search goes on with, as far as time and memory allow; 0 for none [default: 4000]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(0..=numbers::MOST_KEPT))]
    pub refining_rows: Option<usize>,

    /// Rows that the fit does not see, to judge it by; 0 for none [default: a twentieth, at most 512]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(0..=numbers::MOST_KEPT))]
    pub held_back: Option<usize>,

    /// Samples that share random features; the error of features averages out over groups of them [default: 8]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub samples_per_features: Option<usize>,

    /// Neighbourhoods whose exact evidences are averaged, with --hyperparameter-search neighbourhoods [default: 10]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(1..=100_000))]
    pub neighbourhoods: Option<usize>,

    /// Rows of each of those [default: 2000]
    #[arg(long, value_name = "N", help_heading = "Large tables", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub neighbourhood_size: Option<usize>,

    /// Take the hyperparameters of this model, or of a JSON object of names and numbers, instead of learning them
    #[arg(long, value_name = "MODEL|FILE.json")]
    pub hyperparameters: Option<PathBuf>,

    /// Where an interrupted fit is kept; the same command goes on from it [default: OUT.checkpoint]
    #[arg(long, value_name = "FILE", help_heading = "Large tables")]
    pub checkpoint: Option<PathBuf>,

    /// Begin anew and replace the checkpoint of another fit, or of this one
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Large tables")]
    pub fresh: Option<bool>,

    /// Seconds between two checkpoints [default: 30]
    #[arg(long, value_name = "S", help_heading = "Large tables", value_parser = numbers::seconds)]
    pub checkpoint_every: Option<f64>,

    /// Read the table part by part, so that only the model's own numbers stay in memory [default: from 256 MB on]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Large tables")]
    pub stream: Option<bool>,

    /// Defaults for these flags
    #[arg(long, value_name = "FILE.toml")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// File with the fold of each row; rows of --fold are left out of training
    #[arg(long, value_name = "FILE")]
    pub folds: Option<PathBuf>,

    /// Fold to leave out
    #[arg(long, value_name = "K")]
    pub fold: Option<i64>,

    /// Share of the rows to leave out at random
    #[arg(long, value_name = "F", value_parser = numbers::share)]
    pub test_fraction: Option<f64>,

    /// Seed of everything random [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = numbers::threads)]
    pub threads: Option<usize>,

    /// File to write the model to
    #[arg(long, value_name = "MODEL")]
    pub out: Option<PathBuf>,

    /// Replace the file of --out even if it is no model
    #[arg(long)]
    #[serde(skip)]
    pub force: bool,

    /// Hyperpriors, from the configuration file only
    #[arg(skip)]
    #[serde(default, rename = "hyperprior")]
    pub hyperpriors: Vec<posterior::gp::Hyperprior>,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MissingArg {
    /// An error that names the cell
    Error,
    /// Leave the row out
    Drop,
    /// Fill in the training mean
    Mean,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MeanArg {
    /// 0 in standard units: the training mean
    Zero,
    /// A learned constant
    Constant,
    /// Learned constant and slopes
    Linear,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MethodArg {
    /// Chosen by size and memory
    Auto,
    /// Cholesky of the whole kernel matrix
    Exact,
    /// Conjugate gradients
    Cg,
    /// Stochastic gradient descent on the primal objective
    Sgd,
    /// Stochastic dual descent: the method of choice for large tables
    Sdd,
    /// Stochastic gradient descent on weights of inducing points
    InducingSgd,
    /// The collapsed bound of inducing points (Titsias)
    Sgpr,
    /// The stochastic bound of inducing points (Hensman)
    Svgp,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KernelPrecisionArg {
    /// Single
    F32,
    /// Double
    F64,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PreconditionerArg {
    /// Pivoted Cholesky
    PivotedCholesky,
    /// Randomised Nyström
    Nystrom,
    /// None
    None,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum InducingChoiceArg {
    /// Centres of clusters
    KMeans,
    /// Rows that the others predict worst
    Greedy,
    /// Rows by chance
    Random,
    /// Rows such that every row is near one
    Cover,
    /// Rows that are left when those with close neighbours are thinned out
    Pruned,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FeatureFormArg {
    /// Cosines and sines of the same frequencies
    Paired,
    /// Cosines with random phases
    Phase,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FeatureFrequenciesArg {
    /// Independently
    Independent,
    /// In orthogonal directions
    Orthogonal,
    /// From a randomised Halton sequence: for few columns
    QuasiRandom,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VariationalArg {
    /// Natural gradients
    Natural,
    /// Adam, with the step size of everything else
    Adam,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HyperparameterSearchArg {
    /// One joint evidence over blocks of rows, some uniform, some neighbourhoods
    Blocks,
    /// The exact evidence on neighbourhoods of random rows, averaged, as published
    Neighbourhoods,
    /// Stochastic gradients of the evidence of all rows
    Stochastic,
    /// The same, from where blocks lead
    Refined,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProbeKindArg {
    /// Random signs: unbiased
    Signs,
    /// Prior functions and noise, as posterior samples have them
    Pathwise,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ObjectiveArg {
    /// Log evidence (marginal likelihood)
    Evidence,
    /// Log score of leaving each row out
    LeaveOneOut,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LengthscalePriorArg {
    /// Log-normal, wide, around the root of the number of features
    Weak,
    /// None: the evidence alone
    None,
}

#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OptimizerArg {
    /// Quasi-Newton with exact gradients
    Lbfgs,
    /// Adaptive moments
    Adam,
}
