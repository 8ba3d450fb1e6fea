//! **The study `[uncertainty]`**: error bars of several methods on the same images: scores, calibration, seconds.

use super::figures::{Judged, figures};
use super::methods::{MethodSettings, Way};
use super::predictive::Scored;
use super::trained::{Learner, Trained};
use crate::kinds::prelude::*;
use posterior_linear::sampled::ConjugateOptions;
use posterior_tomography::patches::Estimator;

/// The table `[uncertainty]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct UncertaintySettings {
    /// Draws of every method that draws.
    pub(crate) samples: usize,
    /// Directions of the preconditioner.
    pub(crate) rank: usize,
    /// How far the solves of draws are pursued.
    pub(crate) conjugate: ConjugateOptions,
    /// How draws become covariances of patches.
    pub(crate) estimator: Estimator,
    /// Added to every variance.
    pub(crate) stabiliser: f64,
    /// Side of the largest patch that is scored; all smaller ones are.
    pub(crate) largest_patch: usize,
    /// Levels of the coverage curve.
    pub(crate) levels: usize,
    /// Bins of histograms.
    pub(crate) bins: usize,
    /// Methods of which reconstruction, error and standard deviation are shown.
    pub(crate) pictures: Vec<String>,
    #[serde(rename = "method")]
    pub(crate) methods: Vec<MethodSettings>,
}

impl UncertaintySettings {
    pub(crate) fn check(&self, side: usize) -> Result<()> {
        check_names("method", self.methods.iter().map(|m| m.name.as_str()))?;
        self.methods.iter().try_for_each(MethodSettings::check)?;
        if self.samples < 2 || self.levels == 0 || self.bins == 0 {
            return refused("[uncertainty]: `samples` are at least 2, `levels` and `bins` at least 1");
        }
        if !(1..=side).contains(&self.largest_patch) {
            return refused(format!(
                "[uncertainty]: `largest_patch` is from 1 to {side}, the side of an image"
            ));
        }
        if !positive(self.stabiliser) {
            return refused("[uncertainty]: `stabiliser` is positive: 1e-6 as published");
        }
        let weighted =
            |m: &&MethodSettings| matches!(&m.way, Way::TotalVariation(own) if own.weight.is_some());
        if let Some(method) = self.methods.iter().find(weighted) {
            return refused(format!(
                "method `{}`: without `weight`: measurements that are held back choose it, and say how large errors are",
                method.name
            ));
        }
        let unknown = |name: &&String| !self.methods.iter().any(|m| m.name == **name);
        match self.pictures.iter().find(unknown) {
            Some(name) => refused(format!("[uncertainty]: `pictures` names `{name}`, which is no method")),
            None => Ok(()),
        }
    }

    /// What a method's scores depend on beside its own settings.
    fn depends(&self) -> String {
        let solves = (self.samples, self.rank, &self.conjugate, self.estimator, self.stabiliser);
        format!("{solves:?} {:?}", (self.largest_patch, self.levels, self.bins))
    }
}

/// Every method on every image: numbers, and the curves behind the pictures.
///
/// # Errors
/// What fails or is interrupted.
pub(crate) fn run(
    settings: &UncertaintySettings,
    learner: &Learner<'_>,
    pictures: &[Trained],
    out: &mut Measured,
    context: &mut Context<'_>,
) -> Result<(Value, Value)> {
    let shape = learner.problem.shape();
    let (mut images, mut series) = (Map::new(), Map::new());
    let mut all: Vec<Vec<Scored>> = vec![Vec::new(); settings.methods.len()];
    for (subject, trained) in learner.problem.subjects.iter().zip(pictures) {
        let (mut own, mut lines) = (Map::new(), Map::new());
        for (k, method) in settings.methods.iter().enumerate() {
            let stage = format!("{}: {}", subject.name, method.name);
            let depends = (learner.depends(), settings.depends(), &subject.name, &method.way);
            let scored: Scored = context.once(&stage, &depends, |context| {
                let predictive = method.predict(settings, learner, (subject, trained), context)?;
                Ok(Scored::new(predictive, &subject.truth, shape, settings)?)
            })?;
            own.insert(method.name.clone(), numbers(&scored));
            lines.insert(
                method.name.clone(),
                json!({"patches": scored.patches, "coverage": scored.coverage, "histograms": scored.histograms}),
            );
            all[k].push(scored);
        }
        images.insert(subject.name.clone(), Value::Object(own));
        series.insert(subject.name.clone(), Value::Object(lines));
    }
    let mut methods = Map::new();
    for (method, scored) in settings.methods.iter().zip(&all) {
        let mut own = Map::new();
        put_all(&mut own, "", scored, &QUANTITIES)?;
        methods.insert(method.name.clone(), Value::Object(own));
    }
    let judged = Judged { settings, shape, subjects: &learner.problem.subjects, all: &all };
    out.figures.extend(figures(&judged));
    out.tables.push(table(settings, "uncertainty.methods", "Error bars, on average over images", "_shown"));
    for subject in &learner.problem.subjects {
        let prefix = format!("uncertainty.images.{}", subject.name);
        out.tables.push(table(settings, &prefix, &format!("Error bars: {}", subject.name), ""));
    }
    Ok((json!({"methods": methods, "images": images}), Value::Object(series)))
}

/// Of one method on one image.
fn numbers(scored: &Scored) -> Value {
    let each = QUANTITIES.iter().map(|(key, _, of)| ((*key).to_string(), json!(of(scored))));
    Value::Object(each.chain([("facts".into(), json!(scored.facts))]).collect())
}

fn mean_square(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>() / values.len().max(1) as f64
}

/// Scores and seconds of a method.
const QUANTITIES: [Quantity<Scored>; 8] = [
    ("psnr", "PSNR, dB", |s| Some(s.psnr)),
    ("marginal", "log density, pixel by pixel", |s| Some(s.marginal())),
    ("joint", "in the largest patches", |s| Some(s.joint())),
    ("covered", "within 90 % intervals", |s| Some(s.covered)),
    ("miscalibration", "miscalibration", |s| Some(s.miscalibration)),
    ("deviation", "root mean variance", |s| Some(mean_square(&s.deviations).sqrt())),
    ("hyperparameter_seconds", "seconds of hyperparameters", |s| Some(s.hyperparameter_seconds)),
    ("prediction_seconds", "of prediction", |s| Some(s.prediction_seconds)),
];

fn table(settings: &UncertaintySettings, prefix: &str, title: &str, ending: &str) -> NumberTable {
    let side = settings.largest_patch;
    let columns = QUANTITIES.map(|(key, head, _)| (format!("{key}{ending}"), head));
    let caption = format!(
        "Log densities of the true image in nats a pixel; the largest patches are {side} x {side}. Miscalibration is the mean distance of the coverage curve from the diagonal. The training of networks is in no column."
    );
    let names = settings.methods.iter().map(|m| m.name.as_str());
    NumberTable::by_name(title, "method", prefix, names, &columns, &caption)
}
