//! Scores of the rows that a fit left out, right after it.

use crate::commands::evaluate::json::scores;
use crate::commands::evaluate::scoring::{Findings, notes_of};
use crate::output::{Failure, Remarks};
use posterior::data::Table;
use posterior::models::{ModelData, Question};
use posterior::{Model, ModelError};
use serde_json::Value;

/// Rows that had no part in a fit, in memory, with their numbers in the table.
pub(super) struct LeftOut(Option<(Table, Vec<usize>)>);

/// What they say of it.
pub(super) struct LeftOutScores(Result<Option<Findings>, String>);

impl LeftOut {
    /// The given rows of a table, which need not stay.
    pub(super) fn of(table: &Table, rows: &[usize]) -> Self {
        Self((!rows.is_empty()).then(|| (table.select(rows), rows.to_vec())))
    }

    /// None that are in memory.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Scores them, within so many bytes. What is wrong with them (a category that training had not, say) is no reason to lose a model: it is said, and there are no scores.
    pub(super) fn score(self, model: &Model, memory: u64, remarks: Remarks) -> LeftOutScores {
        let scored = |table: Table| -> Result<Findings, ModelError> {
            let mut data = ModelData::of_table(table)?;
            let question = Question { memory, ..Question::default() };
            model.plan(&data, &question, 1)?.check(memory)?;
            let evaluation = model.evaluate(&data, &question)?;
            data.notes = notes_of(&evaluation, model);
            remarks.notes(data.notes.iter().map(|note| format!("of the rows that were left out, {note}")));
            Ok(Findings::held_out(data, "model", evaluation, None))
        };
        let of_table = |error: ModelError, rows: &[usize]| match error {
            ModelError::Data(error) => ModelError::Data(error.in_selection(rows)),
            other => other,
        };
        let found = self.0.map(|(table, rows)| scored(table).map_err(|error| of_table(error, &rows)));
        let found = found.transpose();
        LeftOutScores(found.map_err(|error| {
            let why = error.to_string();
            remarks.warnings([format!("the rows that were left out have no scores: {why}")]);
            why
        }))
    }
}

impl LeftOutScores {
    /// For people.
    pub(super) fn text(&self) -> Option<String> {
        let findings = self.0.as_ref().ok()?.as_ref()?;
        Some(crate::commands::evaluate::text::findings(findings))
    }

    /// For programs: the keys of `evaluate` for scores and for what was left out; `failed` with the reason; null without such rows.
    pub(super) fn json(&self) -> Result<Value, Failure> {
        Ok(match &self.0 {
            Ok(Some(findings)) => {
                let (evaluation, mut out) = (findings.evaluation(), scores(findings.evaluation())?);
                let found = &evaluation.compared.model.data;
                for (name, count) in [
                    ("rows_left_out", found.dropped_rows),
                    ("rows_without_target", found.rows_without_target),
                    ("filled_cells", found.filled_cells),
                    ("unseen_categories", found.unseen_categories),
                ] {
                    out.insert(name.into(), count.into());
                }
                Value::Object(out)
            }
            Ok(None) => Value::Null,
            Err(why) => posterior::data::json!({ "failed": why }),
        })
    }
}
