//! `posterior compress`

use super::{print_report, remarks};
use crate::args::{Cli, CompressArgs};
use crate::output::{Failure, check_outputs, set_threads};
use posterior::data::{OutputKind, json, to_shown_value};
use posterior::{Model, Saved};
use std::time::Instant;

pub(crate) fn run(cli: &Cli, a: &CompressArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let remarks = remarks(cli);
    set_threads(a.threads.count)?;
    check_outputs(&[(Some(a.out.as_path()), OutputKind::Model)], [&a.model], a.force)?;
    let saved = Saved::load(&a.model)?;
    let numbers = saved.only().and_then(Model::process).filter(|own| own.output().gaussian().is_some());
    let Some(model) = numbers else {
        let problem = format!(
            "{} is no process of numbers: only those fitted by sdd, sap, cg or sgd are compressed",
            a.model.display()
        );
        return Err(Failure::usage(problem));
    };
    let plan = model.compression_plan(a.inducing, a.memory)?;
    remarks.say(format!("plan: {plan}"));
    let compressed = model.compressed(a.inducing, a.seed)?;
    let Some(compression) = compressed.process().and_then(|own| own.compression()) else {
        return Err(Failure::new("the model does not say what it was compressed to".into()));
    };
    compressed.save(&a.out)?;
    remarks.say(compression);
    let notes: Vec<String> = if compression.is_coarse() { vec![compression.warning()] } else { Vec::new() };
    remarks.warnings(&notes);
    remarks.say(format!("model written to {}", a.out.display()));
    if cli.json {
        let mut report = to_shown_value(compression)?;
        for (key, value) in [("plan", json!(plan)), ("out", json!(a.out)), ("notes", json!(notes))] {
            report[key] = value;
        }
        return print_report(&report, started);
    }
    Ok(())
}
