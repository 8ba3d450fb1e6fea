//! Findings for programs: the same keys for every family.

use super::scoring::{Findings, Scored};
use crate::output::Failure;
use posterior::data::json;
use posterior::models::{Evaluation, Predicted, PredictedKind, Scores};
use posterior::report::ScoredRows;
use serde_json::{Map, Value};

/// Classes beyond this have no matrix in the output: it grows with their square.
const MOST_CONFUSED: usize = 200;

/// What programs are told: scores of the model, and those of the baseline, with all that was found out beside them. What there is not of lists and of some others has no key.
pub(super) fn found(findings: &Findings) -> Result<Value, Failure> {
    let first = findings.evaluation();
    let compared = &first.compared;
    let mut counts = findings.data.found.clone();
    counts.count(&compared.model.data);
    let model = |s: &Scored| json!({ "name": s.name, "seconds": s.seconds, "scores": s.evaluation.scores });
    let unseen = |e: &Evaluation| -> Result<Map<String, Value>, Failure> {
        let mut scores = scores(e)?;
        scores.insert("scores".into(), posterior::data::to_shown_value(&e.scores)?);
        Ok(scores)
    };
    let kind = match compared.model.predicted {
        Predicted::Classes(_) => PredictedKind::Classes,
        Predicted::Events(_) => PredictedKind::Events,
        Predicted::Moments { .. } => PredictedKind::Values,
    };
    let rows_trained_on = match findings.rows {
        ScoredRows::HeldOut => findings.seen.map(|_| 0),
        _ => findings.seen,
    };
    let confusion = super::text::confusion_counts(first).filter(|(count, _)| *count <= MOST_CONFUSED);
    let confusion = confusion.map(|(count, counts)| {
        let rows: Vec<&[usize]> = counts.chunks(count).collect();
        let names: Vec<String> = (0..count).map(|k| first.class_name(k)).collect();
        json!({ "classes": names, "counts": rows })
    });
    let strange = findings.strange.as_ref().map(|s| {
        json!({ "data": s.name, "n": s.compared.model.len(), "model": s.model_auc, "plain": s.baseline_auc })
    });
    let mut out = scores(first)?;
    for (key, value) in [
        ("kind", json!(kind)),
        ("data", json!(findings.data.name)),
        // What the rows of these scores are to the model: held-out, training, partly-training or unknown.
        ("scored_rows", json!(findings.rows)),
        ("rows_trained_on", json!(rows_trained_on)),
        // Rows with the same numbers as rows of the training, by chance or because it had them; null where the file does not say.
        ("rows_equal_to_training_rows", json!(findings.seen)),
        ("models", findings.scored.iter().map(model).collect()),
        ("nll_difference", json!(first.nll_difference)),
        ("out_of_distribution", json!(strange)),
        // Rows that have no score, those without a target among them: of the rows scored above, by a network of all rows of the table.
        ("rows_left_out", json!(counts.dropped_rows)),
        ("rows_without_target", json!(counts.rows_without_target)),
        ("filled_cells", json!(counts.filled_cells)),
        // Cells of categories that training had not, where they count as none of those that it had.
        ("unseen_categories", json!(counts.unseen_categories)),
        ("clipped_variances", json!(compared.model.clipped)),
        // Columns that are unlike those of training; none where the model does not say what those were.
        ("inputs_unlike_training", json!(findings.unlike)),
        ("notes", json!(findings.data.notes)),
    ] {
        out.insert(key.into(), value);
    }
    for (key, value) in [
        // Scores of the rows that the training had not, where it had some of those above.
        ("unseen_rows", json!(findings.unseen.as_ref().map(unseen).transpose()?)),
        // Coverage and mean size of the model's sets of classes at some levels.
        ("sets", json!(first.sets)),
        // Coverage and mean width of its intervals of counts or of numbers with outliers.
        ("intervals", json!(first.intervals)),
        // Whether errors grow with the prediction.
        ("funnel", json!(first.funnel)),
        // Names of the classes, and counts, a row for each true class, a column for each predicted one.
        ("confusion", json!(confusion)),
        ("shifts", json!(findings.shifts)),
        ("joint", json!(findings.joint)),
        // How exact variances are, where they were solved for.
        ("variance_solves", json!(findings.solves)),
    ] {
        if !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()) {
            out.insert(key.into(), value);
        }
    }
    Ok(Value::Object(out))
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
