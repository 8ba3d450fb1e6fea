//! `posterior evaluate`

use super::scores::write_report;
use super::{asked_data, evaluate_network, evaluate_process, load, refuse_flags};
use crate::args::{Cli, EvaluateArgs, VariancesArg};
use crate::laplace_settings::{chosen_integration, memory};
use crate::output::{Failure, check_outputs, print, print_json, set_threads};
use posterior::data::OutputKind;
use posterior::report::{Report, Section};
use posterior::{AnyModel, Family, Files, Question, peak_memory_bytes};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// What a family found out.
pub(super) struct Evaluated {
    /// For programs.
    pub json: serde_json::Value,
    /// For people.
    pub text: String,
    /// What a report is called, and what stands in it.
    pub title: String,
    pub sections: Vec<Section>,
    pub planned_memory_bytes: u64,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    found: serde_json::Value,
    planned_memory_bytes: u64,
    peak_memory_bytes: Option<u64>,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'a Path>,
}

pub(crate) fn run(cli: &Cli, a: &EvaluateArgs) -> Result<(), Failure> {
    let started = Instant::now();
    set_threads(a.threads)?;
    let files = [&a.data, &a.labels, &a.compare, &a.ood];
    let inputs = files.into_iter().flatten().chain(&a.folds).chain([&a.model]);
    check_outputs(&[(a.report.as_deref(), OutputKind::Report)], inputs, a.force)?;
    let model = load(&a.model)?;
    refuse_flags(
        model.model().family(),
        &[
            (!a.labels.is_empty(), "labels", Family::Network),
            (!a.compare.is_empty(), "compare", Family::Network),
            (!a.ood.is_empty(), "ood", Family::Network),
            (!a.rotate.is_empty(), "rotate", Family::Network),
            (!a.corrupt.is_empty(), "corrupt", Family::Network),
            (a.joint_kappa.is_some(), "joint-kappa", Family::Network),
            (a.predictive.is_some(), "predictive", Family::Network),
            (a.limit.is_some(), "limit", Family::Network),
            (a.variances.is_some(), "variances", Family::Process),
        ],
    )?;
    if model.model().family() == Family::Network && (a.folds.is_some() || a.test_fraction.is_some()) {
        return Err(Failure::usage("--folds and --test-fraction are for Gaussian processes: give the rows to score as a file of their own".into()));
    }
    let question = Question {
        integration: chosen_integration(a.predictive, a.predictive_samples, a.seed)?,
        variances: VariancesArg::method(a.variances, a.memory),
        memory: memory(a.memory)?,
        timed: true,
        ..Question::default()
    };
    let files = Files { data: &a.data, labels: &a.labels, truth: true, memory: question.memory };
    let data = asked_data(model.model(), &files, a.limit, a.allow_other_inputs)?;
    let Evaluated { json, text, title, sections, planned_memory_bytes } = match &model {
        AnyModel::Process(model) => evaluate_process::evaluated(cli, a, model, &data, &question)?,
        AnyModel::Laplace(model) => evaluate_network::evaluated(cli, a, model, (data, &files), &question)?,
    };
    let report = a.report.as_deref();
    if let Some(path) = report {
        write_report(path, &Report::new("How sure, and how right?", title, sections))?;
    }
    if cli.json {
        return print_json(&Output {
            found: json,
            planned_memory_bytes,
            peak_memory_bytes: peak_memory_bytes(),
            seconds: started.elapsed().as_secs_f64(),
            report,
        });
    }
    print(text)?;
    match report {
        Some(path) if !cli.quiet => print(format!("\nreport written to {}", path.display())),
        _ => Ok(()),
    }
}
