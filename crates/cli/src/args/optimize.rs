//! Flags of `optimize`.

use super::ThreadArgs;
use clap::{Args, Subcommand};
use posterior::data::TextOptions;
use posterior::decisions::campaign::Strategy;
use posterior::options::numbers;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum OptimizeCommand {
    /// Begin: say what may be chosen and what is good
    #[command(
        after_help = "Examples:\n  posterior optimize start s.json --space \"rate:1e-5..0.1:log,layers:1..6:integer\"\n  posterior optimize start rows.json --candidates table.csv --features a,b --maximize"
    )]
    Start(Box<StartArgs>),
    /// Ask for the next points to try
    #[command(after_help = "Example:\n  posterior optimize ask s.json -n 4")]
    Ask(AskArgs),
    /// Tell what came out
    #[command(
        after_help = "Examples:\n  posterior optimize tell s.json --id 1 --value 0.23\n  posterior optimize tell s.json --id 2 --failed \"out of memory\"\n  posterior optimize tell s.json --point rate=0.01,layers=3 --value 0.2"
    )]
    Tell(TellArgs),
    /// Ask, try by a command, tell, until the evaluations are used up
    #[command(
        after_help = "Example:\n  posterior optimize run s.json --evaluations 50 -- ./train.sh {rate} {layers}"
    )]
    Run(RunArgs),
    /// What was asked and told so far, and the best of it
    #[command(after_help = "Example:\n  posterior optimize status s.json")]
    Status {
        /// State file
        #[arg(value_name = "STATE")]
        state: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LockArgs {
    /// Most seconds to wait while another process changes the state
    #[arg(long, value_name = "S", default_value_t = 300.0, allow_negative_numbers = true)]
    pub lock_timeout: f64,
}

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// State file to begin; all other commands go on with it
    #[arg(value_name = "STATE")]
    pub state: PathBuf,

    #[command(flatten)]
    pub lock: LockArgs,

    /// What may be chosen: NAME:LOWER..UPPER, with :log or :integer behind it, commas between
    #[arg(long, value_name = "AXES", conflicts_with = "candidates", required_unless_present = "candidates")]
    pub space: Option<String>,

    /// A table whose rows are all that may be chosen (numeric columns)
    #[arg(long, value_name = "FILE")]
    pub candidates: Option<PathBuf>,

    /// Most memory that reading the table may need, in gigabytes
    #[arg(long, value_name = "GB", default_value = "8", requires = "candidates", value_parser = numbers::bytes)]
    pub memory: u64,

    #[command(flatten)]
    pub text: TextOptions,

    /// Columns of the candidates to describe them by [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "candidates")]
    pub features: Vec<String>,

    /// Look for large values instead of small ones
    #[arg(long)]
    pub maximize: bool,

    /// How points are proposed
    #[arg(long, value_enum, default_value = "thompson")]
    pub strategy: Strategy,

    /// Kernel of the process, on axes from 0 to 1
    #[arg(long, value_name = "TEXT", default_value = "matern52(ard)")]
    pub kernel: String,

    /// Points spread over the space before the process is asked, at most 10000 [default: 2 for each axis, plus 2]
    #[arg(long, value_name = "N", value_parser = numbers::whole(0..=10_000))]
    pub initial: Option<usize>,

    /// Known variance of the noise in what will be told, in its squared units [default: learned]
    #[arg(long, value_name = "V", value_parser = numbers::not_negative)]
    pub noise: Option<f64>,

    /// Candidates drawn in each of the rounds of a search for maxima
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = numbers::whole(1..=1_000_000))]
    pub search_candidates: usize,

    /// Rounds of a search; each gives every draw one start
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = numbers::whole(1..=10_000))]
    pub search_rounds: usize,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Replace a state that exists
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// State file
    #[arg(value_name = "STATE")]
    pub state: PathBuf,

    #[command(flatten)]
    pub lock: LockArgs,

    /// Points to ask for, at most 2000
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1, value_parser = numbers::whole(1..=2000))]
    pub count: usize,

    #[command(flatten)]
    pub threads: ThreadArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TellArgs {
    /// State file
    #[arg(value_name = "STATE")]
    pub state: PathBuf,

    #[command(flatten)]
    pub lock: LockArgs,

    /// Number of the trial
    #[arg(long, value_name = "ID", conflicts_with = "point", required_unless_present_any = ["point", "results"], value_parser = numbers::whole(1..=usize::MAX))]
    pub id: Option<usize>,

    /// A point that nobody asked for: NAME=VALUE for each axis, commas between
    #[arg(long, value_name = "NAME=VALUE,...", value_delimiter = ',')]
    pub point: Vec<String>,

    /// What came out
    #[arg(long, value_name = "Y", allow_negative_numbers = true, required_unless_present_any = ["failed", "results"], value_parser = numbers::finite)]
    pub value: Option<f64>,

    /// It could not be tried, because of this
    #[arg(long, value_name = "REASON", conflicts_with = "value")]
    pub failed: Option<String>,

    /// Many at once: a table with the columns id and value
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "point", "value", "failed"])]
    pub results: Option<PathBuf>,

    /// Most memory that reading the table may need, in gigabytes
    #[arg(long, value_name = "GB", default_value = "8", requires = "results", value_parser = numbers::bytes)]
    pub memory: u64,

    /// Replace what was told before
    #[arg(long)]
    pub replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// State file
    #[arg(value_name = "STATE")]
    pub state: PathBuf,

    #[command(flatten)]
    pub lock: LockArgs,

    /// Trials in all, those told before included
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=1_000_000))]
    pub evaluations: usize,

    /// Points asked for and tried at a time, at most 500
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = numbers::whole(1..=500))]
    pub batch: usize,

    /// Most seconds for one trial; later it counts as failed
    #[arg(long, value_name = "S", value_parser = numbers::seconds)]
    pub timeout: Option<f64>,

    #[command(flatten)]
    pub threads: ThreadArgs,

    /// The program that tries a point, after `--`: {NAME} stands for a coordinate, {id} for the trial's number; its last line of output is the value, a status other than 0 a failure (126 and 127, a program that cannot be started, end the run)
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
