//! `posterior compress`

use super::remarks;
use crate::args::{Cli, CompressArgs};
use crate::output::{Failure, check_outputs, print_json, set_threads};
use posterior::data::OutputKind;
use posterior::{AnyModel, Compression, CompressionPlan, peak_memory_bytes};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    compression: &'a Compression,
    plan: CompressionPlan,
    peak_memory_bytes: Option<u64>,
    seconds: f64,
    out: &'a Path,
    notes: Vec<String>,
}

pub(crate) fn run(cli: &Cli, a: &CompressArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let remarks = remarks(cli);
    set_threads(a.threads)?;
    check_outputs(&[(Some(a.out.as_path()), OutputKind::Model)], [&a.model], a.force)?;
    let AnyModel::Process(model) = AnyModel::load(&a.model)? else {
        let problem = format!(
            "{} is no process of numbers: only those fitted by sdd, sap, cg or sgd are compressed",
            a.model.display()
        );
        return Err(Failure::usage(problem));
    };
    let plan = model.compression_plan(a.inducing, a.memory)?;
    remarks.say(format!("plan: {plan}"));
    let compressed = model.compressed(a.inducing, a.seed)?;
    let Some(compression) = compressed.compression() else {
        return Err(Failure::new("the model does not say what it was compressed to".into()));
    };
    compressed.save(&a.out)?;
    remarks.say(compression);
    let notes: Vec<String> = if compression.is_coarse() { vec![compression.warning()] } else { Vec::new() };
    notes.iter().for_each(|note| remarks.say(format!("warning: {note}")));
    remarks.say(format!("model written to {}", a.out.display()));
    if cli.json {
        return print_json(&Report {
            compression,
            plan,
            peak_memory_bytes: peak_memory_bytes(),
            seconds: started.elapsed().as_secs_f64(),
            out: &a.out,
            notes,
        });
    }
    Ok(())
}
