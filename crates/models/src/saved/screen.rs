//! **The short form of a file**, which a fit prints: what was fitted and why, how good it is beside a baseline, and the notes that matter most.

use super::{RunRecord, Saved};
use crate::describe::{FEW_STEPS, NO_BETTER, Standing, grouped};
use crate::text::number;
use crate::{Fact, Facts, Model};
use posterior_notes::fixes::INSPECT;
use posterior_report::{Note, Severity};
use serde_json::{Map, Value};

/// Lines of the short form at most. The file's place and remarks on the way have the rest of the 24 lines of a terminal.
const LINES: usize = 19;
/// Notes of the short form at most.
const NOTES: usize = 3;
/// Scores of test rows, with what they are called.
const SCORES: [(&str, &str); 5] = [
    ("rmse", "RMSE"),
    ("accuracy", "accuracy"),
    ("nll", "NLL"),
    ("coverage_95", "share inside 95 % intervals"),
    ("auc", "AUC"),
];

impl Saved {
    /// The short form, in at most 19 lines; `file` is where the models are.
    ///
    /// What is worse than a baseline, has not converged or was read otherwise than it is written is never left out for want of room.
    pub fn screen(&self, file: &str) -> String {
        let standings: Vec<Standing> =
            self.models.iter().enumerate().map(|(place, model)| self.standing(place, model)).collect();
        let mut data: Vec<&String> = self.run.iter().flat_map(|run| &run.read).collect();
        for sentence in standings.iter().flat_map(|own| &own.data) {
            if !data.contains(&sentence) {
                data.push(sentence);
            }
        }
        let named = self.models.iter().zip(&standings);
        let mut last = match &standings[..] {
            [own] => lines_of(&own.alerts),
            _ => lines_of(&grouped(named.map(|(model, own)| (model.target(), &own.alerts)))),
        };
        if !data.is_empty() {
            let sentences: Vec<&str> = data.iter().map(|own| own.as_str()).collect();
            last.push(format!("data: {}", sentences.join("; ")));
        }
        let notes = self.listed_notes(&data, file);
        if !notes.is_empty() {
            last.push(String::new());
            last.extend(notes);
        }
        let room = LINES.saturating_sub(last.len());
        let mut lines = match self.only() {
            Some(model) => lines_of(&model.facts().headlines()),
            None => lines_of(&self.facts().headlines()),
        };
        match (&standings[..], self.only()) {
            ([own], Some(_)) => {
                let scores = lines_of(&own.scores);
                lines.truncate(room.saturating_sub(scores.len()));
                lines.extend(scores);
            }
            _ => {
                let most = room.saturating_sub(lines.len());
                let shown = if standings.len() > most { most.saturating_sub(1) } else { most };
                let each = self.models.iter().zip(&standings).take(shown);
                lines.extend(
                    each.map(|(model, own)| {
                        format!("{}: {}", model.target(), lines_of(&own.scores).join("; "))
                    }),
                );
                if let Some(more @ 1..) = standings.len().checked_sub(shown) {
                    lines.push(format!("{more} more targets: {INSPECT:#} {file}"));
                }
            }
        }
        lines.extend(last);
        lines.join("\n")
    }

    /// How good a model is, on test rows as well where the fit left some out.
    fn standing(&self, place: usize, model: &Model) -> Standing {
        let Standing { mut scores, mut alerts, data } = Standing::of(model);
        if let Some((own, worse)) = self.run.as_ref().and_then(|run| scores_of(run, place)) {
            // A fit that learns from all other rows has no score beside.
            let none = scores.clone().into_iter().any(|fact| fact.label == "score");
            scores = if none { own } else { scores.with(own) };
            alerts = alerts.with(worse);
        }
        Standing { scores, alerts, data }
    }

    /// The notes that matter most, without those that are said as facts, and how many more there are.
    fn listed_notes(&self, facts: &[&String], file: &str) -> Vec<String> {
        let several = self.only().is_none();
        let mut all: Vec<(Severity, String)> = Vec::new();
        for model in &self.models {
            let own = model.notes();
            // That a search ended on its way stands among the alerts.
            let others = own.iter().filter(|note| note.code != FEW_STEPS);
            for (severity, text) in others.map(|note: &Note| (note.severity, note.text())) {
                if facts.contains(&&text) {
                    continue;
                }
                let text = if several { format!("{}: {text}", model.target()) } else { text };
                if !all.iter().any(|(_, known)| *known == text) {
                    all.push((severity, text));
                }
            }
        }
        all.sort_by_key(|(severity, _)| *severity != Severity::Warning);
        let more = all.len().saturating_sub(NOTES);
        let shown = all.iter().take(NOTES).map(|(_, text)| format!("note: {}", text.replace('\n', " ")));
        let more = (more > 0).then(|| {
            let notes = if more == 1 { "note" } else { "notes" };
            format!("{more} more {notes}: {INSPECT:#} {file}")
        });
        shown.chain(more).collect()
    }
}

/// A line for each fact.
fn lines_of(facts: &Facts) -> Vec<String> {
    facts.text().lines().map(String::from).collect()
}

/// Scores of test rows or of folds beside those of the baseline, and whether they are worse.
fn scores_of(run: &RunRecord, place: usize) -> Option<(Facts, Option<Fact>)> {
    if let Some(folds) = run.folds.get(place).and_then(Value::as_object) {
        let each = folds.get("each")?.as_array()?;
        let scored: Vec<&Map<String, Value>> =
            each.iter().filter_map(Value::as_object).filter(|own| own.contains_key("baseline")).collect();
        let baselines: Vec<&Map<String, Value>> =
            scored.iter().filter_map(|own| own.get("baseline")?.as_object()).collect();
        let of = format!("{} of {}, means", scored.len(), each.len());
        return Some(beside("folds", &of, &mean(&scored), &mean(&baselines)));
    }
    let own = run.left_out.get(place)?.as_object()?;
    if let Some(why) = own.get("failed").and_then(Value::as_str) {
        return Some((Facts::new().headline("test rows", format!("no scores: {why}")), None));
    }
    let rows = own.get("n").and_then(Value::as_u64).unwrap_or_default().to_string();
    let baseline = own.get("baseline")?.as_object()?;
    Some(beside("test rows", &rows, &mean(&[own]), &mean(&[baseline])))
}

/// Means of the scores that all have.
fn mean(all: &[&Map<String, Value>]) -> Vec<(&'static str, f64)> {
    let of = |(key, name): (&str, &'static str)| {
        let values: Option<Vec<f64>> = all.iter().map(|own| own.get(key)?.as_f64()).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some((name, values.iter().sum::<f64>() / values.len() as f64))
    };
    SCORES.into_iter().filter_map(of).collect()
}

/// Scores of rows and of a baseline on them, and whether they are worse.
fn beside(label: &str, rows: &str, own: &[(&str, f64)], baseline: &[(&str, f64)]) -> (Facts, Option<Fact>) {
    let said = |scores: &[(&str, f64)]| {
        scores.iter().map(|(name, value)| format!("{name} {}", number(*value))).collect::<Vec<_>>().join(", ")
    };
    let facts = Facts::new()
        .headline(label, format!("{rows}: {}", said(own)))
        .headline(format!("baseline on these {label}"), said(baseline));
    let of = |scores: &[(&str, f64)], name: &str| {
        scores.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    };
    let worse: Vec<String> = ["RMSE", "NLL"]
        .into_iter()
        .filter_map(|name| {
            let (own, other) = of(own, name).zip(of(baseline, name))?;
            (own >= other).then(|| format!("{name} {} instead of {}", number(own), number(other)))
        })
        .collect();
    let worse = (!worse.is_empty())
        .then(|| Fact::new(NO_BETTER, format!("{} on {label}", worse.join(", "))).headline());
    (facts, worse)
}
