//! `posterior fit gp --continue`: rows that are added to a model.

use super::super::{print_written, read_files, remarks};
use super::report;
use crate::args::{Cli, FitArgs};
use crate::output::{Failure, check_outputs, print, print_json, set_threads};
use posterior::data::OutputKind;
use posterior::notes::fixes::{FIT_LAPLACE_CONTINUE, STREAM_ON};
use posterior::{Model, Saved};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(super) fn run(cli: &Cli, arguments: &FitArgs, path: &PathBuf) -> Result<(), Failure> {
    let started = Instant::now();
    set_threads(arguments.threads)?;
    let remarks = remarks(cli);
    let inputs = arguments.data.iter().chain([path]).chain(&arguments.config);
    check_outputs(&[(Some(arguments.out.as_path()), OutputKind::Model)], inputs, arguments.force)?;
    let model = process(path)?;
    let request = &arguments.request;
    let table = read_files(&arguments.data, request.text, request.memory, remarks)?;
    let rows: Vec<usize> = (0..table.rows()).collect();
    let own = model.process().ok_or_else(|| Failure::new("the model is no process".into()))?;
    let new = own.new_rows(&table, &rows)?;
    // What was done to these rows; what all are like stands in the model.
    remarks.notes(new.notes().of_cells().sentences());
    let plan = own.continuation_plan(&new, request.memory)?;
    remarks.say(format!("plan: {plan}"));
    drop(table);
    let model = model.continued(new, request.calibrate)?;
    model.save(&arguments.out)?;
    if cli.json {
        return print_json(&report(&model, started.elapsed().as_secs_f64(), &arguments.out));
    }
    if cli.quiet {
        return Ok(());
    }
    print(model.described())?;
    print_written(cli, "model", &arguments.out)
}

/// The model, where rows can be added to it.
fn process(path: &Path) -> Result<Model, Failure> {
    let other = |what: &str, way: &str| {
        Err(Failure::usage(format!(
            "--continue adds rows to exact processes, and {} is {what}: {way}",
            path.display()
        )))
    };
    let Some(model) = Saved::load(path)?.into_only() else {
        return other("one of several targets", "fit all rows anew");
    };
    match model.process() {
        Some(own) if own.output().gaussian().is_none() => {
            return other(
                "one of classes, counts or outliers",
                &format!("fit all rows anew, or go on with a model of inducing points (`{STREAM_ON:#}`)"),
            );
        }
        Some(own) => own.check_continued()?,
        None if model.networks().is_some_and(|own| own.is_ensemble()) => {
            return other("an ensemble of networks", "fit it anew with all rows");
        }
        None => return other("a network", &format!("`{FIT_LAPLACE_CONTINUE:#}` adds rows to its sums")),
    }
    Ok(model)
}
