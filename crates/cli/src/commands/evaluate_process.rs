//! Scores of processes, and their sections of a report.

use super::evaluate::Evaluated;
use super::predict::solves_text;
use super::remarks;
use super::scores::{ScoredRowsText, score_table};
use crate::args::{Cli, EvaluateArgs};
use crate::output::Failure;
use crate::settings::HeldOut;
use posterior::data::{Departure, Table};
use posterior::metrics::RegressionScores;
use posterior::report::{Baseline, Note, PosteriorPanel, RegressionReport, ScoredRows};
use posterior::{
    Model as _, ModelData, PredictOptions, Predictions, ProcessModel, Question, VarianceMethod,
    VarianceSolves,
};
use serde::Serialize;

/// What programs are told.
#[derive(Serialize)]
struct Output {
    #[serde(flatten)]
    scores: RegressionScores,
    /// The same for a constant prediction: the training mean and deviation.
    baseline: RegressionScores,
    /// What the rows of these scores are to the model: held-out, training or unknown.
    scored_rows: ScoredRows,
    /// Rows given that the model was trained on, where its file says so.
    rows_trained_on: Option<usize>,
    /// Their scores, apart, where others are scored above.
    #[serde(skip_serializing_if = "Option::is_none")]
    training_rows: Option<Scored>,
    clipped_variances: usize,
    /// How exact variances are, where they were solved for.
    #[serde(skip_serializing_if = "Option::is_none")]
    variance_solves: Option<VarianceSolves>,
    /// Columns that are unlike those of training; none where the model does not say what those were.
    inputs_unlike_training: Option<Vec<Departure>>,
}

/// Scores of a set of rows.
#[derive(Serialize)]
struct Scored {
    #[serde(flatten)]
    scores: RegressionScores,
    baseline: RegressionScores,
}

/// A model's predictions of rows whose truth is known.
pub(crate) struct Evaluation {
    pub predictions: Predictions,
    pub scores: RegressionScores,
    pub baseline: RegressionScores,
}

/// What is found out about a process.
pub(super) fn evaluated(
    cli: &Cli,
    a: &EvaluateArgs,
    model: &ProcessModel,
    data: &ModelData,
    question: &Question,
) -> Result<Evaluated, Failure> {
    let remarks = remarks(cli);
    data.notes.iter().for_each(|note| remarks.say(format!("note: {note}")));
    let Some((table, _)) = &data.table else { return Err(Failure::new("there is no table".into())) };
    let held_out = HeldOut::new(a.folds.as_ref(), a.fold, a.test_fraction);
    let split = held_out.split(table.rows(), model.header().seed)?;
    let chosen = if split.test.is_empty() { split.train } else { split.test };
    let plan = model.plan_scores(table, chosen.len(), question)?;
    remarks.say(format!("plan: {plan}"));
    let options = PredictOptions { truth: true, variances: question.variances };
    let predictions = model.predict_with(table, Some(&chosen), options)?;
    if let Some(solves) = &predictions.solves {
        remarks.say(solves_text(solves));
    }
    let unlike = model.departures(&predictions.inputs);
    let warnings: Vec<String> = unlike.iter().flatten().map(ToString::to_string).collect();
    warnings.iter().for_each(|warning| remarks.say(format!("warning: {warning}")));
    let sets = apart(model, predictions)?;
    let (mut sections, mut texts) = (Vec::new(), Vec::new());
    for set in &sets {
        let Set { rows, evaluation } = set;
        let (n, remark) = (evaluation.scores.n, rows.remark(evaluation.scores.n));
        if a.report.is_some() {
            let mut section = section(model, evaluation, &format!("{}{}", data.name, set.suffix()), "")?;
            section.rows = *rows;
            section.notes.extend(remark.iter().chain(&warnings).map(Note::warning));
            sections.push(section.into());
        }
        let scores = [("model", &evaluation.scores), ("always the training mean", &evaluation.baseline)];
        texts.push(format!("{}\n{}", rows.heading(n), score_table(&scores)));
        if let Some(remark) = remark {
            remarks.say(format!("note: {remark}"));
        }
    }
    let [first, rest @ ..] = &sets[..] else { return Err(Failure::new("there are no rows".into())) };
    let known = first.rows != ScoredRows::Unknown;
    let training = sets.iter().find(|s| s.rows == ScoredRows::Training);
    let json = serde_json::to_value(Output {
        scores: first.evaluation.scores,
        baseline: first.evaluation.baseline,
        scored_rows: first.rows,
        rows_trained_on: known.then(|| training.map_or(0, |s| s.evaluation.scores.n)),
        training_rows: rest
            .first()
            .map(|s| Scored { scores: s.evaluation.scores, baseline: s.evaluation.baseline }),
        clipped_variances: first.evaluation.predictions.clipped,
        variance_solves: first.evaluation.predictions.solves,
        inputs_unlike_training: unlike,
    })?;
    Ok(Evaluated {
        json,
        text: texts.join("\n\n"),
        title: format!("A Gaussian process on {}", data.name),
        sections,
        planned_memory_bytes: plan.peak_bytes,
    })
}

/// Rows that are scored together.
struct Set {
    rows: ScoredRows,
    evaluation: Evaluation,
}

impl Set {
    /// What stands behind the name of the data in a report.
    fn suffix(&self) -> &'static str {
        match self.rows {
            ScoredRows::Training => ": rows of the training",
            _ => "",
        }
    }
}

/// Scores rows that the model was not trained on, then those that it was trained on; all together where that is not known.
fn apart(model: &ProcessModel, predictions: Predictions) -> Result<Vec<Set>, Failure> {
    let Some(trained_on) = &predictions.trained_on else {
        return Ok(vec![Set { rows: ScoredRows::Unknown, evaluation: scored(model, predictions)? }]);
    };
    let positions =
        |wanted: bool| -> Vec<usize> { (0..trained_on.len()).filter(|&i| trained_on[i] == wanted).collect() };
    let mut sets = Vec::new();
    for (rows, positions) in
        [(ScoredRows::HeldOut, positions(false)), (ScoredRows::Training, positions(true))]
    {
        if !positions.is_empty() {
            sets.push(Set { rows, evaluation: scored(model, predictions.select(&positions))? });
        }
    }
    Ok(sets)
}

/// Scores a model on rows of a table, and a constant prediction beside it.
pub(crate) fn evaluate(
    model: &ProcessModel,
    rows: &Table,
    chosen: &[usize],
    variances: VarianceMethod,
) -> Result<Evaluation, Failure> {
    let options = PredictOptions { truth: true, variances };
    scored(model, model.predict_with(rows, Some(chosen), options)?)
}

/// Scores predictions against the truth that is with them, and a constant prediction beside them.
fn scored(model: &ProcessModel, predictions: Predictions) -> Result<Evaluation, Failure> {
    let standard = &model.header().standardisation;
    let scores = predictions.scores(standard.target_scale)?;
    let constant = Predictions {
        mean: vec![standard.target_mean; predictions.mean.len()],
        deviation: vec![standard.target_scale; predictions.mean.len()],
        ..predictions.clone()
    };
    let baseline = constant.scores(standard.target_scale)?;
    Ok(Evaluation { predictions, scores, baseline })
}

/// The section of a report for one model on one set of rows.
pub(crate) fn section(
    model: &ProcessModel,
    evaluation: &Evaluation,
    dataset: &str,
    text: &str,
) -> Result<RegressionReport, Failure> {
    let header = model.header();
    let predictions = &evaluation.predictions;
    let mut notes = model.notes();
    if predictions.clipped > 0 {
        notes
            .push(Note::warning(format!("{} predicted variances were rounded up to 0", predictions.clipped)));
    }
    Ok(RegressionReport {
        dataset: dataset.into(),
        description: text.into(),
        target: header.schema.target.clone(),
        target_unit: None,
        summary: model.summary(),
        scores: Some(evaluation.scores),
        baseline: Some(Baseline { name: "always the training mean".into(), scores: evaluation.baseline }),
        predictions: Some(posterior::report::Predictions {
            mean: predictions.mean.clone(),
            standard_deviation: predictions.deviation.clone(),
            truth: predictions.truth.clone().unwrap_or_default(),
        }),
        hyperparameters: model.hyperparameters(),
        lengthscales: model.lengthscales(),
        notes,
        rows: ScoredRows::HeldOut,
        posterior: one_dimensional(model, None)?,
    })
}

/// The posterior over a grid, for a model with one numeric feature.
pub(crate) fn one_dimensional(
    model: &ProcessModel,
    truth: Option<fn(f64) -> f64>,
) -> Result<Option<PosteriorPanel>, Failure> {
    /// Points of the grid; joint draws cost the cube of it.
    const GRID: usize = 300;
    /// Draws that are shown, where the model keeps as many.
    const SAMPLES: usize = 6;
    let header = model.header();
    let [posterior::data::Feature::Number { column, .. }] = &header.schema.features[..] else {
        return Ok(None);
    };
    let standard = &header.standardisation;
    let back = |z: f64| standard.feature_means[0] + standard.feature_scales[0] * z;
    let (train_input, train_target): (Vec<f64>, Vec<f64>) = match model.posterior().training() {
        Some((inputs, targets)) => (
            inputs.col(0).iter().map(|z| back(*z)).collect(),
            targets.col(0).iter().map(|z| standard.target_back(*z)).collect(),
        ),
        None => (Vec::new(), Vec::new()),
    };
    // Two standard deviations on either side where the model keeps no rows.
    let ends = |from: f64, pick: fn(f64, f64) -> f64| {
        train_input.iter().copied().reduce(pick).unwrap_or_else(|| back(from))
    };
    let (low, high) = (ends(-2.0, f64::min), ends(2.0, f64::max));
    let margin = 0.08 * (high - low).max(standard.feature_scales[0] * 1e-3);
    // Counts have no margin below zero.
    let counts = !header.kernel.count_columns(&header.schema.feature_names()).is_empty();
    let start = (low - margin).max(if counts { 0.0 } else { f64::NEG_INFINITY });
    let at = |k: usize| start + (high + margin - start) * k as f64 / (GRID - 1) as f64;
    let grid: Vec<f64> = (0..GRID).map(at).collect();
    let table = Table::new("grid", vec![posterior::data::Column::numeric(column, grid.clone())]);
    let predictions = model.predict(&table, None)?;
    let rows: Vec<usize> = (0..GRID).collect();
    let count = model.posterior().stored_samples().map_or(SAMPLES, |kept| kept.min(SAMPLES));
    let samples = model.sample(&table, &rows, count, header.seed, u64::MAX)?;
    Ok(Some(PosteriorPanel {
        input: column.clone(),
        input_unit: None,
        true_function: truth.map(|f| grid.iter().map(|x| f(*x)).collect()).unwrap_or_default(),
        grid,
        mean: predictions.mean,
        latent_standard_deviation: predictions.latent_deviation,
        observed_standard_deviation: predictions.deviation,
        samples,
        train_input,
        train_target,
    }))
}
