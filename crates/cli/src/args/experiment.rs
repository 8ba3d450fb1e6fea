//! Flags of `experiment`.

use clap::{Args, Subcommand};
use posterior::options::numbers;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ExperimentCommand {
    /// Run experiments, one after the other: train, compute, compare with what was published, write report and numbers
    #[command(
        after_help = "Examples:\n  posterior experiment run experiments/toy_regression.toml --out results\n  posterior experiment run experiments/toy_regression.toml --quick --seed 3 --json\n  posterior experiment run experiments/toy_regression.toml experiments/tanimoto.toml --quick --out results"
    )]
    Run(ExperimentRunArgs),
    /// List the experiments of a folder
    #[command(
        after_help = "Examples:\n  posterior experiment list\n  posterior experiment list experiments --json"
    )]
    List {
        /// Folder of TOML files
        #[arg(value_name = "DIR", default_value = "experiments")]
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ExperimentRunArgs {
    /// The experiments; all are checked before the first is run
    #[arg(value_name = "FILE.toml", required = true)]
    pub files: Vec<PathBuf>,

    /// Folder for report.html and results.json, of several experiments for a folder NAME each [default: experiment-results/NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Replace files of these names in the folder even if no experiment wrote them
    #[arg(long)]
    pub force: bool,

    /// One seed instead of those of the files
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Smaller settings, those of each file's [quick] table; the report says so
    #[arg(long)]
    pub quick: bool,

    /// Compute every part again, also those that an earlier run with the same settings finished and kept in the folder
    #[arg(long)]
    pub fresh: bool,

    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = numbers::threads)]
    pub threads: Option<usize>,
}
