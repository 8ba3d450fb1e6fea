//! The demo's two networks: trained here, then given error bars.

use super::evaluate::report::sections;
use super::evaluate::scoring::Findings;
use crate::interrupt::Interrupt;
use crate::output::Failure;
use posterior::Model;
use posterior::data::{
    Column, Schema, Selection, Split, Standardisation, Table, Values, synthetic, write_table,
};
use posterior::laplace::{self, NetworkDescription};
use posterior::likelihoods::{Categorical, Gaussian, OutputLikelihood};
use posterior::linalg::random::Streams;
use posterior::linearised::{Approximation, FitOptions};
use posterior::models::{Predicted, Predictive, Question};
use posterior::network::Preparation;
use posterior::networks::train::{Loss, Tabular, Targets, TrainOptions, train};
use posterior::networks::{Activation, Array, Graph, GraphBuilder, GraphError, Network};
use posterior::optim::{Reason, Rule, Schedule};
use posterior::report::{Plane, PlaneKind, PlanePanel, PosteriorPanel, Section};
use std::path::{Path, PathBuf};

/// What came of both.
pub(crate) struct Networks {
    pub moons: Findings,
    pub curve: Findings,
    pub sections: Vec<Section>,
    pub files: Vec<PathBuf>,
}

/// Points of the moons, and the share that is not learned from: few noisy points are what networks are too sure about.
const MOONS: usize = 400;
const MOONS_UNSEEN: f64 = 0.85;

pub(crate) fn solve(seed: u64, folder: &Path, interrupt: &Interrupt) -> Result<Networks, Failure> {
    let (moons, mut sections, mut files) = moons(seed, folder, interrupt)?;
    let (curve, of_curve, own) = curve(seed, folder, interrupt)?;
    sections.extend(of_curve);
    files.extend(own);
    Ok(Networks { moons, curve, sections, files })
}

/// Fully connected layers with tanh between them.
pub(super) fn perceptron(widths: &[usize]) -> Result<Graph, GraphError> {
    let mut builder = GraphBuilder::new(&widths[..1])?;
    let mut x = builder.input();
    for (i, &width) in widths.iter().enumerate().skip(1) {
        x = builder.linear(&format!("layer{i}"), width, x)?;
        if i + 1 < widths.len() {
            x = builder.activation(&format!("tanh{i}"), Activation::Tanh, x)?;
        }
    }
    builder.finish(x)
}

/// Trains a perceptron, and gives it error bars.
fn fitted(
    widths: &[usize],
    examples: &Tabular<f64>,
    (loss, epochs): (Loss, usize),
    likelihood: &OutputLikelihood,
    description: NetworkDescription,
    (seed, interrupt): (u64, &Interrupt),
) -> Result<Model, Failure> {
    let network = Network::<f64>::initialised(perceptron(widths)?, Streams::new(seed))?;
    let options = TrainOptions {
        loss,
        epochs,
        batch: 32,
        rule: Rule::adam(),
        learning_rate: 1e-2,
        schedule: Schedule::Cosine,
        clip: None,
        patience: None,
        seed,
    };
    let trained = train(network, examples, None, &options, None, &mut |_, _| interrupt.signal())?;
    if trained.reason == Reason::Interrupted {
        return Err(Failure::new("interrupted".into()));
    }
    let options = FitOptions { approximation: Approximation::Full, ..FitOptions::default() };
    let mut observer = |_, _, _| interrupt.signal();
    let network = trained.network;
    Model::fit_network(network, examples, None, likelihood, &options, description, &mut observer)
        .map_err(Failure::from)
}

type Solved = Result<(Findings, Vec<Section>, Vec<PathBuf>), Failure>;

fn moons(seed: u64, folder: &Path, interrupt: &Interrupt) -> Solved {
    let points = synthetic::two_moons(MOONS, 0.4, Streams::new(seed))?;
    let mut table = points.table();
    // Names instead of numbers, as tables have them.
    let names = ["upper", "lower"];
    for column in table.columns.iter_mut().filter(|c| c.name == "class") {
        let name = |c: &u32| names.get(*c as usize).map(|n| n.to_string());
        column.values = Values::Text(points.labels.iter().map(name).collect());
    }
    let split = Split::random(table.rows(), MOONS_UNSEEN, Streams::new(seed));
    let (train_table, test_table) = (table.select(&split.train), table.select(&split.test));
    let selection = Selection { target: "class".into(), ..Selection::default() };
    let classes: Vec<String> = vec!["lower".into(), "upper".into()];
    let xy = points.features.to_f64();
    let inputs: Vec<f64> = split.train.iter().flat_map(|&i| [xy[2 * i], xy[2 * i + 1]]).collect();
    let labels: Vec<u32> = split.train.iter().map(|&i| 1 - points.labels[i].min(1)).collect();
    let examples =
        Tabular::new(Array::new(vec![split.train.len(), 2], inputs), Targets::Classes(labels.clone()));
    // The schema of the features, with the target's classes as numbers.
    let mut numbered = train_table.clone();
    for column in numbered.columns.iter_mut().filter(|c| c.name == "class") {
        column.values = Values::Numeric(labels.iter().map(|&c| f64::from(c)).collect());
    }
    let rows: Vec<usize> = (0..numbered.rows()).collect();
    let schema = Schema::learn(&numbered, &selection, &rows)?;
    let standardisation = Standardisation {
        feature_means: vec![0.0; 2],
        feature_scales: vec![1.0; 2],
        feature_maps: Vec::new(),
        target_mean: 0.0,
        target_scale: 1.0,
        transform: None,
    };
    let preparation =
        Preparation::Columns { schema: schema.into(), standardisation, classes: Some(classes.clone()) };
    let description = NetworkDescription { preparation, class_names: classes, training: None };
    let likelihood = OutputLikelihood::Categorical(Categorical::new(2)?);
    let (training, run) = ((Loss::CrossEntropy, 2500), (seed, interrupt));
    let model = fitted(&[2, 16, 16, 2], &examples, training, &likelihood, description, run)?;
    let (data_path, model_path) = (folder.join("moons.csv"), folder.join("moons.posterior"));
    write_table(&table, &data_path)?;
    model.save(&model_path)?;
    let data = networks(&model)?.read_rows(test_table, true)?;
    let evaluation = model.evaluate(&data, &Question::default())?;
    let plane = plane(networks(&model)?, &xy, &points.labels)?;
    let findings = Findings::held_out(data, "model", evaluation, Some(model.seconds()));
    let mut sections = sections(&model, model.model_report()?, &findings)?;
    if let Some(Section::Classification(report)) = sections.first_mut() {
        report.dataset = "Two moons".into();
        report.description = "Sixty noisy points, and a small network that was trained until it had learned them by heart: it is far too sure of the others. The same \
                              network with error bars (linearised Laplace, full curvature) knows how little sixty points say, between the moons and far from them. Where data \
                              are many and clear, error bars change probabilities little; they then pay off away from the data."
            .into();
        report.plane = Some(plane);
    }
    Ok((findings, sections, vec![data_path, model_path]))
}

/// The parts of a model of networks.
fn networks(model: &Model) -> Result<laplace::Networks<'_>, Failure> {
    model.networks().ok_or_else(|| Failure::new("the model is no network".into()))
}

/// Predictions of network and model over the plane.
fn plane(model: laplace::Networks<'_>, xy: &[f64], labels: &[u32]) -> Result<Plane, Failure> {
    const GRID: usize = 60;
    let axis = |low: f64, high: f64| -> Vec<f64> {
        (0..GRID).map(|k| low + (high - low) * k as f64 / (GRID - 1) as f64).collect()
    };
    let (grid_x, grid_y) = (axis(-3.0, 4.0), axis(-2.5, 3.0));
    let x: Vec<f64> = grid_y.iter().flat_map(|_| grid_x.iter().copied()).collect();
    let y: Vec<f64> = grid_y.iter().flat_map(|y| std::iter::repeat_n(*y, GRID)).collect();
    let table = Table::new("grid", vec![Column::numeric("x1", x), Column::numeric("x2", y)]);
    let data = model.read_rows(table, false)?;
    let (own, plain) = (model.predict(&data, None)?, model.predict_plain(&data)?);
    let second = |p: &Predictive| match &p.predicted {
        Predicted::Classes(p) => p.iter().skip(1).step_by(2).copied().collect(),
        _ => Vec::new(),
    };
    let deviation =
        |i: usize| (own.latent_deviation[2 * i].powi(2) + own.latent_deviation[2 * i + 1].powi(2)).sqrt();
    Ok(Plane {
        title: "What they say over the plane".into(),
        x: "x1".into(),
        y: "x2".into(),
        panels: vec![
            PlanePanel::new("plain network", PlaneKind::Probability, second(&plain)),
            PlanePanel::new("with error bars", PlaneKind::Probability, second(&own)),
            PlanePanel::new(
                "latent deviation",
                PlaneKind::Amount,
                (0..own.len()).map(deviation).collect(),
            ),
        ],
        grid_x,
        grid_y,
        points_x: xy.iter().step_by(2).copied().collect(),
        points_y: xy.iter().skip(1).step_by(2).copied().collect(),
        points_class: labels.iter().map(|&c| 1 - c.min(1) as usize).collect(),
        caption: "Colour: the probability of the upper moon, none at one half. The model's colours fade away from the data.".into(),
    })
}

fn curve(seed: u64, folder: &Path, interrupt: &Interrupt) -> Solved {
    let table = synthetic::curve_with_gap(160, Streams::new(seed));
    let split = Split::random(table.rows(), 0.3, Streams::new(seed));
    let selection = Selection { target: "y".into(), ..Selection::default() };
    let schema = Schema::learn(&table, &selection, &split.train)?;
    let extracted = schema.extract(&table, &split.train, true)?;
    let y = extracted.y.unwrap_or_default();
    let standardisation = Standardisation::learn(extracted.x.as_ref(), &y);
    let x = standardisation.features(extracted.x.as_ref());
    let inputs = Array::new(vec![y.len(), 1], x.col(0).iter().copied().collect());
    let targets = Array::new(vec![y.len(), 1], y.iter().map(|v| standardisation.target(*v)).collect());
    let examples = Tabular::new(inputs, Targets::Values(targets));
    let preparation = Preparation::Columns {
        schema: schema.into(),
        standardisation: standardisation.clone(),
        classes: None,
    };
    let description = NetworkDescription { preparation, ..NetworkDescription::default() };
    let noise = Gaussian::independent(vec![0.01])?;
    let (likelihood, run) = (OutputLikelihood::Gaussian(noise), (seed, interrupt));
    let model = fitted(&[1, 24, 24, 1], &examples, (Loss::Mse, 400), &likelihood, description, run)?;
    let model_path = folder.join("network.posterior");
    model.save(&model_path)?;
    let data = networks(&model)?.read_rows(table.select(&split.test), true)?;
    let evaluation = model.evaluate(&data, &Question::default())?;
    let findings = Findings::held_out(data, "network with error bars", evaluation, None);
    let mut sections = sections(&model, model.model_report()?, &findings)?;
    if let Some(Section::Regression(report)) = sections.first_mut() {
        report.dataset = "The curve by a network".into();
        report.description = "A network of two hidden layers, trained as usual, then given error bars. The band opens in the gap; the network's own prediction does not change."
            .into();
        report.posterior = Some(panel(networks(&model)?, &table.select(&split.train))?);
    }
    Ok((findings, sections, vec![model_path]))
}

/// The posterior over a grid.
fn panel(model: laplace::Networks<'_>, train: &Table) -> Result<PosteriorPanel, Failure> {
    const GRID: usize = 240;
    const DRAWS: usize = 6;
    let grid: Vec<f64> = (0..GRID).map(|k| -4.6 + 9.2 * k as f64 / (GRID - 1) as f64).collect();
    let table = Table::new("grid", vec![Column::numeric("x", grid.clone())]);
    let data = model.read_rows(table, false)?;
    let predictions = model.predict(&data, None)?;
    let Predicted::Moments { mean, variance, latent_variance } = predictions.predicted else {
        return Err(Failure::new("the curve is numbers".into()));
    };
    let draws = model.function_samples(&data, DRAWS, 1, 1 << 30)?;
    let numbers = |name: &str| match train.column(name).map(|c| &c.values) {
        Ok(Values::Numeric(values)) => values.clone(),
        _ => Vec::new(),
    };
    let root = |v: Vec<f64>| v.into_iter().map(f64::sqrt).collect();
    Ok(PosteriorPanel {
        target: None,
        input: "x".into(),
        input_unit: None,
        true_function: grid.iter().map(|x| synthetic::curve(*x)).collect(),
        grid,
        mean,
        latent_standard_deviation: root(latent_variance),
        observed_standard_deviation: root(variance),
        samples: draws.chunks_exact(GRID).map(<[f64]>::to_vec).collect(),
        train_input: numbers("x"),
        train_target: numbers("y"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_bars_help_where_points_are_few_whatever_the_seed() {
        let folder = std::env::temp_dir().join(format!("posterior-demo-test-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for seed in 0..5 {
            let (findings, ..) = moons(seed, &folder, &Interrupt::listen()).unwrap();
            let difference = findings.evaluation().nll_difference.unwrap();
            // Beyond what chance explains, as the report's verdict judges.
            assert!(
                difference.mean + 1.96 * difference.standard_error.unwrap() < 0.0,
                "{seed}: {difference:?}"
            );
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
