//! Every fold left out in turn and scored, then a model of all rows.

use super::{Fits, summary};
use crate::args::SplitArgs;
use crate::output::{Failure, Remarks, number, table};
use posterior::FitRequest;
use posterior::data::{Table, json};
use posterior::options::Validation;
use serde_json::{Map, Value};

/// Scores of models of a target that did not see the fold that they are of.
#[derive(Default)]
pub(super) struct FoldScores(Vec<(i64, Value)>);

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

/// Fits as many times as there are folds, each without one, and then to all rows. A time budget is that of all of them, in equal parts.
pub(super) fn fit_and_score(
    split: &SplitArgs,
    (table, memory, remarks): (&Table, u64, Remarks),
    budget: Option<f64>,
    mut fit: impl FnMut(&SplitArgs, Option<i64>, Option<f64>) -> Result<Fits, Failure>,
) -> Result<(Fits, Vec<FoldScores>), Failure> {
    let folds = split.all_folds(table)?;
    let each = budget.map(|seconds| seconds / (folds.len() + 1) as f64);
    let mut scores: Vec<FoldScores> = Vec::new();
    for (place, fold) in folds.iter().enumerate() {
        remarks.say(format!("fold {fold} ({} of {}) is left out", place + 1, folds.len()));
        let Fits { models, left_out, .. } = fit(&split.of_fold(*fold), Some(*fold), each)?;
        scores.resize_with(models.len(), FoldScores::default);
        for ((own, model), rows) in scores.iter_mut().zip(&models).zip(left_out) {
            own.0.push((*fold, rows.score(model, memory, remarks).json()?));
        }
    }
    remarks.say("all rows");
    let fits = fit(&SplitArgs::default(), None, each)?;
    scores.resize_with(fits.models.len(), FoldScores::default);
    Ok((fits, scores))
}

/// The request of a fold: it has a checkpoint of its own, and its training rows may be few or have equal targets. Without a fold, the request of all rows.
pub(super) fn for_fold(request: &FitRequest, fold: Option<i64>) -> FitRequest {
    let Some(fold) = fold else { return request.clone() };
    let mut own =
        FitRequest { validation: Validation { of_fold: true, ..request.validation }, ..request.clone() };
    if let Some(place) = own.method.large_mut().and_then(|large| large.checkpoint.as_mut()) {
        place.as_mut_os_string().push(format!(".fold{fold}"));
    }
    own
}

impl FoldScores {
    /// The numbers of each fold that has scores.
    fn numbers(&self) -> Vec<(i64, &Map<String, Value>)> {
        let numbers = self.0.iter().filter_map(|(fold, scores)| Some((*fold, scores.as_object()?)));
        numbers.filter(|(_, scores)| !scores.contains_key("failed")).collect()
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let scored = self.numbers();
        let failed = self.0.iter().filter_map(|(fold, scores)| {
            Some(format!("fold {fold} has no score: {}", scores["failed"].as_str()?))
        });
        let failed = failed.collect::<Vec<_>>().join("\n");
        if scored.is_empty() {
            return failed;
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
        let (mean, error) = summary::of(scored.iter().map(|(_, scores)| *scores));
        for (name, values) in [("mean", &mean), ("standard error", &error)] {
            let own = shown.iter().map(|(key, _)| cell(values, key));
            lines.push([name.to_string(), String::new()].into_iter().chain(own).collect());
        }
        let lines = table(&lines);
        let text = format!(
            "Scores of each fold by a model that did not see it; the model below is of all rows\n{lines}"
        );
        if failed.is_empty() { text } else { format!("{text}\n{failed}") }
    }

    /// For programs: each fold with the keys of `evaluate`, and means with standard errors over folds.
    pub(super) fn json(&self) -> Value {
        let each = self.0.iter().map(|(fold, scores)| {
            let mut own = scores.clone();
            own["fold"] = json!(fold);
            own
        });
        let scored = self.numbers();
        let (mean, error) = summary::of(scored.iter().map(|(_, scores)| *scores));
        json!({
            "each": each.collect::<Vec<_>>(),
            "scored": scored.len(),
            "failed": self.0.len() - scored.len(),
            "mean": mean,
            "standard_error": error,
        })
    }
}
