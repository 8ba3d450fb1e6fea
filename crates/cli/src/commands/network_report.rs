//! The section of a report for a network with error bars.

use crate::output::{Failure, number};
use posterior::Model as _;
use posterior::data::ArrayValues;
use posterior::laplace::{
    ClassEvaluation, Evaluation, EventEvaluation, JointRow, LaplaceModel, LaplacePredictions, ModelData,
    Predicted, ValueEvaluation,
};
use posterior::metrics::{Average, BinaryEvents, Classes, DEFAULT_BINS, MOST_CONFUSION_CLASSES};
use posterior::report::{
    Baseline, ClassificationBaseline, ClassificationReport, Curves, Distribution, FiguresReport, Image,
    ImageLayout, ImagePrediction, Item, JointScores, Line, MethodRow, Note, OutOfDistribution,
    OutOfDistributionMethod, RegressionReport, Reliability, ReliabilityForm, ReliabilitySeries, ScoredRows,
    Section, ShiftCurves, SummaryRow, Table,
};

/// Pictures shown of each kind.
const PICTURES: usize = 12;

/// A method with its scores.
pub(crate) struct Scored {
    pub name: String,
    pub evaluation: Evaluation,
    pub seconds: Option<f64>,
}

/// Predictions on inputs of another kind, by model and plain network.
pub(crate) struct Strange {
    pub name: String,
    pub model: LaplacePredictions,
    pub plain: LaplacePredictions,
    pub model_auc: posterior::laplace::OutOfDistribution,
    pub plain_auc: posterior::laplace::OutOfDistribution,
}

/// All that was found out about a model.
pub(crate) struct Findings {
    /// What the scored rows are to the model.
    pub rows: ScoredRows,
    /// Rows of the training, apart, where others are scored.
    pub training: Option<Evaluation>,
    pub scored: Vec<Scored>,
    pub shifts: Vec<ShiftCurves>,
    pub strange: Option<Strange>,
    pub joint: Vec<JointRow>,
}

fn notes(model: &LaplaceModel, data: &ModelData, clipped: usize) -> Vec<Note> {
    let mut notes = model.notes();
    notes.extend(data.notes.iter().map(Note::warning));
    if clipped > 0 {
        notes.push(Note::warning(format!("{clipped} examples had variances that were rounded up to 0")));
    }
    notes
}

/// A classifier.
pub(crate) fn class_section(
    model: &LaplaceModel,
    data: &ModelData,
    found: &ClassEvaluation,
    findings: &Findings,
) -> Result<Section, Failure> {
    let (own, plain) = (classes(&found.predictions, &found.labels)?, classes(&found.plain, &found.labels)?);
    let plain_name = "plain network";
    let bins = |c: &posterior::metrics::Classes<'_>| {
        c.reliability_of_the_top_class(DEFAULT_BINS).map_err(Failure::from)
    };
    let series = |name: &str, c: &posterior::metrics::Classes<'_>| -> Result<ReliabilitySeries, Failure> {
        Ok(ReliabilitySeries { name: name.into(), bins: bins(c)? })
    };
    let mut methods: Vec<MethodRow> = Vec::new();
    for (i, one) in findings.scored.iter().enumerate() {
        if let posterior::laplace::Evaluation::Classes(c) = &one.evaluation {
            let auc = findings.strange.as_ref().filter(|_| i == 0).map(|s| s.model_auc.entropy);
            let row = MethodRow::new(one.name.clone(), &c.scores);
            methods.push(MethodRow { seconds: one.seconds, out_of_distribution_auc: auc, ..row });
        }
    }
    let auc = findings.strange.as_ref().map(|s| s.plain_auc.entropy);
    methods
        .push(MethodRow { out_of_distribution_auc: auc, ..MethodRow::new(plain_name, &found.plain_scores) });
    let confidences = |name: &str, p: &LaplacePredictions| Distribution {
        name: name.into(),
        values: p.top(1).iter().map(|top| top[0].1).collect(),
    };
    let (most_certain, least_certain) = pictures(data, found);
    let joint =
        |name: &str, pick: fn(&posterior::laplace::JointRow) -> posterior::metrics::JointLogLikelihood| {
            JointScores { method: name.into(), scores: findings.joint.iter().map(pick).collect() }
        };
    let report = ClassificationReport {
        dataset: data.name.clone(),
        model: "linearised Laplace".into(),
        class_names: model.header().class_names(found.predictions.width),
        summary: model.summary(),
        scores: Some(found.scores),
        plain: Some(ClassificationBaseline { name: plain_name.into(), scores: found.plain_scores }),
        nll_difference: Some(found.nll_difference),
        methods,
        reliability: Some(Reliability {
            form: ReliabilityForm::TopClass,
            series: vec![series("model", &own)?, series(plain_name, &plain)?],
        }),
        confidences: vec![confidences("model", &found.predictions), confidences(plain_name, &found.plain)],
        confusion: if found.predictions.width <= MOST_CONFUSION_CLASSES {
            Some(own.confusion()?)
        } else {
            None
        },
        most_certain,
        least_certain,
        shifts: findings.shifts.clone(),
        out_of_distribution: findings.strange.as_ref().map(|strange| OutOfDistribution {
            inside: data.name.clone(),
            outside: strange.name.clone(),
            methods: vec![
                OutOfDistributionMethod {
                    name: "model".into(),
                    inside: found.predictions.entropies(),
                    outside: strange.model.entropies(),
                    auc: Some(strange.model_auc.entropy),
                },
                OutOfDistributionMethod {
                    name: plain_name.into(),
                    inside: found.plain.entropies(),
                    outside: strange.plain.entropies(),
                    auc: Some(strange.plain_auc.entropy),
                },
            ],
        }),
        joint: if findings.joint.is_empty() {
            Vec::new()
        } else {
            vec![joint("model", |r| r.model), joint(plain_name, |r| r.plain)]
        },
        evidence: evidence(model),
        notes: notes(model, data, found.predictions.clipped),
        ..ClassificationReport::default()
    };
    Ok(report.into())
}

/// The search for hyperparameters: held-out scores along the grid.
fn evidence(model: &LaplaceModel) -> Vec<Curves> {
    let Some(report) = &model.header().summary.held_out else { return Vec::new() };
    let mut points: Vec<(f64, f64)> = report
        .grid
        .iter()
        .filter(|p| p.noise_variance == report.grid[0].noise_variance)
        .map(|p| (p.precision_factor, p.nll))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let line = Line {
        name: "held-out NLL".into(),
        x: points.iter().map(|p| p.0).collect(),
        y: points.iter().map(|p| p.1).collect(),
        optimum: Some(report.best.precision_factor),
        ..Line::default()
    };
    vec![Curves {
        title: "Held-out score along the prior precision".into(),
        x: "factor on the starting precisions".into(),
        y: "NLL (nats)".into(),
        x_logarithmic: true,
        lines: vec![line],
        ..Curves::default()
    }]
}

/// The most and the least certain pictures, where inputs are pictures of bytes.
fn pictures(data: &ModelData, found: &ClassEvaluation) -> (Vec<ImagePrediction>, Vec<ImagePrediction>) {
    let ArrayValues::U8(bytes) = data.inputs.values() else { return Default::default() };
    let (layout, height, width) = match *data.inputs.example_shape() {
        [height, width] | [1, height, width] => (ImageLayout::Grey, height, width),
        [3, height, width] => (ImageLayout::ColourPlanes, height, width),
        _ => return Default::default(),
    };
    let Predicted::Classes(p) = &found.predictions.predicted else { return Default::default() };
    let (classes, size) = (found.predictions.width, bytes.len() / data.len().max(1));
    let entropies = found.predictions.entropies();
    let mut order: Vec<usize> = (0..data.len()).collect();
    order.sort_by(|&a, &b| entropies[a].total_cmp(&entropies[b]).then(a.cmp(&b)));
    let picture = |&i: &usize| ImagePrediction {
        image: Image { layout, height, width, pixels: bytes[i * size..(i + 1) * size].to_vec() },
        label: Some(found.labels[i]),
        probabilities: p[i * classes..(i + 1) * classes].to_vec(),
    };
    (
        order.iter().take(PICTURES).map(picture).collect(),
        order.iter().rev().take(PICTURES).map(picture).collect(),
    )
}

/// Events.
pub(crate) fn event_section(model: &LaplaceModel, data: &ModelData, found: &EventEvaluation) -> Section {
    let probabilities = |p: &LaplacePredictions| p.probabilities().unwrap_or_default().to_vec();
    let series = |name: &str, p: &LaplacePredictions| {
        let values = probabilities(p);
        let bins =
            BinaryEvents::new(&values, p.width, &found.truths).and_then(|e| e.reliability(DEFAULT_BINS));
        ReliabilitySeries { name: name.into(), bins: bins.unwrap_or_default() }
    };
    let row = |name: &str, s: &posterior::metrics::BinaryScores| {
        vec![
            name.to_string(),
            number(s.accuracy),
            number(s.nll),
            number(s.ece),
            number(s.brier),
            s.auc.map_or_else(|| "-".into(), number),
        ]
    };
    let items = vec![
        Item::Table(Table {
            title: "Scores".into(),
            head: ["", "accuracy", "NLL", "ECE", "Brier", "AUC"].map(String::from).to_vec(),
            rows: vec![row("model", &found.scores), row("plain network", &found.plain_scores)],
            caption: String::new(),
        }),
        Item::Reliability(Reliability {
            form: ReliabilityForm::EveryClass,
            series: vec![series("model", &found.predictions), series("plain network", &found.plain)],
        }),
    ];
    FiguresReport {
        title: data.name.clone(),
        text: "Events that happen or not, each with a probability.".into(),
        summary: model.summary(),
        items,
        notes: notes(model, data, found.predictions.clipped),
    }
    .into()
}

/// Numbers.
pub(crate) fn value_section(
    model: &LaplaceModel,
    data: &ModelData,
    rows: ScoredRows,
    found: &ValueEvaluation,
) -> Section {
    let (mean, variance) = match &found.predictions.predicted {
        Predicted::Moments { mean, variance, .. } => (mean.clone(), variance.clone()),
        _ => Default::default(),
    };
    let Average { mean: difference, standard_error } = found.nll_difference;
    let error = standard_error.map(|e| format!(" +- {}", number(e))).unwrap_or_default();
    let mut summary = model.summary();
    summary.push(SummaryRow::new(
        "NLL minus that of the plain network",
        format!("{}{error}", number(difference)),
    ));
    RegressionReport {
        dataset: data.name.clone(),
        target: model.header().data.target().unwrap_or("y").to_string(),
        summary,
        rows,
        scores: Some(found.scores),
        baseline: Some(Baseline { name: "plain network".into(), scores: found.plain_scores }),
        predictions: Some(posterior::report::Predictions {
            mean,
            standard_deviation: variance.iter().map(|v| v.sqrt()).collect(),
            truth: found.truths.clone(),
        }),
        notes: notes(model, data, found.predictions.clipped),
        ..RegressionReport::default()
    }
    .into()
}

/// Class probabilities with labels, for figures.
fn classes<'a>(predictions: &'a LaplacePredictions, labels: &'a [usize]) -> Result<Classes<'a>, Failure> {
    let Predicted::Classes(p) = &predictions.predicted else {
        return Err(Failure::new("there are no class probabilities".into()));
    };
    Ok(Classes::new(p, predictions.width, labels)?)
}
