//! Two estimators of the effective dimension from few posterior samples, held against closed forms (thesis figure 6.3).

use super::settings;
use crate::ExperimentError;
use crate::context::Context;
use crate::measured::{Measured, NumberTable};
use crate::tangent::TrainedToy;
use crate::toy::{ToySettings, mean};
use crate::training::TrainingSettings;
use posterior_linalg::random::Streams;
use posterior_linear::Prior;
use posterior_linear::effective_dimension::{
    prediction_space, prediction_space_variance, weight_space, weight_space_variance,
};
use posterior_linear::features::{DenseFeatures, Numbered};
use posterior_linear::hyperparameters::{Evidence, EvidenceModel, MStep};
use posterior_report::{Distribution, Distributions, Item};
use serde::Deserialize;
use serde_json::json;
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    data: ToySettings,
    network: Table,
    training: TrainingSettings,
    /// Samples of one estimate.
    samples: usize,
    /// Estimates.
    repetitions: usize,
    /// The prior precision; by the evidence if absent.
    precision: Option<f64>,
}

fn variance(values: &[f64]) -> f64 {
    let centre = mean(values.iter().copied());
    values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// Trains the network, draws exact posterior samples, estimates.
pub(crate) fn run(table: &Table, context: &mut Context<'_>) -> Result<Measured, ExperimentError> {
    let settings: Settings = settings(table)?;
    let (samples, repetitions) = (settings.samples, settings.repetitions);
    if samples == 0 || repetitions < 2 || samples.saturating_mul(repetitions) > 10_000_000 {
        return Err(ExperimentError::Setting(
            "`samples` must be at least 1, `repetitions` at least 2, and their product at most ten million"
                .into(),
        ));
    }
    let trained = TrainedToy::new(&settings.data, &settings.network, &settings.training, context)?;
    let tangent = trained.tangent(&trained.network)?;
    let d = tangent.dimension();
    let precision = match settings.precision {
        Some(precision) => precision,
        None => {
            let start = Prior::scalar(d, 1.0)?;
            let learned = tangent.learn(&start, &Evidence::Mode, MStep::MacKay, 1000)?;
            learned.prior.precisions()[0]
        }
    };
    let model = tangent.model()?;
    let eigenvalues = model.curvature().eigenvalues()?.unwrap_or_default();
    let exact: f64 = eigenvalues.iter().map(|l| l / (l + precision)).sum();
    let prior = Prior::scalar(d, precision)?;
    let posterior = tangent.posterior(&vec![precision; d])?;
    let features = DenseFeatures::new(tangent.features.clone(), 1)?;
    let source = Numbered::new(tangent.targets.len(), Vec::new())?;
    let mut rng = Streams::new(context.seed).stream("experiment/effective-dimension");
    // Whole repetitions at a time, a few hundred samples in memory.
    let at_once = (512 / samples).clamp(1, repetitions);
    let (mut by_predictions, mut by_weights) = (Vec::new(), Vec::new());
    while by_predictions.len() < repetitions {
        context.step("posterior samples", by_predictions.len(), repetitions)?;
        let count = at_once.min(repetitions - by_predictions.len());
        let draws = posterior.deviations(count * samples, &mut rng)?;
        let one = prediction_space(&features, &source, &tangent.noise, draws.as_ref())?;
        let other = weight_space(draws.as_ref(), &prior)?;
        let estimates =
            |all: &[f64]| -> Vec<f64> { all.chunks(samples).map(|own| mean(own.iter().copied())).collect() };
        by_predictions.extend(estimates(&one.samples));
        by_weights.extend(estimates(&other.samples));
    }
    let report = |values: &[f64], formula: f64| {
        let found = variance(values);
        json!({
            "mean": mean(values.iter().copied()),
            "bias_in_standard_errors": (mean(values.iter().copied()) - exact) / (formula / values.len() as f64).sqrt(),
            "variance": found,
            "closed_form": formula,
            "ratio": found / formula,
        })
    };
    let (first, second) = (
        prediction_space_variance(eigenvalues, precision, samples),
        weight_space_variance(eigenvalues, d, precision, samples),
    );
    let numbers = json!({
        "precision": precision,
        "dimension": d,
        "effective_dimension": exact,
        "estimators": {"prediction space": report(&by_predictions, first), "weight space": report(&by_weights, second)},
        "variance_ratio": variance(&by_weights) / variance(&by_predictions),
        "closed_form_ratio": second / first,
    });
    let tables = vec![
        NumberTable::by_name(
            "Estimates of the effective dimension",
            "estimator",
            "estimators",
            ["prediction space", "weight space"],
            &[
                ("mean", "mean"),
                ("variance", "variance"),
                ("closed_form", "closed form"),
                ("ratio", "over closed form"),
            ],
            "Closed forms: 2/k Σ t² and 2/k Σ (1 - t)² with t = λ / (λ + a) over the eigenvalues of the curvature.",
        ),
        NumberTable {
            title: "The model".into(),
            head: ["quantity", "value"].map(String::from).to_vec(),
            rows: [
                ("prior precision", "precision"),
                ("weights", "dimension"),
                ("effective dimension", "effective_dimension"),
            ]
            .map(|(name, path)| (name.to_string(), vec![path.to_string()]))
            .to_vec(),
            caption: String::new(),
        },
    ];
    let figure = Distributions {
        title: "Estimates".into(),
        x: "effective dimension".into(),
        series: vec![
            Distribution { name: "prediction space".into(), values: by_predictions.clone() },
            Distribution { name: "weight space".into(), values: by_weights.clone() },
        ],
        caption: format!(
            "{repetitions} estimates from {samples} samples each; the exact value is {exact:.2}."
        ),
        ..Distributions::default()
    };
    Ok(Measured {
        numbers,
        series: json!({"prediction space": by_predictions, "weight space": by_weights}),
        tables,
        figures: vec![Item::Distributions(figure)],
        facts: trained.facts,
        notes: Vec::new(),
    })
}
