//! The grammar of the command line.

mod fit;
mod fit_run;
mod help;
mod label;
mod laplace;
mod laplace_searches;
mod network;
mod online;
mod optimize;
mod split;
mod stream;
mod table;
mod tomography;

use crate::output::Failure;
use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use fit::{ContinueArgs, FitArgs, FitForm, is_setting, set_flag};
pub(crate) use fit_run::FitRunArgs;
pub(crate) use help::with_headings;
pub(crate) use label::{
    LabelAskArgs, LabelCommand, LabelExportArgs, LabelPoolArgs, LabelStartArgs, LabelTellArgs,
};
pub(crate) use laplace::{
    CurvatureArg, FisherArg, LaplaceArgs, PredictiveArg, TuneArg, chosen_integration, only,
};
pub(crate) use laplace_searches::{FreezeArg, KernelInputsArg, SETTINGS, SearchArgs, SolverArg, SwitchArg};
pub(crate) use network::{ForwardArgs, PrecisionArg, RuleArg, ScheduleArg, TrainArgs};
pub(crate) use online::{OnlineArgs, OnlineCurvatureArg, OnlinePriorArg, OnlineRuleArg};
pub(crate) use optimize::{AskArgs, LockArgs, OptimizeCommand, RunArgs, StartArgs, TellArgs};
use posterior::data::{CsvOptions, ReadOptions, TextOptions, Unseen};
use posterior::models::{Question, VarianceMethod};
use posterior::network::InputFile;
use posterior::options::numbers;
pub(crate) use split::SplitArgs;
use std::path::PathBuf;
pub(crate) use stream::{BadRowsArg, FromArg, LastLineArg, NoiseArg, StreamArgs};
pub(crate) use table::TableArgs;
pub(crate) use tomography::{
    TomographyCommand, TomographyDesignArgs, TomographyMethodArg, TomographyProjectArgs,
    TomographyReconstructArgs, TomographyUncertaintyArgs, WeightPriorArg,
};

/// Predictions that say how sure they are.
///
/// Exit status: 0 success, 1 failure, 2 wrong usage.
#[derive(Debug, Parser)]
// The name of the binary is said, so that help repeats nothing of the command line.
#[command(name = "posterior", bin_name = "posterior", version, propagate_version = true)]
#[command(after_help = "Begin with: posterior demo")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// Print one JSON object on standard output
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,

    /// Print only results and errors
    #[arg(long, short, global = true, help_heading = "Output")]
    pub quiet: bool,

    /// Flags of the command that were written, without their dashes.
    #[arg(skip)]
    pub written: Vec<String>,

    /// Settings that were given by `--set`.
    #[arg(skip)]
    pub set: Vec<String>,
}

impl Cli {
    /// Refuses the first of these flags that was written, for a reason, where they are wrong.
    pub(crate) fn refuse(&self, flags: &[&str], wrong: bool, why: &str) -> Result<(), Failure> {
        match flags.iter().find(|flag| self.written.iter().any(|own| own == *flag)) {
            Some(flag) if wrong => {
                let set = if self.set.iter().any(|own| own == flag) { "set " } else { "" };
                Err(Failure::usage(format!("--{set}{flag} {why}")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses flags that belong to another choice.
    pub(crate) fn only(&self, flags: &[&str], belongs: bool, to: &str) -> Result<(), Failure> {
        self.refuse(flags, !belongs, &format!("belongs to {to}"))
    }
}

/// The examples of `fit` that its short help has.
macro_rules! fit_examples {
    () => {
        "  posterior fit house.csv --target price -o house.posterior\n  posterior fit house.csv --target price --test-fraction 0.2 --method sgpr --set inducing=500 -o sgpr.posterior\n  posterior fit sold.csv --continue house.posterior -o house2.posterior\n  posterior fit house.csv --target price --network net.safetensors --likelihood gaussian -o net.posterior"
    };
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what this is about: four small problems, their scores and a report; needs no files
    #[command(after_help = "Example:\n  posterior demo -o demo")]
    Demo(DemoArgs),
    /// Learn a model from a table, or error bars for a trained network
    #[command(
        after_help = concat!("Examples:\n", fit_examples!()),
        after_long_help = concat!("Examples:\n", fit_examples!(), "\n  posterior fit flights.parquet --target delay --method sdd --time-budget 5m -o flights.posterior\n  posterior fit house.csv --target price,age --kernel \"matern32(ard) + linear\" --set restarts=3 -o both.posterior\n  posterior fit train-images.gz --labels train-labels.gz --network net.onnx --likelihood categorical -o net.posterior\n  posterior fit features.npy --labels classes.npy --head head.npz --likelihood categorical -o head.posterior\n\nA --config file holds flags (target = \"price\") and [[hyperprior]] tables with parameter, density = \"log-normal\" (location, scale) or \"gamma\" (shape, rate).\n`posterior inspect --support NETWORK` shows which methods a network has.")
    )]
    Fit(FitArgs),
    /// Predict the rows of a table, arrays or images
    #[command(
        after_help = "Examples:\n  posterior predict house.posterior new.csv -o prices.csv\n  posterior predict house.posterior new.parquet --quantiles 0.05,0.5,0.95 --samples 10 -o prices.parquet\n  posterior predict house.posterior house.csv --leave-one-out -o left-out.csv\n  posterior predict net.posterior images.gz --top 3 -o classes.csv"
    )]
    Predict(PredictArgs),
    /// Score a model on data whose truth is known
    #[command(
        after_help = "Example:\n  posterior evaluate house.posterior house.csv --folds folds.csv --fold 0 --report report.html\n  posterior evaluate net.posterior t10k-images.gz --labels t10k-labels.gz --rotate 0,30,60 --ood other.gz --report report.html"
    )]
    Evaluate(EvaluateArgs),
    /// Train a network
    #[command(
        after_help = "Examples:\n  posterior train mlp.toml train-images.gz --labels train-labels.gz --loss cross-entropy \\\n      --epochs 10 -o mlp.safetensors\n  posterior train net.toml house.csv --target price --loss gaussian --validation-fraction 0.1 --patience 20 \\\n      --epochs 500 -o house.safetensors\n\nCtrl-C saves the state; --resume goes on from it, to the same weights bit for bit.\nAn architecture is a small file: kind = \"perceptron\", inputs = 3, hidden = [64, 64], outputs = 1"
    )]
    Train(Box<TrainArgs>),
    /// Write the outputs of a network on an array of inputs
    #[command(
        after_help = "Examples:\n  posterior forward net.onnx x.npy -o y.npy --precision f64\n  posterior forward net.safetensors batch.npz:images --architecture net.toml -o logits.npy"
    )]
    Forward(ForwardArgs),
    /// Make predictions of a process of many rows cheap: fewer points carry its functions, and the file says how far they moved
    #[command(
        after_help = "Example:\n  posterior compress large.posterior --inducing 500 -o small.posterior"
    )]
    Compress(CompressArgs),
    /// Describe a model file, a network or a table
    #[command(
        after_help = "Examples:\n  posterior inspect house.posterior\n  posterior inspect net.onnx\n  posterior inspect net.safetensors --architecture net.toml\n  posterior inspect house.csv"
    )]
    Inspect(InspectArgs),
    /// Look for the best point of something that is expensive to try: ask, try, tell
    #[command(
        after_help = "Examples:\n  posterior optimize start s.json --space \"rate:1e-5..0.1:log,layers:1..6:integer\"\n  posterior optimize ask s.json -n 4\n  posterior optimize tell s.json --id 1 --value 0.23\n  posterior optimize run s.json --evaluations 50 -- ./train.sh {rate} {layers}\n\nThe state is written in one step after every change: whatever is killed, nothing that was told is lost."
    )]
    #[command(subcommand)]
    Optimize(OptimizeCommand),
    /// Label the rows of a pool that tell most: ask, label, tell
    #[command(
        after_help = "Examples:\n  posterior label start labels.json pool.csv\n  posterior label ask labels.json -n 5\n  posterior label tell labels.json --id 3 --label cat\n  posterior label export labels.json -o labelled.csv\n\nThe state is written in one step after every change: whatever is killed, nothing that was told is lost. Any number of processes may ask and tell at once; none is asked for a row that another was asked for."
    )]
    #[command(subcommand)]
    Label(LabelCommand),
    /// Predict rows as they arrive, each before it is learned; the model goes on learning in bounded memory
    #[command(
        after_help = "Examples:\n  posterior stream house.stream house.csv --target price -o predictions.csv\n  posterior stream house.stream --status\n\nRows come on standard input where no DATA is given. The state is written in one step after every batch, behind its predictions: whatever is killed, the same command goes on where the state stands, and every row is counted once."
    )]
    Stream(Box<StreamArgs>),
    /// Computed tomography: pictures from sinograms, where not to trust them, where to look next
    #[command(
        after_help = "Examples:\n  posterior tomography project scan.toml --phantom walnut -o sinogram.npy\n  posterior tomography reconstruct scan.toml sinogram.npy --method deep-image-prior --network-out net.safetensors -o picture.png\n  posterior tomography uncertainty scan.toml sinogram.npy --network net.safetensors -o deviation.png --report report.html\n  posterior tomography design scanner.toml pilot.npy --measured 0,40,80,120,160 --network pilot.safetensors\n\nA geometry is a small file: kind = \"parallel\" (or fan, stacked, cone), height = 128, width = 128, angles = { count = 60 }"
    )]
    #[command(subcommand)]
    Tomography(TomographyCommand),
    /// List the methods with what they cost, or the settings of one
    #[command(
        after_help = "Examples:\n  posterior methods\n  posterior methods svgp\n  posterior methods kronecker"
    )]
    Methods(MethodsArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  posterior completions bash > /etc/bash_completion.d/posterior")]
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    #[command(after_help = "Examples:\n  posterior man > posterior.1\n  posterior man -o man1")]
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Folder for the report and the models
    #[arg(long = "output", short = 'o', id = "output", value_name = "DIR", default_value = "posterior-demo")]
    pub out: PathBuf,

    /// Seed of the made-up data
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

// What is asked of which model about which rows, by `predict` and `evaluate`. (A documentation comment would become the commands' own.)
#[derive(Debug, Args)]
pub(crate) struct QuestionArgs {
    /// Model file
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,

    /// Table with the features, and the truth where that is asked for (other columns are carried along), several files of the same columns being one table; for networks one table, or arrays, images or features, several of which are put together
    #[arg(value_name = "DATA", required_unless_present = "input", num_args = 1.., value_delimiter = ',')]
    data: Vec<PathBuf>,

    #[command(flatten)]
    inputs: InputArgs,

    #[command(flatten)]
    pub text: TextOptions,

    /// What to do with categories that the training rows did not have [default: as at the fit]
    #[arg(long, value_enum)]
    pub unseen: Option<Unseen>,

    /// Where variances of sdd, sap, sgd and cg come from; other models have them in closed form [default: samples]
    #[arg(long, value_enum)]
    pub variances: Option<VariancesArg>,

    /// Vectors of the basis of --variances lanczos, at most [default: 512]
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub variance_rank: Option<usize>,

    /// Networks: how uncertainty becomes a prediction [default: as fitted]
    #[arg(long, value_enum)]
    pub predictive: Option<PredictiveArg>,

    /// Networks: draws of --predictive monte-carlo [default: 1000]
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub predictive_samples: Option<usize>,

    /// Networks: take inputs of another kind than at the fit (bytes for floating-point numbers, say) as they are
    #[arg(long)]
    pub allow_other_inputs: bool,

    /// Only the first N examples
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=usize::MAX))]
    pub limit: Option<usize>,

    /// Seed of draws and corruptions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Most memory that the table, its predictions, joint draws, covariances and exact variances may need, in gigabytes
    #[arg(long, value_name = "GB", default_value = "8", value_parser = numbers::bytes)]
    pub memory: u64,

    #[command(flatten)]
    pub threads: ThreadArgs,
}

// How many threads a command may use. (A documentation comment would become the commands' own.)
#[derive(Clone, Debug, Args)]
pub(crate) struct ThreadArgs {
    /// Threads [default: all]
    #[arg(long = "threads", id = "threads", value_name = "N", value_parser = numbers::threads)]
    pub count: Option<usize>,
}

// Arrays for a network with several inputs.
#[derive(Clone, Debug, Args)]
pub(crate) struct InputArgs {
    /// Networks with several inputs: the array of one, examples first; once for each, in place of DATA
    #[arg(long, value_name = "NAME=FILE", conflicts_with = "data")]
    pub input: Vec<InputFile>,
}

impl InputArgs {
    /// The files, `data` or one for each input, and which inputs they are.
    pub(crate) fn files(&self, data: &[PathBuf]) -> (Vec<String>, Vec<PathBuf>) {
        if self.input.is_empty() { (Vec::new(), data.to_vec()) } else { InputFile::parts(&self.input) }
    }
}

impl QuestionArgs {
    /// Whether its files are the inputs of a network.
    pub(crate) fn of_inputs(&self) -> bool {
        !self.inputs.input.is_empty()
    }

    /// Its files, and which inputs of a network they are.
    pub(crate) fn files(&self) -> (Vec<String>, Vec<PathBuf>) {
        self.inputs.files(&self.data)
    }

    /// Where variances come from; a rank is that of a Lanczos basis.
    fn variances(&self) -> Result<Option<VarianceMethod>, Failure> {
        if self.variance_rank.is_some() && self.variances != Some(VariancesArg::Lanczos) {
            return Err(Failure::usage(
                "--variance-rank is the rank of --variances lanczos, which is not asked for".into(),
            ));
        }
        let rank = self.variance_rank.unwrap_or(512);
        let memory_limit = self.memory;
        Ok(self.variances.map(|variances| match variances {
            VariancesArg::Samples => VarianceMethod::Samples,
            VariancesArg::Exact => VarianceMethod::Solves { tolerance: 1e-4, iterations: 1000, memory_limit },
            VariancesArg::Lanczos => VarianceMethod::Lanczos { rank, memory_limit },
        }))
    }

    /// How its files are read.
    pub(crate) fn reading(&self) -> ReadOptions {
        ReadOptions { text: self.text, ..ReadOptions::limited(self.memory) }
    }

    /// As the library has it.
    pub(crate) fn question(&self) -> Result<Question, Failure> {
        Ok(Question {
            integration: chosen_integration(self.predictive, self.predictive_samples, self.seed)?,
            variances: self.variances()?,
            seed: self.seed,
            memory: self.memory,
            text: self.text,
            timed: true,
            ..Question::default()
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub question: QuestionArgs,

    /// File to write to: .csv, .parquet, or an array .npy [default: CSV on standard output]
    #[arg(long = "output", short = 'o', id = "output", value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Read and write the table part by part, with --output: what stays in memory is one part (32 MB of the model's numbers or of cells) [default: from 256 MB on]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", requires = "output", conflicts_with = "limit")]
    pub stream: Option<bool>,

    #[command(flatten)]
    pub csv: CsvOptions,

    /// Quantiles of new observations to add
    #[arg(long, value_name = "P,Q", value_delimiter = ',', value_parser = numbers::share)]
    pub quantiles: Vec<f64>,

    /// Joint draws of the noiseless function: columns to add, for networks always an array in --samples-out
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = numbers::whole(0..=100_000))]
    pub samples: usize,

    /// Write the draws there, [N, examples, outputs], instead of into columns
    #[arg(long, value_name = "FILE.npy", requires = "samples")]
    pub samples_out: Option<PathBuf>,

    /// Write the covariance of the noiseless function between all rows that have a prediction, [N, N]; of networks, of all outputs of all inputs. Not for classes, counts and student-t of a process
    #[arg(long, value_name = "FILE.npy")]
    pub joint: Option<PathBuf>,

    /// Exact processes: DATA are rows that the model was trained on (with their targets), and each is predicted from all other training rows
    #[arg(long)]
    pub leave_one_out: bool,

    /// Quantiles of the noiseless function instead of new observations
    #[arg(long)]
    pub latent: bool,

    /// Classifiers: write only the K most probable classes
    #[arg(long, value_name = "K", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub top: Option<usize>,

    /// Classifiers: sets of classes that hold the true one so often, a column each (`set`; of several levels `set_P`): names joined by `|`, most probable first, a `|` or `\` of a name with a `\` before it; arrays with --json. By rows that the fit was judged on, whatever the model
    #[arg(long, value_name = "P,Q", value_delimiter = ',', value_parser = numbers::share)]
    pub sets: Vec<f64>,

    /// Replace files that are there even if they hold no predictions
    #[arg(long)]
    pub force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VariancesArg {
    /// Posterior samples: off by a tenth or so with 64, at no cost
    Samples,
    /// Conjugate gradients for each row, to a relative residual of 1e-4: as costly as a sample each
    Exact,
    /// One Lanczos basis of the kernel matrix for all rows, of --variance-rank vectors: never below the exact ones, and how far above is told
    Lanczos,
}

#[derive(Debug, Args)]
pub(crate) struct EvaluateArgs {
    #[command(flatten)]
    pub question: QuestionArgs,

    /// Networks: labels of data that hold none
    #[arg(long, value_name = "FILE", num_args = 1.., value_delimiter = ',')]
    pub labels: Vec<PathBuf>,

    #[command(flatten)]
    pub split: SplitArgs,

    /// Write a report to look at
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,

    /// Replace the file of --report even if it is no report
    #[arg(long, requires = "report")]
    pub force: bool,

    /// Other models that predict the same, side by side
    #[arg(long, value_name = "MODEL", num_args = 1.., value_delimiter = ',')]
    pub against: Vec<PathBuf>,

    /// Classifiers: inputs of another kind, to be told from these by their uncertainty
    #[arg(long, value_name = "FILE", num_args = 1.., value_delimiter = ',')]
    pub ood: Vec<PathBuf>,

    /// Images: score them turned by these angles as well
    #[arg(long, value_name = "DEGREES", value_delimiter = ',', allow_negative_numbers = true, value_parser = numbers::finite)]
    pub rotate: Vec<f64>,

    /// Images: score them under corruptions at all severities (gaussian-noise, shot-noise, gaussian-blur, contrast, brightness, pixelation, rotation)
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub corrupt: Vec<String>,

    /// Networks: score sets of so many labels jointly, by functions drawn from the posterior (1,2,5 or 1..5)
    #[arg(long, value_name = "K", value_parser = counts)]
    pub joint_kappa: Option<Counts>,

    /// Networks: functions drawn for --joint-kappa [default: 100]
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub samples: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct CompressArgs {
    /// Model fitted by sdd, sap, cg or sgd
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,

    /// Points that carry its functions: a prediction costs as many kernel values
    #[arg(long, value_name = "N", default_value = "2000", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub inducing: usize,

    /// Where the compressed model goes
    #[arg(long = "output", short = 'o', id = "output", value_name = "MODEL")]
    pub out: PathBuf,

    /// Replace the file of --output even if it is no model
    #[arg(long)]
    pub force: bool,

    /// Seed of the clusters whose centres the points are
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Most memory that it may need, in gigabytes
    #[arg(long, value_name = "GB", default_value = "8", value_parser = numbers::bytes)]
    pub memory: u64,

    #[command(flatten)]
    pub threads: ThreadArgs,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A model, a network (.onnx, .safetensors, .pt), an architecture (.toml) or a table
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The architecture of a .safetensors file that does not hold it, or of a .pt file; without it their tensors are listed
    #[arg(long, value_name = "FILE.toml")]
    pub architecture: Option<PathBuf>,

    /// Which output of an ONNX file that has several
    #[arg(long, value_name = "NAME")]
    pub onnx_output: Option<String>,

    #[command(flatten)]
    pub text: TextOptions,

    /// Networks: which curvatures and priors which layer has
    #[arg(long)]
    pub support: bool,

    /// Write a page to look at: of a model with what was learned, what columns do and, for one column, the function (the intensity, of a Cox process) along it; of a network with its layers, what reads what and what can be had for their weights
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,

    /// Replace the file of --report even if it is no report
    #[arg(long, requires = "report")]
    pub force: bool,

    /// Most memory that reading a table may need, or asking a model what its columns do, in gigabytes
    #[arg(long, value_name = "GB", default_value = "8", value_parser = numbers::bytes)]
    pub memory: u64,
}

#[derive(Debug, Args)]
pub(crate) struct MethodsArgs {
    /// A method, or a group of settings (prior, text) [default: list the methods]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// bash, elvish, fish, powershell or zsh
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder for a page of each command; pages in it are replaced [default: print the main page]
    #[arg(long = "output", short = 'o', id = "output", value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Most labels that are scored jointly.
const MOST_LABELS: usize = 10_000;

/// A list of whole numbers from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counts(pub Vec<usize>);

/// `1,2,5` or `1..5` (both ends included).
fn counts(text: &str) -> Result<Counts, String> {
    let number = numbers::whole(1..=MOST_LABELS);
    let number = |t: &str| number(t).ok();
    let list = match text.split_once("..") {
        Some((low, high)) => match (number(low), number(high)) {
            (Some(low), Some(high)) if low <= high && high - low < 1000 => Some((low..=high).collect()),
            _ => None,
        },
        None => text.split(',').map(number).collect(),
    };
    list.map(Counts).ok_or_else(|| {
        format!("it must be a list of whole numbers from 1 to {MOST_LABELS}, such as 1,2,5 or 1..5")
    })
}
