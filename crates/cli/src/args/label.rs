//! Flags of `label`.

use super::{LockArgs, ThreadArgs};
use clap::{Args, Subcommand};
use posterior::data::CsvOptions;
use posterior::decisions::labelling::{Criterion, PoolColumns};
use posterior::likelihoods::gaussianised::Matching;
use posterior::options::numbers;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum LabelCommand {
    /// Begin: say what may be labelled
    #[command(
        after_help = "Examples:\n  posterior label start labels.json pool.csv\n  posterior label start arrays.json features.npy --classes 0,1,2,3 --kernel linear --criterion mutual-information"
    )]
    Start(Box<LabelStartArgs>),
    /// Ask for the next rows to label
    #[command(after_help = "Example:\n  posterior label ask labels.json -n 5")]
    Ask(LabelAskArgs),
    /// Tell labels
    #[command(
        after_help = "Examples:\n  posterior label tell labels.json --id 3 --label cat\n  posterior label tell labels.json --id 4 --skip \"the picture is black\"\n  posterior label tell labels.json --row 17 --label dog"
    )]
    Tell(LabelTellArgs),
    /// What was asked and told so far, how unsure the rest is, and how good predictions were
    #[command(after_help = "Example:\n  posterior label status labels.json")]
    Status(LabelPoolArgs),
    /// Write the labelled rows as a table that `fit` takes
    #[command(
        after_help = "Example:\n  posterior label export labels.json -o labelled.csv; posterior fit labelled.csv --target label -o labels.posterior"
    )]
    Export(LabelExportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LabelStartArgs {
    /// State file to begin; all other commands go on with it
    #[arg(value_name = "STATE")]
    pub state: PathBuf,

    #[command(flatten)]
    pub lock: LockArgs,

    /// Rows that may be labelled: a table (CSV, Parquet), or an array with a row for each (.npy, FILE.npz:NAME)
    #[arg(value_name = "POOL")]
    pub pool: PathBuf,

    #[command(flatten)]
    pub columns: PoolColumns,

    /// All classes there are; other labels are refused [default: they grow as labels come]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub classes: Option<Vec<String>>,

    /// By what rows are chosen
    #[arg(long, value_enum, default_value_t)]
    pub criterion: Criterion,

    /// Kernel, on standardised features; `linear` is Bayesian logistic regression on them
    #[arg(long, value_name = "TEXT", default_value = "matern52")]
    pub kernel: String,

    /// How labels become numbers
    #[arg(long, value_enum, default_value_t)]
    pub matching: Matching,

    /// What is pretended to have been seen of each class before a label: small is close to the likelihood
    #[arg(long, value_name = "A", default_value_t = 0.1, value_parser = numbers::positive)]
    pub pseudo_count: f64,

    /// Rows, labelled or asked for, that are spread over the pool before the model is asked
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = numbers::whole(2..=10_000))]
    pub initial: usize,

    /// Most memory that pool and model may need, in gigabytes
    #[arg(long, value_name = "GB", default_value = "8", value_parser = numbers::bytes)]
    pub memory: u64,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Replace a state that exists
    #[arg(long)]
    pub force: bool,
}

// The pool of a state, read again. (A documentation comment would become the commands' own.)
#[derive(Debug, Args)]
pub(crate) struct LabelPoolArgs {
    /// State file
    #[arg(value_name = "STATE")]
    pub state: PathBuf,

    /// The pool, if it was moved since the start
    #[arg(long, value_name = "FILE")]
    pub pool: Option<PathBuf>,

    /// Most memory that pool and model may need, in gigabytes
    #[arg(long, value_name = "GB", default_value = "8", value_parser = numbers::bytes)]
    pub memory: u64,

    #[command(flatten)]
    pub threads: ThreadArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LabelAskArgs {
    #[command(flatten)]
    pub pool: LabelPoolArgs,

    #[command(flatten)]
    pub lock: LockArgs,

    /// Rows to ask for, at most 10000
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1, value_parser = numbers::whole(1..=10_000))]
    pub count: usize,
}

#[derive(Debug, Args)]
pub(crate) struct LabelTellArgs {
    /// State file
    #[arg(value_name = "STATE")]
    pub state: PathBuf,

    #[command(flatten)]
    pub lock: LockArgs,

    /// Number of the question
    #[arg(long, value_name = "ID", conflicts_with = "row", required_unless_present_any = ["row", "results"], value_parser = numbers::whole(1..=usize::MAX))]
    pub id: Option<usize>,

    /// A row of the pool by its number in the file, from 1, whether or not it was asked for
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=usize::MAX))]
    pub row: Option<usize>,

    /// Its label, as it stands: spaces and case count
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["skip", "results"])]
    pub label: Option<String>,

    /// It cannot be labelled, because of this; it is not asked for again
    #[arg(long, value_name = "REASON", conflicts_with = "label")]
    pub skip: Option<String>,

    /// Many at once: a table with the columns id (or row) and label; empty labels are left pending
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "row", "label", "skip"])]
    pub results: Option<PathBuf>,

    /// Most memory that reading the table may need, in gigabytes
    #[arg(long, value_name = "GB", default_value = "8", requires = "results", value_parser = numbers::bytes)]
    pub memory: u64,

    /// Replace what was told before
    #[arg(long)]
    pub replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabelExportArgs {
    #[command(flatten)]
    pub pool: LabelPoolArgs,

    /// Table to write: the features of labelled rows as they stand in the pool, and their labels (.csv, .parquet)
    #[arg(long = "output", short = 'o', id = "output", value_name = "FILE")]
    pub out: PathBuf,

    #[command(flatten)]
    pub csv: CsvOptions,

    /// Replace the table if it exists
    #[arg(long)]
    pub force: bool,
}
