//! Hyperparameters, and draws from the posterior.

use super::{Settings, Stage};
use crate::{DecisionError, Functions, Space};
use faer::{Mat, MatRef};
use posterior_gp::exact::{ExactGp, FitOptions, fit};
use posterior_gp::iterative::{
    Budget, ConjugateGradientOptions, Method, PathwiseModel, PathwiseSettings, Start, Support,
};
use posterior_gp::{GpError, Hyperprior, MeanForm, Observations};
use posterior_kernels::features::FeatureSettings;
use posterior_likelihoods::Gaussian;
use posterior_linalg::random::Streams;
use posterior_optim::{Parameters, Reason, Signal};
use rand::seq::index;

/// Up to here a factorisation draws the functions; beyond, conjugate gradients do.
const DIRECT_ROWS: usize = 4000;

/// Least noise, as a share of the variance of what was told: programs often answer exactly.
const NOISE_FLOOR: f64 = 1e-6;

/// What proposals are made by.
pub(super) struct Model {
    pub(super) functions: Box<dyn Functions>,
    pub(super) lengthscales: Vec<f64>,
    pub(super) hyperparameters: Vec<(String, Vec<f64>)>,
    pub(super) log_evidence: f64,
    pub(super) notes: Vec<String>,
}

/// Learns hyperparameters from points in the cube and draws `count` functions given all of them. Values are standardised first.
pub(super) fn draw(
    space: &Space,
    settings: &Settings,
    points: &Mat<f64>,
    values: &[f64],
    count: usize,
    streams: Streams,
    observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<Model, DecisionError> {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
    let mut notes = Vec::new();
    let scale = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    if variance == 0.0 {
        notes.push("everything that was told is the same: proposals are as good as random".into());
    }
    let standard = Mat::from_fn(n, 1, |i, _| (values[i] - mean) / scale);
    let names: Vec<String> = space.axes.iter().map(|a| a.name.clone()).collect();
    let kernel = settings.kernel.build::<f64>(&names)?;
    let known = settings.noise_variance.map(|v| (v / (scale * scale)).max(NOISE_FLOOR));
    // Known noise is noise of every row; what is learned beside it stays at its floor.
    let noise = |rows: usize| known.map(|v| vec![v; rows]);
    let likelihood = Gaussian::new(if known.is_some() { 2.0 * NOISE_FLOOR } else { 0.01 }, NOISE_FLOOR);
    let model = ExactGp::new(kernel, MeanForm::Constant, likelihood, space.dimension(), 1);

    let chosen = chosen_rows(n, settings.evidence_rows, streams);
    if chosen.len() < n {
        notes.push(format!("hyperparameters from {} of {n} points, chosen at random", chosen.len()));
    }
    let pick = |m: MatRef<'_, f64>| Mat::from_fn(chosen.len(), m.ncols(), |i, j| m[(chosen[i], j)]);
    let data = Observations::new(pick(points.as_ref()), pick(standard.as_ref()), noise(chosen.len()))?;
    let mut options = FitOptions { seed: streams.seed(), ..FitOptions::default() };
    for segment in model.segments().iter().filter(|s| s.name.ends_with(".lengthscale")) {
        options.hyperpriors.push(Hyperprior::weak_lengthscale(&segment.name, space.dimension()));
    }
    let total = options.steps.steps;
    let fitted = fit(model, data, &options, &mut |start, event| {
        let _ = start;
        observer(Stage::Evidence, event.step.min(total), total)
    })?;
    if fitted.reason == Reason::Interrupted {
        return Err(DecisionError::Interrupted);
    }
    if fitted.largest_jitter > 0.0 {
        notes.push(format!("a jitter of {:.1e} was added to a kernel matrix", fitted.largest_jitter));
    }
    let found = fitted.posterior.model();
    let hyperparameters = named(found);
    let lengthscales = lengthscales(&hyperparameters, space.dimension());

    let method = if n <= DIRECT_ROWS {
        Method::Direct
    } else {
        notes.push(format!("draws by conjugate gradients, since {n} points are more than {DIRECT_ROWS}"));
        Method::ConjugateGradients(ConjugateGradientOptions::default())
    };
    let pathwise = PathwiseModel {
        kernel: found.kernel().clone_box(),
        mean: found.mean().clone(),
        noise: found.noise().clone(),
    };
    let conditioning = PathwiseSettings {
        budget: Budget { steps: 1000, time: None, tolerance: 1e-4 },
        samples: count,
        features: FeatureSettings { count: settings.features, ..FeatureSettings::default() },
        // Draws are maximised, not averaged, and evaluated at millions of candidates: features are shared.
        samples_per_features: None,
        seed: streams.child("decisions/draws", 0).seed(),
        ..PathwiseSettings::default()
    };
    let all = Observations::new(points.clone(), standard, noise(n))?;
    let mut stopped = false;
    let posterior =
        pathwise.condition(all, Support::Rows(method), conditioning, Start::Zero, &mut |progress, _| {
            let signal = observer(Stage::Draws, progress.step, progress.steps_planned);
            stopped |= signal == Signal::Stop;
            signal
        });
    if stopped {
        return Err(DecisionError::Interrupted);
    }
    let posterior = posterior.map_err(|e: GpError| DecisionError::Gp(e))?;
    Ok(Model {
        functions: Box::new(posterior),
        lengthscales,
        hyperparameters,
        log_evidence: fitted.log_evidence,
        notes,
    })
}

fn chosen_rows(n: usize, most: usize, streams: Streams) -> Vec<usize> {
    if n <= most {
        return (0..n).collect();
    }
    let mut rows = index::sample(&mut streams.stream("decisions/evidence"), n, most).into_vec();
    rows.sort_unstable();
    rows
}

fn named(model: &ExactGp) -> Vec<(String, Vec<f64>)> {
    let values = model.values();
    let mut rest = values.as_slice();
    let take = |segment: posterior_optim::Segment| {
        let (mine, others) = rest.split_at(segment.len());
        rest = others;
        (segment.name, mine.to_vec())
    };
    model.segments().into_iter().map(take).collect()
}

/// One for each axis: the smallest of several; a fifth of the axis where a kernel has none.
fn lengthscales(hyperparameters: &[(String, Vec<f64>)], dimension: usize) -> Vec<f64> {
    let mut out = vec![f64::INFINITY; dimension];
    for (_, values) in hyperparameters.iter().filter(|(name, _)| name.ends_with("lengthscale")) {
        for (j, place) in out.iter_mut().enumerate() {
            let own =
                if values.len() == dimension { values[j] } else { values.first().copied().unwrap_or(0.2) };
            *place = place.min(own);
        }
    }
    out.into_iter().map(|l| if l.is_finite() { l } else { 0.2 }).collect()
}
