//! The grammar of `fit` of a table: what the library is asked ([`FitRequest`]), and files.

use super::{FitRunArgs, SplitArgs};
use clap::Args;
use posterior::FitRequest;
use posterior::data::TextOptions;
use std::path::PathBuf;

/// Flags of a fit of a table; the same names are the keys of the configuration file.
#[derive(Clone, Debug, Args)]
pub(crate) struct TableArgs {
    /// Table to learn from: .csv, .tsv (also .gz), .parquet, .npy, .npz; for networks also images. Several files are one table
    #[arg(value_name = "DATA", required = true, num_args = 1.., value_delimiter = ',')]
    pub data: Vec<PathBuf>,

    #[command(flatten)]
    pub request: FitRequest,

    #[command(flatten)]
    pub text: TextOptions,

    /// Take hyperparameters from this model or JSON object instead of learning them
    #[arg(long, value_name = "MODEL|FILE.json")]
    pub hyperparameters: Option<PathBuf>,

    /// Several targets: one kernel and one noise for all numeric ones, by the sum of their evidences
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set)]
    pub share_kernel: bool,

    /// Read the table part by part, in little memory [default: from 256 MB on]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub stream: Option<bool>,

    #[command(flatten)]
    pub split: SplitArgs,

    #[command(flatten)]
    pub run: FitRunArgs,
}
