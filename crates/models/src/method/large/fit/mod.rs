//! Hyperparameters, then weights.
//!
//! | file | what |
//! |---|---|
//! | `automatic` | what `auto` tries, and which it keeps |
//! | `forecast` | which solver is at its end first, by few rows |
//! | `hyperparameters` | given, or found by searches one after the other |
//! | `stages` | searches by exact evidences: blocks, all rows, neighbourhoods |
//! | `all_rows` | the stochastic search on all rows, and what judges it |
//! | `judge` | rows that are held back, and what they say of a solver on its way |
//! | `pathwise` | weights by iterative solvers |
//! | `bounds` | inducing points: hyperparameters and posterior from one bound |
//! | `limited` | hyperparameters that a solver can follow |
//! | `learned` | learned features, and a plain process beside them |

mod all_rows;
mod automatic;
pub(crate) mod bounds;
mod forecast;
mod hyperparameters;
mod judge;
pub(crate) mod learned;
mod limited;
mod pathwise;
mod stages;

use super::plan::ScalablePlan;
use super::prepared_table::not_from_disk;
use super::refinement::Blocks;
use crate::method::training::{Allowance, CheckpointWriter, Saved, ScalableFit};
use crate::options::{CalibrateName, IterativeOptions, KernelPrecision, LargeTableOptions, SvgpOptions};
use crate::prepare::TableRows;
use crate::{FileRows, FitRequest, FitStage, Method, ModelError, Prepared, SolverPrecision};
use judge::HeldBack;
use limited::limited;
use pathwise::Judging;
use posterior_gp::{GpError, Observations, RowSource, exact};
use posterior_notes::fixes::{RANK, SEARCH_REFINED, SEARCH_STOCHASTIC, SVDKL, SVGP};
use posterior_optim::{Observer, Reason};

/// A fit, or what stood in its way.
pub(crate) type Outcome = Result<ScalableFit, ModelError>;

/// A fit under way: what it is of, and who keeps it and hears of it.
pub(crate) struct Fitting<'f, 'o, D = Observations> {
    /// Rows to learn from.
    prepared: &'f Prepared<D>,
    request: &'f FitRequest,
    /// Rows that it does not see.
    held: Option<&'f HeldBack>,
    /// The budget, of which it may use up what is left.
    allowance: &'f Allowance,
    checkpoints: &'f mut CheckpointWriter,
    observer: &'f mut Observer<'o, FitStage>,
}

/// Fits by `method`, on all rows but those that are held back to judge it by, whose standardised residuals are told. An interruption leaves a checkpoint where there is a place for one, and `reason` says so.
pub(crate) fn fit_scalable(
    prepared: Prepared,
    request: &FitRequest,
    method: &Method,
    observer: &mut Observer<'_, FitStage>,
) -> Result<(ScalableFit, Vec<f64>), ModelError> {
    let plan = ScalablePlan::new(request, method, prepared.data.rows(), prepared.data.inputs().ncols());
    judged(prepared, (request, method, plan), observer, |fitting| method.settings().solve(fitting, method))
}

/// The same on rows that stand in a file, by methods that look at some at a time.
pub(crate) fn fit_from_disk(
    prepared: Prepared<FileRows>,
    request: &FitRequest,
    method: &Method,
    observer: &mut Observer<'_, FitStage>,
) -> Result<(ScalableFit, Vec<f64>), ModelError> {
    let (bytes, [inputs, _]) = (prepared.data.bytes(), prepared.data.widths());
    let rows = RowSource::rows(&prepared.data);
    let plan = ScalablePlan::from_disk(request, method, rows, inputs).ok_or_else(|| not_from_disk(method))?;
    let (mut fit, residuals) = judged(prepared, (request, method, plan), observer, |fitting| {
        method.settings().solve_from_disk(fitting, method)
    })?;
    if let Some(summary) = &mut fit.summary {
        summary.from_disk = Some(bytes);
    }
    Ok((fit, residuals))
}

/// A fit, `by`, to all rows but those that are held back, judged by them; with its plan checked and what an earlier run left.
fn judged<D: TableRows>(
    prepared: Prepared<D>,
    (request, method, plan): (&FitRequest, &Method, ScalablePlan),
    observer: &mut Observer<'_, FitStage>,
    by: impl FnOnce(&mut Fitting<'_, '_, D>) -> Result<ScalableFit, ModelError>,
) -> Result<(ScalableFit, Vec<f64>), ModelError> {
    let usual = LargeTableOptions::default();
    let large = method.large().unwrap_or(&usual);
    let data = &prepared.data;
    check(&prepared, request, method)?;
    large.check_held_back(data.rows())?;
    if plan.peak_bytes > request.limits.memory {
        return Err(refused(request, plan.as_exact(), method));
    }
    let checkpoints = &mut CheckpointWriter::of(&prepared.schema, data, request, method)?;
    let earlier = checkpoints.load()?.map_or(0.0, |saved| saved.seconds());
    let allowance = &Allowance::new(request.limits.time).after(earlier);
    let count = large.held_back_of(data.rows());
    let Prepared { data, .. } = prepared;
    let (train, held) = HeldBack::draw(data, count, request.seed)?;
    let prepared = &Prepared { data: train, ..prepared };
    let held = held.as_ref();
    let mut fit = by(&mut Fitting { prepared, request, held, allowance, checkpoints, observer })?;
    let mut residuals = Vec::new();
    if let (Some(mut check), Some(held)) = (fit.check.take(), held) {
        // Outliers leave more than 95 % of the rows inside.
        // Of a target with bounds the residuals may lie on one side.
        let bounded = request.validation.calibrate == CalibrateName::Auto
            && !prepared.transform.support.is_everywhere();
        if bounded || check.before().may_ask_for(request.validation.calibrate) {
            residuals = held.residuals(&held.predictions(&*fit.predictor)?)?;
            check = check.with_outliers(&residuals);
        }
        fit.check = Some(check);
    }
    if fit.reason != Reason::Interrupted {
        checkpoints.clear();
    }
    Ok((fit, residuals))
}

/// What is told where a fit does not fit into the memory.
pub(crate) fn refused(request: &FitRequest, plan: exact::Plan, method: &Method) -> ModelError {
    let limit = request.limits.memory;
    let bound = Method::from(SvgpOptions::default());
    let bound = ScalablePlan::new(request, &bound, plan.rows, plan.inputs).peak_bytes;
    let error = GpError::Memory { plan, limit };
    match method.deep() {
        Some((_, kind, _)) if kind.dense => ModelError::Request(format!(
            "{error}; --set dense factors a matrix of all rows: without it, inducing points ({RANK}) or {SVDKL} take memory that is linear in the rows"
        )),
        // Samples and blocks are what takes a solver's memory.
        _ if method.iterative().is_some() && bound <= limit => {
            ModelError::Request(format!("{error}, or take {SVGP}, which needs {:.1} MB", bound as f64 / 1e6))
        }
        _ => error.into(),
    }
}

/// By an iterative solver, in the precision of its search.
pub(crate) fn by_solver(fitting: &mut Fitting<'_, '_>, method: &Method) -> Outcome {
    match method.precision() {
        KernelPrecision::Single => by_rows::<f32>(fitting, method),
        KernelPrecision::Double => by_rows::<f64>(fitting, method),
    }
}

/// Hyperparameters and an iterative solver; or, where the method is for us to choose, the best of several.
fn by_rows<T: SolverPrecision>(
    fitting: &mut Fitting<'_, '_>,
    method: &Method,
) -> Result<ScalableFit, ModelError> {
    let Fitting { prepared, request, held, allowance, .. } = *fitting;
    if let (Some(options), Some(held)) = (request.method.settings().compared_with(method), held) {
        return automatic::fit::<T>(fitting, options, held);
    }
    let options = method.requires(method.iterative())?;
    let mut saved = fitting.checkpoints.load()?;
    let searched = hyperparameters::hyperparameters::<T>(fitting, options, saved.as_mut())?;
    let searched = match (saved.as_ref().is_some_and(Saved::has_solver), method.precision_is_open()) {
        (true, _) => searched,
        (false, true) => limited::<T, f64>(fitting, options, searched)?,
        (false, false) => limited::<T, T>(fitting, options, searched)?,
    };
    let method = &method.for_system(prepared.data.rows(), searched.ratio(prepared));
    let before = saved.as_ref().map_or(0.0, |s| s.seconds() - searched.found.seconds).max(0.0);
    let judging = Judging { to_beat: None, seconds: allowance.left().map(|left| left + before) };
    pathwise::fit_in_its_precision(fitting, options, method, (searched, saved), &judging)
}

/// A setting: what it is, its value where that is wrong, and what it should be.
type Doubted = (&'static str, Option<f64>, &'static str);

/// Refuses the first of these settings that is wrong.
pub(crate) fn refuse_settings<const N: usize>(settings: [Doubted; N]) -> Result<(), ModelError> {
    let wrong = |(what, value, expected): Doubted| value.map(|value| (what, value, expected));
    match settings.into_iter().find_map(wrong) {
        Some((what, value, expected)) => Err(ModelError::Setting { what, value, expected: expected.into() }),
        None => Ok(()),
    }
}

/// What numbers and counts should be.
const POSITIVE: &str = "a positive number";
const NOT_NONE: &str = "at least 1";

/// Refuses numbers that mean nothing.
pub(crate) fn check_numbers(request: &FitRequest, method: &Method) -> Result<(), ModelError> {
    let (large, batches) = (method.large(), method.batches());
    let wrong = |value: Option<f64>| value.filter(|v| !(v.is_finite() && *v > 0.0));
    let none = |count: Option<usize>| count.filter(|count| *count == 0).map(|_| 0.0);
    refuse_settings([
        ("the step size", wrong(batches.and_then(|own| own.step_size)), POSITIVE),
        ("the tolerance", wrong(method.settings().tolerance()), POSITIVE),
        ("the time", wrong(request.limits.time), POSITIVE),
        ("the time between checkpoints", wrong(large.map(|own| own.checkpoint_every)), POSITIVE),
        ("the number of inducing points", none(method.inducing().map(|own| own.points())), NOT_NONE),
        ("the number of steps", none(large.and_then(|own| own.iterations)), NOT_NONE),
        ("the number of rows of a batch", none(batches.and_then(|own| own.batch)), NOT_NONE),
    ])
}

/// Refuses at once what would otherwise fail after a long search.
fn check<D: RowSource>(
    prepared: &Prepared<D>,
    request: &FitRequest,
    method: &Method,
) -> Result<(), ModelError> {
    check_numbers(request, method)?;
    let (rows, [inputs, _]) = (prepared.data.rows(), prepared.data.widths());
    method.settings().check(rows)?;
    let Some(options) = method.iterative() else { return Ok(()) };
    let kernel = request.prior.kernel.build::<f64>(&prepared.schema.feature_names())?;
    kernel.features().map_err(GpError::from)?;
    let IterativeOptions { evidence, search, sampling, .. } = options;
    let stochastic = search.hyperparameter_search.is_stochastic();
    let rate = evidence.learning_rate.filter(|rate| stochastic && !(*rate > 0.0 && rate.is_finite()));
    let searches = request.start.hyperparameters().is_none();
    let no_steps = stochastic && evidence.steps == Some(0);
    let none = |count: usize, used: bool| (used && count == 0).then_some(0.0);
    let (blocks, around) =
        (search.blocks.min(search.block_size), search.neighbourhoods.min(search.neighbourhood_size));
    let steps = if no_steps { 0 } else { search.probes.min(search.search_passes) };
    refuse_settings([
        ("the learning rate", rate, POSITIVE),
        ("the number of samples", none(sampling.samples, true), NOT_NONE),
        ("the number of random features", none(sampling.random_features, true), NOT_NONE),
        ("the number of samples that share features", none(sampling.samples_per_features, true), NOT_NONE),
        ("the number of blocks, or of their rows,", none(blocks, searches), NOT_NONE),
        ("the number of neighbourhoods, or of their rows,", none(around, searches), NOT_NONE),
        ("the number of probes, steps or iterations of the search", none(steps, stochastic), NOT_NONE),
    ])?;
    let blocks = Blocks { request, options, rows, inputs };
    let automatic = request.method.settings().is_automatic();
    if searches && !automatic && search.tells_of_all_rows() && blocks.by_steps().is_none() {
        return Err(ModelError::Request(format!(
            "--set probes, --set probe-kind, --set search-solver and --set search-passes say how a search goes over all rows, which follows blocks of tables with more than {} rows, within memory and some minutes: leave them out, or take {SEARCH_REFINED} or {SEARCH_STOCHASTIC:-}",
            2 * search.refining_rows
        )));
    }
    Ok(())
}
