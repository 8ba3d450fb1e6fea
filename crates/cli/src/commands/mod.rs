//! One file for each command.

pub(crate) mod completions;
pub(crate) mod compress;
pub(crate) mod demo;
mod demo_networks;
pub(crate) mod evaluate;
pub(crate) mod fit;
pub(crate) mod forward;
pub(crate) mod inspect;
pub(crate) mod label;
pub(crate) mod man;
pub(crate) mod methods;
mod network_page;
pub(crate) mod optimize;
pub(crate) mod predict;
mod state;
pub(crate) mod stream;
mod support;
pub(crate) mod tomography;
pub(crate) mod train;
mod train_online;

use crate::args::{Cli, QuestionArgs};
use crate::output::{Failure, Remarks, print, print_json};
use posterior::data::stream::is_streamable;
use posterior::data::{ReadOptions, Table, TextOptions, json, read_tables, to_shown_value};
use posterior::models::{Effects, FORMAT_VERSION, Files, ModelData, Question, peak_memory_bytes};
use posterior::{Model, Saved, StoreError};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Remarks as this command line wants them.
fn remarks(cli: &Cli) -> Remarks {
    Remarks { silent: cli.quiet || cli.json }
}

/// Reads a table in so many bytes and passes the reader's notes on.
fn read(path: &Path, memory: u64, remarks: Remarks) -> Result<Table, Failure> {
    read_files(&[path.to_path_buf()], TextOptions::default(), memory, remarks)
}

/// [`read`] of a table of one file or several.
fn read_files(files: &[PathBuf], text: TextOptions, memory: u64, remarks: Remarks) -> Result<Table, Failure> {
    let table = read_tables(files, &ReadOptions { text, ..ReadOptions::limited(memory) })?;
    remarks.notes(&table.notes);
    Ok(table)
}

/// Tables from here on, all files together, are read part by part.
const STREAMED_FROM: u64 = 256 << 20;

/// Whether a table is read part by part: as asked for, or where it is large.
fn in_parts(asked: Option<bool>, files: &[PathBuf]) -> Result<bool, Failure> {
    let unable = files.iter().find(|path| !is_streamable(path));
    if let (Some(true), Some(path)) = (asked, unable) {
        let path = path.display();
        let problem = format!("{path} cannot be read part by part; CSV, TSV and Parquet files can");
        return Err(Failure::usage(problem));
    }
    let bytes: u64 = files.iter().filter_map(|path| std::fs::metadata(path).ok()).map(|m| m.len()).sum();
    Ok(asked.unwrap_or(bytes >= STREAMED_FROM && unable.is_none()))
}

/// Opens a model of any family; the hint is for files of another kind.
fn load(path: &Path, hint: &str) -> Result<Saved, Failure> {
    Saved::load(path).map_err(|error| match error {
        StoreError::Read { path, source } => {
            Failure::new(format!("cannot read the model {}: {source}", path.display()))
        }
        other @ StoreError::Foreign { .. } => Failure::new(format!("{other}{hint}")),
        other => other.into(),
    })
}

/// [`load`], for what is asked of it.
fn load_for(path: &Path, asked: &QuestionArgs) -> Result<Saved, Failure> {
    // Others than the first are named by flags.
    let first = path == asked.model;
    let mut model = load(path, if first { ". The model is the first file, its data follow" } else { "" })?;
    if asked.of_inputs() && model.only().and_then(Model::graph).is_none() {
        return Err(Failure::usage(format!(
            "--input is for networks with several inputs, and {} is no network: name its files without --input",
            path.display()
        )));
    }
    if let Some(unseen) = asked.unseen {
        let mut schemas = model.schemas_mut();
        if schemas.is_empty() {
            return Err(Failure::usage("--unseen is for models of tables, and this one reads none".into()));
        }
        schemas.iter_mut().for_each(|schema| schema.unseen = unseen);
    }
    Ok(model)
}

/// What a model is asked about: files of its kind, of which only the first examples may count, with remarks on them.
fn asked_data(model: &Model, files: &Files<'_>, asked: &QuestionArgs) -> Result<ModelData, Failure> {
    let mut data = limited(model.read(files)?, asked.limit)?;
    data.notes.extend(model.check_inputs(&data, asked.allow_other_inputs)?);
    Ok(data)
}

/// The first examples.
fn limited(mut data: ModelData, limit: Option<usize>) -> Result<ModelData, Failure> {
    data.picked |= limit.is_some();
    match limit {
        Some(count) if count < data.len() => Ok(data.selected(&(0..count).collect::<Vec<_>>())?),
        _ => Ok(data),
    }
}

/// What programs are told of a model file, by the fit that has written it and by `inspect` alike.
fn document(model: &Saved, path: &Path, effects: Option<Effects>) -> Result<Value, Failure> {
    let mut out = model.report()?;
    out["model"] = json!(path.display().to_string());
    out["format_version"] = json!(FORMAT_VERSION);
    out["bytes"] = json!(std::fs::metadata(path).map(|m| m.len()).unwrap_or_default());
    if let Some(effects) = effects {
        out["effects"] = json!(effects);
    }
    Ok(out)
}

/// What columns do, of a file of one model that keeps the rows it was trained on; within so many bytes.
fn effects_of(model: &Saved, memory: u64) -> Result<Option<Effects>, Failure> {
    let Some(own) = model.only() else { return Ok(None) };
    own.plan_model_report(&Question { memory, ..Question::default() })?;
    Ok(own.effects(None)?)
}

/// Prints one JSON document, with what the command took since it began.
fn print_report(report: &impl Serialize, started: Instant) -> Result<(), Failure> {
    let mut report = to_shown_value(report)?;
    report["peak_memory_bytes"] = json!(peak_memory_bytes());
    report["seconds"] = json!(started.elapsed().as_secs_f64());
    print_json(&report)
}

/// Says where something was written, behind the results; under `--quiet` nothing.
fn print_written(cli: &Cli, what: &str, path: &Path) -> Result<(), Failure> {
    if cli.quiet { Ok(()) } else { print(format!("\n{what} written to {}", path.display())) }
}
