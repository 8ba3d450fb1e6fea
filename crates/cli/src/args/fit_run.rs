//! The grammar of how any fit runs, and where its model goes.

use super::ThreadArgs;
use clap::Args;
use std::path::PathBuf;

// (A documentation comment would become the commands' own.)
#[derive(Clone, Debug, Args)]
pub(crate) struct FitRunArgs {
    /// Read flags from this file; the command line overrides it
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub threads: ThreadArgs,

    /// File to write the model to
    #[arg(long = "output", short = 'o', id = "output", value_name = "MODEL")]
    pub out: PathBuf,

    /// Print all facts, tables and notes instead of one screen
    #[arg(long)]
    pub verbose: bool,

    /// Replace the file of --output even if it is no model
    #[arg(long)]
    pub force: bool,
}
