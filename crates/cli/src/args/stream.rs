//! Flags of `stream`.

use super::{LockArgs, ThreadArgs};
use clap::{Args, ValueEnum};
use posterior::data::arriving::RowKind;
use posterior::data::{CsvOptions, Missing, TextOptions};
use posterior::options::{LikelihoodName, numbers};
use std::path::PathBuf;

/// What becomes of a row that cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BadRowsArg {
    /// The command ends there, after the rows before it
    #[default]
    Stop,
    /// It is reported, counted and passed over
    Skip,
}

/// What becomes of a file's last line that has no newline yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LastLineArg {
    /// It is unfinished, and left for the next call
    #[default]
    Wait,
    /// It is a row
    Complete,
}

/// Where an input stands that is not a file that is gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FromArg {
    /// At rows that have not been read
    Next,
    /// At the stream's first row: those that were read are passed over
    Start,
}

/// What becomes of the noise variance of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NoiseArg {
    /// It follows from how far rows are from their predictions, which are made before the rows are learned; all rows so far are weighed anew under it
    Learned,
    /// It stays what it is
    Fixed,
}

#[derive(Debug, Args)]
pub(crate) struct StreamArgs {
    /// State file: begun where there is none, gone on with where there is one. It is a model file as well: `predict`, `evaluate` and `inspect` take it
    #[arg(value_name = "STATE")]
    pub state: PathBuf,

    #[command(flatten)]
    pub lock: LockArgs,

    /// Print how far the state has come and how good it was, and read nothing
    #[arg(long)]
    pub status: bool,

    /// Begin with this model: a process fitted with --method sgpr or svgp, of numbers, classes or counts
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["target", "status"])]
    pub model: Option<PathBuf>,

    /// Begin without a model: this column is predicted, once a model has been fitted to the first rows
    #[arg(long, value_name = "COL", conflicts_with = "status")]
    pub target: Option<String>,

    /// Columns to predict from [default: all but the target]
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "target")]
    pub features: Option<Vec<String>>,

    /// Columns that are categories, one 0/1 feature for each of the first rows [default: columns of text]
    #[arg(long, visible_alias = "one-hot", value_name = "A,B", value_delimiter = ',', requires = "target")]
    pub categories: Vec<String>,

    /// What to do with missing cells of features
    #[arg(long, value_enum, requires = "target")]
    pub missing: Option<Missing>,

    /// What the target is [default: what it looks like in the first rows]
    #[arg(long, value_enum, requires = "target")]
    pub likelihood: Option<LikelihoodName>,

    /// Kernel, on standardised features [default: auto]
    #[arg(long, value_name = "TEXT", requires = "target")]
    pub kernel: Option<String>,

    /// Rows that the first model is fitted to [default: 1000]
    #[arg(long, value_name = "N", value_parser = numbers::whole(10..=100_000), requires = "target")]
    pub start_rows: Option<usize>,

    /// Read rows from this file [default: standard input]
    #[arg(value_name = "DATA")]
    pub data: Option<PathBuf>,

    /// Wait for more at the end of the file, until Ctrl-C
    #[arg(long, requires = "data")]
    pub follow: bool,

    /// What to do with a file's last line that has no newline
    #[arg(long, value_enum, default_value_t, requires = "data", conflicts_with = "follow")]
    pub last_line: LastLineArg,

    /// What a line is [default: by the file's name, else csv]
    #[arg(long, value_enum)]
    pub format: Option<RowKind>,

    #[command(flatten)]
    pub text: TextOptions,

    /// Names of the columns, where no header comes [default: the first line of CSV, the keys of the first object]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub columns: Option<Vec<String>>,

    /// Where the input stands, for a state that has read rows before [default: a file where it was left, other input at the next row]
    #[arg(long, value_enum)]
    pub from: Option<FromArg>,

    /// File that predictions are added to, CSV or, as .jsonl, objects [default: standard output]
    #[arg(long = "output", short = 'o', id = "output", value_name = "FILE")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub csv: CsvOptions,

    /// What becomes of rows that cannot be used
    #[arg(long, value_enum, default_value_t)]
    pub bad_rows: BadRowsArg,

    /// Most rows that are predicted before they are learned together
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = numbers::whole(1..=100_000))]
    pub batch: usize,

    /// Most seconds that a row waits for others of its batch
    #[arg(long, value_name = "S", default_value = "1", value_parser = numbers::seconds)]
    pub wait: f64,

    /// Most inducing points: they are added where rows come that the present ones cannot say much about [default: 512, or as many as the model has]
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=20_000))]
    pub inducing_points: Option<usize>,

    /// What becomes of the noise of numbers [default: learned, and for a state as it was begun]
    #[arg(long, value_enum, conflicts_with = "status")]
    pub noise: Option<NoiseArg>,

    /// Most memory that fit and stream may need, in gigabytes
    #[arg(long, value_name = "GB", default_value = "8", value_parser = numbers::bytes)]
    pub memory: u64,

    /// Seed of the first fit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    #[command(flatten)]
    pub threads: ThreadArgs,
}
