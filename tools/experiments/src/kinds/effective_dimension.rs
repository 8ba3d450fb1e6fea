//! Two estimators of the effective dimension from few posterior samples, held against closed forms (thesis figure 6.3).

use super::conjugate::{Conjugate, Update};
use crate::kinds::prelude::*;
use crate::tangent::{TrainedToy, product};
use crate::toy::ToySettings;
use crate::training::TrainingSettings;
use posterior_linear::{LinearError, Prior};
use posterior_report::{Distribution, Distributions};
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
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

impl Checked for Settings {}

fn variance(values: &[f64]) -> f64 {
    let centre = mean(values.iter().copied());
    values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// Trains the network, draws exact posterior samples, estimates.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let (samples, repetitions) = (settings.samples, settings.repetitions);
    if samples == 0 || repetitions < 2 || samples.saturating_mul(repetitions) > 10_000_000 {
        return refused(
            "`samples` must be at least 1, `repetitions` at least 2, and their product at most ten million",
        );
    }
    let trained = TrainedToy::new(&settings.data, &settings.network, &settings.training, context)?;
    let tangent = trained.tangent(&trained.network)?;
    let d = tangent.dimension();
    let model = Conjugate::new(&tangent)?;
    let precision = settings.precision.unwrap_or_else(|| model.learn(Update::MacKay, 1.0, 1000).precision());
    let exact = model.at(precision).effective_dimension;
    let posterior = tangent.curvature()?.condition(&Prior::scalar(d, precision)?, 1.0);
    let posterior = posterior.map_err(LinearError::from)?;
    let streams = Streams::new(context.seed);
    let squares = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
    let (mut by_predictions, mut by_weights) = (Vec::new(), Vec::new());
    for repetition in 0..repetitions {
        context.step("posterior samples", repetition, repetitions)?;
        let (mut predictions, mut weights) = (0.0, 0.0);
        for sample in 0..samples {
            let number = (repetition * samples + sample) as u64;
            let draw = posterior.sample(streams.child("experiment/effective-dimension", number));
            predictions += squares(&product(tangent.features.as_ref(), &draw)) / tangent.noise_variance;
            weights += d as f64 - precision * squares(&draw);
        }
        by_predictions.push(predictions / samples as f64);
        by_weights.push(weights / samples as f64);
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
    // With t = l / (l + a) over all weights, eigenvalues that are missing being zero.
    let shares: Vec<f64> = model.eigenvalues().iter().map(|l| l / (l + precision)).collect();
    let sum = |f: &dyn Fn(f64) -> f64| shares.iter().map(|t| f(*t)).sum::<f64>();
    let each = 2.0 / samples as f64;
    let first = each * sum(&|t| t * t);
    let second = each * (d as f64 + sum(&|t| (1.0 - t).powi(2) - 1.0));
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
        NumberTable::of_quantities(
            "The model",
            ["quantity", "value"],
            &[
                ("prior precision", "precision"),
                ("weights", "dimension"),
                ("effective dimension", "effective_dimension"),
            ],
        ),
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
