//! `posterior inspect`

use super::evaluate::report::{effects as effects_of, shown_lengthscales, write};
use super::network_page::network_page;
use super::predict::has_extension;
use super::{load, read_files, remarks, support};
use crate::args::{Cli, InspectArgs};
use crate::output::{Failure, check_outputs, number, print, print_json, table};
use posterior::data::json;
use posterior::data::{Column, OutputKind, ReadOptions, TextOptions, Values, is_table_name};
use posterior::network::{NetworkFile, open_network};
use posterior::networks::safetensors::{self, ARCHITECTURE_KEY, metadata};
use posterior::networks::{Architecture, Graph, describe};
use posterior::report::{RegressionReport, Report, Section};
use posterior::{Effects, FORMAT_VERSION, Model, Portrait, Question};
use serde::Serialize;
use std::path::Path;

/// What files of networks are called.
const NETWORKS: [&str; 4] = ["onnx", "safetensors", "pt", "pth"];

/// What `--json` prints for a model.
#[derive(Serialize)]
struct ModelReport {
    format_version: u32,
    bytes: u64,
    /// What columns do, of models that keep the rows they were trained on.
    #[serde(skip_serializing_if = "Option::is_none")]
    effects: Option<Effects>,
    #[serde(flatten)]
    report: serde_json::Value,
}

/// What `--json` prints for a table.
#[derive(Serialize)]
struct TableReport {
    kind: &'static str,
    rows: usize,
    columns: Vec<ColumnReport>,
}

#[derive(Serialize)]
struct ColumnReport {
    name: String,
    kind: &'static str,
    missing: usize,
    distinct: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum: Option<f64>,
}

/// What a model is, as a page, of several targets section by section: nothing is scored.
fn page(model: &dyn Model, effects: Option<Effects>) -> Result<Report, Failure> {
    let several = model.targets();
    let sections = match several.is_empty() {
        true => vec![section(model, effects)?],
        false => several
            .into_iter()
            .map(|own| section(own, own.effects(None)?))
            .collect::<Result<Vec<_>, Failure>>()?,
    };
    Ok(Report::new("What was learned", model.portrait()?.title, sections))
}

fn section(model: &dyn Model, effects: Option<Effects>) -> Result<Section, Failure> {
    let portrait = Portrait { effects, ..model.portrait()? };
    let section = RegressionReport {
        dataset: model.target(),
        target: model.target(),
        summary: model.summary(),
        lengthscales: shown_lengthscales(&portrait),
        more: effects_of(model, &portrait),
        hyperparameters: portrait.hyperparameters,
        posterior: portrait.posterior,
        tables: portrait.tables,
        warps: portrait.warps,
        notes: model.notes(),
        ..RegressionReport::default()
    };
    Ok(section.into())
}

pub(crate) fn run(cli: &Cli, arguments: &InspectArgs) -> Result<(), Failure> {
    let path = &arguments.file;
    let report = arguments.report.as_deref();
    if report.is_some() && is_table_name(path) {
        return Err(Failure::usage("--report is for models and networks".into()));
    }
    if arguments.output.is_some() && !has_extension(path, &["onnx"]) {
        return Err(Failure::usage("--output is for ONNX files".into()));
    }
    if arguments.text != TextOptions::default() && !is_table_name(path) {
        let problem = "--delimiter, --decimal and --encoding are for tables";
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
            output: arguments.output.as_deref(),
            ..NetworkFile::new(path)
        };
        let opened = open_network::<f64>(&file)?;
        if arguments.support {
            return support::run(cli, opened.network.graph());
        }
        return layers(cli, arguments, opened.format, opened.network.graph(), opened.notes);
    }
    if !is_table_name(path) {
        let model = load(path)?;
        if arguments.support {
            let none = || Failure::usage("--support is for networks".into());
            return support::run(cli, model.graph().ok_or_else(none)?);
        }
        // Words alone need none of this.
        let mut effects = None;
        if cli.json || report.is_some() {
            let question = Question { memory: arguments.memory, ..Question::default() };
            model.plan_portrait(&question)?;
            effects = model.effects(None)?;
        }
        if let Some(report) = report {
            write(report, &page(&*model, effects.clone())?)?;
        }
        if !cli.json {
            print(model.described())?;
            return match report {
                Some(report) if !cli.quiet => print(format!("\nreport written to {}", report.display())),
                _ => Ok(()),
            };
        }
        let bytes = std::fs::metadata(path).map(|m| m.len()).unwrap_or_default();
        let report = model.report()?;
        return print_json(&ModelReport { format_version: FORMAT_VERSION, bytes, effects, report });
    }
    if arguments.support {
        return Err(Failure::usage("--support is for networks".into()));
    }
    let limit = arguments.memory;
    let reading = ReadOptions { text: arguments.text, ..ReadOptions::limited(limit) };
    let rows = read_files(std::slice::from_ref(path), &reading, remarks(cli))?;
    // Beside the cells, those of one column in order.
    let needed = rows.memory().saturating_add(16 * rows.rows() as u64);
    if needed > limit {
        return Err(Failure::new(format!(
            "describing {} takes {needed} bytes, above the limit of {limit}: allow more memory (--memory GB)",
            path.display()
        )));
    }
    let columns: Vec<ColumnReport> = rows.columns.iter().map(column_report).collect();
    if cli.json {
        return print_json(&TableReport { kind: "table", rows: rows.rows(), columns });
    }
    let mut out = vec![
        ["column", "kind", "missing", "distinct", "minimum", "mean", "maximum"].map(String::from).to_vec(),
    ];
    for c in &columns {
        let shown = |v: Option<f64>| v.map(number).unwrap_or_default();
        out.push(vec![
            c.name.clone(),
            c.kind.into(),
            c.missing.to_string(),
            c.distinct.to_string(),
            shown(c.minimum),
            shown(c.mean),
            shown(c.maximum),
        ]);
    }
    print(format!("{} rows\n\n{}", rows.rows(), table(&out)))
}

/// The tensors of a file that does not say what network they belong to: what an architecture has to name.
fn tensors(cli: &Cli, path: &Path) -> Result<(), Failure> {
    let (format, tensors, mut notes) = safetensors::tensors(path)?;
    notes.push(
        "the file holds tensors and no architecture: say with --architecture which network they belong to"
            .into(),
    );
    if cli.json {
        return print_json(
            &json!({ "kind": "tensors", "format": format, "tensors": tensors, "notes": notes }),
        );
    }
    let mut out = vec![["tensor", "type", "shape"].map(String::from).to_vec()];
    out.extend(tensors.into_iter().map(|t| vec![t.name, t.dtype, format!("{:?}", t.shape)]));
    print(table(&out))?;
    notes.iter().for_each(|note| remarks(cli).say(format!("note: {note}")));
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
        notes.iter().for_each(|note| remarks(cli).say(format!("note: {note}")));
        return print(table);
    }
    let layers = table.rows.iter().map(|row| {
        json!({
            "name": row.name,
            "operation": row.operation,
            "output": row.output_shape,
            "parameters": row.parameters,
            "constants": row.constants,
            "flops": row.flops,
        })
    });
    print_json(&json!({
        "kind": "network",
        "format": format,
        "input": graph.input_shape(),
        "output": graph.output_shape(),
        "parameters": table.parameters,
        "constants": table.constants,
        "flops": table.flops,
        "activations": table.activations,
        "layers": layers.collect::<Vec<_>>(),
        "notes": notes,
    }))
}

fn column_report(column: &Column) -> ColumnReport {
    let name = column.name.clone();
    match &column.values {
        Values::Numeric(values) => {
            let mut present: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
            let count = present.len() as f64;
            let some = |v: f64| (!values.iter().all(|v| v.is_nan())).then_some(v);
            let missing = values.len() - present.len();
            let mean = some(present.iter().map(|v| v / count).sum());
            let minimum = some(present.iter().copied().fold(f64::INFINITY, f64::min));
            let maximum = some(present.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            present.sort_unstable_by_key(|v| v.to_bits());
            present.dedup_by_key(|v| v.to_bits());
            let distinct = present.len();
            ColumnReport { name, kind: "number", missing, distinct, minimum, mean, maximum }
        }
        Values::Text(values) => {
            let mut present: Vec<&str> = values.iter().flatten().map(String::as_str).collect();
            present.sort_unstable();
            present.dedup();
            let distinct = present.len();
            let missing = values.iter().filter(|v| v.is_none()).count();
            ColumnReport { name, kind: "text", missing, distinct, minimum: None, mean: None, maximum: None }
        }
    }
}
