//! `posterior inspect`

use super::evaluate::report::{learned, write};
use super::network_page::network_page;
use super::predict::has_extension;
use super::{document, effects_of, load, print_written, read_files, remarks, support};
use crate::args::{Cli, InspectArgs};
use crate::output::{Failure, check_outputs, number, print, print_json, table_under};
use posterior::data::{
    Column, OutputKind, Table, TextOptions, Values, dates_of, is_table_name, json, to_shown_value,
};
use posterior::models::{Effects, ModelReport};
use posterior::network::{NetworkFile, open_network};
use posterior::networks::safetensors::{self, ARCHITECTURE_KEY, metadata};
use posterior::networks::{Architecture, Graph, describe};
use posterior::notes::fixes::{ARCHITECTURE, MEMORY};
use posterior::report::{RegressionReport, Report, Section};
use posterior::{Model, Saved};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// What files of networks are called.
const NETWORKS: [&str; 4] = ["onnx", "safetensors", "pt", "pth"];

#[derive(Serialize)]
struct ColumnReport {
    name: String,
    kind: &'static str,
    missing: usize,
    distinct: usize,
    /// Of numbers, or of dates in the form of ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum: Option<Value>,
    /// The unit of numbers that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
}

/// What a model is, as a page, of several targets section by section: nothing is scored.
fn page(model: &Saved, effects: Option<Effects>) -> Result<Report, Failure> {
    let sections = match model.only() {
        Some(own) => vec![section(own, effects)?],
        None => {
            let each = model.models.iter().map(|own| section(own, own.effects(None)?));
            each.collect::<Result<Vec<_>, Failure>>()?
        }
    };
    Ok(Report::new("What was learned", model.model_report()?.title, sections))
}

fn section(model: &Model, effects: Option<Effects>) -> Result<Section, Failure> {
    let model_report = ModelReport { effects, ..model.model_report()? };
    Ok(RegressionReport { dataset: model.target(), ..learned(model, &model_report) }.into())
}

pub(crate) fn run(cli: &Cli, arguments: &InspectArgs) -> Result<(), Failure> {
    let path = &arguments.file;
    let report = arguments.report.as_deref();
    cli.refuse(&["report"], is_table_name(path), "is for models and networks")?;
    cli.refuse(&["onnx-output"], !has_extension(path, &["onnx"]), "is for ONNX files")?;
    if arguments.text != TextOptions::default() && !is_table_name(path) {
        let problem = "--set text.delimiter, --set text.decimal and --set text.encoding are for tables";
        return Err(Failure::usage(problem.into()));
    }
    check_outputs(&[(report, OutputKind::Report)], [path], arguments.force)?;
    if has_extension(path, &["toml"]) {
        let graph = Architecture::read(path)?
            .graph()
            .map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
        if arguments.support {
            return support::run(cli, &graph);
        }
        return layers(cli, arguments, "architecture", &graph, Vec::new());
    }
    if has_extension(path, &NETWORKS) {
        let whole = has_extension(path, &["onnx"]) || arguments.architecture.is_some() || arguments.support;
        if !whole && report.is_none() && !metadata(path)?.contains_key(ARCHITECTURE_KEY) {
            return tensors(cli, path);
        }
        let file = NetworkFile {
            architecture: arguments.architecture.as_deref(),
            output: arguments.onnx_output.as_deref(),
            ..NetworkFile::new(path)
        };
        let opened = open_network::<f64>(&file)?;
        if arguments.support {
            return support::run(cli, opened.network.graph());
        }
        return layers(cli, arguments, opened.format, opened.network.graph(), opened.notes);
    }
    if !is_table_name(path) {
        let model = load(path, "")?;
        if arguments.support {
            let none = || Failure::usage("--support is for networks".into());
            return support::run(cli, model.only().and_then(Model::graph).ok_or_else(none)?);
        }
        // Words alone need none of this.
        let needed = cli.json || report.is_some();
        let effects = if needed { effects_of(&model, arguments.memory)? } else { None };
        if let Some(report) = report {
            write(report, &page(&model, effects.clone())?)?;
        }
        if !cli.json {
            print(model.described())?;
            return report.map_or(Ok(()), |report| print_written(cli, "report", report));
        }
        return print_json(&document(&model, path, effects)?);
    }
    cli.refuse(&["support"], true, "is for networks")?;
    let limit = arguments.memory;
    let rows = read_files(std::slice::from_ref(path), arguments.text, limit, remarks(cli))?;
    // Beside the cells, those of one column in order.
    let needed = rows.memory().saturating_add(16 * rows.rows() as u64);
    if needed > limit {
        return Err(Failure::new(format!(
            "describing {} takes {needed} bytes, above the limit of {limit}: allow more memory ({MEMORY})",
            path.display()
        )));
    }
    let (columns, notes): (Vec<ColumnReport>, Vec<Option<String>>) =
        rows.columns.iter().map(|column| column_report(&rows, column)).unzip();
    remarks(cli).notes(notes.into_iter().flatten());
    if cli.json {
        return print_json(&json!({ "kind": "table", "rows": rows.rows(), "columns": columns }));
    }
    let lines = columns.into_iter().map(|c| {
        let [minimum, mean, maximum] =
            [c.minimum, c.mean, c.maximum].map(|value| value.map(shown).unwrap_or_default());
        let kind = c.unit.map_or_else(|| c.kind.into(), |unit| format!("{} in {unit}", c.kind));
        [c.name, kind, c.missing.to_string(), c.distinct.to_string(), minimum, mean, maximum]
    });
    let head = ["column", "kind", "missing", "distinct", "minimum", "mean", "maximum"];
    print(format!("{} rows\n\n{}", rows.rows(), table_under(head, lines)))
}

/// The tensors of a file that does not say what network they belong to: what an architecture has to name.
fn tensors(cli: &Cli, path: &Path) -> Result<(), Failure> {
    let (format, tensors, mut notes) = safetensors::tensors(path)?;
    notes.push(format!(
        "the file holds tensors and no architecture: say with {ARCHITECTURE} which network they belong to"
    ));
    if cli.json {
        return print_json(
            &json!({ "kind": "tensors", "format": format, "tensors": tensors, "notes": notes }),
        );
    }
    let rows = tensors.into_iter().map(|t| [t.name, t.dtype, format!("{:?}", t.shape)]);
    print(table_under(["tensor", "type", "shape"], rows))?;
    remarks(cli).notes(&notes);
    Ok(())
}

/// The layer table of a network and, where a report is asked for, its picture.
fn layers(
    cli: &Cli,
    arguments: &InspectArgs,
    format: &'static str,
    graph: &Graph,
    notes: Vec<String>,
) -> Result<(), Failure> {
    let table = describe(graph);
    if let Some(report) = &arguments.report {
        write(report, &network_page(&arguments.file, format, graph, &notes))?;
        remarks(cli).say(format!("report written to {}", report.display()));
    }
    if !cli.json {
        remarks(cli).notes(&notes);
        return print(table);
    }
    let mut out = to_shown_value(&table)?;
    out["kind"] = json!("network");
    out["format"] = json!(format);
    out["output"] = json!(graph.output_shape());
    out["notes"] = json!(notes);
    print_json(&out)
}

/// A number, or a date as it stands.
fn shown(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.as_f64().map(number).unwrap_or_default(),
    }
}

/// What a column holds, with what is open about it.
fn column_report(table: &Table, column: &Column) -> (ColumnReport, Option<String>) {
    let name = column.name.clone();
    let unit = table.written.get(&name).map(|written| written.unit.clone());
    match &column.values {
        Values::Numeric(values) => {
            let mut present: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
            let count = present.len() as f64;
            let some = |v: f64| (!values.iter().all(|v| v.is_nan())).then(|| json!(v));
            let missing = values.len() - present.len();
            let mean = some(present.iter().map(|v| v / count).sum());
            let minimum = some(present.iter().copied().fold(f64::INFINITY, f64::min));
            let maximum = some(present.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            present.sort_unstable_by_key(|v| v.to_bits());
            present.dedup_by_key(|v| v.to_bits());
            let distinct = present.len();
            (ColumnReport { name, kind: "number", missing, distinct, minimum, mean, maximum, unit }, None)
        }
        Values::Text(values) => {
            let mut present: Vec<&str> = values.iter().flatten().map(String::as_str).collect();
            present.sort_unstable();
            present.dedup();
            let distinct = present.len();
            let dates = dates_of(table, column);
            let kind = dates.as_ref().map_or("text", |dates| dates.kind);
            let missing = values.iter().filter(|v| v.is_none()).count();
            let missing = dates.as_ref().map_or(missing, |dates| dates.missing);
            let [minimum, maximum] = [0, 1].map(|end| dates.as_ref().map(|dates| json!(dates.range[end])));
            let report = ColumnReport { name, kind, missing, distinct, minimum, mean: None, maximum, unit };
            (report, dates.and_then(|dates| dates.note))
        }
    }
}
