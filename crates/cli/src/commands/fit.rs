//! `posterior fit`: of a table, with the other forms of the command beside it
//!
//! | file | does |
//! |---|---|
//! | `left_out` | scores the rows that a fit left out |
//! | `network` | error bars for a network |
//! | `continued` | adds rows to a model of either |
//! | `cross_validation`, `summary` | leaves each fold out in turn; means over folds |
//! | `targets` | several targets, each in turn |

mod continued;
mod cross_validation;
mod left_out;
mod network;
mod summary;
mod targets;

use self::cross_validation::{FoldScores, fit_and_score, for_fold};
use self::left_out::{LeftOut, LeftOutScores};
use super::{document, effects_of, in_parts, print_written, read_files, remarks};
use crate::args::{Cli, FitArgs, SplitArgs, TableArgs};
use crate::interrupt::Interrupt;
use crate::output::{Failure, Remarks, print, print_json, set_threads};
use crate::progress::Bar;
use posterior::data::stream::{StreamOptions, TableParts, count_rows};
use posterior::data::{Split, Table, TimeForm};
use posterior::models::{
    ChosenLikelihood, FitStage, Observed, Prepared, PreparedTable, RunRecord, choose_likelihood, no_exposure,
    peak_memory_bytes,
};
use posterior::notes::fixes::{EVALUATE, FOLD, LIKELIHOOD_GAUSSIAN};
use posterior::optim::Observer;
use posterior::targets::shared::SharedKernel;
use posterior::{FitRequest, Model, ModelError, Saved};
use serde_json::Value;
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(cli: &Cli, arguments: &FitArgs) -> Result<(), Failure> {
    match arguments {
        FitArgs::Table(own) => run_table(cli, own),
        FitArgs::Network(own) => network::run(cli, own),
        FitArgs::Continue(own) => continued::run(cli, own),
    }
}

fn run_table(cli: &Cli, arguments: &TableArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let mut request = arguments.request()?;
    let held_out = &arguments.split;
    held_out.check()?;
    set_threads(arguments.run.threads.count)?;
    let remarks = remarks(cli);
    let begun = (remarks, started);
    let (fits, folds) = match targets::requested_targets(arguments, &request, remarks)? {
        targets::RequestedTargets::Several(several) => {
            targets::fit(arguments, &request, several, held_out, begun)?
        }
        targets::RequestedTargets::One(name) => {
            request.columns.target = name.unwrap_or(request.columns.target);
            fit(arguments, request, held_out, begun)?
        }
    };
    finish(cli, arguments, fits, folds.as_deref(), started)
}

/// Models of all targets, with the rows that each left out.
struct Fits {
    models: Vec<Model>,
    left_out: Vec<LeftOut>,
    /// What several targets share.
    shared: Option<SharedKernel>,
    /// Planned for all of several targets together.
    planned_bytes: u64,
    /// What was read otherwise than it is written.
    read: Vec<String>,
}

/// Fits of all rows, and what models of each target scored on each fold.
type Fitted = (Fits, Option<Vec<FoldScores>>);

impl Fits {
    /// Of one target.
    fn one(model: Model, left_out: LeftOut) -> Self {
        Self {
            models: vec![model],
            left_out: vec![left_out],
            shared: None,
            planned_bytes: 0,
            read: Vec::new(),
        }
    }
}

/// A model of one target.
fn fit(
    arguments: &TableArgs,
    mut request: FitRequest,
    held_out: &SplitArgs,
    (remarks, started): (Remarks, Instant),
) -> Result<Fitted, Failure> {
    arguments.give(&mut request)?;
    let found = read(arguments, &request, held_out, remarks)?;
    // One budget for the whole command: what reading took is spent.
    let left = |budget: Option<f64>| {
        budget.map(|seconds| (seconds - started.elapsed().as_secs_f64()).max(f64::MIN_POSITIVE))
    };
    let said = found.said();
    let (rows, left_out) = match found {
        Found::Rows(rows, _) => (rows, LeftOut::none()),
        Found::Table(table, looks) if arguments.split.crosses() => {
            let from = (&table, request.limits.memory, remarks);
            let budget = left(request.limits.time);
            let (fits, folds) = fit_and_score(&arguments.split, from, budget, |held_out, fold, budget| {
                let mut own = for_fold(&request, fold);
                own.limits.time = budget;
                let (rows, left_out) = parted(&table, &looks, &own, held_out, remarks)?;
                Ok(Fits::one(fitted(rows, &own, remarks, arguments)?, left_out))
            })?;
            return Ok((Fits { read: said, ..fits }, Some(folds)));
        }
        Found::Table(table, looks) => parted(&table, &looks, &request, held_out, remarks)?,
    };
    request.limits.time = left(request.limits.time);
    let fits = Fits::one(fitted(rows, &request, remarks, arguments)?, left_out);
    Ok((Fits { read: said, ..fits }, None))
}

/// Writes the models of all targets, and says what they are and how good on the rows that they did not see.
fn finish(
    cli: &Cli,
    arguments: &TableArgs,
    fits: Fits,
    folds: Option<&[FoldScores]>,
    started: Instant,
) -> Result<(), Failure> {
    let Fits { models, left_out, shared, planned_bytes, read } = fits;
    let several = models.len() > 1;
    let mut model = Saved::of(models, shared)?;
    let of_fold = |place: usize| folds.map_or(Value::Null, |folds| folds[place].json());
    let count = model.models.len();
    let mut run = RunRecord {
        planned_memory_bytes: several.then_some(planned_bytes),
        read,
        left_out: vec![Value::Null; count],
        folds: (0..count).map(of_fold).collect(),
        ..RunRecord::default()
    };
    write(&mut model, &run, &arguments.run.out, started)?;
    let (remarks, memory) = (remarks(cli), arguments.request.limits.memory);
    let scored = left_out.into_iter().zip(&model.models);
    let scores: Vec<LeftOutScores> = scored.map(|(rows, own)| rows.score(own, memory, remarks)).collect();
    run.left_out = scores.iter().map(LeftOutScores::json).collect::<Result<_, Failure>>()?;
    // The model was worth keeping before its scores were known.
    if run.left_out.iter().any(|own| !own.is_null()) {
        write(&mut model, &run, &arguments.run.out, started)?;
    }
    if cli.json || cli.quiet || !arguments.run.verbose {
        return show(cli, &model, &arguments.run.out, (memory, false));
    }
    let each = &model.models;
    let heading = |own: &Model| match several {
        true => format!("Target {}\n", own.target()),
        false => String::new(),
    };
    for (own, folds) in each.iter().zip(folds.into_iter().flatten()) {
        print(format!("{}{}\n", heading(own), folds.text()))?;
    }
    print(model.described())?;
    for (own, scores) in each.iter().zip(&scores) {
        if let Some(scores) = scores.text() {
            print(format!("\n{}{scores}", heading(own)))?;
        }
    }
    print_written(cli, "model", &arguments.run.out)
}

/// Writes models with how their fit went so far.
fn write(model: &mut Saved, run: &RunRecord, out: &Path, started: Instant) -> Result<(), Failure> {
    let seconds = started.elapsed().as_secs_f64();
    model.run = Some(RunRecord { seconds, peak_memory_bytes: peak_memory_bytes(), ..run.clone() });
    Ok(model.save(out)?)
}

/// Says what was written: all of it where it is `verbose`, else one screen. What columns do takes memory beside the model; where there is not enough, `inspect --memory` says it.
fn show(cli: &Cli, model: &Saved, out: &Path, (memory, verbose): (u64, bool)) -> Result<(), Failure> {
    if cli.json {
        let effects = effects_of(model, memory).unwrap_or_default();
        return print_json(&document(model, out, effects)?);
    }
    if cli.quiet {
        return Ok(());
    }
    print(if verbose { model.described() } else { model.screen(&out.display().to_string()) })?;
    print_written(cli, "model", out)
}

/// A model of rows, whatever their target is.
fn fitted(
    rows: Rows,
    request: &FitRequest,
    remarks: Remarks,
    arguments: &TableArgs,
) -> Result<Model, Failure> {
    let fitted = match rows {
        Rows::Gaussian(prepared) => {
            remarks.say(format!("plan: {}", prepared.plan(request)));
            let chosen = posterior::models::choose(request, prepared.rows(), &prepared.names()).method;
            let fresh = request.method.large().is_some_and(|large| large.fresh);
            if chosen.large().is_some() || fresh {
                say_kept(request, remarks);
            }
            observed_by(remarks, Interrupt::listen(), |observer| {
                Model::fit_table(*prepared, request, observer)
            })
        }
        Rows::Other(observed) => {
            let plan = Model::plan_observed(&observed, request)?;
            remarks.say(format!("plan: {}", plan.describe()));
            say_kept(request, remarks);
            observed_by(remarks, Interrupt::listen(), |observer| {
                Model::fit_observed(*observed, request, observer)
            })
        }
    };
    let ended = fitted.and_then(|model| match model.was_interrupted() {
        true => Err(ModelError::Interrupted),
        false => Ok(model),
    });
    finished(ended, request, arguments)
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
    let mut progress = Bar::of_fit(remarks.silent, interrupt);
    let fitted = fit(&mut |step, stage| progress.fit(step, stage));
    progress.finish();
    fitted
}

/// What came of a fit; what was interrupted says how it goes on.
fn finished<T>(
    fitted: Result<T, ModelError>,
    request: &FitRequest,
    arguments: &TableArgs,
) -> Result<T, Failure> {
    fitted.map_err(|error| {
        let ModelError::Interrupted = error else { return error.into() };
        let state = kept(request)
            .map_or_else(String::new, |p| format!("; the same command goes on from {}", p.display()));
        Failure::new(format!("interrupted; {} has not been written{state}", arguments.run.out.display()))
    })
}

/// Rows to learn from, by what their target is.
enum Rows {
    Gaussian(Box<PreparedTable>),
    Other(Box<Observed>),
}

/// What was read.
enum Found {
    /// Rows that are ready, with what was read otherwise than it is written.
    Rows(Rows, Vec<String>),
    /// A table, and what its target looks like.
    Table(Table, Box<ChosenLikelihood>),
}

impl Found {
    /// What was read otherwise than it is written, and what a target is taken as that may be something else.
    fn said(&self) -> Vec<String> {
        match self {
            Self::Rows(_, notes) => notes.clone(),
            Self::Table(table, looks) => read_as(table, std::slice::from_ref(&**looks)),
        }
    }
}

/// What readers made of a table, and what targets are taken as that may be something else.
fn read_as(table: &Table, looks: &[ChosenLikelihood]) -> Vec<String> {
    let unsure = looks.iter().filter(|own| own.likelihood.is_none() && own.ambiguous);
    let unsure = unsure.map(|own| format!("target taken as {}", own.why));
    table.notes.iter().cloned().chain(unsure).collect()
}

/// Reads what to learn from: the whole table at once or, of numbers with Gaussian noise, part by part.
fn read(
    arguments: &TableArgs,
    request: &FitRequest,
    held_out: &SplitArgs,
    remarks: Remarks,
) -> Result<Found, Failure> {
    let (files, asked) = (&arguments.data[..], request.output.likelihood);
    let target = &request.columns.target;
    let events = request.output.of_events();
    let from_disk = request.method.disk().and_then(|disk| disk.from_disk);
    if from_disk == Some(true) && (events || arguments.stream == Some(false)) {
        return Err(Failure::usage(
            "--from-disk reads a table of numbers part by part: leave --stream false and --likelihood cox out".into(),
        ));
    }
    let stream = streamed(arguments, request);
    if events && in_parts(stream, files)? {
        remarks.say("tables of events are read whole");
    } else if in_parts(stream, files)? {
        let first = first_part(arguments)?;
        let looks = first.map(|part| {
            let rows: Vec<usize> = (0..part.rows()).collect();
            choose_likelihood(&part, target, &rows, asked, &request.columns)
        });
        match looks.transpose()? {
            Some(looks) if looks.likelihood.is_some() => {
                if from_disk == Some(true) {
                    return Err(Failure::usage(format!(
                        "--from-disk is for targets with Gaussian noise, and this one is taken as {}: leave it out, or ask for {LIKELIHOOD_GAUSSIAN}",
                        looks.why
                    )));
                }
                remarks.say(format!("target: {}; such tables are read whole", looks.why));
            }
            Some(looks) => {
                say_gaussian(request, &looks, remarks)?;
                let count = count_rows(files, &arguments.text)?;
                remarks.say(format!("reading {count} rows part by part"));
                refuse_folds(arguments, "a table that is read part by part")?;
                let split = held_out.split(None, count, None, draws_of(request))?;
                let folder = arguments.run.out.parent().unwrap_or(Path::new(""));
                let mut say = |text| remarks.say(text);
                let prepared = PreparedTable::from_files(
                    (files, &arguments.text),
                    &split.train,
                    request,
                    folder,
                    &mut say,
                )?;
                if !split.test.is_empty() {
                    remarks.say(format!("rows that are left out of a table that is read part by part are scored by `{EVALUATE:#}`"));
                }
                return Ok(Found::Rows(Rows::Gaussian(Box::new(prepared)), Vec::new()));
            }
            None => {}
        }
    }
    let table = read_files(files, arguments.text, request.limits.memory, remarks)?;
    if events {
        refuse_folds(arguments, "a table of events")?;
        let split = held_out.split(Some(&table), table.rows(), None, draws_of(request))?;
        let observed = Observed::of_events(&table, &split.train, request)?;
        remarks.say(format!("target: {}", observed.why()));
        return Ok(Found::Rows(Rows::Other(Box::new(observed)), read_as(&table, &[])));
    }
    let all: Vec<usize> = (0..table.rows()).collect();
    let looks = choose_likelihood(&table, target, &all, asked, &request.columns)?;
    Ok(Found::Table(table, Box::new(looks)))
}

/// The first part of a table that is read part by part; None of one without rows.
fn first_part(arguments: &TableArgs) -> Result<Option<Table>, Failure> {
    let options = StreamOptions { text: arguments.text, ..StreamOptions::default() };
    Ok(TableParts::open(&arguments.data, &options)?.next().transpose()?.map(|part| part.table))
}

/// Whether the table is to be read part by part, where that is said.
fn streamed(arguments: &TableArgs, request: &FitRequest) -> Option<bool> {
    let from_disk = request.method.disk().and_then(|disk| disk.from_disk);
    arguments.stream.or(from_disk.filter(|asked| *asked))
}

/// What splits go by beside the flags that say them.
fn draws_of(request: &FitRequest) -> (u64, Option<TimeForm>) {
    (request.seed, request.columns.date_order)
}

/// Refuses to leave each fold out in turn.
fn refuse_folds(arguments: &TableArgs, what: &str) -> Result<(), Failure> {
    if arguments.split.crosses() {
        return Err(Failure::usage(format!(
            "--folds without --fold scores each fold in turn, which {what} has no way to: name one {FOLD}"
        )));
    }
    Ok(())
}

/// The rows of a table that train, and those that do not.
fn parted(
    table: &Table,
    looks: &ChosenLikelihood,
    request: &FitRequest,
    held_out: &SplitArgs,
    remarks: Remarks,
) -> Result<(Rows, LeftOut), Failure> {
    let strata = looks.strata(table, &request.columns.target)?;
    let split = held_out.split(Some(table), table.rows(), strata.as_deref(), draws_of(request))?;
    Ok((rows_of(table, &split, request, looks, remarks)?, LeftOut::of(table, &split.test)))
}

/// The rows of a table that train.
fn rows_of(
    table: &Table,
    split: &Split,
    request: &FitRequest,
    looks: &ChosenLikelihood,
    remarks: Remarks,
) -> Result<Rows, Failure> {
    let target = &request.columns.target;
    if looks.likelihood.is_none() {
        say_gaussian(request, looks, remarks)?;
        let prepared = Prepared::from_table(table, &split.train, request)?;
        remarks.notes(prepared.schema.open_questions());
        return Ok(Rows::Gaussian(Box::new(PreparedTable::Memory(prepared))));
    }
    // What it is was seen on all rows; what there is to know of it, on those that train.
    let chosen = choose_likelihood(table, target, &split.train, looks.name, &request.columns)?;
    let chosen = ChosenLikelihood { why: looks.why.clone(), ..chosen };
    remarks.say(format!("target: {}", chosen.why));
    let observed = Observed::from_table(table, &split.train, request, chosen)?;
    remarks.notes(observed.schema().open_questions());
    Ok(Rows::Other(Box::new(observed)))
}

/// Says why noise is taken as Gaussian where the target may be something else, and refuses flags that mean nothing then.
fn say_gaussian(request: &FitRequest, looks: &ChosenLikelihood, remarks: Remarks) -> Result<(), Failure> {
    let why = &looks.why;
    if request.columns.exposure.is_some() {
        return Err(Failure::usage(no_exposure(why)));
    }
    if let Some(flag) = request.output.not_for_gaussian() {
        return Err(Failure::usage(format!(
            "--{flag} is for classes, counts and student-t, but the target is taken as {why}"
        )));
    }
    if looks.ambiguous {
        remarks.say(format!("target: {why}"));
    }
    Ok(())
}
