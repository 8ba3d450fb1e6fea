//! Classifiers of images under the four combinations of evidence and prior: whose norm is charged, and whether layers share one precision.
//!
//! Serves table 5.1 and figure 5.3 of the thesis.

use super::bands::CurvatureName;
use crate::classifier::{NetworkSettings, Predicted, Untrained};
use crate::images::ImageSettings;
use crate::kinds::prelude::*;
use crate::toy::deviation;
use crate::training::TrainingSettings;
use posterior_laplace::{
    Data, FitOptions, Laplace, Mode, ModeOptions, PriorKind, Run, Stage, Tune, Wanted, fit,
};
use posterior_likelihoods::Integration;
use posterior_metrics::ClassificationScores;
use posterior_report::{Distribution, Distributions};
use std::time::Instant;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: ImageSettings,
    training: TrainingSettings,
    posterior: PosteriorSettings,
    #[serde(rename = "network")]
    networks: Vec<NetworkSettings>,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_names("network", self.networks.iter().map(|n| n.name.as_str()))
    }
}

/// The table `[posterior]`.
#[derive(Deserialize)]
struct PosteriorSettings {
    #[serde(default)]
    curvature: CurvatureName,
    /// Whether gains and offsets of normalisation layers are uncertain.
    #[serde(default)]
    affine: bool,
    /// Starting precision.
    initial_precision: f64,
    /// Rounds of mode and precisions at most.
    alternations: usize,
    /// Newton steps of each mode at most.
    newton_steps: usize,
    /// Passes with products for each of them at most.
    inner_steps: usize,
    /// The mode is found when a step promises less, nats.
    tolerance: f64,
}

/// Evidence and prior, as they are called in the results.
const CELLS: [(&str, Mode, PriorKind); 4] = [
    ("mode, single", Mode::Linearised, PriorKind::Scalar),
    ("mode, layerwise", Mode::Linearised, PriorKind::Layerwise),
    ("trained, single", Mode::Trained, PriorKind::Scalar),
    ("trained, layerwise", Mode::Trained, PriorKind::Layerwise),
];

/// Trains every network, fits four posteriors to each, scores them on test images.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let own = &settings.posterior;
    let mut numbers = Map::new();
    let mut out = Measured::default();
    let score = |s: ClassificationScores| json!({"nll": s.nll, "accuracy": s.accuracy, "ece": s.ece});
    for network in &settings.networks {
        let name = &network.name;
        let mut untrained = Untrained::new(&settings.data, &settings.training, network);
        out.facts.push(untrained.fact(context)?.0);
        let classifier = untrained.trained(context)?;
        let network = &classifier.network;
        let mut cells = Map::new();
        for (cell, mode, prior) in CELLS {
            let clock = Instant::now();
            let options = FitOptions {
                affine: own.affine,
                approximation: own.curvature.approximation(),
                prior,
                initial_precision: own.initial_precision,
                tune: Tune::Evidence,
                mode,
                mode_options: ModeOptions {
                    newton_steps: own.newton_steps,
                    inner_steps: own.inner_steps,
                    tolerance: own.tolerance,
                    ..ModeOptions::default()
                },
                alternations: own.alternations,
                integration: Integration::Probit,
                seed: context.seed,
                ..FitOptions::default()
            };
            let data = Data::new(network, classifier.train.as_ref(), &classifier.likelihood);
            let tell = |s: Stage, done, total| {
                context.tell(&format!("{name}: {cell}: {}", s.describe()), done, total)
            };
            let laplace: Laplace<f32> = fit(&data, &options, &mut Run::new(tell))?;
            let seconds = clock.elapsed().as_secs_f64();
            let predicted = classifier
                .predicted(context, &mut |x| Ok(laplace.latent(network, x, Wanted::Diagonal)?))?;
            if cells.is_empty() {
                let plain = Predicted::certain(classifier.classes(), predicted.mean.clone());
                cells.insert("network alone".into(), score(classifier.scores(&plain)?));
            }
            let mut numbers = score(classifier.scores(&predicted)?);
            let precisions = laplace.prior().precisions();
            numbers["smallest_precision"] = precisions.iter().copied().fold(f64::INFINITY, f64::min).into();
            numbers["largest_precision"] = precisions.iter().copied().fold(0.0, f64::max).into();
            numbers["seconds"] = seconds.into();
            if (mode, &options.prior) == (Mode::Linearised, &PriorKind::Layerwise) {
                let trained: Vec<f64> =
                    laplace.selection().flatten(network.parameters()).into_iter().map(f64::from).collect();
                let (a, b) = (deviation(&trained), deviation(laplace.mode()));
                cells
                    .insert("weights".into(), json!({"trained_spread": a, "mode_spread": b, "ratio": a / b}));
                out.figures.push(Item::Distributions(histograms(name, trained, laplace.mode().to_vec())));
            }
            let notes =
                laplace.summary.notes.iter().map(|n| Note::information(format!("{name}, {cell}: {n}")));
            context.notes.extend(notes);
            cells.insert(cell.into(), numbers);
        }
        out.tables.push(NumberTable::by_name(
            name,
            "evidence and prior",
            &format!("networks.{name}"),
            std::iter::once("network alone").chain(CELLS.iter().map(|c| c.0)),
            &[
                ("nll", "test NLL"),
                ("accuracy", "accuracy"),
                ("ece", "ECE"),
                ("smallest_precision", "smallest precision"),
                ("largest_precision", "largest precision"),
                ("seconds", "seconds"),
            ],
            "Probit predictive. `mode` charges the evidence with the norm of the linearised model's optimum, `trained` with that of the trained weights.",
        ));
        numbers.insert(name.clone(), Value::Object(cells));
    }
    out.numbers = json!({ "networks": numbers });
    Ok(out)
}

fn histograms(name: &str, trained: Vec<f64>, mode: Vec<f64>) -> Distributions {
    // Most weights of both lie within; the outermost bins count the rest.
    let reach = 4.0 * deviation(&trained).max(deviation(&mode));
    Distributions {
        title: format!("{name}: weights"),
        x: "weight".into(),
        range: Some((-reach, reach)),
        series: vec![
            Distribution { name: "trained".into(), values: trained },
            Distribution { name: "mode of the linearised model".into(), values: mode },
        ],
        caption: "The optimum of the linearised model is far shorter than the trained weights.".into(),
    }
}
