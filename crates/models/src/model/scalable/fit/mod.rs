//! Hyperparameters, then weights.
//!
//! | file | what |
//! |---|---|
//! | `automatic` | what `auto` tries, and which it keeps |
//! | `hyperparameters` | given, from blocks or neighbourhoods, or by stochastic gradients of the evidence of all rows |
//! | `judge` | rows that are held back, and what they say of a solver on its way |
//! | `pathwise` | weights by iterative solvers |
//! | `bounds` | inducing points: hyperparameters and posterior from one bound |

mod automatic;
mod bounds;
mod hyperparameters;
mod judge;
mod pathwise;

use super::budget::Allowance;
use super::checkpoint::{Identity, Keeper, digest};
use super::{HyperparameterSearch, Kept, KernelPrecision, ScalablePlan, ScalableSummary};
use crate::model::check::FitCheck;
use crate::model::fit::{FitStage, Prepared};
use crate::model::{Hyperparameter, ModelError, ProcessPosterior};
use crate::{FitRequest, Method};
use posterior_gp::inducing::stochastic::VariationalOptimizer;
use posterior_gp::{GpError, Hyperprior};
use posterior_optim::{Observer, Reason};

use bounds::Bounding;
use judge::HeldBack;
use pathwise::Judging;

pub(super) use automatic::few_rows_memory;
pub(super) use hyperparameters::refining_memory;
pub(in crate::model) use hyperparameters::set as set_hyperparameters;

/// What a fit leaves behind.
pub(in crate::model) struct ScalableFit {
    /// The method that it came from: of `auto`, the best of those that were tried.
    pub(in crate::model) method: Method,
    /// How good it is on rows that were held back; none where there were none.
    pub(in crate::model) check: Option<FitCheck>,
    pub(in crate::model) posterior: ProcessPosterior,
    pub(in crate::model) hyperparameters: Vec<Hyperparameter>,
    /// The beliefs that their search used, those that nobody stated included.
    pub(in crate::model) hyperpriors: Vec<Hyperprior>,
    /// None for the exact posterior of few rows.
    pub(in crate::model) summary: Option<ScalableSummary>,
    pub(in crate::model) reason: Reason,
    pub(in crate::model) largest_jitter: f64,
}

impl ScalableFit {
    /// Rows that the posterior was conditioned on, where it keeps them.
    pub(in crate::model) fn rows(&self) -> usize {
        self.posterior.training().map_or(0, |(inputs, _)| inputs.nrows())
    }
}

/// Fits by `method`, on all rows but those that are held back to judge it by. An interruption leaves a checkpoint where there is a place for one, and `reason` says so.
pub(in crate::model) fn fit_scalable(
    prepared: Prepared,
    request: &FitRequest,
    method: Method,
    observer: &mut Observer<'_, FitStage>,
) -> Result<ScalableFit, ModelError> {
    let settings = &request.scalable;
    let data = &prepared.data;
    check(&prepared, request, method)?;
    let plan = ScalablePlan::new(request, method, data.rows(), data.inputs().ncols());
    if plan.peak_bytes > request.options.memory_limit {
        return Err(GpError::Memory { plan: plan.as_exact(), limit: request.options.memory_limit }.into());
    }
    let place = match &settings.checkpoint {
        Some(path) => Some((path.clone(), identity(&prepared, request, method)?)),
        None => None,
    };
    let keeper = &mut Keeper::new(place, settings.checkpoint_seconds);
    let earlier = keeper.load()?.map_or(0.0, |saved| saved.seconds());
    let allowance = &Allowance::new(settings.seconds).after(earlier);
    let count = settings.held_back_of(data.rows());
    let Prepared { data, .. } = prepared;
    let (train, held) = HeldBack::draw(data, count, request.options.seed)?;
    let prepared = &Prepared { data: train, ..prepared };
    let held = held.as_ref();
    let bounding = Bounding { held, start: None, allowance };
    let fit = match method {
        Method::Sgpr => bounds::collapsed(prepared, request, &bounding, keeper, observer),
        Method::Svgp => bounds::stochastic(prepared, request, &bounding, keeper, observer),
        _ => match settings.precision {
            KernelPrecision::Single => {
                by_rows::<f32>(prepared, request, method, held, allowance, keeper, observer)
            }
            KernelPrecision::Double => {
                by_rows::<f64>(prepared, request, method, held, allowance, keeper, observer)
            }
        },
    }?;
    if fit.reason != Reason::Interrupted {
        keeper.clear();
    }
    Ok(fit)
}

/// Hyperparameters and an iterative solver; or, where the method is for us to choose, the best of several.
fn by_rows<T: Kept>(
    prepared: &Prepared,
    request: &FitRequest,
    method: Method,
    held: Option<&HeldBack>,
    allowance: &Allowance,
    keeper: &mut Keeper,
    observer: &mut Observer<'_, FitStage>,
) -> Result<ScalableFit, ModelError> {
    if let (Method::Auto, Method::Sdd, Some(held)) = (request.method, method, held) {
        return automatic::fit::<T>(prepared, request, held, allowance, keeper, observer);
    }
    let mut saved = keeper.load()?;
    let searched = hyperparameters::hyperparameters::<T>(
        prepared,
        request,
        saved.as_mut(),
        allowance,
        keeper,
        observer,
    )?;
    let before = saved.as_ref().map_or(0.0, |s| s.seconds() - searched.found.seconds).max(0.0);
    let judging = Judging { held, to_beat: None, seconds: allowance.left().map(|left| left + before) };
    pathwise::fit::<T>(prepared, request, method, (searched, saved), &judging, keeper, observer)
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
        if search.probes == 0 || search.steps == 0 || search.iterations == 0 {
            return refuse("the number of probes, steps or iterations of the search", 0.0, "at least 1");
        }
    }
    let blocks = &settings.blocks;
    if settings.hyperparameters.is_none()
        && (blocks.uniform.saturating_add(blocks.neighbourhoods) == 0 || blocks.size == 0)
    {
        return refuse("the number of blocks, or of their rows,", 0.0, "at least 1");
    }
    if settings.samples_per_features == Some(0) {
        return refuse("the number of samples that share features", 0.0, "at least 1");
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
    request.options.steps.time = None;
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
