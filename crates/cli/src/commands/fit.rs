//! `posterior fit gp`

use super::{in_parts, read_files, remarks};
use crate::args::{Cli, FitArgs};
use crate::interrupt::Interrupt;
use crate::output::{Failure, Remarks, print, print_json, set_threads};
use crate::progress::FitProgress;
use posterior::data::stream::{StreamOptions, TableParts, count_rows};
use posterior::optim::Observer;
use posterior::{
    AnyModel, ChosenLikelihood, FitRequest, FitStage, GeneralisedModel, Method, Model as _, ModelError,
    Observed, Prepared, PreparedTable, ProcessModel, choose_likelihood, no_exposure, peak_memory_bytes,
};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(cli: &Cli, arguments: &FitArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let mut request = arguments.request()?;
    set_threads(arguments.threads)?;
    let remarks = remarks(cli);
    let rows = rows(arguments, &request, remarks)?;
    // One budget for the whole command: what reading took is spent.
    if let Some(seconds) = &mut request.time_budget {
        *seconds = (*seconds - started.elapsed().as_secs_f64()).max(f64::MIN_POSITIVE);
    }
    let model = match rows {
        Rows::Gaussian(prepared) => gaussian(*prepared, &request, remarks, arguments)?,
        Rows::Other(observed) => {
            let plan = GeneralisedModel::plan(&observed, &request)?;
            remarks.say(format!("plan: {}", plan.describe()));
            say_kept(&request, remarks);
            let fitted = observed_by(remarks, Interrupt::listen(), |observer| {
                GeneralisedModel::fit(*observed, &request, observer)
            });
            AnyModel::Generalised(Box::new(finished(fitted, &request, arguments)?))
        }
    };
    model.model().save(&arguments.out)?;
    if cli.json {
        let seconds = started.elapsed().as_secs_f64();
        return print_json(&match &model {
            AnyModel::Generalised(model) => generalised_report(model, seconds, &arguments.out),
            AnyModel::Process(model) => report(model, seconds, &arguments.out),
            AnyModel::Laplace(_) | AnyModel::Ensemble(_) => Value::Null,
        });
    }
    if !cli.quiet {
        print(model.model().described())?;
        print(format!("\nmodel written to {}", arguments.out.display()))?;
    }
    Ok(())
}

/// A process with Gaussian noise.
fn gaussian(
    prepared: PreparedTable,
    request: &FitRequest,
    remarks: Remarks,
    arguments: &FitArgs,
) -> Result<AnyModel, Failure> {
    let (names, rows) = (prepared.names(), prepared.rows());
    remarks.say(format!("plan: {}", prepared.plan(request)));
    let chosen = posterior::choose(request, rows, &names).method;
    if !matches!(chosen, Method::Exact(_)) || request.method.large().is_some_and(|large| large.fresh) {
        say_kept(request, remarks);
    }
    let fitted = observed_by(remarks, Interrupt::listen(), |observer| {
        ProcessModel::fit_table(prepared, request, observer)
    });
    let model = finished(fitted, request, arguments)?;
    if model.was_interrupted() {
        return Err(interrupted(request, arguments));
    }
    Ok(AnyModel::Process(Box::new(model)))
}

/// Says what becomes of what an earlier run left.
fn say_kept(request: &FitRequest, remarks: Remarks) {
    if let (Some(path), Some(large)) = (kept(request), request.method.large()) {
        remarks.say(match large.fresh {
            true => format!("beginning anew: {} is removed", path.display()),
            false => format!("going on from {}", path.display()),
        });
    }
}

/// What an earlier run of a fit left.
fn kept(request: &FitRequest) -> Option<&Path> {
    let large = request.method.large()?;
    large.checkpoint.as_deref().filter(|path| path.exists())
}

/// A fit whose progress is shown.
pub(super) fn observed_by<T>(
    remarks: Remarks,
    interrupt: Interrupt,
    fit: impl FnOnce(&mut Observer<'_, FitStage>) -> Result<T, ModelError>,
) -> Result<T, ModelError> {
    let mut progress = FitProgress::new(remarks.silent, interrupt);
    let fitted = fit(&mut |step, stage| progress.observe(step, stage));
    progress.finish();
    fitted
}

fn interrupted(request: &FitRequest, arguments: &FitArgs) -> Failure {
    let state = kept(request)
        .map_or_else(String::new, |p| format!("; the same command goes on from {}", p.display()));
    Failure::new(format!("interrupted; {} has not been written{state}", arguments.out.display()))
}

fn finished<T>(
    fitted: Result<T, ModelError>,
    request: &FitRequest,
    arguments: &FitArgs,
) -> Result<T, Failure> {
    match fitted {
        Err(ModelError::Interrupted) => Err(interrupted(request, arguments)),
        other => Ok(other?),
    }
}

/// Rows to learn from, by what their target is.
enum Rows {
    Gaussian(Box<PreparedTable>),
    Other(Box<Observed>),
}

/// Reads the rows to learn from: the whole table at once or, of numbers with Gaussian noise, part by part.
fn rows(arguments: &FitArgs, request: &FitRequest, remarks: Remarks) -> Result<Rows, Failure> {
    let (files, seed, asked) = (&arguments.data[..], request.seed, request.labels.likelihood);
    let (target, missing) = (&request.selection.target, request.selection.missing);
    let events = request.labels.of_events();
    let from_disk = request.method.disk().and_then(|disk| disk.from_disk);
    if from_disk == Some(true) && (events || arguments.stream == Some(false)) {
        return Err(Failure::usage(
            "--from-disk reads a table of numbers part by part: leave --stream false and --likelihood cox out".into(),
        ));
    }
    let stream = arguments.stream.or(from_disk.filter(|asked| *asked));
    if events && in_parts(stream, files)? {
        remarks.say("tables of events are read whole");
    } else if in_parts(stream, files)? {
        let first = TableParts::open(files, &StreamOptions::default())?.next().transpose()?;
        let looks = first.map(|part| {
            let rows: Vec<usize> = (0..part.table.rows()).collect();
            choose_likelihood(&part.table, target, &rows, asked, missing)
        });
        match looks.transpose()? {
            Some(looks) if looks.likelihood.is_some() => {
                if from_disk == Some(true) {
                    return Err(Failure::usage(format!(
                        "--from-disk is for targets with Gaussian noise, and this one is taken as {}: leave it out, or ask for --likelihood gaussian",
                        looks.why
                    )));
                }
                remarks.say(format!("target: {}; such tables are read whole", looks.why));
            }
            Some(looks) => {
                say_gaussian(request, &looks, remarks)?;
                let count = count_rows(files)?;
                remarks.say(format!("reading {count} rows part by part"));
                let split = arguments.held_out().split(count, None, seed)?;
                let folder = arguments.out.parent().unwrap_or(Path::new(""));
                let mut say = |text| remarks.say(text);
                let prepared = PreparedTable::from_files(files, &split.train, request, folder, &mut say)?;
                return Ok(Rows::Gaussian(Box::new(prepared)));
            }
            None => {}
        }
    }
    let table = read_files(files, request.memory, remarks)?;
    if events {
        let split = arguments.held_out().split(table.rows(), None, seed)?;
        let observed = Observed::of_events(&table, &split.train, request)?;
        remarks.say(format!("target: {}", observed.why()));
        return Ok(Rows::Other(Box::new(observed)));
    }
    let all: Vec<usize> = (0..table.rows()).collect();
    let looks = choose_likelihood(&table, target, &all, asked, missing)?;
    let strata = looks.strata(&table, target)?;
    let split = arguments.held_out().split(table.rows(), strata.as_deref(), seed)?;
    if looks.likelihood.is_none() {
        say_gaussian(request, &looks, remarks)?;
        let prepared = Prepared::from_table(&table, &split.train, request)?;
        return Ok(Rows::Gaussian(Box::new(PreparedTable::Memory(prepared))));
    }
    // What it is was seen on all rows; what there is to know of it, on those that train.
    let chosen = choose_likelihood(&table, target, &split.train, looks.name, missing)?;
    let chosen = ChosenLikelihood { why: looks.why, ..chosen };
    remarks.say(format!("target: {}", chosen.why));
    let observed = Observed::from_table(&table, &split.train, request, chosen)?;
    Ok(Rows::Other(Box::new(observed)))
}

/// Says why noise is taken as Gaussian where the target may be something else, and refuses flags that mean nothing then.
fn say_gaussian(request: &FitRequest, looks: &ChosenLikelihood, remarks: Remarks) -> Result<(), Failure> {
    let why = &looks.why;
    if request.selection.exposure.is_some() {
        return Err(Failure::usage(no_exposure(why)));
    }
    if let Some(flag) = request.labels.not_for_gaussian() {
        return Err(Failure::usage(format!(
            "--{flag} is for classes, counts and student-t, but the target is taken as {why}"
        )));
    }
    if looks.ambiguous {
        remarks.say(format!("target: {why}"));
    }
    Ok(())
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
        "recalibration": fit.recalibration,
        "hyperparameter_source": fit.hyperparameter_source,
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

/// The same of a process under another likelihood.
fn generalised_report(model: &GeneralisedModel, seconds: f64, out: &Path) -> Value {
    let header = model.header();
    let fit = &header.fit;
    let notes: Vec<String> = model.notes().into_iter().map(|n| n.text).collect();
    let stand_ins = fit.stand_ins.as_ref().map(|s| {
        json!({
            "matching": s.gaussianised.matching(),
            "pseudo_count": s.gaussianised.pseudo_count(),
            "tried": s.tried,
            "tried_on_rows": s.tried_on,
            "bounds": s.bounds,
        })
    });
    json!({
        "method": header.method,
        "solver": header.solver,
        "choice": fit.choice,
        "tried": fit.tried,
        "likelihood": header.likelihood,
        "likelihood_choice": fit.likelihood_choice,
        "classes": model.class_names(),
        "marginal": header.marginal,
        "n": header.rows,
        "features": header.schema.feature_names(),
        "target": header.schema.target,
        "kernel": header.kernel.to_string(),
        "labels_as_numbers": stand_ins,
        "bound": fit.bound,
        "mode": fit.mode,
        "learned_features": fit.features,
        // How good it is on rows that had no part in it.
        "check": fit.check,
        "recalibration": fit.recalibration,
        "intervals": fit.intervals,
        "weights": fit.weights,
        "at_bounds": fit.at_bounds,
        "hyperparameters": header.hyperparameters,
        "hyperparameter_source": fit.hyperparameter_source,
        "hyperpriors": fit.hyperpriors,
        "steps": fit.steps,
        "evaluations": fit.evaluations,
        "ended": fit.reason,
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
