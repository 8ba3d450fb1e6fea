//! One file for each command.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod fit;
pub(crate) mod forward;
pub(crate) mod inspect;
pub(crate) mod predict;
pub(crate) mod train;

use crate::args::Cli;
use crate::output::{Failure, Remarks};
use posterior::data::{ReadOptions, Table, read_table};
use std::path::Path;

/// Remarks as this command line wants them.
fn remarks(cli: &Cli) -> Remarks {
    Remarks { silent: cli.quiet || cli.json }
}

/// Reads a table and passes the reader's notes on.
fn read(path: &Path, remarks: Remarks) -> Result<Table, Failure> {
    let table = read_table(path, &ReadOptions::default()).map_err(Failure::from_error)?;
    table.notes.iter().for_each(|note| remarks.say(format!("note: {note}")));
    Ok(table)
}
