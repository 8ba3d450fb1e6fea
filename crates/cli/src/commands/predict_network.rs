//! `posterior predict` for networks with error bars.

use super::remarks;
use crate::args::{Cli, PredictArgs};
use crate::laplace_settings::{chosen_integration, memory};
use crate::output::{Failure, print, print_json};
use posterior::data::{
    ArrayValues, Column, NumericArray, ReadOptions, Table, Values, write_npy, write_table,
};
use posterior::laplace::{LaplaceModel, LaplacePredictions, ModelData, Predicted};
use posterior::{PredictedInto, peak_memory_bytes};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// Classes beyond this are written by --top only, unless the output is an array.
const MOST_CLASS_COLUMNS: usize = 1000;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    n: usize,
    rows_without_prediction: usize,
    clipped_variances: usize,
    planned_memory_bytes: u64,
    peak_memory_bytes: Option<u64>,
    seconds: f64,
    out: Option<String>,
    samples_out: Option<String>,
    joint: Option<String>,
    notes: Vec<String>,
    /// The predictions themselves, where they are not written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<serde_json::Value>,
}

pub(crate) fn run(cli: &Cli, a: &PredictArgs, model: &LaplaceModel) -> Result<(), Failure> {
    if let Some((flag, _)) =
        [("variances", a.variances.is_some()), ("stream", a.stream.is_some())].iter().find(|f| f.1)
    {
        return Err(Failure::usage(format!("--{flag} is for Gaussian processes, this model is a network")));
    }
    let started = Instant::now();
    let remarks = remarks(cli);
    let limit = memory(a.memory)?;
    if (a.samples > 0) != a.samples_out.is_some() {
        return Err(Failure::usage("networks write function draws to a file of their own: give --samples N and --samples-out FILE.npy".into()));
    }
    let as_array = a.out.as_deref().is_some_and(|p| has_extension(p, "npy"));
    if as_array && (!a.quantiles.is_empty() || a.top.is_some() || a.latent) {
        return Err(Failure::usage(
            "--quantiles, --top and --latent need named columns: write .csv or .parquet".into(),
        ));
    }
    let choice = chosen_integration(a.predictive, a.predictive_samples, a.seed)?;
    let data = model.read(&a.data, &[], false, &ReadOptions { memory_limit: limit })?;
    let mut data = limited(data, a.limit)?;
    data.notes.extend(model.check_inputs(&data, a.allow_other_inputs)?);
    data.notes.iter().for_each(|note| remarks.say(format!("note: {note}")));
    let into = match (&a.out, cli.json) {
        (Some(out), _) if has_extension(out, "parquet") || has_extension(out, "pq") => PredictedInto::Parquet,
        (Some(_), _) => PredictedInto::Columns,
        (None, true) => PredictedInto::Json,
        (None, false) => PredictedInto::Text,
    };
    // Named columns; what most models have of them.
    let columns_of_each = model.likelihood().outputs() * 3 + a.quantiles.len() + 2 * a.top.unwrap_or(0);
    let mut plan = model.plan_prediction(&data, choice, 1, (columns_of_each, into));
    let joint = model.joint_bytes(data.len(), a.samples, a.joint.is_some());
    plan.peak_bytes = plan.peak_bytes.saturating_add(joint);
    plan.check(limit)?;
    remarks.say(format!("plan: {plan}"));
    let predictions = model.predict(&data, choice)?;
    if predictions.clipped > 0 {
        remarks
            .say(format!("note: {} examples had variances that were rounded up to 0", predictions.clipped));
    }
    // Everything is computed before anything is written.
    let samples = match &a.samples_out {
        None => None,
        Some(path) => {
            let draws = model.function_samples(&data, a.samples, a.seed, limit)?;
            let shape = vec![a.samples, data.len(), predictions.outputs];
            Some((path, NumericArray::new(shape, ArrayValues::F64(draws))?))
        }
    };
    let joint = match &a.joint {
        None => None,
        Some(path) => {
            let joint = model.joint_covariance(&data, limit)?;
            let n = joint.nrows();
            let values = (0..n * n).map(|k| joint[(k / n, k % n)]).collect();
            Some((path, NumericArray::new(vec![n, n], ArrayValues::F64(values))?))
        }
    };
    let columns = if as_array { Vec::new() } else { columns(model, &data, &predictions, a)? };
    for (path, array) in samples.iter().chain(&joint) {
        write_npy(path, array)?;
        remarks.say(format!("array of shape {:?} written to {}", array.shape(), path.display()));
    }
    let all = data.table.as_ref().map_or(data.len(), |(table, _)| table.rows());
    let report = Report {
        n: data.len(),
        planned_memory_bytes: plan.peak_bytes,
        peak_memory_bytes: peak_memory_bytes(),
        rows_without_prediction: if a.limit.is_some() { 0 } else { all - data.len() },
        clipped_variances: predictions.clipped,
        seconds: started.elapsed().as_secs_f64(),
        out: a.out.as_ref().map(|p| p.display().to_string()),
        samples_out: a.samples_out.as_ref().map(|p| p.display().to_string()),
        joint: a.joint.as_ref().map(|p| p.display().to_string()),
        notes: data.notes.clone(),
        predictions: a.out.is_none().then(|| as_json(&columns)),
    };
    match &a.out {
        Some(path) if as_array => {
            write_npy(path, &array(&predictions, data.len())?)?;
        }
        Some(path) => {
            let table = match &data.table {
                None => Table::new("predictions", columns),
                Some((table, rows)) => {
                    // A whole table keeps its rows; a part of it only those that were asked for.
                    let mut table = if a.limit.is_some() { table.select(rows) } else { table.clone() };
                    table.columns.retain(|c| !columns.iter().any(|new| new.name == c.name));
                    table.columns.extend(columns);
                    table
                }
            };
            write_table(&table, path)?;
        }
        None if !cli.json => return print_csv(&columns),
        None => {}
    }
    if let Some(path) = &a.out {
        remarks.say(format!("{} predictions written to {}", report.n, path.display()));
    }
    if cli.json { print_json(&report) } else { Ok(()) }
}

/// The first examples.
pub(crate) fn limited(data: ModelData, limit: Option<usize>) -> Result<ModelData, Failure> {
    match limit {
        Some(0) => Err(Failure::usage("--limit must be at least 1".into())),
        Some(count) if count < data.len() => {
            data.selected(&(0..count).collect::<Vec<_>>()).map_err(Failure::from)
        }
        _ => Ok(data),
    }
}

pub(super) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

/// Probabilities `[examples, classes]`, or `[examples, 3, width]` of mean, standard deviation and latent standard deviation.
fn array(predictions: &LaplacePredictions, count: usize) -> Result<NumericArray, Failure> {
    let width = predictions.width;
    let (shape, values) = match &predictions.predicted {
        Predicted::Classes(p) | Predicted::Events(p) => (vec![count, width], p.clone()),
        Predicted::Moments { mean, variance, latent_variance } => {
            let mut values = Vec::with_capacity(3 * mean.len());
            for i in 0..count {
                let own = i * width..(i + 1) * width;
                values.extend_from_slice(&mean[own.clone()]);
                values.extend(variance[own.clone()].iter().map(|v| v.sqrt()));
                values.extend(latent_variance[own].iter().map(|v| v.sqrt()));
            }
            (vec![count, 3, width], values)
        }
    };
    NumericArray::new(shape, ArrayValues::F64(values)).map_err(Failure::from)
}

/// The new columns, as long as the table; empty cells where a row has no prediction.
fn columns(
    model: &LaplaceModel,
    data: &ModelData,
    predictions: &LaplacePredictions,
    a: &PredictArgs,
) -> Result<Vec<Column>, Failure> {
    let whole: Vec<usize> = (0..data.len()).collect();
    let (length, places) = match &data.table {
        Some((table, rows)) if a.limit.is_none() => (table.rows(), rows),
        _ => (data.len(), &whole),
    };
    let numeric = |name: String, values: &mut dyn Iterator<Item = f64>| {
        let mut out = vec![f64::NAN; length];
        places.iter().zip(values).for_each(|(&row, v)| out[row] = v);
        Column::numeric(name, out)
    };
    let text = |name: String, values: Vec<String>| {
        let mut out = vec![None; length];
        places.iter().zip(values).for_each(|(&row, v)| out[row] = Some(v));
        Column { name, values: Values::Text(out) }
    };
    let width = predictions.width;
    let target = model.header().data.target().map_or_else(|| "y".to_string(), String::from);
    let each = |k: usize, values: &[f64]| values.iter().skip(k).step_by(width).copied().collect::<Vec<_>>();
    let mut out = Vec::new();
    match &predictions.predicted {
        Predicted::Classes(p) => {
            let names = model.header().class_names(width);
            let best = predictions.top(1);
            out.push(text("predicted".into(), best.iter().map(|top| names[top[0].0].clone()).collect()));
            out.push(numeric("max_probability".into(), &mut best.iter().map(|top| top[0].1)));
            out.push(numeric("entropy".into(), &mut predictions.entropies().into_iter()));
            let deviation =
                |(i, top): (usize, &Vec<(usize, f64)>)| predictions.latent_deviation[i * width + top[0].0];
            out.push(numeric("latent_std".into(), &mut best.iter().enumerate().map(deviation)));
            match a.top {
                Some(0) => return Err(Failure::usage("--top must be at least 1".into())),
                Some(count) => {
                    let tops = predictions.top(count.min(width));
                    for k in 0..count.min(width) {
                        let name = |top: &Vec<(usize, f64)>| names[top[k].0].clone();
                        out.push(text(format!("class_{}", k + 1), tops.iter().map(name).collect()));
                        out.push(numeric(
                            format!("probability_{}", k + 1),
                            &mut tops.iter().map(|top| top[k].1),
                        ));
                    }
                }
                None if width > MOST_CLASS_COLUMNS => {
                    return Err(Failure::usage(format!(
                        "{width} classes make too many columns: choose --top K, or write .npy"
                    )));
                }
                None => {
                    for (k, name) in names.iter().enumerate() {
                        out.push(numeric(format!("p_{name}"), &mut each(k, p).into_iter()));
                    }
                }
            }
        }
        Predicted::Events(p) => {
            for k in 0..width {
                let suffix = if width > 1 { format!("_{}", k + 1) } else { String::new() };
                out.push(numeric(format!("probability{suffix}"), &mut each(k, p).into_iter()));
                out.push(numeric(
                    format!("latent_std{suffix}"),
                    &mut each(k, &predictions.latent_deviation).into_iter(),
                ));
            }
            out.push(numeric("entropy".into(), &mut predictions.entropies().into_iter()));
        }
        Predicted::Moments { mean, variance, latent_variance } => {
            for k in 0..width {
                let name = |what: &str| {
                    if width > 1 { format!("{target}_{}_{what}", k + 1) } else { format!("{target}_{what}") }
                };
                let root = |v: &[f64]| each(k, v).into_iter().map(f64::sqrt).collect::<Vec<_>>();
                out.push(numeric(name("mean"), &mut each(k, mean).into_iter()));
                out.push(numeric(name("std"), &mut root(variance).into_iter()));
                out.push(numeric(name("latent_std"), &mut root(latent_variance).into_iter()));
                for &level in &a.quantiles {
                    let Some(quantiles) = predictions.quantiles(level, !a.latent) else {
                        return Err(Failure::usage("--quantiles are for Gaussian noise; the other predictions have means and standard deviations".into()));
                    };
                    out.push(numeric(name(&format!("q{level}")), &mut each(k, &quantiles).into_iter()));
                }
            }
        }
    }
    let numbers = matches!(predictions.predicted, Predicted::Moments { .. });
    if !numbers && (!a.quantiles.is_empty() || a.latent) {
        return Err(Failure::usage(
            "--quantiles and --latent are for numbers, this model predicts probabilities".into(),
        ));
    }
    if a.latent && a.quantiles.is_empty() {
        return Err(Failure::usage("--latent says which --quantiles to write: give some".into()));
    }
    if a.top.is_some() && !matches!(predictions.predicted, Predicted::Classes(_)) {
        return Err(Failure::usage("--top is for classes".into()));
    }
    Ok(out)
}

fn as_json(columns: &[Column]) -> serde_json::Value {
    let cells = |c: &Column| match &c.values {
        Values::Numeric(values) => {
            serde_json::json!(values.iter().map(|v| v.is_finite().then_some(*v)).collect::<Vec<_>>())
        }
        Values::Text(values) => serde_json::json!(values.iter().collect::<Vec<_>>()),
    };
    serde_json::Value::Object(columns.iter().map(|c| (c.name.clone(), cells(c))).collect())
}

fn print_csv(columns: &[Column]) -> Result<(), Failure> {
    let quoted = |cell: String| {
        if cell.contains([',', '"', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
    };
    let mut lines = vec![columns.iter().map(|c| quoted(c.name.clone())).collect::<Vec<_>>().join(",")];
    for row in 0..columns.first().map_or(0, Column::len) {
        lines.push(columns.iter().map(|c| quoted(c.cell(row))).collect::<Vec<_>>().join(","));
    }
    print(lines.join("\n"))
}
