//! The exact process behind a network: weights, hyperparameters and noise by the evidence of all rows, of which those that are set aside say when it is enough.

use super::fit::kept_bytes;
use super::targets::{ended_at_bounds, noise};
use super::{Basis, DeepSummary, TriedSetting};
use crate::Hyperparameter;
use crate::method::embedding_kernel;
use crate::options::DbkOptions;
use crate::process::prepared::FitStage;
use crate::process::scalable::{CheckpointWriter, Found, ScalableFit, ScalableSummary, Stage};
use crate::{FitRequest, Method, ModelError};
use faer::Mat;
use faer::linalg::matmul::triangular::BlockStructure::Rectangular;
use posterior_gp::exact::{EmbeddedFit, EmbeddedOptions, EmbeddedPosterior, ExactGp, fit_embedded};
use posterior_gp::{MeanForm, Observations};
use posterior_kernels::diagonal;
use posterior_linalg::triangular::add_lower_product;
use posterior_linear::embedding::Embedding;
use posterior_linear::low_rank::{FeatureDiagnostics, Rest};
use posterior_linear::training::TrainingState;
use posterior_optim::{Observer, Progress};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What was asked for.
pub(super) struct Asked<'a> {
    pub(super) request: &'a FitRequest,
    pub(super) method: &'a Method,
    pub(super) options: &'a DbkOptions,
    pub(super) basis: &'a Basis,
    /// Rows that were drawn to judge by and went back to their twins.
    pub(super) twins: usize,
    /// Most seconds.
    pub(super) seconds: Option<f64>,
}

/// Trains on some rows, judged by others.
pub(super) fn fit(
    asked: &Asked<'_>,
    (train, aside): (&Observations, &Observations),
    checkpoints: &mut CheckpointWriter,
    observer: &mut Observer<'_, FitStage>,
) -> Result<ScalableFit, ModelError> {
    let Asked { request, method, options, basis, twins, seconds } = asked;
    let Some((_, kind, _)) = method.deep() else {
        return Err(ModelError::NotIterative { method: method.name().as_str() });
    };
    let started = Instant::now();
    let settings = options.settings(kind, train.rows(), request.seed);
    let Some(setting) = settings.first() else {
        return Err(ModelError::Request(format!("{} has no way to be trained", method.name())));
    };
    let state: Option<TrainingState> = match checkpoints.load()? {
        Some(mut saved) => saved.bound()?,
        None => None,
    };
    let resumed_from = state.as_ref().map_or(0, |state| state.step);
    let before = state.as_ref().map_or(0.0, |state| state.seconds().clamp(0.0, 1e9));
    let told = EmbeddedOptions {
        patience: setting.options.patience(),
        weight_decay: setting.options.weight_decay,
        steps: setting.options.steps,
        // A run counts its own time from its beginning.
        time: seconds.map(|left| Duration::from_secs_f64((left + before).clamp(0.0, 1e9))),
        kept_bytes: kept_bytes(request.memory),
    };
    let embedding = basis.embedding()?;
    let width = embedding.width();
    let kernel = embedding_kernel(&request.kernel, width)?;
    let model = ExactGp::new(kernel, MeanForm::Zero, noise(setting.noise, (request, options))?, width, 1);
    let embedding = Box::new(embedding);
    let fitted =
        fit_embedded(model, embedding, train, Some(aside), &told, state, &mut |progress, training| {
            let signal = observer(&Progress { part: 0, parts: 1, ..*progress }, &FitStage::Features);
            checkpoints.observe::<f64>(signal, &Found::default(), || {
                Ok(Stage::Bound(posterior_store::to_value(&training.state())?))
            })
        });
    checkpoints.finish()?;
    let EmbeddedFit { posterior, reason, best, state } = fitted?;
    let exact = posterior.exact();
    let learned_noise = exact.model().noise().noise_variance();
    let nll = best.map_or(f64::MAX, |look| look.nll);
    let tried = TriedSetting {
        name: setting.name.clone(),
        nll,
        refitted_nll: None,
        first_nll: nll,
        first_ended: reason.to_string(),
        noise: Some(learned_noise),
        steps: [state.step, best.map_or(state.step, |look| look.step)],
        triangular_solves: 0,
        looks: state.looks.iter().copied().filter(|look| look.nll < f64::MAX).collect(),
        ended: reason.to_string(),
        seconds: before + started.elapsed().as_secs_f64(),
    };
    let deep = DeepSummary {
        origin: basis.origin.clone(),
        architecture: basis.architecture(false),
        inducing: false,
        dense: true,
        rank: width,
        rest: Rest::Own,
        chosen: setting.name.clone(),
        refitted: false,
        tried: vec![tried],
        trained_rows: train.rows(),
        validation_rows: aside.rows(),
        twins: *twins,
        roots: 1,
        diagnostics: diagnostics(&posterior)?,
        smallest_correlation: Some(posterior.smallest_correlation()),
    };
    let source = format!("the evidence, until {} rows that were set aside", aside.rows());
    let seconds = started.elapsed().as_secs_f64();
    let summary = ScalableSummary {
        at_bounds: ended_at_bounds(learned_noise, (request, options))?,
        ..ScalableSummary::of_features(deep, source, (state.step, resumed_from), reason, seconds)
    };
    Ok(ScalableFit {
        method: method.name(),
        source: None,
        check: None,
        // Those of the kernel behind the network belong to no column.
        hyperparameters: Hyperparameter::of(exact.model()),
        predictor: Arc::new(posterior),
        hyperpriors: Vec::new(),
        summary: Some(summary),
        reason,
        largest_jitter: state.largest_jitter,
    })
}

/// How many directions the embedded rows use about their mean, and the kernel's variances at them.
fn diagnostics(posterior: &EmbeddedPosterior) -> Result<FeatureDiagnostics, ModelError> {
    let rows = posterior.exact().data().inputs();
    let (n, h) = rows.shape();
    let means: Vec<f64> = (0..h).map(|j| rows.col(j).iter().sum::<f64>() / n as f64).collect();
    let centred = Mat::from_fn(h, n, |j, i| rows[(i, j)] - means[j]);
    let mut gram = Mat::zeros(h, h);
    add_lower_product(&mut gram, (centred.as_ref(), Rectangular), (centred.transpose(), Rectangular), 1.0);
    let variances = diagonal(posterior.exact().model().kernel(), rows);
    let range = variances.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(*v), b.max(*v)));
    Ok(FeatureDiagnostics::new(gram.as_ref(), range)?)
}
