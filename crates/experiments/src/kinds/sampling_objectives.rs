//! Posterior samples by descent on two objectives with one minimum: how far the weights are from the exact samples, by step and by size of the batches.
//!
//! One objective has the noise of the data in its targets, the other in its regulariser, where batches add no noise of their own. Serves figure 4.2 of the thesis, left.

use super::Checked;
use crate::classifier::{Classifier, NetworkSettings, Untrained, exact_samples, leading};
use crate::context::Context;
use crate::error::{ExperimentError, refused};
use crate::images::ImageSettings;
use crate::measured::{Measured, NumberTable};
use crate::training::TrainingSettings;
use faer::{Mat, MatRef};
use posterior_laplace::PriorKind;
use posterior_linear::sampled::{
    Averaging, DescentOptions, GradientVariances, Noise, Objective, SampleObjective, SampledModel, descend,
    gradient_variances,
};
use posterior_optim::{Reason, Signal};
use posterior_report::{Curves, Line};
use posterior_tangent::{Observed, Tangent};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Settings of the kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    data: ImageSettings,
    training: TrainingSettings,
    network: NetworkSettings,
    descent: Descents,
    /// Sizes of batches, ascending.
    batches: Vec<usize>,
    /// Single examples by whose gradients variances are estimated: the first so many.
    examples: usize,
}

/// The table `[descent]`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Descents {
    /// The prior precision.
    precision: f64,
    samples: usize,
    /// Steps of every descent.
    steps: usize,
    /// Steps between two looks at the error.
    every: usize,
    momentum: f64,
    /// Relative residual of the exact samples.
    tolerance: f64,
}

impl Checked for Settings {
    fn check(&self) -> Result<(), ExperimentError> {
        let own = &self.descent;
        let positive = |v: f64| v > 0.0 && v.is_finite();
        if self.batches.is_empty() || self.batches[0] == 0 || !self.batches.is_sorted_by(|a, b| a < b) {
            return refused("`batches` are sizes of batches, ascending, at least one");
        }
        if self.batches.last().is_some_and(|b| *b > self.data.train) {
            return refused(format!("`batches`: there are {} training images", self.data.train));
        }
        if own.samples == 0 || own.steps == 0 || own.every == 0 || self.examples == 0 {
            return refused("`samples`, `steps`, `every` and `examples` are at least 1");
        }
        if !(positive(own.precision) && positive(own.tolerance) && own.tolerance < 1.0) {
            return refused("`precision` is positive, `tolerance` lies between 0 and 1");
        }
        Ok(())
    }
}

/// Both objectives, as they are called in the results.
const OBJECTIVES: [(&str, Objective); 2] =
    [("low-variance", Objective::LowVariance), ("standard", Objective::Standard)];

/// Noise and exact samples, which all descents share.
struct Exact {
    noise: Noise,
    samples: Mat<f64>,
}

/// The errors of a descent.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Errors {
    /// Steps taken, and the relative error of the weights there: of the average that the descent returns, the mean over samples.
    points: Vec<(usize, f64)>,
    /// The step size.
    step_size: f64,
    /// How often it was halved.
    restarts: usize,
}

/// `|z_j - zeta_j| / |zeta_j|`, the mean over the samples.
fn relative_error(found: MatRef<'_, f64>, exact: MatRef<'_, f64>) -> f64 {
    let k = exact.ncols();
    let one = |j: usize| {
        let away: f64 = found.col(j).iter().zip(exact.col(j).iter()).map(|(a, b)| (a - b).powi(2)).sum();
        (away / exact.col(j).squared_norm_l2()).sqrt()
    };
    (0..k).map(one).sum::<f64>() / k as f64
}

impl Descents {
    /// Precisions of each weight.
    fn precisions(&self, classifier: &Classifier) -> Result<Vec<f64>, ExperimentError> {
        let prior = classifier.prior(&PriorKind::Scalar, self.precision)?;
        Ok(prior.precision_of_each(0..prior.dimension()))
    }

    fn exact(&self, classifier: &Classifier, context: &mut Context<'_>) -> Result<Exact, ExperimentError> {
        let tangent = Tangent::new(&classifier.network, &classifier.selection);
        let observed = Observed { examples: classifier.train.as_ref(), likelihood: &classifier.likelihood };
        let model = SampledModel::new(&tangent, &observed, &classifier.likelihood);
        let seed = context.seed;
        let mut tell = |done, all| context.tell("exact samples", done, all);
        let curvature = leading(&model, self.samples, seed, &mut tell)?;
        let noise = Noise::draw(&model, 0..self.samples, seed, &mut tell)?;
        let precisions = self.precisions(classifier)?;
        let samples = exact_samples(&model, &noise, &precisions, &curvature, self.tolerance, &mut tell)?;
        Ok(Exact { noise, samples })
    }

    fn errors(
        &self,
        classifier: &Classifier,
        exact: &Exact,
        (name, objective): (&str, Objective),
        batch: usize,
        context: &mut Context<'_>,
    ) -> Result<Errors, ExperimentError> {
        let tangent = Tangent::new(&classifier.network, &classifier.selection);
        let observed = Observed { examples: classifier.train.as_ref(), likelihood: &classifier.likelihood };
        let model = SampledModel::new(&tangent, &observed, &classifier.likelihood);
        let precisions = self.precisions(classifier)?;
        let per_epoch = (classifier.train.len() / batch).max(1);
        let options = DescentOptions {
            epochs: self.steps.div_ceil(per_epoch),
            batch,
            momentum: self.momentum,
            seed: context.seed,
            ..DescentOptions::default()
        };
        let start = exact.noise.prior_draws(&precisions)?;
        let mut out = Errors {
            points: vec![(0, relative_error(start.as_ref(), exact.samples.as_ref()))],
            step_size: f64::NAN,
            restarts: 0,
        };
        let mut objective = SampleObjective::new(&model, &exact.noise, &precisions, 1.0, objective)?;
        let stage = format!("{name}, batches of {batch}");
        let (_, reason) = descend(
            "the samples",
            &mut objective,
            start,
            None,
            Averaging::Geometric,
            &options,
            &mut |progress, state| {
                if state.restarts > out.restarts {
                    out.points.truncate(1);
                }
                (out.step_size, out.restarts) = (state.step_size, state.restarts);
                let last = progress.step == progress.steps_planned;
                if progress.step > 0 && (progress.step % self.every == 0 || last) {
                    out.points.push((
                        progress.step,
                        relative_error(state.average.as_ref(), exact.samples.as_ref()),
                    ));
                    return context.tell(&stage, progress.step, progress.steps_planned);
                }
                Signal::Continue
            },
        )?;
        if reason == Reason::Interrupted {
            return Err(ExperimentError::Interrupted);
        }
        Ok(out)
    }
}

/// Trains the network, solves for samples exactly, and descends.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured, ExperimentError> {
    let own = &settings.descent;
    let mut untrained = Untrained::new(&settings.data, &settings.training, &settings.network);
    let (fact, _) = untrained.fact(context)?;
    let depends = (untrained.depends(), *own);
    let mut exact: Option<Exact> = None;
    let mut found = Vec::new();
    for one in OBJECTIVES {
        for &batch in &settings.batches {
            let stage = format!("{}, batches of {batch}", one.0);
            let errors: Errors = context.once(&stage, &depends, |context| {
                let classifier = untrained.trained(context)?;
                if exact.is_none() {
                    exact = Some(own.exact(classifier, context)?);
                }
                match &exact {
                    Some(exact) => own.errors(classifier, exact, one, batch, context),
                    None => refused("there are no exact samples"),
                }
            })?;
            found.push((one.0, batch, errors));
        }
    }
    let variances: GradientVariances =
        context.once("gradient variances", &(depends, settings.examples), |context| {
            let classifier = untrained.trained(context)?;
            let exact = match exact.take() {
                Some(exact) => exact,
                None => own.exact(classifier, context)?,
            };
            let tangent = Tangent::new(&classifier.network, &classifier.selection);
            let observed =
                Observed { examples: classifier.train.as_ref(), likelihood: &classifier.likelihood };
            let model = SampledModel::new(&tangent, &observed, &classifier.likelihood);
            let examples: Vec<usize> = (0..settings.examples.min(classifier.train.len())).collect();
            let mut tell = |done, all| context.tell("gradient variances", done, all);
            let to = (own.precision, 1.0);
            Ok(gradient_variances(&model, &exact.noise, exact.samples.as_ref(), to, &examples, &mut tell)?)
        })?;
    Ok(measured(settings, fact, &found, variances))
}

fn measured(
    settings: &Settings,
    fact: posterior_report::SummaryRow,
    found: &[(&str, usize, Errors)],
    variances: GradientVariances,
) -> Measured {
    let last = |e: &Errors| e.points.last().map_or(f64::NAN, |p| p.1);
    let mut objectives = Map::new();
    for (name, ..) in OBJECTIVES {
        let of = |(_, batch, errors): &(&str, usize, Errors)| {
            let numbers = json!({"start": errors.points[0].1, "error": last(errors), "step_size": errors.step_size, "restarts": errors.restarts});
            (format!("batch {batch}"), numbers)
        };
        let mut own: Map<String, Value> = found.iter().filter(|f| f.0 == name).map(of).collect();
        // For claims about any sizes.
        for (which, batch) in [("smallest", settings.batches.first()), ("largest", settings.batches.last())] {
            let numbers = batch.and_then(|b| own.get(&format!("batch {b}"))).cloned();
            own.insert(which.into(), numbers.unwrap_or_default());
        }
        objectives.insert(name.into(), Value::Object(own));
    }
    // The smallest batches with which the one objective comes as close as the other with the largest.
    let largest = settings.batches.last().copied().unwrap_or(1);
    let bar = found.iter().find(|f| f.0 == "standard" && f.1 == largest).map_or(f64::NAN, |f| last(&f.2));
    let equal = found.iter().find(|f| f.0 == "low-variance" && last(&f.2) <= bar).map(|f| f.1);
    let numbers = json!({
        "objectives": objectives,
        "batch_advantage": equal.map(|batch| largest as f64 / batch as f64),
        "variances": {
            "trace": variances.trace,
            "published": variances.published,
            "published_criterion": variances.published / variances.trace,
            "difference": variances.difference,
        },
    });
    let rows: Vec<String> = settings.batches.iter().map(|b| format!("batch {b}")).collect();
    let table = |name: &str| {
        NumberTable::by_name(
            &format!("Errors of samples: {name} objective"),
            "examples of a batch",
            &format!("objectives.{name}"),
            rows.iter().map(String::as_str),
            &[
                ("start", "at the start"),
                ("error", "after all steps"),
                ("step_size", "step size"),
                ("restarts", "halvings"),
            ],
            "Relative error of the weights, the mean over samples, of the average that descent returns.",
        )
    };
    let line = |(name, batch, errors): &(&str, usize, Errors)| {
        let (x, y) = errors.points.iter().map(|p| (p.0 as f64, p.1)).unzip();
        Line::new(format!("{name}, {batch}"), x, y)
    };
    Measured {
        series: found
            .iter()
            .map(|(name, batch, errors)| (format!("{name}, batch {batch}"), json!(errors.points)))
            .collect::<Map<_, _>>()
            .into(),
        tables: vec![
            table(OBJECTIVES[0].0),
            table(OBJECTIVES[1].0),
            NumberTable::of_quantities(
                "Variances of gradients at the solution",
                ["quantity", "value"],
                &[
                    ("trace of the curvature", "variances.trace"),
                    ("2 a γ, of the published criterion", "variances.published"),
                    ("standard minus low-variance, single examples", "variances.difference"),
                ],
            ),
        ],
        figures: vec![
            Curves::new(
                "Errors of posterior samples",
                "step",
                "relative error of the weights",
                found.iter().map(line).collect(),
            )
            .logarithmic(false, true)
            .captioned("Names end in the number of examples of a batch.")
            .into(),
        ],
        facts: vec![fact],
        notes: Vec::new(),
        numbers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_relative_to_each_sample() {
        let exact = Mat::from_fn(2, 2, |i, j| if i == j { 2.0 } else { 0.0 });
        let found = Mat::from_fn(2, 2, |i, j| if i == j { 3.0 } else { 0.0 });
        assert_eq!(relative_error(found.as_ref(), exact.as_ref()), 0.5);
        let half = Mat::from_fn(2, 2, |i, j| if i == 0 && j == 0 { 2.0 } else { 0.0 });
        assert_eq!(relative_error(half.as_ref(), exact.as_ref()), 0.5);
    }
}
