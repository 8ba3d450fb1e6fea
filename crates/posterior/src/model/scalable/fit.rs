//! Hyperparameters, then weights.

use super::checkpoint::{self, Found};
use super::plan::steps;
use super::{Kept, KernelPrecision, ScalablePlan, ScalableSummary, Solver};
use crate::model::fit::{FitEvent, Prepared, add_weak_priors, named_values};
use crate::model::{Hyperparameter, ModelError, ProcessPosterior};
use crate::{FitRequest, Method};
use posterior_gp::exact::{ExactGp, FitOptions};
use posterior_gp::inducing::collapsed::{CollapsedGp, CollapsedOptions, fit_collapsed};
use posterior_gp::inducing::stochastic::{StochasticGp, StochasticOptions, StochasticState, fit_stochastic};
use posterior_gp::iterative::{
    Budget, Ended, NeighbourhoodProgress, PathwiseModel, PathwiseSettings, Start, Support,
    fit_on_neighbourhoods,
};
use posterior_gp::{GpError, Hyperprior};
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
    if let Some(momentum) = settings.momentum.filter(|m| !(0.0..1.0).contains(m)) {
        return refuse("the momentum", momentum, "at least 0 and below 1");
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

/// Everything that the numbers depend on: settings, roles, data. Neither limits of time and memory nor places are among it: the same command with a larger budget goes on.
fn identity(prepared: &Prepared, request: &FitRequest, method: Method) -> Result<String, ModelError> {
    let mut request = request.clone();
    request.method = method;
    request.scalable.checkpoint = None;
    request.scalable.checkpoint_seconds = 0.0;
    request.scalable.seconds = None;
    request.options.memory_limit = 0;
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
    let listed = || known.iter().map(|(n, l)| format!("{n} ({l})")).collect::<Vec<String>>();
    if let Some(other) = given.iter().find(|h| !known.iter().any(|(name, _)| *name == h.name)) {
        return Err(ModelError::UnknownHyperparameter { name: other.name.clone(), known: listed() });
    }
    let mut values = Vec::new();
    for (name, length) in &known {
        let found = given.iter().find(|h| h.name == *name && h.values.len() == *length);
        let Some(found) = found else {
            return Err(ModelError::Hyperparameters {
                missing: name.clone(),
                length: *length,
                known: listed(),
            });
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
    let (noise, floor) = (model.noise().noise_variance(), model.noise().floor());
    if noise <= floor {
        return Err(ModelError::GivenNoise { noise, floor });
    }
    Ok(())
}

/// What the search for hyperparameters believes: what was stated, and the weak prior of lengthscales that nothing was said about.
fn beliefs(prepared: &Prepared, request: &FitRequest, model: &ExactGp) -> Vec<Hyperprior> {
    let mut hyperpriors = request.options.hyperpriors.clone();
    if request.weak_lengthscale_prior {
        add_weak_priors(&mut hyperpriors, model, prepared.data.inputs().ncols());
    }
    hyperpriors
}

/// Hyperparameters, where they come from, and what was found on the way.
struct Searched {
    model: ExactGp,
    found: Found,
    source: String,
    hyperpriors: Vec<Hyperprior>,
}

/// Gives the model its hyperparameters: those of the request, those that were found before an interruption, or those of a search, which goes on behind the
/// neighbourhoods that were finished before.
fn hyperparameters<T: Kept>(
    prepared: &Prepared,
    request: &FitRequest,
    saved: Option<&Found>,
    keeper: Option<(&Path, &str)>,
    observer: &mut dyn FnMut(&FitEvent<'_>) -> Signal,
) -> Result<Searched, ModelError> {
    let started = Instant::now();
    let settings = &request.scalable;
    let mut model = initial(prepared, request)?;
    if let Some(given) = &settings.hyperparameters {
        set(&mut model, given)?;
        let found = Found { hyperparameters: named_values(&model), ..Found::default() };
        return Ok(Searched { model, found, source: "given".into(), hyperpriors: Vec::new() });
    }
    let hyperpriors = beliefs(prepared, request, &model);
    let mut neighbourhoods = settings.neighbourhoods;
    neighbourhoods.seed = request.options.seed;
    let source = if neighbourhoods.size >= prepared.data.rows() {
        "the evidence of all rows".into()
    } else {
        format!(
            "averages over the evidence on {} neighbourhoods of {} rows",
            neighbourhoods.count, neighbourhoods.size
        )
    };
    if let Some(found) = saved.filter(|f| !f.hyperparameters.is_empty()) {
        set(&mut model, &found.hyperparameters)?;
        return Ok(Searched { model, found: found.clone(), source, hyperpriors });
    }
    let mut found = saved.cloned().unwrap_or_default();
    let before = found.seconds;
    let options = FitOptions { restarts: 1, hyperpriors: hyperpriors.clone(), ..request.options.clone() };
    let earlier = found.neighbourhoods.clone();
    let mut failed = None;
    let (averaged, fits) = fit_on_neighbourhoods(
        &model,
        &prepared.data,
        neighbourhoods,
        &options,
        earlier,
        &mut |NeighbourhoodProgress { done, all, event }| {
            if let Some((path, identity)) = keeper
                && done.len() > found.neighbourhoods.len()
            {
                found.neighbourhoods = done.to_vec();
                found.seconds = before + started.elapsed().as_secs_f64();
                if let Err(error) = checkpoint::save::<T>(path, identity, &found, None, None) {
                    failed = Some(error);
                    return Signal::Stop;
                }
            }
            observer(&FitEvent::Neighbourhood { done: done.len(), all, event })
        },
    )?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if fits.iter().any(|f| f.reason == Reason::Interrupted) {
        return Err(ModelError::Interrupted);
    }
    let found = Found {
        hyperparameters: named_values(&averaged),
        largest_jitter: fits.iter().map(|f| f.largest_jitter).fold(0.0, f64::max),
        neighbourhoods: fits,
        seconds: before + started.elapsed().as_secs_f64(),
    };
    if let Some((path, identity)) = keeper {
        checkpoint::save::<T>(path, identity, &found, None, None)?;
    }
    Ok(Searched { model: averaged, found, source, hyperpriors })
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
    let Searched { model, found, source, hyperpriors } =
        hyperparameters::<T>(prepared, request, saved.as_ref().map(|s| &s.found), keeper, observer)?;
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
        neighbourhood_evidences: found.neighbourhoods.iter().map(|f| f.log_evidence).collect(),
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

fn bound_summary(solver: Solver, inducing: usize, learned: bool) -> ScalableSummary {
    ScalableSummary {
        solver,
        settings: None,
        precision: KernelPrecision::Double,
        hyperparameter_source: source(learned),
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
    let mut summary = bound_summary(Solver::Collapsed, inducing, learn);
    let mut process = CollapsedGp::new(model.kernel().clone_box(), request.mean, *model.noise(), z, 1)?;
    copy_mean(&model, &mut process);
    process.learn_inducing = request.scalable.learn_inducing;
    process.learn_hyperparameters = learn;
    let found = Found::default();
    if !learn && !process.learn_inducing {
        let (posterior, bound) = process.clone().condition(&prepared.data)?;
        summary.bound = Some(bound);
        summary.ended = "closed form".into();
        summary.seconds[1] = started.elapsed().as_secs_f64();
        return Ok(ScalableFit {
            posterior: ProcessPosterior::Inducing(posterior),
            hyperparameters: named_values(&model),
            hyperpriors: Vec::new(),
            summary,
            reason: Reason::Value,
            largest_jitter: 0.0,
        });
    }
    let hyperpriors = if learn { beliefs(prepared, request, &model) } else { Vec::new() };
    let mut options = CollapsedOptions {
        steps: request.options.steps.clone(),
        hyperpriors: hyperpriors.clone(),
        memory_limit: request.options.memory_limit,
    };
    options.steps.steps = steps(request, Method::Sgpr);
    options.steps.time = request.scalable.seconds.map(|s| Duration::from_secs_f64(s.min(1e9)));
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
        hyperparameters: if learn { kernel_mean_noise(&fitted.model) } else { named_values(&model) },
        hyperpriors,
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
    let mut summary = bound_summary(Solver::Stochastic, inducing, learn);
    let likelihood = VariationalLikelihood::Gaussian(*model.noise());
    let mut process = StochasticGp::new(model.kernel().clone_box(), request.mean, likelihood, z, 1)?;
    copy_mean(&model, &mut process);
    process.learn_inducing = request.scalable.learn_inducing;
    process.learn_hyperparameters = learn;
    let hyperpriors = if learn { beliefs(prepared, request, &model) } else { Vec::new() };
    let mut options = StochasticOptions {
        steps: steps(request, Method::Svgp),
        seed: request.options.seed,
        time: request.scalable.seconds.map(|s| Duration::from_secs_f64(s.min(1e9))),
        hyperpriors: hyperpriors.clone(),
        memory_limit: request.options.memory_limit,
        ..StochasticOptions::default()
    };
    options.batch = request.scalable.batch.unwrap_or(options.batch);
    options.learning_rate = request.scalable.step_size.unwrap_or(options.learning_rate);
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
        hyperpriors,
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
