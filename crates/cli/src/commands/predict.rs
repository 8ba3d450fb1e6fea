//! `posterior predict`

use super::{load, predict_network, read, remarks, single};
use crate::args::{Cli, PredictArgs, VariancesArg};
use crate::output::{Failure, print, print_json, set_threads};
use posterior::data::{Column, Table, write_table};
use posterior::{AnyModel, Model, PredictOptions, Predictions, VarianceSolves};
use serde::Serialize;
use std::time::Instant;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    n: usize,
    rows_without_prediction: usize,
    filled_cells: usize,
    clipped_variances: usize,
    /// How exact variances are, where they were solved for.
    #[serde(skip_serializing_if = "Option::is_none")]
    variance_solves: Option<VarianceSolves>,
    seconds: f64,
    out: Option<String>,
    /// The predictions themselves, where they are not written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<serde_json::Value>,
}

pub(crate) fn run(cli: &Cli, arguments: &PredictArgs) -> Result<(), Failure> {
    let started = Instant::now();
    set_threads(arguments.threads)?;
    let remarks = remarks(cli);
    let model = match load(&arguments.model)? {
        AnyModel::Process(model) => model,
        AnyModel::Laplace(model) => return predict_network::run(cli, arguments, &model),
    };
    refuse_network_flags(arguments)?;
    let rows = read(single(&arguments.data, "")?, remarks)?;
    let options = PredictOptions {
        truth: false,
        variances: VariancesArg::method(arguments.variances, arguments.memory),
    };
    let predictions = model.predict_with(&rows, None, options).map_err(Failure::from_error)?;
    if let Some(solves) = &predictions.solves {
        remarks.say(solves_text(solves));
    }
    let columns = columns(&model, &rows, &predictions, arguments)?;
    let absent = rows.rows() - predictions.rows.len();
    for (count, what) in [
        (absent, "rows with missing cells have no prediction"),
        (predictions.filled_cells, "missing cells were filled with training means"),
        (predictions.clipped, "variances were rounded up to 0"),
    ] {
        if count > 0 {
            remarks.say(format!("note: {count} {what}"));
        }
    }
    let json_values = || {
        let values = |c: &Column| {
            (c.name.clone(), serde_json::json!((0..c.len()).map(|i| cell(c, i)).collect::<Vec<_>>()))
        };
        serde_json::Value::Object(columns.iter().map(values).collect())
    };
    let report = Report {
        n: predictions.rows.len(),
        rows_without_prediction: absent,
        filled_cells: predictions.filled_cells,
        clipped_variances: predictions.clipped,
        variance_solves: predictions.solves,
        seconds: started.elapsed().as_secs_f64(),
        out: arguments.out.as_ref().map(|p| p.display().to_string()),
        predictions: arguments.out.is_none().then(json_values),
    };
    match &arguments.out {
        Some(path) => {
            let mut table = rows;
            table.columns.retain(|c| !columns.iter().any(|new| new.name == c.name));
            table.columns.extend(columns);
            write_table(&table, path).map_err(Failure::from_error)?;
            remarks.say(format!("{} predictions written to {}", report.n, path.display()));
        }
        None if !cli.json => return print_csv(&columns),
        None => {}
    }
    if cli.json { print_json(&report) } else { Ok(()) }
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
    if arguments.samples > 0 {
        let limit = (arguments.memory.max(0.0) * 1e9) as u64;
        let draws = model
            .sample(table, &predictions.rows, arguments.samples, arguments.seed, limit)
            .map_err(Failure::from_error)?;
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
