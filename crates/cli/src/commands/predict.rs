//! `posterior predict`

use super::{asked_data, in_parts, load_for, print_report, remarks};
use crate::args::{Cli, PredictArgs};
use crate::interrupt::Interrupt;
use crate::output::{Failure, Remarks, check_outputs, print_bytes, set_threads};
use crate::progress::Bar;
use posterior::Saved;
use posterior::data::stream::{TableParts, source_of};
use posterior::data::{
    Column, CsvOptions, DataError, Departure, InputMoments, OutputKind, Table, Values, json, lines_of,
    write_npy, write_parts, write_table_as,
};
use posterior::models::{Answer, Files, ModelData, PredictedInto, Question, VarianceSolves};
use posterior::optim::Signal;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What `--json` prints.
#[derive(Default, Serialize)]
struct Report {
    n: usize,
    rows_without_prediction: usize,
    filled_cells: usize,
    unseen_categories: usize,
    clipped_variances: usize,
    /// How exact variances are, where they were solved for.
    #[serde(skip_serializing_if = "Option::is_none")]
    variance_solves: Option<VarianceSolves>,
    /// Columns that are unlike those of training; none where the model does not say what those were.
    inputs_unlike_training: Option<Vec<Departure>>,
    planned_memory_bytes: u64,
    out: Option<PathBuf>,
    samples_out: Option<PathBuf>,
    joint: Option<PathBuf>,
    notes: Vec<String>,
    #[serde(skip)]
    inputs: InputMoments,
    /// The predictions themselves, where they are not written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<serde_json::Value>,
}

pub(crate) fn run(cli: &Cli, a: &PredictArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let asked = &a.question;
    set_threads(asked.threads.count)?;
    let remarks = remarks(cli);
    let array = out_of(a).is_some_and(|p| has_extension(p, &["npy"]));
    let outputs = [
        (out_of(a), if array { OutputKind::Array } else { OutputKind::Predictions }),
        (a.samples_out.as_deref(), OutputKind::Array),
        (a.joint.as_deref(), OutputKind::Array),
    ];
    let (_, files) = asked.files();
    check_outputs(&outputs, files.iter().chain([&asked.model]), a.force)?;
    let model = load_for(&asked.model, asked)?;
    let model = &model;
    let question = Question {
        quantiles: a.quantiles.clone(),
        latent: a.latent,
        top: a.top,
        sets: a.sets.clone(),
        samples: a.samples,
        draws_apart: a.samples_out.is_some(),
        joint: a.joint.is_some(),
        leave_one_out: a.leave_one_out,
        into: match out_of(a) {
            Some(_) if array => PredictedInto::Array,
            Some(out) if has_extension(out, &["parquet", "pq"]) => PredictedInto::Parquet,
            Some(_) => PredictedInto::Columns,
            None if cli.json => PredictedInto::Json,
            None => PredictedInto::Text,
        },
        ..asked.question()?
    };
    let text = matches!(question.into, PredictedInto::Columns | PredictedInto::Text);
    cli.refuse(&["csv-safe"], !text, "is for predictions in CSV")?;
    model.check(&question)?;
    // What needs all rows together keeps a large table whole, unless someone asks for parts.
    let whole = asked.limit.is_some() || !model.answers_parts(&question);
    let mut report =
        Report { samples_out: a.samples_out.clone(), joint: a.joint.clone(), ..Report::default() };
    match out_of(a) {
        Some(out) if in_parts(a.stream.or(whole.then_some(false)), &files)? => {
            by_parts(&mut report, model, (&files, out, a.csv), question, remarks)?;
        }
        _ => at_once(cli, &mut report, model, a, &question)?,
    }
    report.inputs_unlike_training = model.departures(&report.inputs);
    remarks.warnings(report.inputs_unlike_training.iter().flatten());
    for (count, what) in [
        (report.rows_without_prediction, "rows with missing cells have no prediction"),
        (report.filled_cells, "missing cells were filled with training means"),
        (
            report.unseen_categories,
            "cells of categories that training had not were taken as none of those that it had",
        ),
        (report.clipped_variances, "variances were rounded up to 0"),
    ] {
        if count > 0 {
            remarks.say(format!("note: {count} {what}"));
        }
    }
    if let Some(solves) = &report.variance_solves {
        remarks.say(solves);
    }
    if let Some(out) = &report.out {
        remarks.say(format!("{} predictions written to {}", report.n, out.display()));
    }
    if cli.json { print_report(&report, started) } else { Ok(()) }
}

/// The file of the predictions; `-` is standard output, as none is.
fn out_of(a: &PredictArgs) -> Option<&Path> {
    a.out.as_deref().filter(|out| *out != Path::new("-"))
}

/// Predicts data that are read whole; prints the predictions where they go to no file. Everything is computed before anything is written.
fn at_once(
    cli: &Cli,
    report: &mut Report,
    model: &Saved,
    a: &PredictArgs,
    question: &Question,
) -> Result<(), Failure> {
    let remarks = remarks(cli);
    let (inputs, data) = a.question.files();
    let files =
        Files { data: &data, inputs: &inputs, labels: &[], truth: false, reading: a.question.reading() };
    let data = asked_data(model.first()?, &files, &a.question)?;
    remarks.notes(&data.notes);
    let plan = model.plan(&data, question, 0)?;
    remarks.say(format!("plan: {plan}"));
    let answer = model.predict(&data, question)?;
    report.planned_memory_bytes = plan.peak_bytes;
    report.count(&data, &answer);
    remarks.notes(&answer.notes);
    report.notes = data.notes.iter().chain(&answer.notes).cloned().collect();
    for (path, array) in [(&a.samples_out, &answer.draws), (&a.joint, &answer.covariance)] {
        if let (Some(path), Some(array)) = (path, array) {
            write_npy(path, array)?;
            remarks.say(format!("array of shape {:?} written to {}", array.shape(), path.display()));
        }
    }
    report.out = out_of(a).map(PathBuf::from);
    match (out_of(a), &answer.array) {
        (Some(path), Some(array)) => write_npy(path, array)?,
        (Some(path), None) => write_table_as(&data.with_columns(answer.columns), path, a.csv)?,
        (None, _) if cli.json => report.predictions = Some(as_json(&answer)),
        (None, _) => {
            print_bytes(&lines_of(&data.with_columns(answer.columns), a.csv, true, false))?;
        }
    }
    Ok(())
}

/// Predicts a table part by part: what stays in memory is one part.
fn by_parts(
    report: &mut Report,
    model: &Saved,
    (files, out, csv): (&[PathBuf], &Path, CsvOptions),
    question: Question,
    remarks: Remarks,
) -> Result<(), Failure> {
    let cut = model.cut(files, &question)?;
    // The reader holds a part as text, too.
    let question = Question { beside: cut.part_bytes as u64, ..question };
    let mut parts = TableParts::open(files, &cut)?;
    report.out = Some(out.into());
    let progress = Bar::of_rows(remarks.silent, Interrupt::listen());
    let written = write_parts(out, csv, || -> Result<Option<Table>, Failure> {
        let Some(part) = parts.next() else {
            if report.n > 0 {
                return Ok(None);
            }
            let why = "dropping those with missing cells".into();
            return Err(DataError::NothingLeft { path: source_of(files), why }.into());
        };
        let part = part?;
        let first = part.first_row == 0;
        let data = ModelData { part: Some(part.row_in_file), ..ModelData::of_table(part.table)? };
        if first {
            remarks.notes(&data.notes);
        }
        let plan = model.plan(&data, &Question { timed: first, ..question.clone() }, 0)?;
        if first {
            remarks.say(format!("plan: part by part; of the first part, {plan}"));
        }
        report.planned_memory_bytes = report.planned_memory_bytes.max(plan.peak_bytes);
        let answer = model.predict(&data, &question)?;
        report.count(&data, &answer);
        if first {
            remarks.notes(&answer.notes);
            report.notes = answer.notes.clone();
        }
        if progress.rows(data.len()) == Signal::Stop {
            return Err(Failure::new(format!("interrupted; {} has not been written", out.display())));
        }
        Ok(Some(data.with_columns(answer.columns)))
    });
    progress.finish();
    written
}

pub(super) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|e| extensions.iter().any(|known| e.eq_ignore_ascii_case(known)))
}

impl Report {
    /// Counts what was done to some rows.
    fn count(&mut self, data: &ModelData, answer: &Answer) {
        self.n += answer.count;
        self.rows_without_prediction += data.length() - answer.count;
        self.filled_cells += answer.data.filled_cells;
        self.unseen_categories += answer.data.unseen_categories;
        self.clipped_variances += answer.clipped;
        self.inputs.merge(answer.inputs.clone());
        self.variance_solves = VarianceSolves::of_all([self.variance_solves, answer.solves]);
    }
}

fn as_json(answer: &Answer) -> serde_json::Value {
    let cells = |c: &Column| match &c.values {
        Values::Numeric(values) => {
            // A number that is none is one that is not there.
            json!(values.iter().map(|v| (!v.is_nan()).then_some(*v)).collect::<Vec<_>>())
        }
        Values::Text(values) => json!(values),
    };
    let mut out: serde_json::Map<_, _> = answer.columns.iter().map(|c| (c.name.clone(), cells(c))).collect();
    // Sets are arrays where text would join their names.
    out.extend(answer.sets.iter().map(|(name, each)| (name.clone(), json!(each))));
    serde_json::Value::Object(out)
}
