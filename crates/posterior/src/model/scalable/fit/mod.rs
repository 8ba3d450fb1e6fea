//! Hyperparameters, then weights.
//!
//! | file | what |
//! |---|---|
//! | `hyperparameters` | given, from neighbourhoods, or by stochastic gradients of the evidence of all rows |
//! | `pathwise` | weights by iterative solvers |
//! | `bounds` | inducing points: hyperparameters and posterior from one bound |

mod bounds;
mod hyperparameters;
mod pathwise;

use super::checkpoint::{Identity, Keeper, digest};
use super::{HyperparameterSearch, KernelPrecision, ScalablePlan, ScalableSummary};
use crate::model::fit::{FitEvent, Prepared};
use crate::model::{Hyperparameter, ModelError, ProcessPosterior};
use crate::{FitRequest, Method};
use posterior_gp::inducing::stochastic::VariationalOptimizer;
use posterior_gp::{GpError, Hyperprior};
use posterior_optim::{Reason, Signal};
use std::time::Duration;

pub(in crate::model) use pathwise::describe;

/// What a fit leaves behind.
pub(in crate::model) struct ScalableFit {
    pub(in crate::model) posterior: ProcessPosterior,
    pub(in crate::model) hyperparameters: Vec<Hyperparameter>,
    /// The beliefs that their search used, those that nobody stated included.
    pub(in crate::model) hyperpriors: Vec<Hyperprior>,
    pub(in crate::model) summary: ScalableSummary,
    pub(in crate::model) reason: Reason,
    pub(in crate::model) largest_jitter: f64,
}

/// Fits by `method`. An interruption leaves a checkpoint where there is a place for one, and `reason` says so.
pub(in crate::model) fn fit_scalable(
    prepared: &Prepared,
    request: &FitRequest,
    method: Method,
    observer: &mut dyn FnMut(&FitEvent<'_>) -> Signal,
) -> Result<ScalableFit, ModelError> {
    let settings = &request.scalable;
    let data = &prepared.data;
    check(prepared, request, method)?;
    let plan = ScalablePlan::new(request, method, data.rows(), data.inputs().ncols());
    if plan.peak_bytes > request.options.memory_limit {
        return Err(GpError::Memory { plan: plan.as_exact(), limit: request.options.memory_limit }.into());
    }
    let place = match &settings.checkpoint {
        Some(path) => Some((path.clone(), identity(prepared, request, method)?)),
        None => None,
    };
    let keeper = &mut Keeper::new(place, settings.checkpoint_seconds);
    let fit = match method {
        Method::Sgpr => bounds::collapsed(prepared, request, keeper, observer),
        Method::Svgp => bounds::stochastic(prepared, request, keeper, observer),
        _ => match settings.precision {
            KernelPrecision::Single => pathwise::fit::<f32>(prepared, request, method, keeper, observer),
            KernelPrecision::Double => pathwise::fit::<f64>(prepared, request, method, keeper, observer),
        },
    }?;
    if fit.reason != Reason::Interrupted {
        keeper.clear();
    }
    Ok(fit)
}

/// Refuses at once what would otherwise fail after a long search.
fn check(prepared: &Prepared, request: &FitRequest, method: Method) -> Result<(), ModelError> {
    let settings = &request.scalable;
    if matches!(method, Method::Cg | Method::Sgd | Method::Sdd | Method::InducingSgd) {
        let kernel = request.kernel.build::<f64>(&prepared.schema.feature_names())?;
        kernel.features().map_err(GpError::from)?;
    }
    let refuse = |what, value, expected| Err(ModelError::Setting { what, value, expected });
    for (what, value) in [
        ("the step size", settings.step_size),
        ("the tolerance", settings.tolerance),
        ("the time", settings.seconds),
        ("the time between checkpoints", Some(settings.checkpoint_seconds)),
    ] {
        if let Some(v) = value.filter(|v| !(v.is_finite() && *v > 0.0)) {
            return refuse(what, v, "a positive number");
        }
    }
    if settings.tolerance.is_some() && method == Method::InducingSgd {
        let expected = "absent: the misfit of inducing points keeps the noise and reaches no tolerance";
        return refuse("the tolerance of inducing-sgd", settings.tolerance.unwrap_or_default(), expected);
    }
    if let VariationalOptimizer::NaturalGradient { length, .. } = settings.variational
        && !(length > 0.0 && length <= 1.0)
    {
        return refuse("the length of natural-gradient steps", length, "above 0 and at most 1");
    }
    if let HyperparameterSearch::Stochastic(search) = &settings.search {
        if !(search.learning_rate > 0.0 && search.learning_rate.is_finite()) {
            return refuse("the learning rate", search.learning_rate, "a positive number");
        }
        if search.probes == 0 || search.steps == 0 {
            return refuse("the number of probes or steps of the search", 0.0, "at least 1");
        }
    }
    if settings.hyperparameters.is_none()
        && (settings.neighbourhoods.count == 0 || settings.neighbourhoods.size == 0)
    {
        return refuse("the number of neighbourhoods, or of their rows,", 0.0, "at least 1");
    }
    if let Some(momentum) = settings.momentum.filter(|m| !(0.0..1.0).contains(m)) {
        return refuse("the momentum", momentum, "at least 0 and below 1");
    }
    for (what, count) in [
        ("the number of samples", settings.samples),
        ("the number of random features", settings.features.count),
        ("the number of inducing points", settings.inducing),
        ("the number of steps", settings.steps.unwrap_or(1)),
        ("the number of rows of a batch", settings.batch.unwrap_or(1)),
    ] {
        if count == 0 {
            return refuse(what, 0.0, "at least 1");
        }
    }
    Ok(())
}

/// Everything that the numbers depend on: settings, roles, data. Neither limits of time and memory nor places are among it: the same command with a larger budget goes on.
fn identity(prepared: &Prepared, request: &FitRequest, method: Method) -> Result<Identity, ModelError> {
    let mut request = request.clone();
    request.method = method;
    request.scalable.checkpoint = None;
    request.scalable.checkpoint_seconds = 0.0;
    request.scalable.seconds = None;
    request.options.memory_limit = 0;
    let failed = |e: serde_json::Error| ModelError::Checkpoint { problem: e.to_string() };
    let settings = serde_json::to_value(&request).map_err(failed)?;
    let schema = serde_json::to_string(&prepared.schema).map_err(failed)?;
    let columns = |m: faer::MatRef<'_, f64>| -> Vec<f64> {
        (0..m.ncols()).flat_map(|j| m.col(j).iter().copied().collect::<Vec<_>>()).collect()
    };
    let (x, y) = (columns(prepared.data.inputs()), columns(prepared.data.targets()));
    let noise = prepared.data.noise_variances().unwrap_or_default();
    Ok(Identity { settings, data: digest(&schema, &[&x, &y, noise]) })
}

/// The limit of time, as solvers take it.
fn time_limit(request: &FitRequest) -> Option<Duration> {
    request.scalable.seconds.map(|s| Duration::from_secs_f64(s.min(1e9)))
}
