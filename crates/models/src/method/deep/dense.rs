//! The exact process behind a network: weights, hyperparameters and noise by the evidence of all rows, of which those that are set aside say when it is enough.

use super::basis::Basis;
use super::columns::Columns;
use super::fit::{Task, apart, kept_bytes};
use super::targets::{Targets, ended_at_bounds, noise};
use crate::method::embedding_kernel;
use crate::method::training::{ScalableFit, Watched};
use crate::record::TrainingSummary;
use crate::{
    DeepSummary, FitRequest, FitStage, Hyperparameter, Method, ModelError, Prepared, ScalableSummary,
    TriedSetting,
};
use faer::Mat;
use faer::linalg::matmul::triangular::BlockStructure::Rectangular;
use posterior_gp::MeanForm;
use posterior_gp::exact::{EmbeddedFit, EmbeddedOptions, EmbeddedPosterior, ExactGp, fit_embedded};
use posterior_kernels::diagonal;
use posterior_linalg::triangular::add_lower_product;
use posterior_linear::embedding::Embedding;
use posterior_linear::low_rank::{FeatureDiagnostics, ResidualVariance};
use posterior_linear::training::TrainingState;
use posterior_optim::Progress;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Trains on prepared rows, within `seconds` where there is a limit.
pub(crate) fn fit_dense(
    prepared: &Prepared,
    (request, method): (&FitRequest, &Method),
    seconds: Option<f64>,
    (keeping, observer): Watched<'_, '_, '_>,
) -> Result<ScalableFit, ModelError> {
    let (options, kind, embedding) = method.requires(method.deep())?;
    let names = prepared.schema.feature_names();
    let (train, aside, training_duplicates) = apart(&prepared.data, request.seed)?;
    let columns = Columns { names: &names, standardisation: &prepared.standardisation };
    Task { request, method, columns, rows: (&train, &aside), training_duplicates, targets: Targets::Numbers }
        .check()?;
    let basis = Basis::new((options, kind, embedding), columns, request.seed)?;
    let started = Instant::now();
    let settings = options.settings(kind, train.rows(), request.seed);
    let Some(setting) = settings.first() else {
        return Err(ModelError::Request(format!("{} has no way to be trained", method.name())));
    };
    let state: Option<TrainingState> = keeping.checkpoints.bound()?;
    let resumed_from = state.as_ref().map_or(0, |state| state.step);
    let before = state.as_ref().map_or(0.0, |state| state.seconds().clamp(0.0, 1e9));
    let told = EmbeddedOptions {
        patience: setting.options.patience(),
        weight_decay: setting.options.weight_decay,
        steps: setting.options.steps,
        // A run counts its own time from its beginning.
        time: seconds.map(|left| Duration::from_secs_f64((left + before).clamp(0.0, 1e9))),
        kept_bytes: kept_bytes(request.limits.memory),
    };
    let embedding = basis.embedding()?;
    let width = embedding.width();
    let kernel = embedding_kernel(&request.prior.kernel, width)?;
    let model = ExactGp::new(kernel, MeanForm::Zero, noise(setting.noise, (request, options))?, width, 1);
    let embedding = Box::new(embedding);
    let fitted =
        fit_embedded(model, embedding, &train, Some(&aside), &told, state, &mut |progress, training| {
            let signal = observer(&Progress { part: 0, parts: 1, ..*progress }, &FitStage::Features);
            keeping.observe(signal, || posterior_store::to_value(&training.state()))
        });
    keeping.checkpoints.finish()?;
    let EmbeddedFit { posterior, reason, best, state } = fitted?;
    let exact = posterior.exact();
    let learned_noise = exact.model().noise().noise_variance();
    let nll = best.map_or(f64::MAX, |look| look.nll);
    let tried = TriedSetting {
        nll,
        first_nll: nll,
        noise: Some(learned_noise),
        steps: [state.step, best.map_or(state.step, |look| look.step)],
        validation_scores: state
            .validation_scores
            .iter()
            .copied()
            .filter(|look| look.nll < f64::MAX)
            .collect(),
        ..TriedSetting::ended(&setting.name, reason.to_string(), before + started.elapsed().as_secs_f64())
    };
    let deep = DeepSummary {
        origin: basis.origin.clone(),
        architecture: basis.architecture(false),
        inducing: false,
        dense: true,
        rank: width,
        residual_variance: ResidualVariance::Own,
        chosen: setting.name.clone(),
        refitted: false,
        tried: vec![tried],
        trained_rows: train.rows(),
        validation_rows: aside.rows(),
        training_duplicates,
        roots: 1,
        diagnostics: diagnostics(&posterior)?,
        smallest_correlation: Some(posterior.smallest_correlation()),
    };
    let source = format!("the evidence, until {} rows that were set aside", aside.rows());
    let (steps, seconds) = (state.step, started.elapsed().as_secs_f64());
    let training = TrainingSummary { source, steps, resumed_from, ended: reason, seconds };
    let summary = ScalableSummary {
        at_bounds: ended_at_bounds(learned_noise, (request, options))?,
        ..ScalableSummary::of_features(deep, training)
    };
    // Those of the kernel behind the network belong to no column.
    let hyperparameters = Hyperparameter::of(exact.model());
    let log_evidence = Some(exact.log_evidence());
    let ended = (reason, state.largest_jitter);
    let fit = ScalableFit::new(method.name(), Arc::new(posterior), hyperparameters, ended);
    Ok(ScalableFit { summary: Some(summary), log_evidence, ..fit })
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
