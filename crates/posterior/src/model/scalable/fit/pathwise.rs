//! Weights by iterative solvers.

use super::hyperparameters::{Searched, hyperparameters};
use super::{ScalableFit, time_limit};
use crate::model::ModelError;
use crate::model::fit::{FitEvent, Prepared};
use crate::model::scalable::checkpoint::{Keeper, Stage};
use crate::model::scalable::plan::steps;
use crate::model::scalable::{Kept, ScalableSummary, Solver};
use crate::{FitRequest, Method};
use posterior_gp::exact::ExactGp;
use posterior_gp::iterative::{Budget, Ended, PathwiseModel, PathwiseSettings, Start, Support};
use posterior_kernels::inducing::ChosenPoints;
use posterior_linalg::random::Streams;
use posterior_optim::{Reason, Signal};
use std::time::Instant;

/// Conditions on all rows, or on inducing inputs, by an iterative solver.
pub(super) fn fit<T: Kept>(
    prepared: &Prepared,
    request: &FitRequest,
    method: Method,
    keeper: &mut Keeper,
    observer: &mut dyn FnMut(&FitEvent<'_>) -> Signal,
) -> Result<ScalableFit, ModelError> {
    let settings = &request.scalable;
    let mut saved = keeper.load()?;
    let Searched { model, found, source, hyperpriors } =
        hyperparameters::<T>(prepared, request, saved.as_mut(), keeper, observer)?;
    let seed = request.options.seed;
    let kernel = kernel_of::<T>(prepared, request, &model)?;
    let budget = Budget {
        steps: steps(request, method),
        time: time_limit(request),
        tolerance: settings.tolerance.unwrap_or(if method == Method::Cg { 1e-3 } else { 0.0 }),
    };
    let conditioning = PathwiseSettings {
        budget,
        samples: settings.samples,
        features: settings.features,
        seed,
        cache_bytes: settings.cache_bytes,
    };
    let mut inducing_radius = None;
    let support = match method {
        Method::InducingSgd => {
            let streams = Streams::new(seed);
            let z =
                settings.choice.choose(model.kernel(), prepared.data.inputs(), settings.inducing, streams);
            let ChosenPoints { points, radius } = z.map_err(|e| ModelError::Inducing(e.to_string()))?;
            inducing_radius = radius;
            Support::Inducing(points, settings.inducing_descent(seed))
        }
        Method::Cg => Support::Rows(settings.conjugate_gradients()),
        Method::Sgd => Support::Rows(settings.descent(seed)),
        _ => Support::Rows(settings.dual_descent(seed)),
    };
    let solver = match &support {
        Support::Rows(method) => Solver::Rows(method.clone()),
        Support::Inducing(_, options) => Solver::Inducing(options.clone()),
    };
    let inducing = if let Support::Inducing(z, _) = &support { z.nrows() } else { 0 };
    let state = match &mut saved {
        Some(saved) => saved.solver::<T>()?,
        None => None,
    };
    let resumed_from = state.as_ref().map_or(0, |s| s.header.step);
    let start = state.map_or(Start::Zero, Start::Resume);
    let process = PathwiseModel { kernel, mean: model.mean().clone(), noise: *model.noise() };
    let started = Instant::now();
    let posterior =
        process.condition(prepared.data.clone(), support, conditioning.clone(), start, &mut |event| {
            let signal = observer(&FitEvent::Solve { progress: event.progress });
            keeper.see(signal, &found, || Ok(Stage::Solver((event.state)())))
        })?;
    keeper.finish()?;
    let solution = posterior.solution();
    let (ended, progress) = (solution.ended, solution.progress);
    let summary = ScalableSummary {
        solver,
        settings: Some(conditioning),
        precision: settings.precision,
        hyperparameter_source: source,
        neighbourhood_evidences: found.neighbourhoods.iter().map(|f| f.log_evidence).collect(),
        search: found.search.clone(),
        inducing,
        inducing_radius,
        inducing_moved: false,
        steps: progress.step,
        ended: describe(ended).into(),
        residual: progress.residual.is_finite().then_some(progress.residual),
        step_size: progress.step_size,
        restarts: progress.restarts,
        bound: None,
        seconds: [found.seconds, started.elapsed().as_secs_f64()],
        resumed_from,
    };
    let reason = match ended {
        Ended::Tolerance | Ended::Precision => Reason::Value,
        Ended::Steps => Reason::Steps,
        Ended::Time => Reason::Time,
        Ended::Interrupted => Reason::Interrupted,
    };
    Ok(ScalableFit {
        posterior: T::posterior(posterior),
        hyperparameters: found.hyperparameters,
        hyperpriors,
        summary,
        reason,
        largest_jitter: found.largest_jitter,
    })
}

/// The kernel in precision T with the values that were found.
fn kernel_of<T: Kept>(
    prepared: &Prepared,
    request: &FitRequest,
    model: &ExactGp,
) -> Result<Box<dyn posterior_kernels::Kernel<T>>, ModelError> {
    let mut kernel = request.kernel.build::<T>(&prepared.schema.feature_names())?;
    kernel.set_values(&model.kernel().values());
    Ok(kernel)
}

pub(in crate::model) fn describe(ended: Ended) -> &'static str {
    match ended {
        Ended::Tolerance => "tolerance",
        Ended::Precision => "precision",
        Ended::Steps => "steps",
        Ended::Time => "time",
        Ended::Interrupted => "interrupted",
    }
}
