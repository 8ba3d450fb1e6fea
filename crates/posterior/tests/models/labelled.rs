//! Models of classes, counts and numbers with outliers: what their tests share.

use posterior::data::Table;
use posterior::models::{ModelData, Observed, Question, Scores, choose_likelihood};
use posterior::optim::Signal;
use posterior::{FitRequest, Model, ModelError};

/// The given rows, as their target looks.
pub(crate) fn observed(table: &Table, rows: &[usize], request: &FitRequest) -> Result<Observed, ModelError> {
    let selection = &request.columns;
    let chosen = choose_likelihood(table, &selection.target, rows, request.output.likelihood, selection)?;
    Observed::from_table(table, rows, request, chosen)
}

/// A fit that nobody interrupts.
pub(crate) fn fit(table: &Table, rows: &[usize], request: &FitRequest) -> Result<Model, ModelError> {
    Model::fit_observed(observed(table, rows, request)?, request, &mut |_, _| Signal::Continue)
}

/// What predictions are asked with.
pub(crate) fn question(truth: bool) -> Question {
    Question { truth, memory: 4 << 30, ..Question::default() }
}

/// NLL, and that of the baseline, on the given rows.
pub(crate) fn scores(model: &Model, table: &Table, rows: &[usize]) -> (f64, f64) {
    let data = ModelData::of_table(table.clone()).unwrap().selected(rows).unwrap();
    let found = model.evaluate(&data, &question(true)).unwrap();
    match (found.scores, found.baseline) {
        (Scores::Classes(own), Scores::Classes(other)) => (own.nll, other.nll),
        (Scores::Values { nll, .. }, Scores::Values { nll: other, .. }) => (nll, other),
        other => panic!("{other:?}"),
    }
}
