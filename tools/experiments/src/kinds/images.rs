//! Classifiers of images under the four combinations of evidence and prior: whose norm is charged, and whether layers share one precision.
//!
//! Serves table 5.1 and figure 5.3 of the thesis.

use super::Checked;
use super::bands::CurvatureName;
use crate::context::Context;
use crate::error::{ExperimentError, refused};
use crate::images::ImageSettings;
use crate::measured::{Measured, NumberTable};
use crate::toy::deviation;
use crate::training::TrainingSettings;
use posterior_laplace::{
    Data, FitOptions, Laplace, Mode, ModeOptions, PriorKind, Run, Stage, Tune, Wanted, fit,
};
use posterior_likelihoods::{Categorical, Integration, OutputLikelihood, Prediction, PredictiveRule};
use posterior_metrics::{Classes, ClassificationScores};
use posterior_networks::Network;
use posterior_networks::train::{Examples, Loss, Targets};
use posterior_report::{Distribution, Distributions, Item, Note, SummaryRow};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::Instant;
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    data: ImageSettings,
    training: TrainingSettings,
    posterior: PosteriorSettings,
    #[serde(rename = "network")]
    networks: Vec<NetworkSettings>,
}

impl Checked for Settings {}

/// One `[[network]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkSettings {
    name: String,
    architecture: Table,
}

/// The table `[posterior]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
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

/// Probit scores of a posterior (or of the network alone) on examples.
fn scores(
    network: &Network<f32>,
    laplace: Option<&Laplace<f32>>,
    likelihood: &OutputLikelihood,
    test: &dyn Examples<f32>,
    stage: &str,
    context: &mut Context<'_>,
) -> Result<ClassificationScores, ExperimentError> {
    let rule = match laplace {
        Some(laplace) => laplace.rule(Integration::Probit)?,
        None => PredictiveRule::new(likelihood.clone(), Integration::PlugIn)?,
    };
    let classes: usize = network.graph().output_shape().iter().product();
    let (mut probabilities, mut labels) = (Vec::new(), Vec::new());
    let all: Vec<usize> = (0..test.len()).collect();
    for (done, indices) in all.chunks(256).enumerate() {
        context.step(stage, done * 256, all.len())?;
        let (x, targets) = test.batch(indices, None);
        let latent = match laplace {
            Some(laplace) => laplace.latent(network, &x, Wanted::Diagonal)?,
            None => {
                let mean: Vec<f64> = network.forward(&x)?.values().iter().map(|v| f64::from(*v)).collect();
                let covariance = vec![0.0; mean.len()];
                posterior_laplace::Latent {
                    outputs: classes,
                    mean,
                    covariance,
                    wanted: Wanted::Diagonal,
                    clipped: 0,
                }
            }
        };
        for i in 0..indices.len() {
            let Prediction::Classes(own) = rule.predict(latent.example(i))? else {
                return refused("the likelihood is not one of classes");
            };
            probabilities.extend(own);
        }
        if let Targets::Classes(own) = targets {
            labels.extend(own.into_iter().map(|l| l as usize));
        }
    }
    Ok(Classes::new(&probabilities, classes, &labels)?.scores())
}

/// Trains every network, fits four posteriors to each, scores them on test images.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured, ExperimentError> {
    if settings.networks.is_empty() {
        return refused("there is no [[network]]");
    }
    let (train, test) = settings.data.read(context.folder)?;
    let likelihood = OutputLikelihood::Categorical(Categorical::new(settings.data.classes)?);
    let own = &settings.posterior;
    let (mut numbers, mut tables, mut figures, mut facts) = (Map::new(), Vec::new(), Vec::new(), Vec::new());
    for network_settings in &settings.networks {
        let name = &network_settings.name;
        let (network, own_facts) = settings.training.train(
            &network_settings.architecture,
            train.as_ref(),
            Loss::CrossEntropy,
            context,
        )?;
        facts.extend(own_facts.into_iter().map(|f| SummaryRow::new(format!("{name}: {}", f.label), f.value)));
        let score = |s: &ClassificationScores| json!({"nll": s.nll, "accuracy": s.accuracy, "ece": s.ece});
        let stage = format!("{name}: test images");
        let plain = scores(&network, None, &likelihood, test.as_ref(), &stage, context)?;
        let mut cells = Map::new();
        cells.insert("network alone".into(), score(&plain));
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
            let stage = format!("{name}: {cell}");
            let data = Data::new(&network, train.as_ref(), &likelihood);
            let tell =
                |s: Stage, done, total| context.tell(&format!("{stage}: {}", s.describe()), done, total);
            let laplace: Laplace<f32> = fit(&data, &options, &mut Run::new(tell))?;
            let seconds = clock.elapsed().as_secs_f64();
            let found = scores(&network, Some(&laplace), &likelihood, test.as_ref(), &stage, context)?;
            let precisions = laplace.prior().precisions();
            let mut numbers = score(&found);
            numbers["smallest_precision"] = precisions.iter().copied().fold(f64::INFINITY, f64::min).into();
            numbers["largest_precision"] = precisions.iter().copied().fold(0.0, f64::max).into();
            numbers["seconds"] = seconds.into();
            if (mode, &options.prior) == (Mode::Linearised, &PriorKind::Layerwise) {
                let trained: Vec<f64> =
                    laplace.selection().flatten(network.parameters()).into_iter().map(f64::from).collect();
                let (a, b) = (deviation(&trained), deviation(laplace.mode()));
                cells
                    .insert("weights".into(), json!({"trained_spread": a, "mode_spread": b, "ratio": a / b}));
                figures.push(Item::Distributions(histograms(name, trained, laplace.mode().to_vec())));
            }
            let notes =
                laplace.summary.notes.iter().map(|n| Note::information(format!("{name}, {cell}: {n}")));
            context.notes.extend(notes);
            cells.insert(cell.into(), numbers);
        }
        tables.push(NumberTable::by_name(
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
    Ok(Measured {
        numbers: json!({"networks": numbers}),
        series: Value::Null,
        tables,
        figures,
        facts,
        notes: Vec::new(),
    })
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
