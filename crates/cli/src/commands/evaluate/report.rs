//! Findings as sections of a report.

use super::scoring::Findings;
use super::text::plus_minus;
use crate::output::{Failure, number};
use posterior::Model;
use posterior::data::ArrayValues;
use posterior::metrics::{
    BinaryEvents, BinaryScores, Classes, ClassificationScores, DEFAULT_BINS, JointLogLikelihood,
    MOST_CONFUSION_CLASSES, RegressionScores,
};
use posterior::models::{Evaluation, JointRow, ModelData, ModelReport, Predicted, Predictive, Scores, Truth};
use posterior::report::{
    Baseline, ClassificationBaseline, ClassificationReport, Distribution, FeatureLengthscale, FiguresReport,
    Image, ImageLayout, ImagePrediction, Item, JointScores, MethodRow, Note, OutOfDistribution,
    OutOfDistributionMethod, PredictedDistribution, Predictions, RegressionReport, Reliability,
    ReliabilityForm, ReliabilitySeries, Report, ScoredRows, Section, SummaryRow, Table,
};
use std::path::Path;

/// Pictures shown of each kind.
const PICTURES: usize = 12;

/// Writes a report in one atomic step.
pub(crate) fn write(path: &Path, report: &Report) -> Result<(), Failure> {
    use std::io::Write;
    posterior::data::create_atomically(path, |file| file.write_all(report.to_html().as_bytes()))
        .map_err(Failure::from)
}

/// A section for what was scored, and, of numbers, one for the rows that the training had not, where it had some.
pub(crate) fn sections(
    model: &Model,
    model_report: ModelReport,
    findings: &Findings,
) -> Result<Vec<Section>, Failure> {
    let shown = Shown { model, model_report, findings };
    let first = findings.evaluation();
    Ok(match (&first.scores, &first.baseline, &first.truth) {
        (Scores::Classes(own), Scores::Classes(plain), Truth::Classes(labels)) => {
            vec![shown.classes(own, plain, labels)?]
        }
        (Scores::Events(own), Scores::Events(plain), truth) => {
            vec![shown.events(own, plain, &truth.events())?]
        }
        _ => {
            let unseen = findings.unseen.as_ref().map(|e| shown.values(e, ScoredRows::HeldOut));
            let first = shown.values(first, findings.rows);
            std::iter::once(first).chain(unseen).collect::<Result<_, _>>()?
        }
    })
}

/// What sections are made of.
struct Shown<'a> {
    model: &'a Model,
    model_report: ModelReport,
    findings: &'a Findings,
}

impl Shown<'_> {
    fn notes(&self, predictive: &Predictive) -> Vec<Note> {
        let mut notes = self.model.notes();
        notes.extend(self.findings.data.notes.iter().map(Note::warning));
        notes.extend(self.findings.unlike.iter().flatten().map(|d| Note::warning(d.to_string())));
        if predictive.clipped > 0 {
            let text = format!("{} predicted variances were rounded up to 0", predictive.clipped);
            notes.push(Note::warning(text));
        }
        notes
    }

    /// Both predictions with their names.
    fn both(&self) -> [(&'static str, &Predictive); 2] {
        let compared = &self.findings.evaluation().compared;
        [("model", &compared.model), (compared.baseline_name, &compared.baseline)]
    }

    /// A classifier.
    fn classes(
        &self,
        own: &ClassificationScores,
        plain: &ClassificationScores,
        labels: &[usize],
    ) -> Result<Section, Failure> {
        let Self { findings, model_report, .. } = self;
        let evaluation = findings.evaluation();
        let predictive = &evaluation.compared.model;
        let both = self.both();
        let baseline = both[1].0;
        let mut methods: Vec<MethodRow> = Vec::new();
        let strange = findings.strange.as_ref();
        for (i, one) in findings.scored.iter().enumerate() {
            if let Scores::Classes(scores) = &one.evaluation.scores {
                let out_of_distribution_auc = strange.filter(|_| i == 0).map(|s| s.model_auc.entropy);
                let row = MethodRow::new(one.name.clone(), scores);
                methods.push(MethodRow { seconds: one.seconds, out_of_distribution_auc, ..row });
            }
        }
        let out_of_distribution_auc = strange.map(|s| s.baseline_auc.entropy);
        methods.push(MethodRow { out_of_distribution_auc, ..MethodRow::new(baseline, plain) });
        let series = |(name, predictive): (&str, &Predictive)| -> Result<ReliabilitySeries, Failure> {
            let bins = classes(predictive, labels)?.reliability_of_the_top_class(DEFAULT_BINS)?;
            Ok(ReliabilitySeries { name: name.into(), bins })
        };
        let confidences = |(name, predictive): (&str, &Predictive)| Distribution {
            name: name.into(),
            values: predictive.top(1).iter().map(|top| top[0].1).collect(),
        };
        let (most_certain, least_certain) = pictures(&findings.data, predictive, labels);
        let joint = |name: &str, pick: fn(&JointRow) -> JointLogLikelihood| JointScores {
            method: name.into(),
            scores: findings.joint.iter().map(pick).collect(),
        };
        let report = ClassificationReport {
            dataset: findings.data.name.clone(),
            model: model_report.method.into(),
            class_names: self.model.class_names(),
            summary: [self.model.facts().rows(), evaluation.facts().rows()].concat(),
            scores: Some(*own),
            plain: Some(ClassificationBaseline { name: baseline.into(), scores: *plain }),
            nll_difference: evaluation.nll_difference,
            methods,
            reliability: Some(Reliability {
                form: ReliabilityForm::TopClass,
                series: both.into_iter().map(series).collect::<Result<_, _>>()?,
            }),
            confidences: both.map(confidences).into(),
            confusion: match predictive.width <= MOST_CONFUSION_CLASSES {
                true => Some(classes(predictive, labels)?.confusion()?),
                false => None,
            },
            most_certain,
            least_certain,
            shifts: findings.shifts.clone(),
            out_of_distribution: strange.map(|strange| {
                let outside = [&strange.compared.model, &strange.compared.baseline];
                let auc = [&strange.model_auc, &strange.baseline_auc];
                let method = |k: usize| OutOfDistributionMethod {
                    name: both[k].0.into(),
                    inside: both[k].1.entropies(),
                    outside: outside[k].entropies(),
                    auc: Some(auc[k].entropy),
                };
                OutOfDistribution {
                    inside: findings.data.name.clone(),
                    outside: strange.name.clone(),
                    methods: vec![method(0), method(1)],
                }
            }),
            joint: match findings.joint.is_empty() {
                true => Vec::new(),
                false => vec![joint("model", |r| r.model), joint(baseline, |r| r.plain)],
            },
            evidence: model_report.evidence.clone(),
            more: effects(self.model, model_report),
            notes: self.notes(predictive),
            ..ClassificationReport::default()
        };
        Ok(report.into())
    }

    /// Events.
    fn events(&self, own: &BinaryScores, plain: &BinaryScores, truths: &[bool]) -> Result<Section, Failure> {
        let both = self.both();
        let series = |(name, predictive): (&str, &Predictive)| -> Result<ReliabilitySeries, Failure> {
            let values = predictive.probabilities().unwrap_or_default();
            let bins = BinaryEvents::new(values, predictive.width, truths)?.reliability(DEFAULT_BINS)?;
            Ok(ReliabilitySeries { name: name.into(), bins })
        };
        let row = |name: &str, s: &BinaryScores| {
            let auc = s.auc.map_or_else(|| "-".into(), number);
            vec![name.into(), number(s.accuracy), number(s.nll), number(s.ece), number(s.brier), auc]
        };
        let items = vec![
            Item::Table(Table {
                title: "Scores".into(),
                head: ["", "accuracy", "NLL", "ECE", "Brier", "AUC"].map(String::from).to_vec(),
                rows: vec![row(both[0].0, own), row(both[1].0, plain)],
                caption: String::new(),
            }),
            Item::Reliability(Reliability {
                form: ReliabilityForm::EveryClass,
                series: both.into_iter().map(series).collect::<Result<_, _>>()?,
            }),
        ];
        Ok(FiguresReport {
            title: self.findings.data.name.clone(),
            text: "Events that happen or not, each with a probability.".into(),
            summary: self.model.facts().rows(),
            items,
            notes: self.notes(both[0].1),
        }
        .into())
    }

    /// Numbers.
    fn values(&self, evaluation: &Evaluation, rows: ScoredRows) -> Result<Section, Failure> {
        let Evaluation { compared, truth, scores, baseline, nll_difference, .. } = evaluation;
        let (Predicted::Moments { mean, variance, .. }, Truth::Values { values, .. }) =
            (&compared.model.predicted, truth)
        else {
            return Err(Failure::new("there are no numbers to show".into()));
        };
        let moments = |scores: &Scores| -> Option<RegressionScores> {
            if let Scores::Values { scores, .. } = scores { Some(*scores) } else { None }
        };
        let mut report = learned(self.model, &self.model_report);
        report.summary.extend(nll_difference.map(|d| {
            let label = format!("NLL minus the baseline's ({})", compared.baseline_name);
            SummaryRow::new(label, plus_minus(d.mean, d.standard_error))
        }));
        report.summary.extend(evaluation.facts().rows());
        Ok(RegressionReport {
            dataset: match rows {
                ScoredRows::Training => format!("{}: rows of the training", self.findings.data.name),
                _ => self.findings.data.name.clone(),
            },
            rows,
            scores: moments(scores),
            baseline: moments(baseline)
                .map(|scores| Baseline { name: compared.baseline_name.into(), scores }),
            predictions: Some(Predictions {
                mean: mean.clone(),
                standard_deviation: variance.iter().map(|v| v.sqrt()).collect(),
                truth: values.clone(),
                distribution: distribution(&compared.model, values),
            }),
            maps: self.model_report.maps.clone(),
            notes: self.notes(&compared.model),
            ..report
        }
        .into())
    }
}

/// What a model of numbers has learned, before any score.
pub(crate) fn learned(model: &Model, model_report: &ModelReport) -> RegressionReport {
    let ModelReport { hyperparameters, posterior, tables, warps, .. } = model_report;
    RegressionReport {
        target: model.target(),
        summary: model.facts().rows(),
        hyperparameters: hyperparameters.clone(),
        lengthscales: shown_lengthscales(model_report),
        more: effects(model, model_report),
        posterior: posterior.clone(),
        tables: tables.clone(),
        warps: warps.clone(),
        notes: model.notes(),
        ..RegressionReport::default()
    }
}

/// Intervals and residuals of predictions that are Gaussian behind a map of the target; nothing of others.
fn distribution(predictive: &Predictive, truths: &[f64]) -> Option<PredictedDistribution> {
    let mapped = predictive.mapped.as_ref()?;
    let [low, high] = [0.025, 0.975].map(|level| predictive.quantiles(level, true).unwrap_or_default());
    Some(PredictedDistribution { low, high, residual: mapped.residuals(truths) })
}

/// What columns do, as pictures.
fn effects(model: &Model, model_report: &ModelReport) -> Vec<Item> {
    model_report.effects.as_ref().map(|effects| effects.items(&model.target())).unwrap_or_default()
}

/// Lengthscales as a picture, where no importance of columns says more: of a column of text there is one for each category. The table of hyperparameters has them in any case.
fn shown_lengthscales(model_report: &ModelReport) -> Vec<FeatureLengthscale> {
    match &model_report.effects {
        Some(effects) if !effects.importance.is_empty() => Vec::new(),
        _ => model_report.lengthscales.clone(),
    }
}

/// The most and the least certain pictures, where inputs are pictures of bytes.
fn pictures(
    data: &ModelData,
    predictive: &Predictive,
    labels: &[usize],
) -> (Vec<ImagePrediction>, Vec<ImagePrediction>) {
    let ArrayValues::U8(bytes) = data.inputs.values() else { return Default::default() };
    let (layout, height, width) = match *data.inputs.example_shape() {
        [height, width] | [1, height, width] => (ImageLayout::Grey, height, width),
        [3, height, width] => (ImageLayout::ColourPlanes, height, width),
        _ => return Default::default(),
    };
    let Predicted::Classes(p) = &predictive.predicted else { return Default::default() };
    let (classes, size) = (predictive.width, bytes.len() / data.len().max(1));
    let entropies = predictive.entropies();
    let mut order: Vec<usize> = (0..data.len()).collect();
    order.sort_by(|&a, &b| entropies[a].total_cmp(&entropies[b]).then(a.cmp(&b)));
    let picture = |&i: &usize| ImagePrediction {
        image: Image { layout, height, width, pixels: bytes[i * size..(i + 1) * size].to_vec() },
        label: Some(labels[i]),
        probabilities: p[i * classes..(i + 1) * classes].to_vec(),
    };
    (
        order.iter().take(PICTURES).map(picture).collect(),
        order.iter().rev().take(PICTURES).map(picture).collect(),
    )
}

/// Class probabilities with labels, for figures.
fn classes<'a>(predictive: &'a Predictive, labels: &'a [usize]) -> Result<Classes<'a>, Failure> {
    Ok(Classes::new(predictive.probabilities().unwrap_or_default(), predictive.width, labels)?)
}
