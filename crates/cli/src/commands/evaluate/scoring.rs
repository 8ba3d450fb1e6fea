//! What is to be found out about a model on data whose truth is known.

use super::text::{remark, trained_on};
use crate::args::EvaluateArgs;
use crate::args::only;
use crate::commands::{asked_data, limited, load_for};
use crate::output::{Failure, Remarks};
use posterior::data::Departure;
use posterior::data::transform::{Corruption, SEVERITIES};
use posterior::models::{
    Comparison, Evaluation, Files, JointRow, ModelData, OutOfDistribution, PredictedKind, Question, Scores,
    Shift, TrainedOn, VarianceSolves,
};
use posterior::notes::fixes::FOLD;
use posterior::report::{ScoredRows, ShiftCurve, ShiftCurves};
use posterior::{Model, Saved};
use std::path::Path;

/// Functions drawn for joint scores where no number is given.
const JOINT_SAMPLES: usize = 100;

/// A model with its scores.
pub(crate) struct Scored {
    pub name: String,
    pub evaluation: Evaluation,
    /// That its fit took.
    pub seconds: Option<f64>,
}

/// Predictions on inputs of another kind, and how well they are told from the scored ones.
pub(crate) struct Strange {
    pub name: String,
    pub compared: Comparison,
    pub model_auc: OutOfDistribution,
    pub baseline_auc: OutOfDistribution,
}

/// All that was found out.
pub(crate) struct Findings {
    /// What was scored, with all that is to be said about it.
    pub data: ModelData,
    /// What the scored rows are to the model.
    pub rows: ScoredRows,
    /// The model first, then those that it is compared with.
    pub scored: Vec<Scored>,
    /// How many of them have the same numbers as rows of the training; none where the model's file does not say.
    pub seen: Option<usize>,
    /// Scores of the rows that the training had not, where it had some.
    pub unseen: Option<Evaluation>,
    /// How exact variances are, where they were solved for.
    pub solves: Option<VarianceSolves>,
    /// Columns that are unlike those of training; none where the model does not say what those were.
    pub unlike: Option<Vec<Departure>>,
    pub shifts: Vec<ShiftCurves>,
    pub strange: Option<Strange>,
    pub joint: Vec<JointRow>,
    pub planned_bytes: u64,
}

impl Findings {
    /// One model's scores on rows that were held out.
    pub(crate) fn held_out(
        data: ModelData,
        name: &str,
        evaluation: Evaluation,
        seconds: Option<f64>,
    ) -> Self {
        Self {
            data,
            rows: ScoredRows::HeldOut,
            scored: vec![Scored { name: name.into(), evaluation, seconds }],
            seen: None,
            unseen: None,
            solves: None,
            unlike: None,
            shifts: Vec::new(),
            strange: None,
            joint: Vec::new(),
            planned_bytes: 0,
        }
    }

    /// The model's own scores.
    pub(crate) fn evaluation(&self) -> &Evaluation {
        &self.scored[0].evaluation
    }
}

/// Plans, says so, and scores.
pub(super) fn find(
    model: &Model,
    a: &EvaluateArgs,
    question: &Question,
    remarks: Remarks,
) -> Result<Findings, Failure> {
    let (inputs, data) = a.question.files();
    let reading = a.question.reading();
    let files = Files { data: &data, inputs: &inputs, labels: &a.labels, truth: true, reading };
    let shifted = !a.rotate.is_empty() || !a.corrupt.is_empty();
    let classes = model.predicts() == PredictedKind::Classes;
    only(shifted, "rotate and --corrupt", classes, "classifiers of images")?;
    only(!a.ood.is_empty(), "ood", classes, "classifiers")?;
    let mut data = given(model, a, &files)?;
    let strange_data = strange_data(model, a)?;
    let mut plan = model.plan(&data, question, 1 + a.against.len())?;
    if let Some(others) = &strange_data {
        plan = plan.then(&model.plan(others, question, 1)?);
    }
    if a.report.is_some()
        && let Some(maps) = model.plan_model_report(question)?
    {
        plan = plan.then(&maps);
    }
    // Each model that is compared reads the data for itself, and what is shifted is a copy.
    let copies = a.against.len() as u64 + u64::from(shifted);
    plan = plan.beside(copies * data.memory());
    plan.check(question.memory)?;
    let known = model.trained_on(&data)?;
    let rows = known.as_ref().map_or(ScoredRows::Unknown, TrainedOn::rows);
    let seen = known.as_ref().map(|known| known.seen.len());
    let unseen = match known {
        Some(known) if rows == ScoredRows::PartlyTraining => {
            plan = plan.beside(data.copied_bytes());
            plan.check(question.memory)?;
            Some(data.selected(&known.unseen)?)
        }
        _ => None,
    };
    data.notes.extend(remark(rows, seen.unwrap_or(0)));
    remarks.notes(&data.notes);
    remarks.say(format!("plan: {plan}"));
    let first = model.evaluate(&data, question)?;
    let notes = notes_of(&first, model);
    remarks.notes(&notes);
    data.notes.extend(notes);
    let mut scored = vec![Scored { name: "model".into(), evaluation: first, seconds: Some(model.seconds()) }];
    for path in &a.against {
        let (other, mut notes) = beside(path, (model, a, question), &files, &data)?;
        let (own, others) = (scored[0].evaluation.len(), other.evaluation.len());
        if own != others {
            notes.push(format!(
                "{}: scored on {others} rows, the first model on {own}: each leaves out rows with missing cells in columns of its own, so compare on rows without",
                path.display()
            ));
        }
        remarks.notes(&notes);
        data.notes.extend(notes);
        scored.push(other);
    }
    let shifts = shifts(model, a, &data, question)?;
    let inside = &scored[0].evaluation.compared;
    let strange = strange_data.map(|others| strange(model, inside, others, question)).transpose()?;
    let joint = if question.joint_points.is_empty() {
        Vec::new()
    } else {
        let samples = a.samples.unwrap_or(JOINT_SAMPLES);
        model.joint_scores(&data, &Question { samples, ..question.clone() })?
    };
    let unseen = unseen.map(|rows| model.evaluate(&rows, question)).transpose()?;
    let own = &scored[0].evaluation.compared.model;
    let solves = own.solves;
    solves.iter().for_each(|solves| remarks.say(solves));
    let unlike = model.departures(&own.inputs);
    remarks.warnings(unlike.iter().flatten());
    let planned_bytes = plan.peak_bytes;
    Ok(Findings { data, rows, scored, seen, unseen, solves, unlike, shifts, strange, joint, planned_bytes })
}

/// What was left out of the scored rows and filled in, and what can be done about their errors.
pub(crate) fn notes_of(scored: &Evaluation, model: &Model) -> Vec<String> {
    let cells = scored.compared.model.data.of_cells().sentences();
    cells.into_iter().chain(scored.funnel_note(model)).collect()
}

/// What the flags say is to be scored: the rows of a fold or a share, or all.
fn given(model: &Model, a: &EvaluateArgs, files: &Files<'_>) -> Result<ModelData, Failure> {
    if a.split.crosses() {
        return Err(Failure::usage(format!("--folds wants the {FOLD} that is scored")));
    }
    a.split.check()?;
    if a.split.is_nothing() {
        return asked_data(model, files, &a.question);
    }
    let seed = model.split_seed()?;
    let data = asked_data(model, files, &a.question)?;
    let Some((table, _)) = &data.table else {
        return Err(Failure::usage("--folds and --test-fraction are for the rows of a table".into()));
    };
    let strata = model.strata(table)?;
    let split = a.split.split(Some(&**table), table.rows(), strata.as_deref(), (seed, model.date_order()))?;
    let rows = if split.test.is_empty() { split.train } else { split.test };
    Ok(data.selected(&data.examples_of(&rows))?)
}

/// Another model on the rows that the first is scored on, and what is to be said about that.
fn beside(
    path: &Path,
    (model, a, question): (&Model, &EvaluateArgs, &Question),
    files: &Files<'_>,
    scored: &ModelData,
) -> Result<(Scored, Vec<String>), Failure> {
    let shown = path.display();
    let loaded = load_for(path, &a.question)?;
    let other = of_target(&loaded, &model.target()).ok_or_else(|| {
        Failure::usage(format!(
            "{shown} has no target `{}`: it has {}",
            model.target(),
            loaded.names().join(", ")
        ))
    })?;
    if other.predicts() != model.predicts() {
        return Err(Failure::usage(format!(
            "{shown} predicts something else: compare models of the same kind"
        )));
    }
    other.check(question)?;
    let own = same_rows(scored, limited(other.read(files)?, a.question.limit)?)?;
    // Of another family it may take more than the first.
    let first = scored.memory();
    other.plan(&own, &Question { timed: false, beside: question.beside + first, ..question.clone() }, 1)?;
    let known = other.trained_on(&own)?.filter(|known| known.rows() != ScoredRows::HeldOut);
    let mut notes = other.check_inputs(&own, a.question.allow_other_inputs)?;
    notes.splice(..0, known.map(|known| trained_on(known.seen.len())));
    let notes = notes.into_iter().map(|note| format!("{shown}: {note}")).collect();
    let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let evaluation = other.evaluate(&own, question)?;
    Ok((Scored { name, evaluation, seconds: Some(other.seconds()) }, notes))
}

/// The model of this target, of several; another model as it is.
pub(super) fn of_target<'a>(saved: &'a Saved, target: &str) -> Option<&'a Model> {
    saved.only().or_else(|| saved.of_target(target))
}

/// Of what another model reads, the rows that the first is scored on: by their numbers in the table, which each model may drop other rows of.
fn same_rows(scored: &ModelData, own: ModelData) -> Result<ModelData, Failure> {
    let (Some((_, rows)), Some(_)) = (&scored.table, &own.table) else { return Ok(own) };
    let wanted = own.examples_of(rows);
    if wanted.len() == own.len() { Ok(own) } else { own.selected(&wanted).map_err(Failure::from) }
}

/// Scores under rotations and corruptions.
fn shifts(
    model: &Model,
    a: &EvaluateArgs,
    data: &ModelData,
    question: &Question,
) -> Result<Vec<ShiftCurves>, Failure> {
    let mut out = Vec::new();
    let mut curves = |parameter: String, steps: Vec<(f64, Shift)>| -> Result<(), Failure> {
        let named = |name: &str| ShiftCurve { method: name.into(), ..ShiftCurve::default() };
        let mut methods = [named("model"), named("plain network")];
        for (at, shift) in steps {
            let found = model.evaluate(&data.shifted(shift, question.seed)?, question)?;
            let (Scores::Classes(own), Scores::Classes(other)) = (&found.scores, &found.baseline) else {
                return Err(Failure::usage("--rotate and --corrupt are for classifiers of images".into()));
            };
            methods[1].method = found.compared.baseline_name.into();
            for (curve, scores) in methods.iter_mut().zip([own, other]) {
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
fn strange_data(model: &Model, a: &EvaluateArgs) -> Result<Option<ModelData>, Failure> {
    if a.ood.is_empty() {
        return Ok(None);
    }
    // That these leave the range is what they are for; another kind of numbers is a mistake.
    let reading = a.question.reading();
    let files = Files { data: &a.ood, inputs: &[], labels: &[], truth: false, reading };
    asked_data(model, &files, &a.question).map(Some)
}

/// How well uncertainty tells them from what was scored.
fn strange(
    model: &Model,
    inside: &Comparison,
    data: ModelData,
    question: &Question,
) -> Result<Strange, Failure> {
    let compared = model.comparison(&data, question)?;
    let model_auc = OutOfDistribution::of(&inside.model, &compared.model)?;
    let baseline_auc = OutOfDistribution::of(&inside.baseline, &compared.baseline)?;
    Ok(Strange { name: data.name, compared, model_auc, baseline_auc })
}
