//! The evidence along one prior precision: with the norm of the trained weights and with that of the linear model's optimum, bounds, published updates, and brute force.
//!
//! Serves figures 6.1 and 6.2 of the thesis, and holds learned precisions against a search by brute force.

use super::along::{arrival, logarithmic, maximum};
use super::bands::CurvatureName;
use super::conjugate::{Conjugate, Update};
use crate::kinds::prelude::*;
use crate::tangent::{Tangent, TrainedToy, product};
use crate::toy::ToySettings;
use crate::training::TrainingSettings;
use posterior_laplace::fit::NoiseModel;
use posterior_laplace::{Data, FitOptions, Mode, PriorKind, Run, Tune, fit};
use posterior_likelihoods::{Gaussian, OutputLikelihood};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linear::structure::StructureError;
use std::f64::consts::TAU;
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: ToySettings,
    network: Table,
    training: TrainingSettings,
    /// Range of precisions.
    precisions: (f64, f64),
    /// Points of the grid over it.
    points: usize,
    /// Precisions from which updates start; the first gives the bounds that are drawn.
    starts: Vec<f64>,
    /// A start has arrived when it is within this share of the optimum.
    #[serde(default = "one_per_cent")]
    arrived: f64,
    /// Most steps of an update.
    #[serde(default = "thousand")]
    steps: usize,
    /// Curvatures whose learned precision is shown as well; the first is held against brute force.
    #[serde(default)]
    curvatures: Vec<CurvatureName>,
}

impl Checked for Settings {}

fn one_per_cent() -> f64 {
    0.01
}

fn thousand() -> usize {
    1000
}

/// `log N(y - f0; 0, sigma² I + Phi Phi' / a)` from its definition: one Cholesky factor of n x n.
fn brute_force(kernel: &Mat<f64>, targets: &[f64], noise_variance: f64, precision: f64) -> Result<f64> {
    let n = targets.len();
    let covariance =
        Mat::from_fn(n, n, |i, j| kernel[(i, j)] / precision + if i == j { noise_variance } else { 0.0 });
    let factor = Cholesky::of(covariance.as_ref(), JitterPolicy::NONE).map_err(|source| {
        posterior_laplace::LaplaceError::from(StructureError::Factor {
            block: "the tangent model".into(),
            source,
        })
    })?;
    let mut white = Mat::from_fn(n, 1, |i, _| targets[i]);
    factor.solve_factor_in_place(white.as_mut());
    Ok(-0.5 * (white.col(0).squared_norm_l2() + factor.log_determinant() + n as f64 * TAU.ln()))
}

/// The largest value over a logarithmic grid and then by golden section around it, to a relative 1e-4.
fn largest(grid: &[f64], mut value: impl FnMut(f64) -> Result<f64>) -> Result<(f64, Vec<f64>)> {
    let values = grid.iter().map(|a| value(*a)).collect::<Result<Vec<f64>, _>>()?;
    let best = (0..grid.len()).max_by(|&i, &j| values[i].total_cmp(&values[j])).unwrap_or(0);
    let around = (grid[best.saturating_sub(1)], grid[(best + 1).min(grid.len() - 1)]);
    Ok((maximum(around, 1e-4, value)?, values))
}

/// Updates, as they are called in the results and in pictures.
const UPDATES: [(&str, Update); 3] = [
    ("MacKay", Update::MacKay),
    ("max bound", Update::MaximisedBound),
    ("decoupled ELBO", Update::DecoupledElbo),
];

/// Curves over the grid of precisions.
struct Drawn {
    mode: Vec<f64>,
    trained: Vec<f64>,
    bound: Vec<f64>,
    elbo: Vec<f64>,
    trained_optimum: f64,
    bound_optimum: f64,
    elbo_optimum: f64,
}

fn drawn(tangent: &Tangent, model: &Conjugate, grid: &[f64], exact: Vec<f64>, start: f64) -> Drawn {
    let squares = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
    let at_start = model.at(start);
    let (own, norm) = (at_start.log_likelihood, at_start.squared_norm);
    let trained_norm = squares(&tangent.trained);
    let through = product(tangent.features.as_ref(), &tangent.trained);
    let residual: Vec<f64> = tangent.targets.iter().zip(&through).map(|(t, f)| t - f).collect();
    let trained_likelihood = model.log_likelihood(squares(&residual) / tangent.noise_variance);
    let d = tangent.dimension() as f64;
    // d log a - a (|w|² + Tr H^-1) with the trace at the start; the constant makes it touch the other bound there.
    let spread = model.spread(start, &at_start);
    let elbo = |a: f64| 0.5 * (d * a.ln() - a * spread);
    let touch = at_start.log_evidence - elbo(start);
    let on_grid = |f: &dyn Fn(f64) -> f64| grid.iter().map(|a| f(*a)).collect::<Vec<f64>>();
    let range = (grid[0] * 1e-6, grid[grid.len() - 1] * 1e6);
    Drawn {
        mode: exact,
        trained: on_grid(&|a| trained_likelihood + model.bound(trained_norm, a)),
        bound: on_grid(&|a| own + model.bound(norm, a)),
        elbo: on_grid(&|a| touch + elbo(a)),
        trained_optimum: model.maximise_bound(trained_norm, range),
        bound_optimum: model.maximise_bound(norm, range),
        elbo_optimum: d / spread,
    }
}

/// Precisions that a Laplace fit learns, mode and hyperparameters alternating.
fn fitted(
    trained: &TrainedToy,
    curvature: CurvatureName,
    mode: Mode,
    context: &mut Context<'_>,
) -> Result<f64> {
    let variance = trained.toy.noise * trained.toy.noise;
    let likelihood = OutputLikelihood::Gaussian(Gaussian::independent(vec![variance])?);
    let options = FitOptions {
        approximation: curvature.approximation(),
        prior: PriorKind::Scalar,
        mode,
        tune: Tune::Evidence,
        noise: NoiseModel::Fixed,
        alternations: 50,
        seed: context.seed,
        ..FitOptions::default()
    };
    let examples = trained.toy.examples();
    let stage = format!("{} curvature", curvature.approximation().name());
    let data = Data::new(&trained.network, &examples, &likelihood);
    let laplace = fit(&data, &options, &mut Run::new(|_, done, total| context.tell(&stage, done, total)))?;
    Ok(laplace.prior().precisions()[0])
}

/// Trains the network and follows the evidence.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let (low, high) = settings.precisions;
    let positive = low > 0.0 && low < high && high.is_finite();
    if !positive || !(3..=10_000).contains(&settings.points) || settings.starts.is_empty() {
        return refused(
            "`precisions` must be two positive numbers in ascending order, `points` between 3 and 10000, and `starts` not empty",
        );
    }
    let trained = TrainedToy::new(&settings.data, &settings.network, &settings.training, context)?;
    let tangent = trained.tangent(&trained.network)?;
    let grid = logarithmic(settings.precisions, settings.points);
    let kernel = &tangent.features * tangent.features.transpose();
    let noise_variance = trained.toy.noise * trained.toy.noise;
    let mut done = 0;
    let (optimum, exact) = largest(&grid, |a| {
        done += 1;
        context.step("evidence by brute force", done, 0)?;
        brute_force(&kernel, &tangent.targets, noise_variance, a)
    })?;
    let model = Conjugate::new(&tangent)?;
    let drawn = drawn(&tangent, &model, &grid, exact, settings.starts[0]);
    let mut numbers = Map::new();
    let mut rows = Vec::new();
    let mut traces = Vec::new();
    for &start in &settings.starts {
        for (name, update) in UPDATES {
            context.step(&format!("{name} from {start}"), 0, 0)?;
            let learned = model.learn(update, start, settings.steps);
            let key = format!("{name} from {start}").replace('.', "_");
            let trace: Vec<f64> = learned.0.iter().map(|s| s.0).collect();
            numbers.insert(
                key.clone(),
                json!({
                    "precision": learned.precision(),
                    "steps": arrival(&trace, optimum, settings.arrived),
                    "steps_taken": learned.0.len() - 1,
                    "log_evidence": learned.0.last().map(|s| s.1),
                }),
            );
            rows.push(key.clone());
            traces.push((key, trace));
        }
    }
    let mut learned = Map::new();
    for &curvature in &settings.curvatures {
        let name = curvature.approximation().name();
        let mode = fitted(&trained, curvature, Mode::Linearised, context)?;
        let own = fitted(&trained, curvature, Mode::Trained, context)?;
        learned.insert(
            name.into(),
            json!({"mode": mode, "trained": own, "over_brute_force": mode / optimum, "trained_over_brute_force": own / optimum}),
        );
    }
    let curvatures: Vec<String> = learned.keys().cloned().collect();
    let norm = |w: &[f64]| w.iter().map(|w| w * w).sum::<f64>().sqrt();
    let best = model.at(optimum);
    let numbers = json!({
        "brute_force": {"precision": optimum, "log_evidence": brute_force(&kernel, &tangent.targets, noise_variance, optimum)?},
        "trained": {"precision": drawn.trained_optimum, "norm": norm(&tangent.trained)},
        "mode": {"norm": best.squared_norm.sqrt(), "effective_dimension": best.effective_dimension},
        "dimension": tangent.dimension(),
        "offset": tangent.offset,
        "updates": numbers,
        "fits": learned,
    });
    let series = json!({
        "precision": grid, "mode": drawn.mode, "trained": drawn.trained, "bound": drawn.bound, "elbo": drawn.elbo,
        "traces": traces.iter().map(|(k, t)| (k.clone(), json!(t))).collect::<Map<String, Value>>(),
    });
    let mut tables = vec![NumberTable::by_name(
        "Updates of the prior precision",
        "update and start",
        "updates",
        rows.iter().map(String::as_str),
        &[
            ("precision", "last precision"),
            ("steps", "steps to the optimum"),
            ("steps_taken", "steps taken"),
            ("log_evidence", "log evidence"),
        ],
        "Steps after which the precision stays within the given share of the brute-force optimum; empty if it never does.",
    )];
    if !curvatures.is_empty() {
        tables.push(NumberTable::by_name(
            "Precisions that linearised Laplace learns",
            "curvature",
            "fits",
            curvatures.iter().map(String::as_str),
            &[
                ("mode", "norm of the mode"),
                ("over_brute_force", "over brute force"),
                ("trained", "norm of the trained weights"),
                ("trained_over_brute_force", "over brute force"),
            ],
            "Brute force: the largest exact marginal likelihood of the tangent model over a grid, refined.",
        ));
    }
    tables.push(NumberTable::of_quantities(
        "Optima",
        ["evidence", "precision"],
        &[("brute force", "brute_force.precision"), ("norm of the trained weights", "trained.precision")],
    ));
    Ok(Measured {
        numbers,
        series,
        tables,
        figures: figures(&grid, drawn, optimum, traces, settings.starts[0]),
        facts: trained.facts,
        notes: Vec::new(),
    })
}

fn figures(
    grid: &[f64],
    drawn: Drawn,
    optimum: f64,
    traces: Vec<(String, Vec<f64>)>,
    start: f64,
) -> Vec<Item> {
    let inside = |a: f64| Some(a).filter(|a| *a >= grid[0] && *a <= grid[grid.len() - 1]);
    let line = |name: &str, y: Vec<f64>, optimum: f64| Line {
        name: name.into(),
        x: grid.to_vec(),
        y,
        optimum: inside(optimum),
        ..Line::default()
    };
    // Below this, bounds far from where they touch would flatten everything else.
    let top = drawn.mode.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bottom = drawn.mode.iter().copied().fold(f64::INFINITY, f64::min);
    let height = (top - bottom).max(1.0);
    let trace = |(name, values): (String, Vec<f64>)| by_step(name, values.into_iter().take(200));
    vec![
        Item::Curves(Curves {
            title: "Evidence along the prior precision".into(),
            x: "prior precision a".into(),
            y: "nats".into(),
            x_logarithmic: true,
            y_range: Some((bottom - 0.5 * height, top + 0.1 * height)),
            lines: vec![
                line("exact evidence of the tangent model", drawn.mode, optimum),
                line("norm of the trained weights", drawn.trained, drawn.trained_optimum),
                line(&format!("bound after one mode at a = {start}"), drawn.bound, drawn.bound_optimum),
                line(&format!("decoupled ELBO at a = {start}"), drawn.elbo, drawn.elbo_optimum),
            ],
            caption: "Diamonds: optima. The exact evidence is a Cholesky factor of the tangent model's covariance at every point.".into(),
            ..Curves::default()
        }),
        Curves::new("Precision by step", "step", "prior precision a", traces.into_iter().map(trace).collect()).logarithmic(false, true).captioned("At most 200 steps are drawn.").into(),
    ]
}
