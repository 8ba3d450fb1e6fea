//! `posterior fit gp`

use super::{read, remarks};
use crate::args::{Cli, FitArgs};
use crate::describe;
use crate::interrupt::Interrupt;
use crate::output::{Failure, number, print, print_json, set_threads, table};
use crate::progress::FitProgress;
use crate::settings::FitSettings;
use posterior::data::{Notes, Schema};
use posterior::{Header, Hyperparameter, Model, peak_memory_bytes};
use serde::Serialize;
use std::time::Instant;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    method: &'a str,
    choice: &'a str,
    n: usize,
    features: Vec<String>,
    target: &'a str,
    kernel: String,
    log_evidence: f64,
    hyperparameters: &'a [Hyperparameter],
    hyperpriors: &'a [posterior::gp::Hyperprior],
    steps: usize,
    evaluations: usize,
    ended: posterior::optim::Reason,
    starts: &'a [posterior::optim::Attempt],
    jitter: f64,
    largest_jitter: f64,
    planned_memory_bytes: u64,
    peak_memory_bytes: Option<u64>,
    seconds: f64,
    data: &'a Notes,
    notes: Vec<String>,
    seed: u64,
    model: String,
}

pub(crate) fn run(cli: &Cli, arguments: &FitArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let settings = FitSettings::resolve(arguments)?;
    set_threads(settings.threads)?;
    let remarks = remarks(cli);
    let rows = read(&settings.data, remarks)?;
    let request = &settings.request;
    let split = settings.held_out.split(&rows, request.options.seed)?;
    let schema = Schema::learn(&rows, &request.selection, &split.train).map_err(Failure::from_error)?;
    let plan = Model::plan(request, split.train.len(), schema.features.len());
    remarks.say(format!(
        "plan: exact Gaussian process, {plan} of memory and {:.3} Tflop for each of at most {} evaluations or so",
        plan.flops_per_evaluation / 1e12,
        request.options.steps.steps * request.options.restarts,
    ));
    let mut progress = FitProgress::new(
        request.options.steps.steps,
        request.options.restarts,
        remarks.silent,
        Interrupt::listen(),
    );
    let model = Model::fit(&rows, &split.train, request, &mut |start, event| progress.observe(start, event));
    progress.finish();
    let model = model.map_err(Failure::from_error)?;
    if model.was_interrupted() {
        return Err(Failure::new(format!("interrupted; {} has not been written", settings.out.display())));
    }
    model.save(&settings.out).map_err(Failure::from_error)?;
    let header = model.header();
    if cli.json {
        return print_json(&report(
            header,
            started.elapsed().as_secs_f64(),
            settings.out.display().to_string(),
        ));
    }
    if !cli.quiet {
        print(described(header))?;
        print(format!("\nmodel written to {}", settings.out.display()))?;
    }
    Ok(())
}

fn report(header: &Header, seconds: f64, model: String) -> Report<'_> {
    let fit = &header.fit;
    Report {
        method: &header.method,
        choice: &fit.choice,
        n: header.rows,
        features: header.schema.feature_names(),
        target: &header.schema.target,
        kernel: header.kernel.to_string(),
        log_evidence: fit.log_evidence,
        hyperparameters: &header.hyperparameters,
        hyperpriors: &fit.hyperpriors,
        steps: fit.steps,
        evaluations: fit.evaluations,
        ended: fit.reason,
        starts: &fit.attempts,
        jitter: header.cholesky.jitter,
        largest_jitter: fit.largest_jitter,
        planned_memory_bytes: fit.plan.peak_bytes,
        peak_memory_bytes: peak_memory_bytes(),
        seconds,
        data: &fit.data,
        notes: describe::notes(header).into_iter().map(|n| n.text).collect(),
        seed: header.seed,
        model,
    }
}

/// A model for people; also what `inspect` prints.
pub(crate) fn described(header: &Header) -> String {
    let facts: Vec<Vec<String>> = describe::summary(header)
        .into_iter()
        .map(|row| vec![format!("{}: {}", row.label, row.value)])
        .collect();
    let learned: Vec<Vec<String>> = describe::hyperparameters(header)
        .into_iter()
        .map(|h| vec![h.name, number(h.value), h.unit])
        .collect();
    let notes: Vec<String> =
        describe::notes(header).into_iter().map(|n| format!("note: {}", n.text)).collect();
    let mut parts = vec![table(&facts), String::new(), table(&learned)];
    if !notes.is_empty() {
        parts.push(format!("\n{}", notes.join("\n")));
    }
    parts.join("\n")
}
