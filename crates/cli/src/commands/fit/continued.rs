//! `posterior fit --continue`: rows that are added to a model, of a table or of networks.

use super::super::{read_files, remarks};
use super::{network, read_as, show, write};
use crate::args::{Cli, ContinueArgs};
use crate::interrupt::Interrupt;
use crate::laplace_settings::continued;
use crate::output::{Failure, check_outputs, set_threads};
use crate::progress::Bar;
use posterior::data::OutputKind;
use posterior::laplace::DataSource;
use posterior::linearised::Stage;
use posterior::models::RunRecord;
use posterior::notes::fixes::STREAM_ON;
use posterior::{FitRequest, Model, Saved};
use std::path::Path;
use std::time::Instant;

/// Flags of models of one kind, which the other has not.
const OF_NETWORKS: [&str; 6] = ["input", "labels", "tune", "predictive", "predictive-samples", "samples"];

pub(super) fn run(cli: &Cli, arguments: &ContinueArgs) -> Result<(), Failure> {
    let started = Instant::now();
    set_threads(arguments.run.threads.count)?;
    let (_, files) = arguments.inputs.files(&arguments.data);
    let inputs = files.iter().chain([&arguments.model]).chain(&arguments.run.config).chain(&arguments.labels);
    check_outputs(&[(Some(arguments.run.out.as_path()), OutputKind::Model)], inputs, arguments.run.force)?;
    let Some(model) = Saved::load(&arguments.model)?.into_only() else {
        return Err(other(&arguments.model, "one of several targets", "fit all rows anew"));
    };
    if model.networks().is_some() {
        return of_networks(cli, arguments, &model, started);
    }
    of_table(cli, arguments, model, started)
}

/// Adds rows to a process.
fn of_table(cli: &Cli, arguments: &ContinueArgs, model: Model, started: Instant) -> Result<(), Failure> {
    let kept = "goes with networks or with a fit of its own, and --continue keeps what its model was fitted with: leave it out";
    cli.refuse(&OF_NETWORKS, true, kept)?;
    cli.refuse(&["seed"], true, kept)?;
    let remarks = remarks(cli);
    let own = model.process().ok_or_else(|| Failure::new("the model is no process".into()))?;
    if own.output().gaussian().is_none() {
        let way = format!("fit all rows anew, or go on with a model of inducing points (`{STREAM_ON:#}`)");
        return Err(other(&arguments.model, "one of classes, counts or outliers", &way));
    }
    own.check_continued()?;
    let memory = arguments.memory.unwrap_or(FitRequest::default().limits.memory);
    let text = own.inputs().schema.reading(arguments.text);
    let table = read_files(&arguments.data, text, memory, remarks)?;
    let rows: Vec<usize> = (0..table.rows()).collect();
    let new = own.new_rows(&table, &rows)?;
    // What was done to these rows; what all are like stands in the model.
    remarks.notes(new.notes().of_cells().sentences());
    let plan = own.continuation_plan(&new, memory)?;
    remarks.say(format!("plan: {plan}"));
    let run = RunRecord { read: read_as(&table, &[]), ..RunRecord::default() };
    drop(table);
    let mut model = Saved::from(model.continued(new, arguments.calibrate)?);
    write(&mut model, &run, &arguments.run.out, started)?;
    show(cli, &model, &arguments.run.out, (memory, arguments.run.verbose))
}

/// Adds data to the sums of a network.
fn of_networks(cli: &Cli, arguments: &ContinueArgs, model: &Model, started: Instant) -> Result<(), Failure> {
    let kept = "is for processes: a network that is continued keeps how it is calibrated, leave it out";
    cli.refuse(&["calibrate"], true, kept)?;
    let remarks = remarks(cli);
    let Some(own) = model.networks().filter(|own| !own.is_ensemble()) else {
        return Err(other(&arguments.model, "an ensemble of networks", "fit it anew with all rows"));
    };
    let options = continued(arguments, &own.header().options)?;
    let (inputs, data) = arguments.inputs.files(&arguments.data);
    let data = DataSource {
        data,
        inputs,
        labels: arguments.labels.clone(),
        text: arguments.text,
        ..DataSource::default()
    };
    let mut announce = |line: &str| remarks.say(line);
    let mut progress = Bar::of_stages(remarks.silent, Interrupt::listen());
    let mut watch = |stage: Stage, done, total| progress.stage(stage.describe(), done, total, None);
    let model = own.continued(&data, &options, &mut announce, &mut watch);
    progress.finish();
    let model = model.map_err(|error| match error.is_interruption() {
        true => Failure::new(format!("interrupted; {} has not been written", arguments.run.out.display())),
        false => Failure::from(error),
    })?;
    network::finish(cli, model, (arguments.run.out.as_path(), arguments.run.verbose), started)
}

/// Why no rows can be added to a model.
fn other(path: &Path, what: &str, way: &str) -> Failure {
    Failure::usage(format!(
        "--continue adds rows to exact processes and to networks, and {} is {what}: {way}",
        path.display()
    ))
}
