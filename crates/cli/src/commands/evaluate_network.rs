//! Scores of networks with error bars beside those of their plain networks.

use super::evaluate::Evaluated;
use super::network_report::{Findings, Scored, Strange, class_section, event_section, value_section};
use super::scores::{ScoredRowsText, score_table, trained_on};
use super::{asked_data, limited, remarks};
use crate::args::{Cli, EvaluateArgs};
use crate::laplace_settings::only;
use crate::output::{Failure, number, table};
use posterior::data::transform::{Corruption, SEVERITIES};
use posterior::laplace::{ClassEvaluation, Evaluation, JointRow, LaplaceModel, OutOfDistribution, Shift};
use posterior::likelihoods::{Integration, OutputLikelihood};
use posterior::report::{ScoredRows, ShiftCurve, ShiftCurves};
use posterior::{AnyModel, Files, Model, ModelData, PredictedInto, Question};
use serde::Serialize;
use std::collections::HashSet;

/// Functions drawn for joint scores where no number is given.
const JOINT_SAMPLES: usize = 100;

/// What is found out about a network with error bars.
pub(super) fn evaluated(
    cli: &Cli,
    a: &EvaluateArgs,
    model: &LaplaceModel,
    (data, files): (ModelData, &Files<'_>),
    question: &Question,
) -> Result<Evaluated, Failure> {
    let remarks = remarks(cli);
    let (limit, choice) = (question.memory, question.integration);
    only(a.samples.is_some(), "samples", a.joint_kappa.is_some(), "--joint-kappa")?;
    let Apart { rows, mut data, positions, training } = apart(model, data)?;
    data.notes.extend(match &training {
        Some(training) => ScoredRows::Training.remark(training.len()),
        None => rows.remark(data.len()),
    });
    data.notes.iter().for_each(|note| remarks.say(format!("note: {note}")));
    let times = 2 * (1 + a.compare.len()) + 2 * usize::from(training.is_some());
    let strange_data = strange_data(a, model, limit)?;
    let mut plan = model.plan_prediction(&data, choice, times, (0, PredictedInto::Columns));
    if let Some(others) = &strange_data {
        plan = plan.then(&model.plan_prediction(others, choice, 2, (0, PredictedInto::Columns)));
    }
    // Each model that is compared reads the data for itself, and what is shifted is a copy.
    let copies = a.compare.len() as u64 + u64::from(!a.rotate.is_empty() || !a.corrupt.is_empty());
    let beside = training.as_ref().map_or(0, ModelData::memory) + copies * data.memory();
    let plan = plan.beside(beside);
    plan.check(limit)?;
    remarks.say(format!("plan: {plan}"));
    let evaluate = |model: &LaplaceModel, data: &ModelData| Ok::<_, Failure>(model.evaluate(data, choice)?);
    let mut scored = vec![Scored {
        name: "model".into(),
        evaluation: evaluate(model, &data)?,
        seconds: Some(model.header().seconds),
    }];
    for path in &a.compare {
        let AnyModel::Laplace(other) = super::load(path)? else {
            return Err(Failure::usage(format!(
                "{} is a Gaussian process: compare models of the same kind",
                path.display()
            )));
        };
        let own = limited(Model::read(&*other, files)?, a.limit)?;
        let own = if positions.is_some() { same_rows(&data, positions.as_deref(), own)? } else { own };
        let seen = other.trained_on(&own).map_or(0, |seen| seen.into_iter().filter(|s| *s).count());
        if seen > 0 {
            data.notes.push(format!("{}: {}", path.display(), trained_on(seen)));
            remarks.say(format!("note: {}: {}", path.display(), trained_on(seen)));
        }
        for note in other.check_inputs(&own, a.allow_other_inputs)? {
            data.notes.push(format!("{}: {note}", path.display()));
            remarks.say(format!("note: {}: {note}", path.display()));
        }
        let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let evaluation = evaluate(&other, &own)?;
        if std::mem::discriminant(&evaluation) != std::mem::discriminant(&scored[0].evaluation) {
            return Err(Failure::usage(format!(
                "{} predicts something else: compare models of the same kind",
                path.display()
            )));
        }
        scored.push(Scored { name, evaluation, seconds: Some(other.header().seconds) });
    }
    let shifts = shifts(a, model, &data, choice)?;
    let strange = match (strange_data, &scored[0].evaluation) {
        (Some(others), Evaluation::Classes(inside)) => Some(strange(model, inside, others, choice)?),
        _ => None,
    };
    let joint = match &a.joint_kappa {
        None => Vec::new(),
        Some(points) => {
            model.joint_scores(&data, &points.0, a.samples.unwrap_or(JOINT_SAMPLES), a.seed, limit)?
        }
    };
    let training = training.map(|rows| evaluate(model, &rows)).transpose()?;
    let findings = Findings { rows, training, scored, shifts, strange, joint };
    let section = match &findings.scored[0].evaluation {
        _ if a.report.is_none() => None,
        Evaluation::Classes(classes) => Some(class_section(model, &data, classes, &findings)?),
        Evaluation::Events(events) => Some(event_section(model, &data, events)),
        Evaluation::Values(values) => Some(value_section(model, &data, rows, values)),
    };
    Ok(Evaluated {
        json: serde_json::to_value(json(&data, &findings))?,
        text: text(&findings),
        title: format!("A network with error bars on {}", data.name),
        sections: section.into_iter().collect(),
        planned_memory_bytes: plan.peak_bytes,
    })
}

/// Of what another model reads, the rows that the first is scored on: by their numbers in the table, which each model may drop other rows of, else by their positions.
fn same_rows(scored: &ModelData, positions: Option<&[usize]>, own: ModelData) -> Result<ModelData, Failure> {
    let wanted: Vec<usize> = match (&scored.table, &own.table) {
        (Some((_, scored)), Some((_, rows))) => {
            let scored: HashSet<usize> = scored.iter().copied().collect();
            (0..rows.len()).filter(|&i| scored.contains(&rows[i])).collect()
        }
        _ => positions.unwrap_or_default().to_vec(),
    };
    own.selected(&wanted).map_err(Failure::from)
}

/// Rows to score, and those that the model has learned from.
struct Apart {
    rows: ScoredRows,
    /// What is scored: rows that the model has not learned from, or all, where it has learned from all.
    data: ModelData,
    /// Which of the rows given these are, where they are not all.
    positions: Option<Vec<usize>>,
    /// The others.
    training: Option<ModelData>,
}

/// Rows that the model has not learned from, apart from those that it has.
fn apart(model: &LaplaceModel, data: ModelData) -> Result<Apart, Failure> {
    let whole = |rows, data| Ok(Apart { rows, data, positions: None, training: None });
    let Some(trained_on) = model.trained_on(&data) else { return whole(ScoredRows::Unknown, data) };
    let positions =
        |wanted: bool| -> Vec<usize> { (0..data.len()).filter(|&i| trained_on[i] == wanted).collect() };
    let (unseen, seen) = (positions(false), positions(true));
    match (unseen.is_empty(), seen.is_empty()) {
        (_, true) => whole(ScoredRows::HeldOut, data),
        (true, false) => whole(ScoredRows::Training, data),
        (false, false) => {
            let training = data.selected(&seen)?;
            let rest = data.selected(&unseen)?;
            let (positions, training) = (Some(unseen), Some(training));
            Ok(Apart { rows: ScoredRows::HeldOut, data: rest, positions, training })
        }
    }
}

/// Scores under rotations and corruptions.
fn shifts(
    a: &EvaluateArgs,
    model: &LaplaceModel,
    data: &ModelData,
    choice: Option<Integration>,
) -> Result<Vec<ShiftCurves>, Failure> {
    let mut out = Vec::new();
    let mut curves = |parameter: String, steps: Vec<(f64, Shift)>| -> Result<(), Failure> {
        let named = |name: &str| ShiftCurve { method: name.into(), ..ShiftCurve::default() };
        let mut methods = [named("model"), named("plain network")];
        for (at, shift) in steps {
            let shifted = data.shifted(shift, a.seed)?;
            let Evaluation::Classes(own) = model.evaluate(&shifted, choice)? else {
                return Err(Failure::usage("--rotate and --corrupt are for classifiers of images".into()));
            };
            for (curve, scores) in methods.iter_mut().zip([&own.scores, &own.plain_scores]) {
                curve.at.push(at);
                curve.nll.push(scores.nll);
                curve.ece.push(scores.ece);
                curve.accuracy.push(scores.accuracy);
                curve.entropy.push(scores.mean_entropy);
            }
        }
        out.push(ShiftCurves { parameter, methods: methods.into(), references: Vec::new() });
        Ok(())
    };
    if !a.rotate.is_empty() {
        curves("rotation (degrees)".into(), a.rotate.iter().map(|&d| (d, Shift::Rotation(d))).collect())?;
    }
    for name in &a.corrupt {
        let kind = Corruption::from_name(name).map_err(|e| Failure::usage(e.to_string()))?;
        let steps = (0..=SEVERITIES).map(|s| (f64::from(s), Shift::Corruption(kind, s))).collect();
        curves(format!("{} (severity)", kind.name()), steps)?;
    }
    Ok(out)
}

/// Inputs of another kind, where some were given.
fn strange_data(a: &EvaluateArgs, model: &LaplaceModel, memory: u64) -> Result<Option<ModelData>, Failure> {
    if a.ood.is_empty() {
        return Ok(None);
    }
    if !matches!(model.likelihood(), OutputLikelihood::Categorical(_)) {
        return Err(Failure::usage("--ood is for classifiers".into()));
    }
    // That these leave the range is what they are for; another kind of numbers is a mistake.
    let files = Files { data: &a.ood, labels: &[], truth: false, memory };
    asked_data(model, &files, a.limit, a.allow_other_inputs).map(Some)
}

/// How well uncertainty tells them from what was scored.
fn strange(
    model: &LaplaceModel,
    inside: &ClassEvaluation,
    data: ModelData,
    choice: Option<Integration>,
) -> Result<Strange, Failure> {
    let own = model.predict(&data, choice)?;
    let plain = model.predict_plain(&data)?;
    let auc = |a, b| OutOfDistribution::of(a, b).map_err(Failure::from);
    let (model_auc, plain_auc) = (auc(&inside.predictions, &own)?, auc(&inside.plain, &plain)?);
    Ok(Strange { name: data.name, model: own, plain, model_auc, plain_auc })
}

/// What programs are told.
#[derive(Serialize)]
struct Output<'a> {
    kind: &'static str,
    data: &'a str,
    n: usize,
    /// What these rows are to the model: held-out, training or unknown.
    scored_rows: ScoredRows,
    /// Rows given that the model learned from, where its file says so.
    rows_trained_on: Option<usize>,
    models: Vec<serde_json::Value>,
    plain: serde_json::Value,
    /// Scores of rows that the model learned from, where others are scored above.
    #[serde(skip_serializing_if = "Option::is_none")]
    training_rows: Option<serde_json::Value>,
    nll_difference: Option<posterior::metrics::Average>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    shifts: &'a [ShiftCurves],
    out_of_distribution: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    joint: &'a [JointRow],
    clipped_variances: usize,
    notes: &'a [String],
}

fn json<'a>(data: &'a ModelData, findings: &'a Findings) -> Output<'a> {
    let scores = |e: &Evaluation| match e {
        Evaluation::Classes(c) => (serde_json::json!(c.scores), serde_json::json!(c.plain_scores)),
        Evaluation::Events(e) => (serde_json::json!(e.scores), serde_json::json!(e.plain_scores)),
        Evaluation::Values(v) => {
            let with = |scores: &posterior::metrics::RegressionScores, nll: f64| serde_json::json!({ "scores": scores, "nll_of_the_likelihood": nll });
            (with(&v.scores, v.nll), with(&v.plain_scores, v.plain_nll))
        }
    };
    let first = &findings.scored[0].evaluation;
    let (kind, nll_difference, clipped) = match first {
        Evaluation::Classes(c) => ("classes", Some(c.nll_difference), c.predictions.clipped),
        Evaluation::Events(e) => ("events", None, e.predictions.clipped),
        Evaluation::Values(v) => ("values", Some(v.nll_difference), v.predictions.clipped),
    };
    let model = |s: &Scored| serde_json::json!({ "name": s.name, "seconds": s.seconds, "scores": scores(&s.evaluation).0 });
    Output {
        kind,
        data: &data.name,
        n: data.len(),
        scored_rows: findings.rows,
        rows_trained_on: match (findings.rows, &findings.training) {
            (ScoredRows::Unknown, _) => None,
            (ScoredRows::Training, _) => Some(data.len()),
            (ScoredRows::HeldOut, rows) => Some(rows.as_ref().map_or(0, Evaluation::len)),
        },
        models: findings.scored.iter().map(model).collect(),
        plain: scores(first).1,
        training_rows: findings.training.as_ref().map(|rows| {
            let (own, plain) = scores(rows);
            serde_json::json!({ "n": rows.len(), "scores": own, "plain": plain })
        }),
        nll_difference,
        shifts: &findings.shifts,
        out_of_distribution: findings.strange.as_ref().map(|s| {
            serde_json::json!({ "data": s.name, "n": s.model.len(), "model": s.model_auc, "plain": s.plain_auc })
        }),
        joint: &findings.joint,
        clipped_variances: clipped,
        notes: &data.notes,
    }
}

/// The findings for people.
fn text(findings: &Findings) -> String {
    let mut parts = vec![scores_text(&findings.scored)];
    if let Some(rows) = &findings.training {
        let one = Scored { name: "model".into(), evaluation: rows.clone(), seconds: None };
        parts.push(format!("{}\n{}", ScoredRows::Training.heading(rows.len()), scores_text(&[one])));
    }
    for shift in &findings.shifts {
        let mut rows = vec![
            [shift.parameter.as_str(), "NLL", "(plain)", "accuracy", "ECE", "(plain)"]
                .map(String::from)
                .to_vec(),
        ];
        let [own, plain] = &shift.methods[..] else { continue };
        for i in 0..own.at.len() {
            rows.push(vec![
                own.at[i].to_string(),
                number(own.nll[i]),
                number(plain.nll[i]),
                format!("{:.1} %", 100.0 * own.accuracy[i]),
                number(own.ece[i]),
                number(plain.ece[i]),
            ]);
        }
        parts.push(table(&rows));
    }
    if let Some(strange) = &findings.strange {
        let row = |name: &str, auc: &OutOfDistribution| {
            vec![name.to_string(), format!("{:.4}", auc.entropy), format!("{:.4}", auc.maximum_probability)]
        };
        let head =
            [format!("{} told from these (AUC)", strange.name), "by entropy".into(), "by probability".into()];
        parts.push(table(&[
            head.to_vec(),
            row("model", &strange.model_auc),
            row("plain network", &strange.plain_auc),
        ]));
    }
    if !findings.joint.is_empty() {
        let mut rows = vec![
            ["labels scored jointly", "log-likelihood of the model", "of the plain network"]
                .map(String::from)
                .to_vec(),
        ];
        for row in &findings.joint {
            let with = |s: &posterior::metrics::JointLogLikelihood| match s.standard_error {
                Some(error) => format!("{} +- {}", number(s.mean), number(error)),
                None => number(s.mean),
            };
            rows.push(vec![
                format!("{} points, {} labels", row.points, row.model.labels),
                with(&row.model),
                with(&row.plain),
            ]);
        }
        parts.push(table(&rows));
    }
    parts.join("\n\n")
}

pub(crate) fn scores_text(scored: &[Scored]) -> String {
    match &scored[0].evaluation {
        Evaluation::Classes(first) => {
            let mut rows =
                vec![["", "accuracy", "NLL", "ECE", "Brier", "mean confidence"].map(String::from).to_vec()];
            let mut row = |name: &str, s: &posterior::metrics::ClassificationScores| {
                let percent = |v: f64| format!("{:.2} %", 100.0 * v);
                rows.push(vec![
                    name.to_string(),
                    percent(s.accuracy),
                    number(s.nll),
                    number(s.ece),
                    number(s.brier),
                    percent(s.mean_confidence),
                ]);
            };
            for one in scored {
                if let Evaluation::Classes(c) = &one.evaluation {
                    row(&one.name, &c.scores);
                }
            }
            row("plain network", &first.plain_scores);
            let difference = &first.nll_difference;
            let error = difference.standard_error.map(|e| format!(" +- {}", number(e))).unwrap_or_default();
            format!(
                "{}\n({} examples; NLL of the model minus that of the plain network: {}{error})",
                table(&rows),
                first.labels.len(),
                number(difference.mean)
            )
        }
        Evaluation::Events(first) => {
            let mut rows = vec![["", "accuracy", "NLL", "ECE", "Brier", "AUC"].map(String::from).to_vec()];
            let mut row = |name: &str, s: &posterior::metrics::BinaryScores| {
                let auc = s.auc.map(number).unwrap_or_else(|| "-".into());
                let accuracy = format!("{:.2} %", 100.0 * s.accuracy);
                rows.push(vec![
                    name.to_string(),
                    accuracy,
                    number(s.nll),
                    number(s.ece),
                    number(s.brier),
                    auc,
                ]);
            };
            for one in scored {
                if let Evaluation::Events(e) = &one.evaluation {
                    row(&one.name, &e.scores);
                }
            }
            row("plain network", &first.plain_scores);
            format!("{}\n({} events)", table(&rows), first.truths.len())
        }
        Evaluation::Values(first) => {
            let mut models: Vec<(&str, &posterior::metrics::RegressionScores)> = Vec::new();
            for one in scored {
                if let Evaluation::Values(v) = &one.evaluation {
                    models.push((&one.name, &v.scores));
                }
            }
            models.push(("plain network", &first.plain_scores));
            let text = score_table(&models);
            if first.predictions.gaussian {
                return text;
            }
            format!(
                "{text}\nNLL of the counts themselves: {} (plain network {}); the scores above take them as Gaussian with the same moments",
                number(first.nll),
                number(first.plain_nll)
            )
        }
    }
}
