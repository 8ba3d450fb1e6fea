//! Findings for programs: the same keys for every family.

use super::scoring::{Findings, Scored};
use crate::output::Failure;
use posterior::data::Departure;
use posterior::data::json;
use posterior::metrics::{Average, Funnel, SetScores};
use posterior::report::{ScoredRows, ShiftCurves};
use posterior::{Evaluation, IntervalScores, JointRow, Predicted, PredictedKind, Scores, VarianceSolves};
use serde::Serialize;
use serde_json::{Map, Value};

/// Classes beyond this have no matrix in the output: it grows with their square.
const MOST_CONFUSED: usize = 200;

/// What programs are told.
#[derive(Serialize)]
pub(super) struct Output<'a> {
    /// Scores of the model, and those of the baseline.
    #[serde(flatten)]
    scores: Map<String, Value>,
    kind: PredictedKind,
    data: &'a str,
    /// What the rows of these scores are to the model: held-out, training or unknown.
    scored_rows: ScoredRows,
    /// Rows given that the model was trained on, where its file says so.
    rows_trained_on: Option<usize>,
    models: Vec<Value>,
    /// Scores of rows that the model has learned from, where others are scored above.
    #[serde(skip_serializing_if = "Option::is_none")]
    training_rows: Option<Map<String, Value>>,
    nll_difference: Option<Average>,
    /// Coverage and mean size of the model's sets of classes at some levels; none where it has none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    sets: &'a [SetScores],
    /// Coverage and mean width of its intervals of counts or of numbers with outliers; none where no rows tell them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    intervals: &'a [IntervalScores],
    /// Whether errors grow with the prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    funnel: Option<Funnel>,
    /// Names of the classes, and counts, a row for each true class, a column for each predicted one.
    #[serde(skip_serializing_if = "Option::is_none")]
    confusion: Option<Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    shifts: &'a [ShiftCurves],
    out_of_distribution: Option<Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    joint: &'a [JointRow],
    /// Rows that have no score, those without a target among them: of the rows scored above, by a network of all rows of the table.
    rows_left_out: usize,
    rows_without_target: usize,
    filled_cells: usize,
    /// Cells of categories that training had not, where they count as none of those that it had.
    unseen_categories: usize,
    /// Of all rows, those of the training included, as are the solves.
    clipped_variances: usize,
    /// How exact variances are, where they were solved for.
    #[serde(skip_serializing_if = "Option::is_none")]
    variance_solves: Option<VarianceSolves>,
    /// Columns that are unlike those of training; none where the model does not say what those were.
    inputs_unlike_training: Option<&'a [Departure]>,
    notes: &'a [String],
}

impl<'a> Output<'a> {
    pub(super) fn of(findings: &'a Findings) -> Result<Self, Failure> {
        let first = findings.evaluation();
        let compared = &first.compared;
        let mut found = findings.data.found.clone();
        found.count(&compared.model.data);
        let model =
            |s: &Scored| json!({ "name": s.name, "seconds": s.seconds, "scores": s.evaluation.scores });
        let training = |e: &Evaluation| -> Result<Map<String, Value>, Failure> {
            let mut scores = scores(e)?;
            scores.insert("scores".into(), posterior::data::to_shown_value(&e.scores)?);
            Ok(scores)
        };
        Ok(Self {
            scores: scores(first)?,
            kind: match compared.model.predicted {
                Predicted::Classes(_) => PredictedKind::Classes,
                Predicted::Events(_) => PredictedKind::Events,
                Predicted::Moments { .. } => PredictedKind::Values,
            },
            data: &findings.data.name,
            scored_rows: findings.rows,
            rows_trained_on: match (findings.rows, &findings.training) {
                (ScoredRows::Unknown, _) => None,
                (ScoredRows::Training, _) => Some(first.len()),
                (ScoredRows::HeldOut, rows) => Some(rows.as_ref().map_or(0, Evaluation::len)),
            },
            models: findings.scored.iter().map(model).collect(),
            training_rows: findings.training.as_ref().map(training).transpose()?,
            nll_difference: first.nll_difference,
            sets: &first.sets,
            intervals: &first.intervals,
            funnel: first.funnel,
            confusion: super::text::confusion_counts(first).filter(|(count, _)| *count <= MOST_CONFUSED).map(
                |(count, counts)| {
                    let rows: Vec<&[usize]> = counts.chunks(count).collect();
                    let names: Vec<String> = (0..count).map(|k| first.class_name(k)).collect();
                    json!({ "classes": names, "counts": rows })
                },
            ),
            shifts: &findings.shifts,
            out_of_distribution: findings.strange.as_ref().map(|s| {
                json!({ "data": s.name, "n": s.compared.model.len(), "model": s.model_auc, "plain": s.baseline_auc })
            }),
            joint: &findings.joint,
            rows_left_out: found.dropped_rows,
            rows_without_target: found.rows_without_target,
            filled_cells: found.filled_cells,
            unseen_categories: found.unseen_categories,
            clipped_variances: std::iter::once(first)
                .chain(&findings.training)
                .map(|e| e.compared.model.clipped)
                .sum(),
            variance_solves: findings.solves,
            inputs_unlike_training: findings.unlike.as_deref(),
            notes: &findings.data.notes,
        })
    }
}

/// Scores without what is special to a likelihood.
pub(crate) fn flat(scores: &Scores) -> serde_json::Result<Value> {
    match scores {
        Scores::Classes(scores) => posterior::data::to_shown_value(scores),
        Scores::Events(scores) => posterior::data::to_shown_value(scores),
        Scores::Values { scores, .. } => posterior::data::to_shown_value(scores),
    }
}

/// Scores of a set of rows: the model's as they are, `baseline` beside them, and `plain`, the baseline's with what is special to the likelihood.
pub(crate) fn scores(evaluation: &Evaluation) -> Result<Map<String, Value>, Failure> {
    let Value::Object(mut out) = flat(&evaluation.scores)? else { return Ok(Map::new()) };
    out.insert("n".into(), evaluation.len().into());
    out.insert("baseline".into(), flat(&evaluation.baseline)?);
    out.insert("plain".into(), posterior::data::to_shown_value(&evaluation.baseline)?);
    Ok(out)
}
