//! Methods that see every row once, each in a few variants.

use super::assumed_density::AssumedDensity;
use super::descent::{DescentOptions, SoftmaxDescent};
use super::labels::LabelTargets;
use super::stream::Stream;
use crate::kinds::prelude::*;
use crate::labels;
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_linear::streaming::{StreamLatents, StreamingModel};
use std::time::Instant;

/// One `[[method]]`: exactly one of its lists, whose entries are its variants.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct MethodSettings {
    pub(super) name: String,
    /// Labels as numbers: how their Gaussians are chosen, with `pseudo_counts`.
    matching: Option<Matching>,
    #[serde(default)]
    pseudo_counts: Vec<f64>,
    /// Regression on indicators: variances of the noise.
    #[serde(default)]
    indicators: Vec<f64>,
    /// Assumed-density filtering: damping of what a row says, 1 for none.
    #[serde(default)]
    damping: Vec<f64>,
    /// Gradient descent on the softmax model.
    #[serde(default)]
    step_sizes: Vec<f64>,
    #[serde(default = "usual_momentum")]
    momentum: f64,
    /// Rows of a step of it.
    #[serde(default = "one")]
    batch: usize,
}

fn usual_momentum() -> f64 {
    0.9
}

fn one() -> usize {
    1
}

/// What all methods share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shared {
    pub(super) points: Vec<usize>,
    pub(super) choose_rows: usize,
    pub(super) batch: usize,
    pub(super) prior_variance: f64,
}

/// One way to learn, with its one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Variant {
    Targets(LabelTargets),
    Filter { damping: f64 },
    Descent(DescentOptions),
}

impl MethodSettings {
    /// Refuses what no variant can be made of.
    pub(super) fn check(&self) -> Result<()> {
        let lists = [&self.pseudo_counts, &self.indicators, &self.damping, &self.step_sizes];
        if lists.iter().filter(|l| !l.is_empty()).count() != 1
            || self.matching.is_some() == self.pseudo_counts.is_empty()
        {
            return refused(format!(
                "[[method]] `{}` has exactly one of `pseudo_counts` (with `matching`), `indicators`, `damping` and `step_sizes`",
                self.name
            ));
        }
        for (_, variant) in self.variants()? {
            variant.learner(2, 2, 1.0)?;
        }
        Ok(())
    }

    /// Its variants with their numbers.
    pub(super) fn variants(&self) -> Result<Vec<(f64, Variant)>> {
        let mut out = Vec::new();
        for &value in &self.pseudo_counts {
            let gaussian_labels = Gaussianised::new(self.matching.unwrap_or_default(), value)?;
            out.push((value, Variant::Targets(LabelTargets::Gaussianised(gaussian_labels))));
        }
        let indicators = |&v: &f64| (v, Variant::Targets(LabelTargets::Indicators { variance: v }));
        out.extend(self.indicators.iter().map(indicators));
        out.extend(self.damping.iter().map(|&v| (v, Variant::Filter { damping: v })));
        let (momentum, batch) = (self.momentum, self.batch);
        let options = |&step_size: &f64| DescentOptions { step_size, momentum, batch };
        out.extend(self.step_sizes.iter().map(|v| (*v, Variant::Descent(options(v)))));
        Ok(out)
    }

    /// What the number of a variant is.
    pub(super) fn parameter(&self) -> &'static str {
        match () {
            () if !self.pseudo_counts.is_empty() => "pseudo-count",
            () if !self.indicators.is_empty() => "noise variance",
            () if !self.damping.is_empty() => "damping",
            () => "step size",
        }
    }
}

/// A method on its way.
enum Learner {
    Sums(Box<StreamingModel>, LabelTargets),
    Filter(AssumedDensity),
    Descent(SoftmaxDescent),
}

impl Variant {
    /// Before the first row: functions `N(m, v)` at features of mean square 1, half of v that of the constant. Targets of labels have their mean over the classes as m, which no probability depends on.
    fn learner(&self, features: usize, classes: usize, variance: f64) -> Result<Learner> {
        let share = (features - 1).max(1) as f64;
        let precision = Mat::from_fn(features, features, |i, j| match (i == j, i) {
            (false, _) => 0.0,
            (true, 0) => 2.0 / variance,
            (true, _) => 2.0 * share / variance,
        });
        let constant = |mean: f64| Mat::from_fn(features, classes, |i, _| if i == 0 { mean } else { 0.0 });
        Ok(match self {
            Self::Targets(targets) => {
                let (one, _) = targets.observations(&[0], classes)?;
                let mean = one.row(0).iter().sum::<f64>() / classes as f64;
                let means = constant(mean);
                let model = StreamingModel::new(precision.as_ref(), means.as_ref())?;
                Learner::Sums(Box::new(model), *targets)
            }
            Self::Filter { damping } => {
                Learner::Filter(AssumedDensity::new(precision.as_ref(), constant(0.0).as_ref(), *damping)?)
            }
            Self::Descent(options) => Learner::Descent(SoftmaxDescent::new(features, classes, *options)?),
        })
    }

    /// One pass over a stream, scored on the way; with `maps` a picture of the plane at each point instead.
    pub(super) fn course(
        &self,
        stream: &Stream,
        shared: &Shared,
        maps: bool,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<VariantResult> {
        let (p, rows) = (stream.features.ncols(), stream.labels.len());
        let mut learner = self.learner(p, stream.classes, shared.prior_variance)?;
        let last = shared.points.iter().copied().filter(|n| *n <= rows).max().unwrap_or(0);
        let (mut course, mut at, mut ahead) = (VariantResult::default(), 0, 0.0);
        while at < last {
            context.step(stage, at, last)?;
            let next_point = shared.points.iter().copied().filter(|n| *n > at).min().unwrap_or(last);
            let piece = if at < shared.choose_rows { shared.batch } else { PIECE };
            let until = (at + piece).min(next_point);
            let features = stream.features.as_ref().subrows(at, until - at);
            let labels = &stream.labels[at..until];
            if at < shared.choose_rows && !maps {
                let probabilities = learner.probabilities(features)?;
                ahead += score(&probabilities, labels, stream.classes).log_likelihood * labels.len() as f64;
                course.chosen_on = until;
            }
            let clock = Instant::now();
            learner.learn(features, labels, stream.classes)?;
            course.seconds += clock.elapsed().as_secs_f64();
            at = until;
            if !shared.points.contains(&at) {
                continue;
            }
            if let (true, Some(grid)) = (maps, &stream.grid) {
                let found = learner.probabilities(grid.features.as_ref())?;
                let entropy = |p: &[f64]| -p.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>();
                course.entropies.push(found.chunks(stream.classes).map(entropy).collect());
                continue;
            }
            let found = learner.probabilities(stream.test_features.as_ref())?;
            let Score { accuracy, log_likelihood } = score(&found, &stream.test_labels, stream.classes);
            course.points.push(Point { rows: at, accuracy, log_likelihood });
        }
        course.ahead = ahead / course.chosen_on.max(1) as f64;
        course.skipped = learner.skipped();
        Ok(course)
    }
}

/// Rows that are learned together where nobody looks.
const PIECE: usize = 500;

impl Learner {
    fn learn(&mut self, features: MatRef<'_, f64>, labels: &[usize], classes: usize) -> Result<()> {
        match self {
            Self::Sums(model, targets) => {
                let (targets, precisions) = targets.observations(labels, classes)?;
                model.learn(features, targets.as_ref(), precisions.as_ref())?;
            }
            Self::Filter(model) => model.learn(features, labels)?,
            Self::Descent(model) => model.learn(features, labels)?,
        }
        Ok(())
    }

    /// Class probabilities, rows x classes: averages of the softmax over independent functions, by quadrature.
    fn probabilities(&self, features: MatRef<'_, f64>) -> Result<Vec<f64>> {
        let StreamLatents { means, variances } = match self {
            Self::Sums(model, _) => model.condition()?.latents(features)?,
            Self::Filter(model) => model.latents(features)?,
            Self::Descent(model) => model.latents(features)?,
        };
        labels::probabilities(means.as_ref(), variances.as_ref())
    }

    fn skipped(&self) -> u64 {
        match self {
            Self::Filter(model) => model.skipped(),
            Self::Sums(..) | Self::Descent(_) => 0,
        }
    }
}

/// What became of a variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct VariantResult {
    pub(super) points: Vec<Point>,
    /// Mean log probability of the classes of the first rows, each predicted before it was learned; nats.
    pub(super) ahead: f64,
    chosen_on: usize,
    /// Functions that were passed over.
    pub(super) skipped: u64,
    /// Seconds of learning alone.
    pub(super) seconds: f64,
    /// Entropies over the plane at each point, where these were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) entropies: Vec<Vec<f64>>,
}

/// Scores after some rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) rows: usize,
    pub(super) accuracy: f64,
    /// Mean log probability of the class, nats.
    pub(super) log_likelihood: f64,
}

struct Score {
    accuracy: f64,
    log_likelihood: f64,
}

fn score(probabilities: &[f64], labels: &[usize], classes: usize) -> Score {
    let (mut hits, mut sum) = (0.0, 0.0);
    for (p, label) in probabilities.chunks(classes).zip(labels) {
        let best = (0..classes).max_by(|a, b| p[*a].total_cmp(&p[*b]).then(b.cmp(a)));
        hits += f64::from(u8::from(best == Some(*label)));
        // A probability that underflows is a bounded surprise, as everywhere here.
        sum += p[*label].max(f64::MIN_POSITIVE).ln();
    }
    let rows = labels.len().max(1) as f64;
    Score { accuracy: hits / rows, log_likelihood: sum / rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_scored_by_their_own_class() {
        let found = score(&[0.5, 0.25, 0.25, 0.1, 0.1, 0.8], &[0, 1], 3);
        assert_eq!(found.accuracy, 0.5);
        assert!((found.log_likelihood - 0.5 * (0.5f64.ln() + 0.1f64.ln())).abs() < 1e-15);
    }

    /// With no rows learned all classes are alike, for every way to learn.
    #[test]
    fn before_the_first_row_no_class_is_preferred() {
        let gaussian_labels = Gaussianised::new(Matching::Variational, 0.1).unwrap();
        let options = DescentOptions { step_size: 0.1, momentum: 0.9, batch: 1 };
        for variant in [
            Variant::Targets(LabelTargets::Gaussianised(gaussian_labels)),
            Variant::Targets(LabelTargets::Indicators { variance: 0.1 }),
            Variant::Filter { damping: 1.0 },
            Variant::Descent(options),
        ] {
            let learner = variant.learner(3, 4, 5.0).unwrap();
            let x = Mat::from_fn(2, 3, |i, j| if j == 0 { 1.0 } else { (i + j) as f64 });
            let p = learner.probabilities(x.as_ref()).unwrap();
            assert!(p.iter().all(|p| (p - 0.25).abs() < 1e-9), "{variant:?}: {p:?}");
        }
    }
}
