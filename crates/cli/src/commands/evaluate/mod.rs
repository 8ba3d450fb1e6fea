//! `posterior evaluate`: any model beside a simple competitor, and beside others.
//!
//! | file | does |
//! |---|---|
//! | `scoring` | finds out |
//! | `targets` | goes through a model of several targets |
//! | `text`, `json`, `report` | say it to people, to programs, in a page with pictures |

pub(super) mod json;
pub(super) mod report;
pub(super) mod scoring;
mod targets;
pub(super) mod text;

use super::{load_for, remarks};
use crate::args::{Cli, EvaluateArgs};
use crate::laplace_settings::only;
use crate::output::{Failure, check_outputs, print, print_json, set_threads};
use posterior::data::OutputKind;
use posterior::report::Report;
use posterior::{Effects, Portrait, Question, peak_memory_bytes};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// What `--json` prints.
#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    found: json::Output<'a>,
    planned_memory_bytes: u64,
    peak_memory_bytes: Option<u64>,
    seconds: f64,
    /// What columns do, where a report was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    effects: Option<Effects>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'a Path>,
}

pub(crate) fn run(cli: &Cli, a: &EvaluateArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let asked = &a.question;
    set_threads(asked.threads)?;
    let (_, data) = asked.files();
    let files = [&data, &a.labels, &a.compare, &a.ood];
    let inputs = files.into_iter().flatten().chain(a.split.file()).chain([&asked.model]);
    let report = a.report.as_deref();
    check_outputs(&[(report, OutputKind::Report)], inputs, a.force)?;
    only(a.samples.is_some(), "samples", a.joint_kappa.is_some(), "--joint-kappa")?;
    let model = load_for(&asked.model, asked)?;
    let joint_points = a.joint_kappa.iter().flat_map(|points| points.0.clone()).collect();
    let question = Question { joint_points, ..asked.question()? };
    model.check(&question)?;
    if !model.targets().is_empty() {
        return targets::run(cli, a, &*model, &question, started);
    }
    let findings = scoring::find(&*model, a, &question, remarks(cli))?;
    let mut effects = None;
    if let Some(path) = report {
        effects = model.effects(Some(&findings.data))?;
        let portrait = Portrait { effects: effects.clone(), ..model.portrait()? };
        let title = format!("{} on {}", portrait.title, findings.data.name);
        let sections = report::sections(&*model, portrait, &findings)?;
        report::write(path, &Report::new("How sure, and how right?", title, sections))?;
    }
    if cli.json {
        return print_json(&Output {
            found: json::Output::of(&findings)?,
            planned_memory_bytes: findings.planned_bytes,
            peak_memory_bytes: peak_memory_bytes(),
            seconds: started.elapsed().as_secs_f64(),
            effects,
            report,
        });
    }
    print(text::findings(&findings))?;
    match report {
        Some(path) if !cli.quiet => print(format!("\nreport written to {}", path.display())),
        _ => Ok(()),
    }
}
