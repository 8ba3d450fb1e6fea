//! Every fold left out in turn and scored, then a model of all rows.

use super::left_out::LeftOutScores;
use super::{fitted, parted, rows_of, summary};
use crate::args::FitArgs;
use crate::output::{Failure, Remarks, number, table};
use posterior::data::json;
use posterior::data::{Split, Table};
use posterior::{AnyModel, ChosenLikelihood, FitRequest};
use serde_json::{Map, Value};

/// Scores of models that did not see the fold that they are of.
pub(super) struct FoldScores(Vec<(i64, LeftOutScores)>);

/// A fold with its scores by name.
type Named = (i64, Map<String, Value>);

/// Scores that people are shown, where there are such.
const SHOWN: [(&str, &str); 8] = [
    ("rmse", "RMSE"),
    ("mae", "MAE"),
    ("crps", "CRPS"),
    ("nll", "NLL"),
    ("coverage_95", "inside the 95 % interval"),
    ("accuracy", "accuracy"),
    ("ece", "ECE"),
    ("auc", "AUC"),
];

/// Fits as many models as there are folds, and one of all rows. A time budget is that of all of them, in equal parts.
pub(super) fn fit_and_score(
    arguments: &FitArgs,
    request: &FitRequest,
    table: &Table,
    looks: &ChosenLikelihood,
    remarks: Remarks,
) -> Result<(AnyModel, FoldScores), Failure> {
    let folds = arguments.split.all_folds(table)?;
    let parts = folds.len() + 1;
    let time_budget = request.time_budget.map(|seconds| seconds / parts as f64);
    let each = FitRequest { time_budget, ..request.clone() };
    let mut scores = Vec::with_capacity(folds.len());
    for (place, fold) in folds.iter().enumerate() {
        remarks.say(format!("fold {fold} ({} of {}) is left out", place + 1, folds.len()));
        let own = for_fold(&each, *fold);
        let held_out = arguments.split.held_out_fold(Some(*fold))?;
        let (rows, left_out) = parted((table, looks), &own, &held_out, remarks)?;
        let model = fitted(rows, &own, remarks, arguments)?;
        scores.push((*fold, left_out.score(model.model(), request.memory, remarks)));
    }
    remarks.say("all rows");
    let rows = rows_of(table, &Split::all(table.rows()), &each, looks, remarks)?;
    Ok((fitted(rows, &each, remarks, arguments)?, FoldScores(scores)))
}

/// The request of one fold: it has a checkpoint of its own, and its training rows may be few or have equal targets.
pub(super) fn for_fold(request: &FitRequest, fold: i64) -> FitRequest {
    let mut own = FitRequest { of_fold: true, ..request.clone() };
    if let Some(place) = own.method.large_mut().and_then(|large| large.checkpoint.as_mut()) {
        place.as_mut_os_string().push(format!(".fold{fold}"));
    }
    own
}

impl FoldScores {
    /// Of each fold, in order.
    pub(super) fn of(scores: Vec<(i64, LeftOutScores)>) -> Self {
        Self(scores)
    }

    /// The numbers of each fold that has scores.
    fn numbers(&self) -> Result<Vec<Named>, Failure> {
        let mut out = Vec::new();
        for (fold, scores) in &self.0 {
            if let Value::Object(scores) = scores.json()?
                && !scores.contains_key("failed")
            {
                out.push((*fold, scores));
            }
        }
        Ok(out)
    }

    /// For people.
    pub(super) fn text(&self) -> Result<String, Failure> {
        let scored = self.numbers()?;
        let mut failed = Vec::new();
        for (fold, scores) in &self.0 {
            if let Some(why) = scores.json()?["failed"].as_str() {
                failed.push(format!("fold {fold} has no score: {why}"));
            }
        }
        let failed = failed.join("\n");
        if scored.is_empty() {
            return Ok(failed);
        }
        let there =
            |key: &str| scored.iter().all(|(_, scores)| scores.get(key).is_some_and(Value::is_number));
        let shown: Vec<_> = SHOWN.into_iter().filter(|(key, _)| there(key)).collect();
        let head = ["fold", "rows"].into_iter().chain(shown.iter().map(|(_, name)| *name));
        let mut lines = vec![head.map(String::from).collect::<Vec<_>>()];
        let cell = |scores: &Map<String, Value>, key: &str| {
            scores.get(key).and_then(Value::as_f64).map_or_else(|| "-".to_string(), number)
        };
        for (fold, scores) in &scored {
            let own = shown.iter().map(|(key, _)| cell(scores, key));
            let rows = scores.get("n").map_or_else(|| "-".to_string(), ToString::to_string);
            lines.push([fold.to_string(), rows].into_iter().chain(own).collect());
        }
        let (mean, error) = summary::of(scored.iter().map(|(_, scores)| scores));
        for (name, values) in [("mean", &mean), ("standard error", &error)] {
            let own = shown.iter().map(|(key, _)| cell(values, key));
            lines.push([name.to_string(), String::new()].into_iter().chain(own).collect());
        }
        let lines = table(&lines);
        let text = format!(
            "Scores of each fold by a model that did not see it; the model below is of all rows\n{lines}"
        );
        Ok(if failed.is_empty() { text } else { format!("{text}\n{failed}") })
    }

    /// For programs: each fold with the keys of `evaluate`, and means with standard errors over folds.
    pub(super) fn json(&self) -> Result<Value, Failure> {
        let mut each = Vec::new();
        for (fold, scores) in &self.0 {
            let mut own = scores.json()?;
            own["fold"] = json!(fold);
            each.push(own);
        }
        let scored = self.numbers()?;
        let (mean, error) = summary::of(scored.iter().map(|(_, scores)| scores));
        let failed = self.0.len() - scored.len();
        Ok(json!({
            "each": each,
            "scored": scored.len(),
            "failed": failed,
            "mean": mean,
            "standard_error": error,
        }))
    }
}
