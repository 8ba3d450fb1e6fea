//! Plain Laplace, which runs the network at sampled weights, against linearised Laplace, which runs its tangent (thesis figure 3.5).

use super::bands::CurvatureName;
use crate::kinds::prelude::*;
use crate::tangent::TrainedToy;
use crate::toy::{ToySettings, column};
use crate::training::TrainingSettings;
use posterior_laplace::fit::NoiseModel;
use posterior_laplace::{Data, FitOptions, Mode, PriorKind, Run, Stage, Tune, fit};
use posterior_likelihoods::{Gaussian, OutputLikelihood};
use posterior_report::{PosteriorPanels, TitledPosterior};
use std::f64::consts::TAU;
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: ToySettings,
    network: Table,
    training: TrainingSettings,
    #[serde(default)]
    curvature: CurvatureName,
    /// The prior precision; by the evidence if absent.
    precision: Option<f64>,
    /// Samples.
    samples: usize,
    /// Samples that are drawn.
    shown: usize,
}

impl Checked for Settings {}

/// Functions drawn from one posterior.
struct Sampled {
    /// `[samples][points]` on the grid.
    grid: Vec<Vec<f64>>,
    /// The same at the training inputs.
    data: Vec<Vec<f64>>,
}

impl Sampled {
    fn moments(&self) -> (Vec<f64>, Vec<f64>) {
        let points = self.grid[0].len();
        let centre = |i: usize| mean(self.grid.iter().map(|f| f[i]));
        let spread = |i: usize| mean(self.grid.iter().map(|f| (f[i] - centre(i)).powi(2))).sqrt();
        ((0..points).map(centre).collect(), (0..points).map(spread).collect())
    }

    /// Mean log density of the targets under the mixture of the samples, and under one sample on average.
    fn log_densities(&self, targets: &[f64], variance: f64) -> (f64, f64) {
        let log = |y: f64, f: f64| -0.5 * ((y - f).powi(2) / variance + (TAU * variance).ln());
        let mixture = |(i, y): (usize, &f64)| {
            let own: Vec<f64> = self.data.iter().map(|f| log(*y, f[i])).collect();
            let top = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            top + mean(own.iter().map(|l| (l - top).exp())).ln()
        };
        let single = mean(self.data.iter().map(|f| mean(targets.iter().zip(f).map(|(y, f)| log(*y, *f)))));
        (mean(targets.iter().enumerate().map(mixture)), single)
    }
}

/// Trains the network, fits one posterior, draws from both.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    if settings.samples < 2
        || settings.samples > 100_000
        || settings.curvature == CurvatureName::FunctionSpace
    {
        return refused(
            "`samples` must lie between 2 and 100000, and `curvature` must be one from which weights can be drawn (not function-space)",
        );
    }
    let trained = TrainedToy::new(&settings.data, &settings.network, &settings.training, context)?;
    let toy = &trained.toy;
    let variance = toy.noise * toy.noise;
    let likelihood = OutputLikelihood::Gaussian(Gaussian::independent(vec![variance])?);
    let options = FitOptions {
        approximation: settings.curvature.approximation(),
        prior: PriorKind::Scalar,
        mode: Mode::Trained,
        noise: NoiseModel::Fixed,
        tune: if settings.precision.is_some() { Tune::None } else { Tune::Evidence },
        initial_precision: settings.precision.unwrap_or(1.0),
        seed: context.seed,
        ..FitOptions::default()
    };
    let examples = toy.examples();
    let data = Data::new(&trained.network, &examples, &likelihood);
    let tell = |stage: Stage, done, total| context.tell(stage.describe(), done, total);
    let laplace = fit(&data, &options, &mut Run::new(tell))?;
    context.step("samples", 0, 2)?;
    let (grid, data) = (column(&toy.grid), column(&toy.x));
    let split = |values: Vec<f64>, points: usize| values.chunks(points).map(<[f64]>::to_vec).collect();
    let (count, seed, network) = (settings.samples, context.seed, &trained.network);
    let plain = Sampled {
        grid: split(laplace.network_samples(network, &grid, count, seed)?, toy.grid.len()),
        data: split(laplace.network_samples(network, &data, count, seed)?, toy.x.len()),
    };
    context.step("samples", 1, 2)?;
    let linearised = Sampled {
        grid: split(laplace.function_samples(network, &grid, count, seed, 1 << 30)?, toy.grid.len()),
        data: split(laplace.function_samples(network, &data, count, seed, 1 << 30)?, toy.x.len()),
    };
    let outputs = network.forward(&data)?.into_values();
    let log = |y: f64, f: f64| -0.5 * ((y - f).powi(2) / variance + (TAU * variance).ln());
    let own = mean(toy.y.iter().zip(&outputs).map(|(y, f)| log(*y, *f)));
    let (mut methods, mut series, mut panels, mut figures) = (Map::new(), Map::new(), Vec::new(), Vec::new());
    for (name, sampled) in [("plain", &plain), ("linearised", &linearised)] {
        let (centre, spread) = sampled.moments();
        let (mixture, single) = sampled.log_densities(&toy.y, variance);
        methods.insert(
            name.into(),
            json!({
                "log_density": mixture, "log_density_of_a_sample": single,
                "mean_deviation": mean(spread.iter().copied()), "gap_deviation": toy.mean_in_gaps(&spread),
            }),
        );
        let first: Vec<&Vec<f64>> = sampled.grid.iter().take(settings.shown).collect();
        series.insert(name.into(), json!({"mean": centre, "deviation": spread, "samples": first}));
        panels.push(TitledPosterior::new(format!("{name} Laplace"), toy.panel(&centre, &spread, variance)));
        let line = |(k, f): (usize, &&Vec<f64>)| {
            Line::new(format!("sample {}", k + 1), toy.grid.clone(), f.to_vec())
        };
        // The data stand in the panels; the range of the targets keeps plain samples from hiding everything.
        let (low, high) =
            toy.y.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), y| (l.min(*y), h.max(*y)));
        figures.push(Item::Curves(Curves {
            title: format!("Functions drawn by {name} Laplace"),
            x: "x".into(),
            y: "y".into(),
            y_range: Some((low - (high - low), high + (high - low))),
            lines: first.iter().enumerate().map(line).collect(),
            ..Curves::default()
        }));
    }
    methods.insert("network".into(), json!({"log_density": own, "log_density_of_a_sample": own}));
    series.insert("grid".into(), json!(toy.grid));
    figures.insert(
        0,
        PosteriorPanels::new(
            "Posteriors",
            "y",
            panels,
            format!("Mean and two standard deviations of {count} functions."),
        )
        .into(),
    );
    let tables = vec![NumberTable::by_name(
        "Training data under each posterior",
        "posterior",
        "methods",
        ["network", "linearised", "plain"],
        &[
            ("log_density", "mean log density"),
            ("log_density_of_a_sample", "of one sample"),
            ("gap_deviation", "σ in gaps"),
        ],
        "Log density of a training target, in nats: under the mixture of all samples, and under one sample on average.",
    )];
    let precision = laplace.prior().precisions()[0];
    Ok(Measured {
        numbers: json!({"methods": methods, "precision": precision}),
        series: Value::Object(series),
        tables,
        figures,
        facts: trained.facts,
        notes: Vec::new(),
    })
}
