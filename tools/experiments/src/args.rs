//! The grammar of the command line.

use clap::{Args, Parser, Subcommand};
use posterior_models::options::numbers;
use std::path::PathBuf;

/// Rerun published tables and figures, each from one TOML file.
///
/// Exit status: 0 success, 1 failure, 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "posterior-experiments", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// Print one JSON document on standard output, and nothing else there
    #[arg(long, global = true)]
    pub json: bool,

    /// Print only results and errors
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run experiments in order: train, compute, compare with published numbers, write reports
    #[command(
        after_help = "Examples:\n  posterior-experiments run toy_regression -o results\n  posterior-experiments run toy_regression --quick --seed 3 --json\n  posterior-experiments run toy_regression tanimoto --quick -o results"
    )]
    Run(RunArgs),
    /// List the built-in experiments, or those of a folder
    #[command(
        after_help = "Examples:\n  posterior-experiments list\n  posterior-experiments list tools/experiments/files --json"
    )]
    List {
        /// Folder of TOML files [default: the built-in ones]
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Files or names of built-in experiments; all are checked before the first is run
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Folder for report.html and results.json, of several experiments for a folder NAME each [default: experiment-results/NAME]
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,

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
