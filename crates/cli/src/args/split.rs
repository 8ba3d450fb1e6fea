//! The grammar of splits: which rows a fit leaves out, and `evaluate` scores.

use clap::Args;
use posterior::options::numbers;
use std::path::PathBuf;

// (A documentation comment would become the commands' own.)
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SplitArgs {
    /// Cross-validation folds: a count (stratified by class), a column, or a file with one for each row. Without --fold, `fit` tests each in turn and then fits all rows
    #[arg(long, value_name = "COUNT|COL|FILE")]
    pub folds: Option<PathBuf>,

    /// Test rows: only this fold; drawn ones are counted from 0
    #[arg(long, value_name = "K", requires = "folds", allow_negative_numbers = true)]
    pub fold: Option<i64>,

    /// Share of the rows that are test rows
    #[arg(long, value_name = "F", conflicts_with = "folds", value_parser = numbers::share)]
    pub test_fraction: Option<f64>,

    /// Column of groups (patients, houses) that are kept together wherever rows are left out; new rows may be of others
    #[arg(long, value_name = "COL", conflicts_with = "time")]
    pub groups: Option<String>,

    /// Column of times: rows that are left out are newer than those that train
    #[arg(long, value_name = "COL")]
    pub time: Option<String>,
}
