//! `posterior predict`

use super::{in_parts, load, predict_network, read, remarks, single};
use crate::args::{Cli, PredictArgs, VariancesArg};
use crate::interrupt::Interrupt;
use crate::laplace_settings::memory;
use crate::output::{Failure, Remarks, check_outputs, print, print_json, set_threads};
use crate::progress::RowProgress;
use posterior::data::stream::{StreamOptions, TableParts};
use posterior::data::{
    Column, DataError, Departure, Feature, InputMoments, OutputKind, Table, write_parts, write_table,
};
use posterior::optim::Signal;
use posterior::{
    AnyModel, Model, PredictOptions, PredictedInto, PredictionRequest, Predictions, VarianceSolves,
    peak_memory_bytes,
};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// What `--json` prints.
#[derive(Default, Serialize)]
struct Report {
    n: usize,
    rows_without_prediction: usize,
    filled_cells: usize,
    clipped_variances: usize,
    /// How exact variances are, where they were solved for.
    #[serde(skip_serializing_if = "Option::is_none")]
    variance_solves: Option<VarianceSolves>,
    /// Columns that are unlike those of training; none where the model does not say what those were.
    inputs_unlike_training: Option<Vec<Departure>>,
    planned_memory_bytes: u64,
    peak_memory_bytes: Option<u64>,
    seconds: f64,
    out: Option<String>,
    #[serde(skip)]
    inputs: InputMoments,
    /// The predictions themselves, where they are not written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<serde_json::Value>,
}

pub(crate) fn run(cli: &Cli, arguments: &PredictArgs) -> Result<(), Failure> {
    let started = Instant::now();
    set_threads(arguments.threads)?;
    let remarks = remarks(cli);
    let array = arguments.out.as_deref().is_some_and(|p| p.extension().is_some_and(|e| e == "npy"));
    let outputs = [
        (arguments.out.as_deref(), if array { OutputKind::Array } else { OutputKind::Predictions }),
        (arguments.samples_out.as_deref(), OutputKind::Array),
        (arguments.joint.as_deref(), OutputKind::Array),
    ];
    check_outputs(&outputs, arguments.data.iter().chain([&arguments.model]), arguments.force)?;
    let model = match load(&arguments.model)? {
        AnyModel::Process(model) => model,
        AnyModel::Laplace(model) => return predict_network::run(cli, arguments, &model),
    };
    refuse_network_flags(arguments)?;
    let limit = memory(arguments.memory)?;
    let path = single(&arguments.data, "")?;
    let mut report = match &arguments.out {
        Some(out) if in_parts(asked(&model, arguments), path)? => {
            by_parts(&model, path, out, arguments, limit, remarks)?
        }
        _ => at_once(cli, &model, path, arguments, limit)?,
    };
    report.inputs_unlike_training = model.departures(&report.inputs);
    for departure in report.inputs_unlike_training.iter().flatten() {
        remarks.say(format!("warning: {departure}"));
    }
    for (count, what) in [
        (report.rows_without_prediction, "rows with missing cells have no prediction"),
        (report.filled_cells, "missing cells were filled with training means"),
        (report.clipped_variances, "variances were rounded up to 0"),
    ] {
        if count > 0 {
            remarks.say(format!("note: {count} {what}"));
        }
    }
    if let Some(solves) = &report.variance_solves {
        remarks.say(solves_text(solves));
    }
    if let Some(out) = &report.out {
        remarks.say(format!("{} predictions written to {out}", report.n));
    }
    if cli.json {
        return print_json(&Report {
            seconds: started.elapsed().as_secs_f64(),
            peak_memory_bytes: peak_memory_bytes(),
            ..report
        });
    }
    Ok(())
}

/// Draws that are joint over all rows keep a table whole unless someone asks for parts.
fn asked(model: &Model, arguments: &PredictArgs) -> Option<bool> {
    let joint = arguments.samples > 0 && model.posterior().stored_samples().is_none();
    arguments.stream.or(joint.then_some(false))
}

fn options(arguments: &PredictArgs) -> PredictOptions {
    let variances = VariancesArg::method(arguments.variances, arguments.memory);
    PredictOptions { truth: false, variances }
}

/// Predicts a table that is read whole; prints the predictions where they go to no file.
fn at_once(
    cli: &Cli,
    model: &Model,
    path: &Path,
    arguments: &PredictArgs,
    limit: u64,
) -> Result<Report, Failure> {
    let mut rows = read(path, limit, remarks(cli))?;
    let into = match &arguments.out {
        Some(out) if is_parquet(out) => PredictedInto::Parquet,
        Some(_) => PredictedInto::Columns,
        None if cli.json => PredictedInto::Json,
        None => PredictedInto::Text,
    };
    let asked = request(arguments, rows.rows(), into);
    let mut plan = model.plan_prediction(&asked).with_table(&rows);
    plan.check(limit)?;
    plan.seconds = Some(model.seconds_of_prediction(&asked));
    remarks(cli).say(format!("plan: {plan}"));
    let predictions = model.predict_with(&rows, None, options(arguments))?;
    let columns = columns(model, &rows, &predictions, arguments)?;
    let mut report = Report { planned_memory_bytes: plan.peak_bytes, ..Report::default() };
    report.count(&rows, &predictions);
    match &arguments.out {
        Some(path) => {
            extend(&mut rows, columns);
            write_table(&rows, path)?;
            report.out = Some(path.display().to_string());
        }
        None if cli.json => {
            let values = |c: &Column| {
                (c.name.clone(), serde_json::json!((0..c.len()).map(|i| cell(c, i)).collect::<Vec<_>>()))
            };
            report.predictions = Some(serde_json::Value::Object(columns.iter().map(values).collect()));
        }
        None => print_csv(&columns)?,
    }
    Ok(report)
}

/// Predicts a table part by part: what stays in memory is one part.
fn by_parts(
    model: &Model,
    path: &Path,
    out: &Path,
    arguments: &PredictArgs,
    limit: u64,
    remarks: Remarks,
) -> Result<Report, Failure> {
    // Draws of these are functions, the same in every part; draws of others are joint over rows, of which only a part is there.
    if arguments.samples > 0 && model.posterior().stored_samples().is_none() {
        let problem =
            "--samples of this model are drawn jointly for all rows, which --stream never has; leave one out";
        return Err(Failure::usage(problem.into()));
    }
    let cut = cut(model, path, arguments, limit)?;
    let into = if is_parquet(out) { PredictedInto::Parquet } else { PredictedInto::Columns };
    let mut parts = TableParts::open(path, &cut)?;
    let mut report = Report { out: Some(out.display().to_string()), ..Report::default() };
    let progress = RowProgress::new(remarks.silent, Interrupt::listen());
    let written = write_parts(out, || -> Result<Option<Table>, Failure> {
        let Some(part) = parts.next() else {
            if report.n > 0 {
                return Ok(None);
            }
            let why = "dropping those with missing cells".into();
            return Err(DataError::NothingLeft { path: path.into(), why }.into());
        };
        let part = part?;
        if part.first_row == 0 {
            part.table.notes.iter().for_each(|note| remarks.say(format!("note: {note}")));
        }
        // The reader holds a part as text, too.
        let asked = request(arguments, part.table.rows(), into);
        let mut plan = model.plan_prediction(&asked).with_table(&part.table);
        plan.peak_bytes = plan.peak_bytes.saturating_add(cut.part_bytes as u64);
        plan.check(limit)?;
        if part.first_row == 0 {
            plan.seconds = Some(model.seconds_of_prediction(&asked));
            remarks.say(format!("plan: part by part; of the first part, {plan}"));
        }
        report.planned_memory_bytes = report.planned_memory_bytes.max(plan.peak_bytes);
        let predictions = model.predict_part(&part, options(arguments))?;
        let mut table = part.table;
        report.count(&table, &predictions);
        if progress.observe(table.rows()) == Signal::Stop {
            return Err(Failure::new(format!("interrupted; {} has not been written", out.display())));
        }
        let columns = columns(model, &table, &predictions, arguments)?;
        extend(&mut table, columns);
        Ok(Some(table))
    });
    progress.finish();
    written.map(|()| report)
}

/// How the file is cut: cells that the model does not look at pass through as text, whatever they look like in which part, and a part's inputs and draws
/// take no more than its cells would.
fn cut(model: &Model, path: &Path, arguments: &PredictArgs, limit: u64) -> Result<StreamOptions, Failure> {
    let schema = &model.header().schema;
    let sources: BTreeSet<&str> = schema.features.iter().map(Feature::column).collect();
    let mut options = StreamOptions { text_columns: schema.text_columns(), ..StreamOptions::default() };
    let kept = model.posterior().stored_samples().filter(|_| arguments.samples > 0);
    let numbers = 3 * schema.features.len() + 2 * kept.unwrap_or(0);
    options.part_bytes =
        options.part_bytes.min(usize::try_from(limit / 8).unwrap_or(usize::MAX)).max(1 << 16);
    options.part_bytes =
        (options.part_bytes * sources.len() / numbers.max(1)).clamp(1 << 16, options.part_bytes);
    // Parquet says which columns are numbers.
    if !is_parquet(path)
        && let Some(first) = TableParts::open(path, &options)?.next()
    {
        let numeric = |name: &String| sources.contains(name.as_str()) || schema.noise.as_ref() == Some(name);
        options.text_columns.extend(first?.table.names().into_iter().filter(|name| !numeric(name)));
    }
    Ok(options)
}

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|e| ["parquet", "pq"].iter().any(|p| e.eq_ignore_ascii_case(p)))
}

/// What is asked of the model for so many rows.
fn request(arguments: &PredictArgs, rows: usize, into: PredictedInto) -> PredictionRequest {
    PredictionRequest {
        rows,
        quantiles: arguments.quantiles.len(),
        samples: arguments.samples,
        scored: false,
        into,
        variances: options(arguments).variances,
    }
}

impl Report {
    /// Counts what was done to some rows.
    fn count(&mut self, rows: &Table, predictions: &Predictions) {
        self.n += predictions.rows.len();
        self.rows_without_prediction += rows.rows() - predictions.rows.len();
        self.filled_cells += predictions.filled_cells;
        self.clipped_variances += predictions.clipped;
        self.inputs.merge(predictions.inputs.clone());
        if let Some(VarianceSolves { residual, iterations }) = predictions.solves {
            let before = self.variance_solves.unwrap_or(VarianceSolves { residual: 0.0, iterations: 0 });
            self.variance_solves = Some(VarianceSolves {
                residual: before.residual.max(residual),
                iterations: before.iterations + iterations,
            });
        }
    }
}

/// Adds the new columns, in the place of older ones of the same names.
fn extend(table: &mut Table, columns: Vec<Column>) {
    table.columns.retain(|c| !columns.iter().any(|new| new.name == c.name));
    table.columns.extend(columns);
}

/// Solves in words.
pub(crate) fn solves_text(solves: &VarianceSolves) -> String {
    let VarianceSolves { residual, iterations } = solves;
    format!(
        "variances by {iterations} iterations of conjugate gradients, largest relative residual {residual:.1e}"
    )
}

/// Flags that a Gaussian process does not know.
fn refuse_network_flags(a: &PredictArgs) -> Result<(), Failure> {
    let given = [
        (a.samples_out.is_some(), "samples-out"),
        (a.joint.is_some(), "joint"),
        (a.latent, "latent"),
        (a.top.is_some(), "top"),
        (a.predictive.is_some(), "predictive"),
        (a.limit.is_some(), "limit"),
    ];
    match given.iter().find(|g| g.0) {
        Some((_, name)) => {
            Err(Failure::usage(format!("--{name} is for networks, this model is a Gaussian process")))
        }
        None => Ok(()),
    }
}

fn cell(column: &Column, row: usize) -> Option<f64> {
    column.cell(row).parse().ok()
}

/// The new columns, as long as the table; NaN (an empty cell) where a row has no prediction.
fn columns(
    model: &Model,
    table: &Table,
    predictions: &Predictions,
    arguments: &PredictArgs,
) -> Result<Vec<Column>, Failure> {
    let target = &model.header().schema.target;
    let spread = |suffix: &str, values: &[f64]| {
        let mut out = vec![f64::NAN; table.rows()];
        predictions.rows.iter().zip(values).for_each(|(&row, &v)| out[row] = v);
        Column::numeric(format!("{target}_{suffix}"), out)
    };
    let mut out = vec![
        spread("mean", &predictions.mean),
        spread("std", &predictions.deviation),
        spread("latent_std", &predictions.latent_deviation),
    ];
    for &level in &arguments.quantiles {
        out.push(spread(&format!("q{level}"), &predictions.quantile(level)));
    }
    if arguments.samples > 0 && !predictions.rows.is_empty() {
        let limit = (arguments.memory.max(0.0) * 1e9) as u64;
        let draws = model.sample(table, &predictions.rows, arguments.samples, arguments.seed, limit)?;
        out.extend(draws.iter().enumerate().map(|(k, draw)| spread(&format!("sample_{}", k + 1), draw)));
    }
    Ok(out)
}

fn print_csv(columns: &[Column]) -> Result<(), Failure> {
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    let mut lines = vec![names.join(",")];
    for row in 0..columns.first().map_or(0, Column::len) {
        lines.push(columns.iter().map(|c| c.cell(row)).collect::<Vec<_>>().join(","));
    }
    print(lines.join("\n"))
}
