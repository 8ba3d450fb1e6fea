//! What is asked of classifiers beyond one label of a familiar image: corrupted and turned images, several labels at once, the reliability of every probability.

use crate::kinds::prelude::*;
use posterior_data::transform::Corruption;
use posterior_metrics::Classes;
use posterior_models::{Model, ModelData, Predicted, Predictive, Question, Shift, Truth};

/// The highest severity of a corruption.
const SEVERITIES: u8 = 5;

/// The table `[task.images.beyond]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct BeyondSettings {
    /// The first so many test images.
    images: usize,
    /// Corruptions, each at severities 0 to 5.
    #[serde(default)]
    corruptions: Vec<String>,
    /// Degrees by which all of these images are turned, each by itself; the published curves have 10 to 180.
    #[serde(default)]
    rotations: Vec<u16>,
    /// Points in sets whose labels are scored together.
    #[serde(default)]
    joint_points: Vec<usize>,
    /// Of the first so many of these images only: posteriors of functions draw from the joint distribution of all labels of all of them, whose cost grows with the cube of their number.
    joint_images: Option<usize>,
    /// Functions drawn for these.
    #[serde(default = "draws")]
    draws: usize,
    /// Bins of reliability; none where 0.
    #[serde(default)]
    bins: usize,
}

fn draws() -> usize {
    64
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Beyond {
    /// Mean NLL over corruptions, by severity from 0.
    severities: Vec<f64>,
    /// The same for each corruption by its name.
    by_corruption: Vec<(String, Vec<f64>)>,
    /// Degrees, NLL and expected calibration error.
    rotations: Vec<(u16, f64, f64)>,
    /// Mean joint log-likelihood by points of a set.
    joint: Vec<(usize, f64)>,
    /// Confidence and frequency of each bin.
    reliability: Vec<(f64, f64)>,
}

/// Predictions of a model, or of its network alone.
pub(super) fn predictive(
    model: &Model,
    data: &ModelData,
    question: &Question,
    alone: bool,
) -> Result<Predictive> {
    let own = model.predictive(data, question)?;
    Ok(if alone { model.baseline(data, &own)?.1 } else { own })
}

/// Mean negative log probability of the labels, and the expected calibration error.
fn scores(predictive: &Predictive, truth: &Option<Truth>) -> Result<(f64, f64)> {
    let (Predicted::Classes(p), Some(Truth::Classes(labels))) = (&predictive.predicted, truth) else {
        return Ok((f64::NAN, f64::NAN));
    };
    let scores = Classes::new(p, predictive.width, labels)?.scores();
    Ok((scores.nll, scores.ece))
}

impl BeyondSettings {
    /// The same with other draws, where some are given.
    pub(super) fn with_draws(&self, draws: Option<usize>) -> Self {
        Self { draws: draws.unwrap_or(self.draws), ..self.clone() }
    }

    /// Asks a model, or (`alone`) its network.
    pub(super) fn ask(
        &self,
        model: &Model,
        test: &ModelData,
        alone: bool,
        question: &Question,
        watch: &mut dyn FnMut(usize, usize) -> Result<()>,
    ) -> Result<Beyond> {
        let some = test.selected(&(0..self.images.min(test.len())).collect::<Vec<_>>())?;
        let kinds: Vec<Corruption> =
            self.corruptions.iter().map(|name| Corruption::from_name(name)).collect::<Result<_, _>>()?;
        let mut out = Beyond::default();
        let all = kinds.len() * usize::from(SEVERITIES) + self.rotations.len() + 1;
        let mut done = 0;
        let mut shifted = |shift: Shift| -> Result<(f64, f64)> {
            watch(done, all)?;
            done += 1;
            let data = some.shifted(shift, 0)?;
            scores(&predictive(model, &data, question, alone)?, &data.truth)
        };
        if let Some(first) = kinds.first() {
            // All corruptions begin with the same images.
            let (start, _) = shifted(Shift::Corruption(*first, 0))?;
            for kind in &kinds {
                let mut nll = vec![start];
                for severity in 1..=SEVERITIES {
                    nll.push(shifted(Shift::Corruption(*kind, severity))?.0);
                }
                out.by_corruption.push((kind.name().into(), nll));
            }
            let mean = |severity: usize| {
                out.by_corruption.iter().map(|(_, nll)| nll[severity]).sum::<f64>() / kinds.len() as f64
            };
            out.severities = (0..=usize::from(SEVERITIES)).map(mean).collect();
        }
        for &degrees in &self.rotations {
            let (nll, ece) = shifted(Shift::Rotation(f64::from(degrees)))?;
            out.rotations.push((degrees, nll, ece));
        }
        if !self.joint_points.is_empty() {
            let asked =
                Question { joint_points: self.joint_points.clone(), samples: self.draws, ..question.clone() };
            let count = self.joint_images.unwrap_or(self.images).min(some.len());
            let few = some.selected(&(0..count).collect::<Vec<_>>())?;
            for row in model.joint_scores(&few, &asked)? {
                let own = if alone { row.plain } else { row.model };
                out.joint.push((row.points, own.mean));
            }
        }
        if self.bins > 0 {
            let own = predictive(model, test, question, alone)?;
            if let (Predicted::Classes(p), Some(Truth::Classes(labels))) = (&own.predicted, &test.truth) {
                let bins = Classes::new(p, own.width, labels)?.reliability_of_every_class(self.bins)?;
                out.reliability = bins.iter().map(|b| (b.confidence, b.frequency)).collect();
            }
        }
        Ok(out)
    }
}

impl Beyond {
    /// Adds its numbers.
    pub(super) fn add_to(&self, numbers: &mut Value) {
        for (severity, nll) in self.severities.iter().enumerate() {
            numbers[format!("nll_at_severity_{severity}")] = (*nll).into();
        }
        for (degrees, nll, ece) in &self.rotations {
            numbers[format!("nll_turned_by_{degrees}")] = (*nll).into();
            numbers[format!("ece_turned_by_{degrees}")] = (*ece).into();
        }
        for (points, score) in &self.joint {
            numbers[format!("joint_{points}")] = (*score).into();
        }
    }
}

/// Pictures of several methods' answers.
pub(super) fn figures(task: &str, all: &[(String, Beyond)]) -> Vec<Item> {
    let mut items = Vec::new();
    type Points<'a> = &'a dyn Fn(&Beyond) -> (Vec<f64>, Vec<f64>);
    let lines = |of: Points<'_>| -> Vec<Line> {
        let line = |(name, beyond): &(String, Beyond)| {
            let (x, y) = of(beyond);
            Line::new(name.clone(), x, y)
        };
        all.iter().map(line).filter(|line| !line.x.is_empty()).collect()
    };
    let by_severity = lines(&|b| ((0..b.severities.len()).map(|s| s as f64).collect(), b.severities.clone()));
    if !by_severity.is_empty() {
        let title = format!("{task}: corrupted images");
        items.push(Curves::new(title, "severity", "mean NLL over corruptions", by_severity).into());
    }
    type Score = fn(&(u16, f64, f64)) -> f64;
    let by_angle: [(&str, Score); 2] = [("mean NLL", |r| r.1), ("expected calibration error", |r| r.2)];
    for (score, of) in by_angle {
        let turned = lines(&|b| b.rotations.iter().map(|r| (f64::from(r.0), of(r))).unzip());
        if !turned.is_empty() {
            let title = format!("{task}: turned images, {score}");
            items.push(Curves::new(title, "degrees", score, turned).into());
        }
    }
    let reliability = lines(&|b| b.reliability.iter().copied().unzip());
    if !reliability.is_empty() {
        let title = format!("{task}: reliability");
        let caption = "Of the probabilities of all classes. A calibrated method has as many events as its probabilities say.";
        items.push(
            Curves::new(title, "predicted probability", "share that came true", reliability)
                .captioned(caption)
                .into(),
        );
    }
    items
}
