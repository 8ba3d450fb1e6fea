//! `posterior evaluate`

use super::predict::solves_text;
use super::scored_rows::ScoredRowsText;
use super::{evaluate_network, load, read, refuse_flags, remarks, single};
use crate::args::{Cli, EvaluateArgs, VariancesArg};
use crate::laplace_settings::memory;
use crate::output::{Failure, check_outputs, number, print, print_json, set_threads, table};
use crate::settings::HeldOut;
use posterior::data::{Departure, OutputKind, Table};
use posterior::metrics::RegressionScores;
use posterior::report::{Baseline, Note, PosteriorPanel, RegressionReport, Report, ScoredRows};
use posterior::{
    AnyModel, Family, Model as _, PredictOptions, Predictions, ProcessModel, Question, VarianceMethod,
    VarianceSolves, peak_memory_bytes,
};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// What `--json` prints.
#[derive(Serialize)]
struct Output<'a> {
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
    planned_memory_bytes: u64,
    peak_memory_bytes: Option<u64>,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'a Path>,
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

pub(crate) fn run(cli: &Cli, arguments: &EvaluateArgs) -> Result<(), Failure> {
    let started = Instant::now();
    set_threads(arguments.threads)?;
    let files = [&arguments.data, &arguments.labels, &arguments.compare, &arguments.ood];
    let inputs = files.into_iter().flatten().chain(&arguments.folds).chain([&arguments.model]);
    check_outputs(&[(arguments.report.as_deref(), OutputKind::Report)], inputs, arguments.force)?;
    let model = load(&arguments.model)?;
    let a = arguments;
    refuse_flags(
        model.model().family(),
        &[
            (!a.labels.is_empty(), "labels", Family::Network),
            (!a.compare.is_empty(), "compare", Family::Network),
            (!a.ood.is_empty(), "ood", Family::Network),
            (!a.rotate.is_empty(), "rotate", Family::Network),
            (!a.corrupt.is_empty(), "corrupt", Family::Network),
            (a.joint_kappa.is_some(), "joint-kappa", Family::Network),
            (a.predictive.is_some(), "predictive", Family::Network),
            (a.limit.is_some(), "limit", Family::Network),
            (a.variances.is_some(), "variances", Family::Process),
        ],
    )?;
    let model = match model {
        AnyModel::Process(model) => model,
        AnyModel::Laplace(model) => return evaluate_network::run(cli, arguments, &model),
    };
    let data = single(&arguments.data, "")?;
    let limit = memory(arguments.memory)?;
    let rows = read(data, limit, remarks(cli))?;
    let held_out = HeldOut::new(arguments.folds.as_ref(), arguments.fold, arguments.test_fraction);
    let split = held_out.split(rows.rows(), model.header().seed)?;
    let chosen = if split.test.is_empty() { split.train } else { split.test };
    let variances = VariancesArg::method(arguments.variances, arguments.memory);
    let question = Question { variances, memory: limit, timed: true, ..Question::default() };
    let plan = model.plan_scores(&rows, chosen.len(), &question)?;
    remarks(cli).say(format!("plan: {plan}"));
    let options = PredictOptions { truth: true, variances };
    let predictions = model.predict_with(&rows, Some(&chosen), options)?;
    if let Some(solves) = &predictions.solves {
        remarks(cli).say(solves_text(solves));
    }
    let unlike = model.departures(&predictions.inputs);
    let warnings: Vec<String> = unlike.iter().flatten().map(ToString::to_string).collect();
    warnings.iter().for_each(|warning| remarks(cli).say(format!("warning: {warning}")));
    let sets = apart(&model, predictions)?;
    let seconds = started.elapsed().as_secs_f64();
    if let Some(path) = &arguments.report {
        let name = data.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let mut sections = Vec::new();
        for set in &sets {
            let mut section = section(&model, &set.evaluation, &format!("{name}{}", set.suffix()), "")?;
            section.rows = set.rows;
            section.notes.extend(set.rows.remark(set.evaluation.scores.n).map(Note::warning));
            section.notes.extend(warnings.iter().map(Note::warning));
            sections.push(section.into());
        }
        let title = format!("A Gaussian process on {name}");
        write_report(path, &Report::new("How sure, and how right?", title, sections))?;
    }
    if cli.json {
        let [first, rest @ ..] = &sets[..] else { return Err(Failure::new("there are no rows".into())) };
        let known = first.rows != ScoredRows::Unknown;
        let training = sets.iter().find(|s| s.rows == ScoredRows::Training);
        return print_json(&Output {
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
            planned_memory_bytes: plan.peak_bytes,
            peak_memory_bytes: peak_memory_bytes(),
            seconds,
            report: arguments.report.as_deref(),
        });
    }
    for (k, set) in sets.iter().enumerate() {
        let scores =
            [("model", &set.evaluation.scores), ("always the training mean", &set.evaluation.baseline)];
        print(format!(
            "{}{}\n{}",
            if k > 0 { "\n" } else { "" },
            set.rows.heading(set.evaluation.scores.n),
            score_table(&scores)
        ))?;
        if let Some(remark) = set.rows.remark(set.evaluation.scores.n) {
            remarks(cli).say(format!("note: {remark}"));
        }
    }
    match &arguments.report {
        Some(path) if !cli.quiet => print(format!("\nreport written to {}", path.display())),
        _ => Ok(()),
    }
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

/// Scores side by side, in words.
pub(crate) fn score_table(models: &[(&str, &RegressionScores)]) -> String {
    let percent =
        |share: f64| if share.is_finite() { format!("{:.1} %", 100.0 * share) } else { "–".to_string() };
    type Cell = fn(&RegressionScores) -> f64;
    let rows: [(&str, Cell, bool); 8] = [
        ("typical error (RMSE)", |s| s.rmse, false),
        ("mean absolute error", |s| s.mae, false),
        ("share of the variance explained (R²)", |s| s.r2.unwrap_or(f64::NAN), true),
        ("CRPS (error, sureness included)", |s| s.crps, false),
        ("NLL (surprise, in nats)", |s| s.nll, false),
        ("truths inside the 95 % interval", |s| s.coverage_95, true),
        ("mean width of that interval", |s| s.width_95, false),
        ("calibration error (CQM, 0 is perfect)", |s| s.cqm, false),
    ];
    let mut out =
        vec![std::iter::once(String::new()).chain(models.iter().map(|(name, _)| name.to_string())).collect()];
    for (label, value, is_share) in rows {
        let show = |s: &RegressionScores| if is_share { percent(value(s)) } else { number(value(s)) };
        out.push(std::iter::once(label.to_string()).chain(models.iter().map(|(_, s)| show(s))).collect());
    }
    let n = models.first().map_or(0, |(_, s)| s.n);
    format!("{}\n({n} rows, in units of the target)", table(&out))
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

/// Writes a report in one atomic step.
pub(crate) fn write_report(path: &Path, report: &Report) -> Result<(), Failure> {
    use std::io::Write;
    posterior::data::create_atomically(path, |file| file.write_all(report.to_html().as_bytes()))
        .map_err(Failure::from)
}
