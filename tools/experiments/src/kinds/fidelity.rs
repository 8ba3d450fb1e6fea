//! How far approximate posteriors of a classifier are from the exact one of its tangent model, on test images.
//!
//! The reference has the full curvature. Its precisions, by expectation maximisation, are shared with all others, so that what differs is the approximation alone. Distances: the symmetric divergence of probit
//! predictions, and the Wasserstein distance of the Gaussian outputs (spec `linearised_laplace`, section 7). Serves figure 6.6 of the thesis, left.

use crate::classifier::{Classifier, Curvature, NetworkSettings, Predicted, TurnSettings, Untrained};
use crate::fit_options::overlaid;
use crate::images::ImageSettings;
use crate::kinds::prelude::*;
use crate::training::TrainingSettings;
use posterior_laplace::fixed_mean::FixedMeanKernel;
use posterior_laplace::{Approximation, Data, FitOptions, Mode, PriorKind, Run, Stage, Tune, Wanted, fit};
use posterior_linear::Prior;
use posterior_metrics::{Classes, symmetric_kl};
use std::time::Instant;
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: ImageSettings,
    training: TrainingSettings,
    /// How the reference learns its precisions.
    turns: TurnSettings,
    /// Which weights share one.
    priors: Vec<PriorKind>,
    #[serde(rename = "network")]
    networks: Vec<NetworkSettings>,
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
}

/// One `[[method]]`: exactly one of its ways.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct MethodSettings {
    name: String,
    /// No posterior: the network's own outputs.
    #[serde(default)]
    plain: bool,
    /// Another form of the curvature.
    curvature: Option<Curvature>,
    /// Samples of the exact posterior.
    samples: Option<usize>,
    /// Relative residual to which they are solved.
    #[serde(default = "hundredth")]
    tolerance: f64,
    /// Another fit, whose options are laid over the defaults. It knows one precision: it is left out where there are several.
    options: Option<Table>,
}

fn hundredth() -> f64 {
    0.01
}

/// As in files.
pub(super) fn prior_name(kind: &PriorKind) -> &'static str {
    match kind {
        PriorKind::Scalar => "scalar",
        PriorKind::Layerwise => "layerwise",
        _ => "other",
    }
}

/// Refuses priors that expectation maximisation on classifiers does not know here.
pub(super) fn check_priors(priors: &[PriorKind]) -> Result<()> {
    if priors.is_empty() || priors.iter().any(|p| prior_name(p) == "other") {
        return refused("`priors` are \"scalar\", \"layerwise\" or both");
    }
    Ok(())
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_names("network", self.networks.iter().map(|n| n.name.as_str()))?;
        check_names("method", self.methods.iter().map(|m| m.name.as_str()))?;
        check_priors(&self.priors)?;
        self.turns.check()?;
        for method in &self.methods {
            let ways = usize::from(method.plain)
                + usize::from(method.curvature.is_some())
                + usize::from(method.samples.is_some())
                + usize::from(method.options.is_some());
            if ways != 1 || method.samples == Some(0) || method.name == "exact" {
                return refused(format!(
                    "[[method]] `{}` has exactly one of `plain`, `curvature`, `samples` (at least 1) and `options`, and is not called `exact`",
                    method.name
                ));
            }
            if let Some(over) = &method.options {
                overlaid(FitOptions::default(), over, &method.name)?;
            }
        }
        Ok(())
    }
}

/// What a method found.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    symmetric_kl: f64,
    wasserstein2: f64,
    /// Total variance of the outputs over that of the reference.
    variance_ratio: f64,
    nll: f64,
    accuracy: f64,
    ece: f64,
    seconds: f64,
}

/// The exact posterior.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Reference {
    predicted: Predicted,
    seconds: f64,
}

impl MethodSettings {
    /// Whether it knows what is asked of it.
    fn is_for(&self, kind: &PriorKind) -> bool {
        self.options.is_none() || *kind == PriorKind::Scalar
    }

    fn predicted(
        &self,
        classifier: &mut Classifier,
        prior: &Prior,
        mean: &[f64],
        context: &mut Context<'_>,
    ) -> Result<Predicted> {
        if let Some(curvature) = self.curvature {
            return classifier.by_curvature(curvature, prior, context);
        }
        if let Some(count) = self.samples {
            let samples = classifier.samples(prior, count, self.tolerance, context)?;
            return classifier.predicted(context, &mut |x| classifier.sampled_latent(x, samples.as_ref()));
        }
        let Some(over) = &self.options else {
            return Ok(Predicted::certain(classifier.classes(), mean.to_vec()));
        };
        let options = shared(over, prior.precisions()[0], context.seed, &self.name)?;
        let stage = format!("`{}`", self.name);
        let data = Data::new(&classifier.network, classifier.train.as_ref(), &classifier.likelihood);
        let tell = |s: Stage, done, total| context.tell(&format!("{stage}: {}", s.describe()), done, total);
        let laplace = fit(&data, &options, &mut Run::new(tell))?;
        let latent = &mut |x: &_| Ok(laplace.tangent_latent(&classifier.network, x, Wanted::Full)?);
        classifier.predicted(context, latent)
    }
}

/// Options of a fit whose prior precision is given for good.
fn shared(over: &Table, precision: f64, seed: u64, whose: &str) -> Result<FitOptions> {
    let options = overlaid(FitOptions { seed, ..FitOptions::default() }, over, whose)?;
    if let Approximation::FixedMean(own) = &options.approximation {
        let mut own = own.clone();
        own.initial_amplitude = 1.0 / precision;
        // Another kernel has a prior of its own, which begins there.
        own.learn_amplitude &= own.kernel != FixedMeanKernel::Tangent;
        return Ok(FitOptions { approximation: Approximation::FixedMean(own), ..options });
    }
    if options.approximation.is_learned() {
        return refused(format!(
            "`{whose}`: {} finds a precision of its own, which is none to be compared with the exact posterior",
            options.approximation.name()
        ));
    }
    Ok(FitOptions {
        prior: PriorKind::Scalar,
        initial_precision: precision,
        tune: Tune::None,
        mode: Mode::Trained,
        ..options
    })
}

/// Distances from the reference, and scores.
fn compared(classifier: &Classifier, reference: &Predicted, own: &Predicted, seconds: f64) -> Result<Found> {
    let (c, labels) = (classifier.classes(), classifier.test_labels());
    let (p, q) =
        (reference.probabilities(&classifier.likelihood)?, own.probabilities(&classifier.likelihood)?);
    let mut divergence = 0.0;
    for (p, q) in p.chunks_exact(c).zip(q.chunks_exact(c)) {
        divergence += symmetric_kl(p, q)? / labels.len() as f64;
    }
    let scores = Classes::new(&q, c, &labels)?.scores();
    Ok(Found {
        symmetric_kl: divergence,
        wasserstein2: reference.wasserstein2(own)?,
        variance_ratio: own.variances().sum::<f64>() / reference.variances().sum::<f64>(),
        nll: scores.nll,
        accuracy: scores.accuracy,
        ece: scores.ece,
        seconds,
    })
}

/// Trains every network, fits the exact posterior and all others, and compares.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let (mut out, mut sizes) = (Measured::default(), Vec::new());
    for network in &settings.networks {
        let name = &network.name;
        let mut untrained = Untrained::new(&settings.data, &settings.training, network);
        let (row, fact) = untrained.fact(context)?;
        out.facts.push(row);
        sizes.push(fact.weights as f64);
        for kind in &settings.priors {
            out.numbers["networks"][name][prior_name(kind)] =
                of_prior(settings, kind, &mut untrained, context)?;
            out.tables.push(NumberTable::by_name(
                &format!("{name}: {} prior", prior_name(kind)),
                "posterior",
                &format!("networks.{name}.{}", prior_name(kind)),
                std::iter::once("exact")
                    .chain(settings.methods.iter().filter(|m| m.is_for(kind)).map(|m| m.name.as_str())),
                &[
                    ("symmetric_kl", "symmetric KL"),
                    ("wasserstein2", "W2"),
                    ("variance_ratio", "variance over exact"),
                    ("nll", "NLL"),
                    ("accuracy", "accuracy"),
                    ("ece", "ECE"),
                    ("seconds", "seconds"),
                ],
                "Means over test images. Symmetric KL: nats, both directions added, probit predictions. W2: root of the squared distance of Gaussian outputs with equal means. All posteriors share the precisions of the exact one.",
            ));
        }
    }
    out.figures = figures(settings, &out.numbers, &sizes);
    Ok(out)
}

/// One prior of one network.
fn of_prior(
    settings: &Settings,
    kind: &PriorKind,
    untrained: &mut Untrained<'_>,
    context: &mut Context<'_>,
) -> Result<Value> {
    let stage = prior_name(kind);
    let depends = (untrained.depends(), settings.turns, kind);
    let learned = context.once(&format!("{stage}: exact precisions"), &depends, |context| {
        untrained.trained(context)?.learn(Curvature::Full, kind, &settings.turns, context)
    })?;
    let reference: Reference = context.once(&format!("{stage}: exact posterior"), &depends, |context| {
        let classifier = untrained.trained(context)?;
        let prior = classifier.prior(kind, 1.0)?.with_precisions(learned.last())?;
        let clock = Instant::now();
        let predicted = classifier.by_curvature(Curvature::Full, &prior, context)?;
        Ok(Reference { predicted, seconds: clock.elapsed().as_secs_f64() })
    })?;
    let exact: Found = context.once(&format!("{stage}: exact scores"), &depends, |context| {
        let classifier = untrained.trained(context)?;
        compared(classifier, &reference.predicted, &reference.predicted, reference.seconds)
    })?;
    let mut own = json!({ "exact": exact });
    own["exact"]["effective_dimension"] =
        learned.effective_dimensions.last().map_or(f64::NAN, |g| g.iter().sum()).into();
    own["exact"]["smallest_precision"] = learned.last().iter().copied().fold(f64::INFINITY, f64::min).into();
    own["exact"]["largest_precision"] = learned.last().iter().copied().fold(0.0, f64::max).into();
    for method in settings.methods.iter().filter(|m| m.is_for(kind)) {
        let depends = (depends, method);
        let found: Found = context.once(&format!("{stage}: {}", method.name), &depends, |context| {
            let classifier = untrained.trained(context)?;
            let prior = classifier.prior(kind, 1.0)?.with_precisions(learned.last())?;
            let clock = Instant::now();
            let predicted = method.predicted(classifier, &prior, &reference.predicted.mean, context)?;
            let seconds = clock.elapsed().as_secs_f64();
            compared(classifier, &reference.predicted, &predicted, seconds)
        })?;
        own[&method.name] = json!(found);
    }
    Ok(own)
}

/// Distances against the size of the network, where there are several.
fn figures(settings: &Settings, numbers: &Value, sizes: &[f64]) -> Vec<posterior_report::Item> {
    let mut figures = Vec::new();
    if settings.networks.len() < 2 {
        return figures;
    }
    for kind in &settings.priors {
        for (key, what) in [("symmetric_kl", "symmetric KL, nats"), ("wasserstein2", "W2 of the outputs")] {
            let line = |method: &MethodSettings| {
                let at = |network: &NetworkSettings| {
                    numbers["networks"][&network.name][prior_name(kind)][&method.name][key]
                        .as_f64()
                        .unwrap_or(f64::NAN)
                };
                let mut points: Vec<(f64, f64)> =
                    sizes.iter().copied().zip(settings.networks.iter().map(at)).collect();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                let (x, y) = points.into_iter().unzip();
                Line::new(method.name.clone(), x, y)
            };
            let lines = settings.methods.iter().filter(|m| m.is_for(kind)).map(line).collect();
            let title = format!("Distance from the exact posterior, {} prior", prior_name(kind));
            figures.push(Curves::new(title, "weights", what, lines).logarithmic(true, true).into());
        }
    }
    figures
}
