//! `posterior evaluate`: any model beside a simple competitor, and beside others.
//!
//! | file | does |
//! |---|---|
//! | `scoring` | finds out |
//! | `text`, `json`, `report` | say it to people, to programs, in a page with pictures |

pub(super) mod json;
pub(super) mod report;
pub(super) mod scoring;
pub(super) mod text;

use super::{load, load_for, print_report, print_written, remarks};
use crate::args::only;
use crate::args::{Cli, EvaluateArgs};
use crate::output::{Failure, check_outputs, print, set_threads};
use posterior::Model;
use posterior::data::{OutputKind, json};
use posterior::models::{ModelReport, Question};
use posterior::report::Report;
use scoring::of_target;
use std::time::Instant;

/// Scores a model; of one of several targets each target, one after the other, on the rows that have it and beside its own baseline. What stays of each is what is said of it.
pub(crate) fn run(cli: &Cli, a: &EvaluateArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let asked = &a.question;
    set_threads(asked.threads.count)?;
    let (_, data) = asked.files();
    let files = [&data, &a.labels, &a.against, &a.ood];
    let inputs = files.into_iter().flatten().chain(a.split.file()).chain([&asked.model]);
    let report = a.report.as_deref();
    check_outputs(&[(report, OutputKind::Report)], inputs, a.force)?;
    only(a.samples.is_some(), "samples", a.joint_kappa.is_some(), "--joint-kappa")?;
    let model = load_for(&asked.model, asked)?;
    let joint_points = a.joint_kappa.iter().flat_map(|points| points.0.clone()).collect();
    let question = Question { joint_points, ..asked.question()? };
    model.check(&question)?;
    let remarks = remarks(cli);
    let (targets, several) = (&model.models, model.only().is_none());
    if several {
        check_compared(a, targets)?;
    }
    let (mut texts, mut each, mut sections) = (Vec::new(), Vec::new(), Vec::new());
    let (mut planned, mut title) = (0, String::new());
    for (place, own) in targets.iter().enumerate() {
        let target = own.target();
        if several {
            remarks.say(format!("target {target} ({} of {})", place + 1, targets.len()));
        }
        let mut findings = scoring::find(own, a, &question, remarks)?;
        planned = planned.max(findings.planned_bytes);
        let effects = match report {
            Some(_) if !several => own.effects(Some(&findings.data))?,
            _ => None,
        };
        if cli.json {
            let mut found = json::found(&findings)?;
            if several {
                found["target"] = json!(target);
            }
            // What columns do, where a report was asked for.
            if let Some(effects) = &effects {
                found["effects"] = json!(effects);
            }
            each.push(found);
        } else {
            let heading = if several { format!("Target {target}\n") } else { String::new() };
            texts.push(format!("{heading}{}", text::findings(&findings)));
        }
        if report.is_some() {
            let model_report = ModelReport { effects, ..own.model_report()? };
            let name = if several { model.model_report()?.title } else { model_report.title };
            title = format!("{name} on {}", findings.data.name);
            if several {
                findings.data.name = format!("{}, target {target}", findings.data.name);
            }
            sections.extend(report::sections(own, model_report, &findings)?);
        }
    }
    if let Some(path) = report {
        report::write(path, &Report::new("How sure, and how right?", title, sections))?;
    }
    if cli.json {
        let mut out = if several { json!({ "targets": each }) } else { each.remove(0) };
        out["planned_memory_bytes"] = json!(planned);
        if several || report.is_some() {
            out["report"] = json!(report);
        }
        return print_report(&out, started);
    }
    print(texts.join("\n\n"))?;
    report.map_or(Ok(()), |path| print_written(cli, "report", path))
}

/// Refuses models without one of the targets.
fn check_compared(a: &EvaluateArgs, targets: &[Model]) -> Result<(), Failure> {
    for path in &a.against {
        let other = load(path, "")?;
        let lacks = |target: &String| of_target(&other, target).is_none_or(|own| own.target() != *target);
        if let Some(target) = targets.iter().map(Model::target).find(lacks) {
            return Err(Failure::usage(format!(
                "{} has no target `{target}`: compare models of all targets of the first, or fit the targets apart",
                path.display()
            )));
        }
    }
    Ok(())
}
