//! A model of several targets: each is scored on the rows that have it, beside its own baseline.

use super::scoring::of_target;
use super::{json, report, scoring, text};
use crate::args::{Cli, EvaluateArgs};
use crate::commands::{load, remarks};
use crate::output::{Failure, print, print_json};
use posterior::data::json;
use posterior::report::Report;
use posterior::{Model, Question, peak_memory_bytes};
use serde_json::Value;
use std::time::Instant;

/// Scores all targets, one after the other; what stays of each is what is said of it.
pub(super) fn run(
    cli: &Cli,
    a: &EvaluateArgs,
    model: &dyn Model,
    question: &Question,
    started: Instant,
) -> Result<(), Failure> {
    let remarks = remarks(cli);
    let several = model.targets();
    for path in &a.compare {
        let other = load(path)?;
        let lacks = |target: &String| of_target(&*other, target).is_none_or(|own| own.target() != *target);
        if let Some(target) = several.iter().map(|own| own.target()).find(lacks) {
            return Err(Failure::usage(format!(
                "{} has no target `{target}`: compare models of all targets of the first, or fit the targets apart",
                path.display()
            )));
        }
    }
    let (mut texts, mut each, mut sections) = (Vec::new(), Vec::new(), Vec::new());
    let (mut planned, mut data) = (0, String::new());
    for (place, own) in several.iter().enumerate() {
        let target = own.target();
        remarks.say(format!("target {target} ({} of {})", place + 1, several.len()));
        let mut findings = scoring::find(*own, a, question, remarks)?;
        planned = planned.max(findings.planned_bytes);
        data.clone_from(&findings.data.name);
        if cli.json {
            let Value::Object(mut found) = posterior::data::to_shown_value(&json::Output::of(&findings)?)?
            else {
                continue;
            };
            found.insert("target".into(), target.clone().into());
            each.push(found);
        } else {
            texts.push(format!("Target {target}\n{}", text::findings(&findings)));
        }
        if a.report.is_some() {
            findings.data.name = format!("{}, target {target}", findings.data.name);
            sections.extend(report::sections(*own, own.portrait()?, &findings)?);
        }
    }
    if let Some(path) = &a.report {
        let title = format!("{} on {data}", model.portrait()?.title);
        report::write(path, &Report::new("How sure, and how right?", title, sections))?;
    }
    if cli.json {
        return print_json(&json!({
            "targets": each,
            "planned_memory_bytes": planned,
            "peak_memory_bytes": peak_memory_bytes(),
            "seconds": started.elapsed().as_secs_f64(),
            "report": a.report,
        }));
    }
    print(texts.join("\n\n"))?;
    match &a.report {
        Some(path) if !cli.quiet => print(format!("\nreport written to {}", path.display())),
        _ => Ok(()),
    }
}
