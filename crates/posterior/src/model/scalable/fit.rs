//! Hyperparameters, then weights.

use super::checkpoint::{self, Found};
use super::plan::steps;
use super::{Kept, KernelPrecision, ScalablePlan, ScalableSummary, Solver};
use crate::model::fit::{FitEvent, Prepared, add_weak_priors, named_values};
use crate::model::{Hyperparameter, ModelError, ProcessPosterior};
use crate::{FitRequest, Method};
use posterior_gp::GpError;
use posterior_gp::exact::{ExactGp, FitOptions};
use posterior_gp::inducing::collapsed::{CollapsedGp, CollapsedOptions, fit_collapsed};
use posterior_gp::inducing::stochastic::{StochasticGp, StochasticOptions, StochasticState, fit_stochastic};
use posterior_gp::iterative::{
    Budget, Ended, PathwiseModel, PathwiseSettings, Start, Support, fit_on_neighbourhoods,
};
use posterior_kernels::features::FeatureSettings;
use posterior_likelihoods::{Gaussian, VariationalLikelihood};
use posterior_linalg::random::Streams;
use posterior_optim::{Parameters, Reason, Signal, State};
use std::path::Path;
use std::time::{Duration, Instant};

/// What a fit leaves behind.
pub(in crate::model) struct ScalableFit {
    pub(in crate::model) posterior: ProcessPosterior,
    pub(in crate::model) hyperparameters: Vec<Hyperparameter>,
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
    check(request)?;
    let plan = ScalablePlan::new(request, method, data.rows(), data.inputs().ncols());
    if plan.peak_bytes > request.options.memory_limit {
        return Err(GpError::Memory { plan: plan.as_exact(), limit: request.options.memory_limit }.into());
    }
    let identity = settings.checkpoint.as_ref().map(|_| identity(prepared, request, method)).transpose()?;
    let keeper = settings.checkpoint.as_deref().zip(identity.as_deref());
    let fit = match method {
        Method::Sgpr => collapsed(prepared, request, keeper, observer),
        Method::Svgp => stochastic(prepared, request, keeper, observer),
        _ => match settings.precision {
            KernelPrecision::Single => pathwise::<f32>(prepared, request, method, keeper, observer),
            KernelPrecision::Double => pathwise::<f64>(prepared, request, method, keeper, observer),
        },
    }?;
    if fit.reason != Reason::Interrupted
        && let Some((path, _)) = keeper
    {
        // A finished fit needs none; one that cannot be removed does no harm.
        let _ = std::fs::remove_file(path);
    }
    Ok(fit)
}

fn check(request: &FitRequest) -> Result<(), ModelError> {
    let settings = &request.scalable;
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
    for (what, count) in [
        ("the number of samples", settings.samples),
        ("the number of random features", settings.features),
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

/// Everything that the numbers depend on: settings, roles, data. Neither times nor places are among it.
fn identity(prepared: &Prepared, request: &FitRequest, method: Method) -> Result<String, ModelError> {
    let mut request = request.clone();
    request.method = method;
    request.scalable.checkpoint = None;
    request.scalable.checkpoint_seconds = 0.0;
    let text = |e: serde_json::Error| ModelError::Checkpoint { problem: e.to_string() };
    let settings = serde_json::to_string(&request).map_err(text)?;
    let schema = serde_json::to_string(&prepared.schema).map_err(text)?;
    let columns = |m: faer::MatRef<'_, f64>| -> Vec<f64> {
        (0..m.ncols()).flat_map(|j| m.col(j).iter().copied().collect::<Vec<_>>()).collect()
    };
    let (x, y) = (columns(prepared.data.inputs()), columns(prepared.data.targets()));
    let noise = prepared.data.noise_variances().unwrap_or_default();
    Ok(checkpoint::identity(&[&settings, &schema], &[&x, &y, noise]))
}

/// Kernel, mean and noise as the request has them, before anything is learned.
fn initial(prepared: &Prepared, request: &FitRequest) -> Result<ExactGp, ModelError> {
    let kernel = request.kernel.build(&prepared.schema.feature_names())?;
    let noise = Gaussian::new(request.initial_noise, request.noise_floor);
    Ok(ExactGp::new(kernel, request.mean, noise, prepared.data.inputs().ncols(), 1))
}

/// Gives a model values by their names.
fn set(model: &mut ExactGp, given: &[Hyperparameter]) -> Result<(), ModelError> {
    let known: Vec<(String, usize)> = model.segments().iter().map(|s| (s.name.clone(), s.len())).collect();
    let mut values = Vec::new();
    for (name, length) in &known {
        let found = given.iter().find(|h| h.name == *name && h.values.len() == *length);
        let Some(found) = found else {
            let names: Vec<String> = known.iter().map(|(n, l)| format!("{n} ({l})")).collect();
            return Err(ModelError::Hyperparameters { missing: name.clone(), length: *length, known: names });
        };
        if found.values.iter().any(|v| !v.is_finite() || (*v <= 0.0 && !name.starts_with("mean."))) {
            let value =
                found.values.iter().copied().find(|v| !v.is_finite() || *v <= 0.0).unwrap_or(f64::NAN);
            return Err(ModelError::Setting {
                what: "a given hyperparameter",
                value,
                expected: "positive and finite",
            });
        }
        values.extend_from_slice(&found.values);
    }
    model.set_values(&values);
    Ok(())
}

/// Where hyperparameters come from, and what was found.
fn hyperparameters(
    prepared: &Prepared,
    request: &FitRequest,
    observer: &mut dyn FnMut(&FitEvent<'_>) -> Signal,
) -> Result<(ExactGp, Found, String, bool), ModelError> {
    let started = Instant::now();
    let settings = &request.scalable;
    let mut model = initial(prepared, request)?;
    let mut found = Found::default();
    if let Some(given) = &settings.hyperparameters {
        set(&mut model, given)?;
        found.hyperparameters = named_values(&model);
        return Ok((model, found, "given".into(), false));
    }
    let mut options: FitOptions = request.options.clone();
    if request.weak_lengthscale_prior {
        add_weak_priors(&mut options.hyperpriors, &model, prepared.data.inputs().ncols());
    }
    options.restarts = 1;
    let mut neighbourhoods = settings.neighbourhoods;
    neighbourhoods.seed = request.options.seed;
    let (averaged, fits) =
        fit_on_neighbourhoods(&model, &prepared.data, neighbourhoods, &options, &mut |done, all, event| {
            observer(&FitEvent::Neighbourhood { done, all, event })
        })?;
    let interrupted = fits.iter().any(|f| f.reason == Reason::Interrupted);
    found.evidences = fits.iter().map(|f| f.log_evidence).collect();
    found.largest_jitter = fits.iter().map(|f| f.largest_jitter).fold(0.0, f64::max);
    found.hyperparameters = named_values(&averaged);
    found.seconds = started.elapsed().as_secs_f64();
    let source = if fits.len() == 1 && neighbourhoods.size >= prepared.data.rows() {
        "the evidence of all rows".into()
    } else {
        format!("averages over the evidence on {} neighbourhoods of {} rows", fits.len(), neighbourhoods.size)
    };
    Ok((averaged, found, source, interrupted))
}

fn pathwise<T: Kept>(
    prepared: &Prepared,
    request: &FitRequest,
    method: Method,
    keeper: Option<(&Path, &str)>,
    observer: &mut dyn FnMut(&FitEvent<'_>) -> Signal,
) -> Result<ScalableFit, ModelError> {
    let settings = &request.scalable;
    let mut saved = match keeper {
        Some((path, identity)) => checkpoint::load(path, identity)?,
        None => None,
    };
    let (model, found, source, interrupted) = match &saved {
        Some(saved) => {
            let mut model = initial(prepared, request)?;
            set(&mut model, &saved.found.hyperparameters)?;
            let source = if settings.hyperparameters.is_some() {
                "given"
            } else {
                "neighbourhoods, before an interruption"
            };
            (model, saved.found.clone(), source.to_string(), false)
        }
        None => hyperparameters(prepared, request, observer)?,
    };
    if interrupted {
        return Err(ModelError::Interrupted);
    }
    if let (Some((path, identity)), None) = (keeper, &saved) {
        checkpoint::save::<T>(path, identity, &found, None, None)?;
    }
    let seed = request.options.seed;
    let kernel = kernel_of::<T>(prepared, request, &model)?;
    let budget = Budget {
        steps: steps(request, method),
        time: settings.seconds.map(|s| Duration::from_secs_f64(s.min(1e9))),
        tolerance: settings.tolerance.unwrap_or(if method == Method::Cg { 1e-3 } else { 0.0 }),
    };
    let conditioning = PathwiseSettings {
        budget,
        samples: settings.samples,
        features: FeatureSettings { count: settings.features, ..FeatureSettings::default() },
        seed,
        cache_bytes: settings.cache_bytes,
    };
    let support = match method {
        Method::InducingSgd => {
            let streams = Streams::new(seed);
            let z =
                settings.choice.points(model.kernel(), prepared.data.inputs(), settings.inducing, streams);
            let z = z.map_err(|e| ModelError::Inducing(e.to_string()))?;
            Support::Inducing(z, settings.inducing_descent(seed))
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
    let (start, resumed_from) = match (&mut saved, keeper) {
        (Some(saved), Some((path, _))) => match saved.solver::<T>(path)? {
            Some(state) => {
                let step = state.header.step;
                (Start::Resume(state), step)
            }
            None => (Start::Zero, 0),
        },
        _ => (Start::Zero, 0),
    };
    let process = PathwiseModel { kernel, mean: model.mean().clone(), noise: *model.noise() };
    let started = Instant::now();
    let mut last_saved = Instant::now();
    let mut failed = None;
    let posterior =
        process.condition(prepared.data.clone(), support, conditioning.clone(), start, &mut |event| {
            let mut signal = observer(&FitEvent::Solve { progress: event.progress });
            let due = last_saved.elapsed().as_secs_f64() >= settings.checkpoint_seconds;
            if let Some((path, identity)) = keeper
                && (due || signal == Signal::Stop)
            {
                if let Err(e) = checkpoint::save(path, identity, &found, Some((event.state)()), None) {
                    failed = Some(e);
                    signal = Signal::Stop;
                }
                last_saved = Instant::now();
            }
            signal
        })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let solution = posterior.solution();
    let (ended, progress) = (solution.ended, solution.progress);
    let summary = ScalableSummary {
        solver,
        settings: Some(conditioning),
        precision: settings.precision,
        hyperparameter_source: source,
        neighbourhood_evidences: found.evidences.clone(),
        inducing,
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

/// Kernel, inducing inputs, and whether hyperparameters are learned.
fn with_inducing(
    prepared: &Prepared,
    request: &FitRequest,
) -> Result<(ExactGp, faer::Mat<f64>, bool), ModelError> {
    let settings = &request.scalable;
    let mut model = initial(prepared, request)?;
    if let Some(given) = &settings.hyperparameters {
        set(&mut model, given)?;
    }
    let streams = Streams::new(request.options.seed);
    let z = settings
        .choice
        .points(model.kernel(), prepared.data.inputs(), settings.inducing, streams)
        .map_err(|e| ModelError::Inducing(e.to_string()))?;
    Ok((model, z, settings.hyperparameters.is_none()))
}

fn source(learned: bool) -> String {
    if learned { "the bound".into() } else { "given".into() }
}

fn bound_summary(request: &FitRequest, solver: Solver, inducing: usize, learned: bool) -> ScalableSummary {
    ScalableSummary {
        solver,
        settings: None,
        precision: KernelPrecision::Double,
        hyperparameter_source: source(learned || request.scalable.learn_inducing),
        neighbourhood_evidences: Vec::new(),
        inducing,
        steps: 0,
        ended: String::new(),
        residual: None,
        step_size: None,
        restarts: 0,
        bound: None,
        seconds: [0.0; 2],
        resumed_from: 0,
    }
}

fn collapsed(
    prepared: &Prepared,
    request: &FitRequest,
    keeper: Option<(&Path, &str)>,
    observer: &mut dyn FnMut(&FitEvent<'_>) -> Signal,
) -> Result<ScalableFit, ModelError> {
    let started = Instant::now();
    let (model, z, learn) = with_inducing(prepared, request)?;
    let inducing = z.nrows();
    let mut summary = bound_summary(request, Solver::Collapsed, inducing, learn);
    let mut process = CollapsedGp::new(model.kernel().clone_box(), request.mean, *model.noise(), z, 1)?;
    copy_mean(&model, &mut process);
    process.learn_inducing = request.scalable.learn_inducing;
    let found = Found::default();
    if !learn {
        let (posterior, bound) = process.clone().condition(&prepared.data)?;
        summary.bound = Some(bound);
        summary.ended = "closed form".into();
        summary.hyperparameter_source = source(false);
        summary.seconds[1] = started.elapsed().as_secs_f64();
        return Ok(ScalableFit {
            posterior: ProcessPosterior::Inducing(posterior),
            hyperparameters: named_values(&model),
            summary,
            reason: Reason::Value,
            largest_jitter: 0.0,
        });
    }
    let mut options = CollapsedOptions {
        steps: request.options.steps.clone(),
        hyperpriors: request.options.hyperpriors.clone(),
        memory_limit: request.options.memory_limit,
    };
    options.steps.steps = steps(request, Method::Sgpr);
    options.steps.time = request.scalable.seconds.map(|s| Duration::from_secs_f64(s.min(1e9)));
    if request.weak_lengthscale_prior {
        add_weak_priors(&mut options.hyperpriors, &model, prepared.data.inputs().ncols());
    }
    let state: Option<State> = saved_bound(keeper)?;
    summary.resumed_from = state.as_ref().map_or(0, |s| s.step);
    let mut keep = Keep::new(keeper, request.scalable.checkpoint_seconds);
    let fitted = fit_collapsed(process, &prepared.data, &options, state, &mut |event, state| {
        let signal = observer(&FitEvent::Search { start: 0, event });
        keep.see(signal, &found, || serde_json::to_value(state))
    })?;
    keep.finish()?;
    summary.bound = Some(fitted.bound);
    summary.steps = fitted.steps;
    summary.ended = format!("{:?}", fitted.reason).to_lowercase();
    summary.seconds[1] = started.elapsed().as_secs_f64();
    Ok(ScalableFit {
        hyperparameters: kernel_mean_noise(&fitted.model),
        posterior: ProcessPosterior::Inducing(fitted.posterior),
        summary,
        reason: fitted.reason,
        largest_jitter: fitted.largest_jitter,
    })
}

fn stochastic(
    prepared: &Prepared,
    request: &FitRequest,
    keeper: Option<(&Path, &str)>,
    observer: &mut dyn FnMut(&FitEvent<'_>) -> Signal,
) -> Result<ScalableFit, ModelError> {
    let started = Instant::now();
    let (model, z, learn) = with_inducing(prepared, request)?;
    let inducing = z.nrows();
    let mut summary = bound_summary(request, Solver::Stochastic, inducing, learn);
    let likelihood = VariationalLikelihood::Gaussian(*model.noise());
    let mut process = StochasticGp::new(model.kernel().clone_box(), request.mean, likelihood, z, 1)?;
    copy_mean(&model, &mut process);
    process.learn_inducing = request.scalable.learn_inducing;
    process.learn_hyperparameters = learn;
    let mut options = StochasticOptions {
        steps: steps(request, Method::Svgp),
        seed: request.options.seed,
        time: request.scalable.seconds.map(|s| Duration::from_secs_f64(s.min(1e9))),
        hyperpriors: request.options.hyperpriors.clone(),
        memory_limit: request.options.memory_limit,
        ..StochasticOptions::default()
    };
    options.batch = request.scalable.batch.unwrap_or(options.batch);
    options.learning_rate = request.scalable.step_size.unwrap_or(options.learning_rate);
    if request.weak_lengthscale_prior && learn {
        add_weak_priors(&mut options.hyperpriors, &model, prepared.data.inputs().ncols());
    }
    let state: Option<StochasticState> = saved_bound(keeper)?;
    summary.resumed_from = state.as_ref().map_or(0, |s| s.step);
    let found = Found::default();
    let mut keep = Keep::new(keeper, request.scalable.checkpoint_seconds);
    let fitted = fit_stochastic(process, &prepared.data, &options, state.as_ref(), &mut |progress| {
        let signal = observer(&FitEvent::Bound {
            step: progress.step,
            planned: progress.steps_planned,
            bound: progress.average_bound,
            elapsed: progress.elapsed,
        });
        keep.see(signal, &found, || serde_json::to_value(progress.state()))
    })?;
    keep.finish()?;
    summary.bound = Some(fitted.average_bound);
    summary.steps = fitted.steps;
    summary.ended = format!("{:?}", fitted.reason).to_lowercase();
    summary.seconds[1] = started.elapsed().as_secs_f64();
    Ok(ScalableFit {
        hyperparameters: if learn { kernel_mean_noise(&fitted.model) } else { named_values(&model) },
        posterior: ProcessPosterior::Inducing(fitted.posterior),
        summary,
        reason: fitted.reason,
        largest_jitter: fitted.largest_jitter,
    })
}

/// Gives `process` the mean of `model`; kernel and noise it has already.
fn copy_mean(model: &ExactGp, process: &mut dyn Parameters) {
    let known = named_values(model);
    let mut values = process.values();
    let mut start = 0;
    for segment in process.segments() {
        let length = segment.len();
        let found = known.iter().find(|h| h.name == segment.name && h.name.starts_with("mean."));
        if let Some(found) = found.filter(|h| h.values.len() == length) {
            values[start..start + length].copy_from_slice(&found.values);
        }
        start += length;
    }
    process.set_values(&values);
}

/// All parameters of a model but its inducing inputs, which are a tensor of their own. The likelihood's noise goes by the name that exact models use.
fn kernel_mean_noise(model: &dyn Parameters) -> Vec<Hyperparameter> {
    let values = model.values();
    let mut rest = values.as_slice();
    let mut out = Vec::new();
    for segment in model.segments() {
        let (mine, others) = rest.split_at(segment.len());
        rest = others;
        if !segment.name.contains("inducing") {
            out.push(Hyperparameter { name: segment.name, values: mine.to_vec() });
        }
    }
    out
}

/// The state of a bound's optimiser that an earlier run left.
fn saved_bound<S: serde::de::DeserializeOwned>(
    keeper: Option<(&Path, &str)>,
) -> Result<Option<S>, ModelError> {
    let Some((path, identity)) = keeper else { return Ok(None) };
    let Some(saved) = checkpoint::load(path, identity)? else { return Ok(None) };
    let parse =
        |value| serde_json::from_value(value).map_err(|e| ModelError::Checkpoint { problem: e.to_string() });
    saved.bound.map(parse).transpose()
}

/// Saves the state of a bound's optimiser now and then.
struct Keep<'a> {
    keeper: Option<(&'a Path, &'a str)>,
    every: f64,
    last: Instant,
    failed: Option<ModelError>,
}

impl<'a> Keep<'a> {
    fn new(keeper: Option<(&'a Path, &'a str)>, every: f64) -> Self {
        Self { keeper, every, last: Instant::now(), failed: None }
    }

    fn see(
        &mut self,
        signal: Signal,
        found: &Found,
        state: impl FnOnce() -> Result<serde_json::Value, serde_json::Error>,
    ) -> Signal {
        let Some((path, identity)) = self.keeper else { return signal };
        if signal == Signal::Continue && self.last.elapsed().as_secs_f64() < self.every {
            return signal;
        }
        self.last = Instant::now();
        let saved = state()
            .map_err(|e| ModelError::Checkpoint { problem: e.to_string() })
            .and_then(|value| Ok(checkpoint::save::<f64>(path, identity, found, None, Some(value))?));
        match saved {
            Ok(()) => signal,
            Err(error) => {
                self.failed = Some(error);
                Signal::Stop
            }
        }
    }

    fn finish(self) -> Result<(), ModelError> {
        self.failed.map_or(Ok(()), Err)
    }
}
