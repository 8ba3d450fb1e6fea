//! `posterior fit gp`

use super::{in_parts, read, remarks};
use crate::args::{Cli, FitArgs};
use crate::interrupt::Interrupt;
use crate::output::{Failure, Remarks, print, print_json, set_threads};
use crate::progress::FitProgress;
use posterior::data::stream::count_rows;
use posterior::{FitRequest, Method, Model as _, Prepared, ProcessModel, peak_memory_bytes};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(cli: &Cli, arguments: &FitArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let mut request = arguments.request()?;
    set_threads(arguments.threads)?;
    let remarks = remarks(cli);
    let prepared = prepare(arguments, &request, remarks)?;
    // One budget for the whole command: what reading took is spent.
    if let Some(seconds) = &mut request.time_budget {
        *seconds = (*seconds - started.elapsed().as_secs_f64()).max(f64::MIN_POSITIVE);
    }
    let request = &request;
    let names = prepared.schema.feature_names();
    let (plan, _) = ProcessModel::plan(request, prepared.data.rows(), &names);
    remarks.say(format!("plan: {plan}"));
    let large = request.method.large();
    let kept = || large.and_then(|large| large.checkpoint.as_ref()).filter(|path| path.exists());
    if let (Some(path), Some(large)) = (kept(), large) {
        let chosen = posterior::choose(request, prepared.data.rows(), &names).method;
        if large.fresh {
            remarks.say(format!("beginning anew: {} is removed", path.display()));
        } else if !matches!(chosen, Method::Exact(_)) {
            remarks.say(format!("going on from {}", path.display()));
        }
    }
    let mut progress = FitProgress::new(remarks.silent, Interrupt::listen());
    let model =
        ProcessModel::fit_prepared(prepared, request, &mut |step, stage| progress.observe(step, stage));
    progress.finish();
    let interrupted = || {
        let state =
            kept().map_or_else(String::new, |p| format!("; the same command goes on from {}", p.display()));
        Failure::new(format!("interrupted; {} has not been written{state}", arguments.out.display()))
    };
    let model = match model {
        Err(posterior::ModelError::Interrupted) => return Err(interrupted()),
        other => other?,
    };
    if model.was_interrupted() {
        return Err(interrupted());
    }
    model.save(&arguments.out)?;
    if cli.json {
        return print_json(&report(&model, started.elapsed().as_secs_f64(), &arguments.out));
    }
    if !cli.quiet {
        print(model.described())?;
        print(format!("\nmodel written to {}", arguments.out.display()))?;
    }
    Ok(())
}

/// Reads the rows to learn from, the whole table at once or part by part.
fn prepare(arguments: &FitArgs, request: &FitRequest, remarks: Remarks) -> Result<Prepared, Failure> {
    let (path, seed) = (&arguments.data, request.seed);
    if in_parts(arguments.stream, path)? {
        let count = count_rows(path)?;
        remarks.say(format!("reading {count} rows part by part"));
        let split = arguments.held_out().split(count, seed)?;
        return Ok(Prepared::from_file(path, &split.train, request)?);
    }
    let rows = read(path, request.memory, remarks)?;
    let split = arguments.held_out().split(rows.rows(), seed)?;
    Ok(Prepared::from_table(&rows, &split.train, request)?)
}

/// What `--json` prints.
fn report(model: &ProcessModel, seconds: f64, out: &Path) -> Value {
    let header = model.header();
    let fit = &header.fit;
    let notes: Vec<String> = model.notes().into_iter().map(|n| n.text).collect();
    json!({
        "method": header.method,
        "choice": fit.choice,
        "n": header.rows,
        "features": header.schema.feature_names(),
        "target": header.schema.target,
        "kernel": header.kernel.to_string(),
        "log_evidence": fit.log_evidence,
        "large_table": fit.scalable,
        // How good it is on rows that had no part in it.
        "check": fit.check,
        "at_bounds": fit.at_bounds,
        "hyperparameters": header.hyperparameters,
        "hyperpriors": fit.hyperpriors,
        "steps": fit.steps,
        "evaluations": fit.evaluations,
        "ended": fit.reason,
        "starts": fit.attempts,
        "jitter": header.cholesky.jitter,
        "largest_jitter": fit.largest_jitter,
        "planned_memory_bytes": fit.plan.peak_bytes,
        "peak_memory_bytes": peak_memory_bytes(),
        "seconds": seconds,
        "data": fit.data,
        "notes": notes,
        "seed": header.seed,
        "model": out.display().to_string(),
    })
}
