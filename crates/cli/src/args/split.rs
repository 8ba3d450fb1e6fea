//! The grammar of splits: which rows a fit leaves out, and `evaluate` scores.

use clap::Args;
use posterior::options::numbers;
use std::path::PathBuf;

// (A documentation comment would become the commands' own.)
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SplitArgs {
    /// Folds of the rows: how many to draw (of classes, each with its share of every class), a column of the table that is then no feature, or a file with one for each row. Rows of --fold are left out of a fit and are those that are scored; `fit` without --fold leaves each out in turn, then fits all rows
    #[arg(long, value_name = "COUNT|COL|FILE")]
    pub folds: Option<PathBuf>,

    /// The fold that is left out and scored; those that are drawn are counted from 0
    #[arg(long, value_name = "K", requires = "folds", allow_negative_numbers = true)]
    pub fold: Option<i64>,

    /// Share of the rows that is left out and scored
    #[arg(long, value_name = "F", conflicts_with = "folds", value_parser = numbers::share)]
    pub test_fraction: Option<f64>,

    /// Column of groups (patients, houses), which is then no feature: the rows of one are never parted by --folds COUNT or --test-fraction
    #[arg(long, value_name = "COL", conflicts_with = "time")]
    pub groups: Option<String>,

    /// Column of times: what --folds COUNT or --test-fraction leave out is newer than all that trains
    #[arg(long, value_name = "COL")]
    pub time: Option<String>,
}
