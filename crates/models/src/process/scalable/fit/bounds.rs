//! Inducing points: hyperparameters and posterior from one bound.

use super::ScalableFit;
use super::hyperparameters::{beliefs, initial, set};
use super::judge::HeldBack;
use crate::FitRequest;
use crate::options::{InducingOptions, KernelPrecision, MethodName, SgprOptions, SvgpOptions};
use crate::process::file_rows::candidates;
use crate::process::prepared::{FitStage, Prepared};
use crate::process::rates::rate;
use crate::process::scalable::budget::Allowance;
use crate::process::scalable::checkpoint::{CheckpointWriter, Found, Stage};
use crate::process::scalable::{ScalablePlan, ScalableSummary, Solver};
use crate::process::{Hyperparameter, ModelError};
use crate::speed::dense_rate;
use posterior_gp::exact::{ExactGp, FitOptions};
use posterior_gp::inducing::InducingPosterior;
use posterior_gp::inducing::collapsed::{CollapsedGp, CollapsedOptions, fit_collapsed};
use posterior_gp::inducing::stochastic::{StochasticGp, StochasticOptions, StochasticState, fit_stochastic};
use posterior_gp::{GpError, Hyperprior, RowSource};
use posterior_kernels::inducing::ChosenPoints;
use posterior_linalg::random::Streams;
use posterior_optim::{Observer, Parameters, Progress, Reason, State};
use posterior_store::StoreError;
use std::sync::Arc;
use std::time::Instant;

/// What both bounds begin with.
struct Beginning {
    /// Kernel, mean and noise.
    model: ExactGp,
    /// Inducing inputs.
    chosen: ChosenPoints<f64>,
    /// Rows that they were chosen among, where these are not all.
    among: Option<usize>,
    /// Whether they move.
    moves: bool,
    /// Whether hyperparameters are learned.
    learns: bool,
}

/// What a bound is told beside the request.
pub(super) struct Bounding<'a> {
    /// Rows that it does not see.
    pub(super) held: Option<&'a HeldBack>,
    /// Hyperparameters to begin at, and to go on learning.
    pub(super) start: Option<&'a [Hyperparameter]>,
    /// The budget, of which it may use up what is left.
    pub(super) allowance: &'a Allowance,
}

fn beginning<D: RowSource>(
    prepared: &Prepared<D>,
    request: &FitRequest,
    (inducing, fixed): (&InducingOptions, bool),
    start: Option<&[Hyperparameter]>,
) -> Result<Beginning, ModelError> {
    let mut model = initial(prepared, request)?;
    if let Some(given) = request.hyperparameters.as_deref().or(start) {
        set(&mut model, given)?;
    }
    let streams = Streams::new(request.seed);
    let rows = prepared.data.rows();
    let drawn = candidates(rows, request.seed);
    let among = drawn.as_ref().map(Vec::len);
    let candidates = match drawn {
        Some(drawn) => prepared.data.gather(&drawn)?,
        None => prepared.data.block(0..rows)?,
    };
    let chosen = inducing
        .choice()
        .choose(model.kernel(), candidates.inputs(), inducing.points(), streams)
        .map_err(|e| ModelError::Inducing(e.to_string()))?;
    // Counts that move become fractions and then negative, where the kernel is not defined.
    let counts = request.kernel.count_columns(&prepared.schema.feature_names());
    let moves = !fixed && counts.is_empty();
    Ok(Beginning { model, chosen, among, moves, learns: request.hyperparameters.is_none() })
}

fn source(learned: bool) -> String {
    if learned { "the bound".into() } else { "given".into() }
}

fn bound_summary(solver: Solver, beginning: &Beginning) -> ScalableSummary {
    ScalableSummary {
        inducing: beginning.chosen.points.nrows(),
        inducing_radius: beginning.chosen.radius,
        inducing_candidates: beginning.among,
        inducing_moved: beginning.moves,
        ..ScalableSummary::new(solver, KernelPrecision::Double, source(beginning.learns))
    }
}

/// What came of a bound.
struct Ending {
    hyperparameters: Vec<Hyperparameter>,
    hyperpriors: Vec<Hyperprior>,
    posterior: InducingPosterior,
    bound: f64,
    steps: usize,
    reason: Reason,
    largest_jitter: f64,
}

impl Ending {
    /// With the summary of a fit that began at `started`.
    fn fit(
        self,
        mut summary: ScalableSummary,
        method: MethodName,
        held: Option<&HeldBack>,
        started: Instant,
    ) -> Result<ScalableFit, ModelError> {
        summary.bound = Some(self.bound);
        summary.steps = self.steps;
        summary.seconds[1] = started.elapsed().as_secs_f64();
        let check = match held.filter(|_| self.reason != Reason::Interrupted) {
            Some(held) => Some(held.check(&held.predictions(&self.posterior)?, None)?),
            None => None,
        };
        Ok(ScalableFit {
            method,
            source: None,
            check,
            predictor: Arc::new(self.posterior),
            hyperparameters: self.hyperparameters,
            hyperpriors: self.hyperpriors,
            summary: Some(summary),
            reason: self.reason,
            largest_jitter: self.largest_jitter,
        })
    }
}

/// The collapsed bound, or its closed form where nothing is learned.
pub(super) fn collapsed<D: RowSource>(
    prepared: &Prepared<D>,
    (request, asked): (&FitRequest, &SgprOptions),
    bounding: &Bounding<'_>,
    checkpoints: &mut CheckpointWriter,
    observer: &mut Observer<'_, FitStage>,
) -> Result<ScalableFit, ModelError> {
    let started = Instant::now();
    let inducing = (&asked.inducing, asked.fixed_inducing);
    let beginning = beginning(prepared, request, inducing, bounding.start)?;
    let mut summary = bound_summary(Solver::Collapsed, &beginning);
    let Beginning { model, chosen, moves, learns, .. } = beginning;
    let z = chosen.points;
    let mut process =
        CollapsedGp::new(model.kernel().clone_box(), request.mean, model.noise().clone(), z, 1)?;
    copy_mean(&model, &mut process);
    process.learn_inducing = moves;
    process.learn_hyperparameters = learns;
    let found = Found::default();
    if !learns && !moves {
        let (posterior, bound) = process.condition(&prepared.data)?;
        summary.ended = "closed form".into();
        return Ending {
            hyperparameters: Hyperparameter::of(&model),
            hyperpriors: Vec::new(),
            posterior,
            bound,
            steps: 0,
            reason: Reason::Value,
            largest_jitter: 0.0,
        }
        .fit(summary, MethodName::Sgpr, bounding.held, started);
    }
    let hyperpriors = if learns { beliefs(prepared, request, &model) } else { Vec::new() };
    let mut options = CollapsedOptions {
        steps: FitOptions::default().steps,
        hyperpriors: hyperpriors.clone(),
        constraints: if learns { asked.constraints.all() } else { Vec::new() },
        memory_limit: request.memory,
    };
    options.steps.steps = asked.steps();
    let state: Option<State> = saved_bound(checkpoints)?;
    options.steps.time = Allowance::duration(bounding.allowance.left());
    summary.resumed_from = state.as_ref().map_or(0, |s| s.step);
    let fitted = fit_collapsed(process, &prepared.data, &options, state, &mut |progress, state| {
        let signal = observer(progress, &FitStage::Search);
        checkpoints.observe::<f64>(signal, &found, || Ok(Stage::Bound(posterior_store::to_value(&state)?)))
    })?;
    checkpoints.finish()?;
    summary.ended = fitted.reason.to_string();
    summary.at_bounds = fitted.at_bounds;
    Ending {
        hyperparameters: if learns {
            Hyperparameter::without_inducing(&fitted.model)
        } else {
            Hyperparameter::of(&model)
        },
        hyperpriors,
        posterior: fitted.posterior,
        bound: fitted.bound,
        steps: fitted.steps,
        reason: fitted.reason,
        largest_jitter: fitted.largest_jitter,
    }
    .fit(summary, MethodName::Sgpr, bounding.held, started)
}

/// The stochastic bound.
pub(super) fn stochastic<D: RowSource>(
    prepared: &Prepared<D>,
    (request, asked): (&FitRequest, &SvgpOptions),
    bounding: &Bounding<'_>,
    checkpoints: &mut CheckpointWriter,
    observer: &mut Observer<'_, FitStage>,
) -> Result<ScalableFit, ModelError> {
    let started = Instant::now();
    let inducing = (&asked.inducing, asked.fixed_inducing);
    let beginning = beginning(prepared, request, inducing, bounding.start)?;
    let mut summary = bound_summary(Solver::Stochastic { optimizer: asked.optimizer() }, &beginning);
    let Beginning { model, chosen, moves, learns, .. } = beginning;
    let z = chosen.points;
    let noise = Box::new(model.noise().clone());
    let mut process = StochasticGp::new(model.kernel().clone_box(), request.mean, noise, z)?;
    copy_mean(&model, &mut process);
    process.learn_inducing = moves;
    process.learn_hyperparameters = learns;
    let hyperpriors = if learns { beliefs(prepared, request, &model) } else { Vec::new() };
    let mut options = StochasticOptions {
        steps: asked.steps(),
        seed: request.seed,
        variational: asked.optimizer(),
        hyperpriors: hyperpriors.clone(),
        constraints: if learns { asked.constraints.all() } else { Vec::new() },
        memory_limit: request.memory,
        ..StochasticOptions::default()
    };
    options.batch = asked.batches.batch.unwrap_or(options.batch);
    options.learning_rate = asked.batches.step_size.unwrap_or(options.learning_rate);
    let closing = Closing::planned(prepared, (request, asked), bounding.allowance);
    options.time = Allowance::duration(closing.left);
    let state: Option<StochasticState> = saved_bound(checkpoints)?;
    summary.resumed_from = state.as_ref().map_or(0, |s| s.step);
    let found = Found::default();
    let fitted =
        fit_stochastic(process, &prepared.data, &options, state.as_ref(), &mut |progress, iterate| {
            let averaged = Progress { value: Some(iterate.average_bound()), ..*progress };
            let signal = observer(&averaged, &FitStage::Bound);
            checkpoints.observe::<f64>(signal, &found, || {
                Ok(Stage::Bound(posterior_store::to_value(&iterate.state(progress))?))
            })
        })?;
    checkpoints.finish()?;
    let mut reason = fitted.reason;
    let (mut posterior, mut bound) = (fitted.posterior, fitted.average_bound);
    summary.closed_form = Some(false);
    summary.at_bounds = fitted.at_bounds;
    if closing.fits
        && reason != Reason::Interrupted
        && let Some(whole) = fitted.model.collapsed()
    {
        let mut watch = |step| {
            let progress = Progress { step, steps_planned: prepared.data.rows(), ..Progress::default() };
            observer(&progress, &FitStage::Closing)
        };
        match whole.condition_watched(&prepared.data, &mut watch) {
            Ok(Some(best)) if best.1.is_finite() => {
                (posterior, bound) = best;
                summary.closed_form = Some(true);
            }
            // Sums that have no factor, of hardly any noise: the values of the last batches are there.
            Ok(Some(_)) | Err(GpError::Cholesky(_)) => {}
            Ok(None) => {
                (reason, summary.closed_form) = (Reason::Interrupted, None);
                let state = posterior_store::to_value(&fitted.state).map_err(StoreError::from)?;
                checkpoints.save::<f64>(&found, Stage::Bound(state))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    summary.ended = reason.to_string();
    Ending {
        hyperparameters: if learns {
            Hyperparameter::without_inducing(&fitted.model)
        } else {
            Hyperparameter::of(&model)
        },
        hyperpriors,
        posterior,
        bound,
        steps: fitted.steps,
        reason,
        largest_jitter: fitted.largest_jitter,
    }
    .fit(summary, MethodName::Svgp, bounding.held, started)
}

/// The pass over all rows that ends a stochastic bound.
struct Closing {
    /// Whether a time budget has room for it.
    fits: bool,
    /// Seconds that are left for steps.
    left: Option<f64>,
}

impl Closing {
    /// The share of a time budget that it may take.
    const SHARE: f64 = 0.25;

    /// Whether and when it begins, by the rate of this machine.
    fn planned<D: RowSource>(
        prepared: &Prepared<D>,
        (request, asked): (&FitRequest, &SvgpOptions),
        allowance: &Allowance,
    ) -> Self {
        let Some(left) = allowance.left() else { return Self { fits: true, left: None } };
        let (rows, [inputs, _]) = (prepared.data.rows(), prepared.data.widths());
        let flops = ScalablePlan::closing_flops(asked, rows, inputs);
        // Twice of what it should take: rates are measured on few rows, and by others beside it.
        let rate = rate(request, &prepared.schema.feature_names()).unwrap_or_else(dense_rate);
        let seconds = 2.0 * flops / rate;
        match seconds <= Self::SHARE * left {
            true => Self { fits: true, left: Some(left - seconds) },
            false => Self { fits: false, left: Some(left) },
        }
    }
}

/// Gives `process` the mean of `model`; kernel and noise it has already.
fn copy_mean(model: &ExactGp, process: &mut dyn Parameters) {
    Hyperparameter::give(&Hyperparameter::of(model.mean()), process);
}

/// The state of a bound's optimiser that an earlier run left.
fn saved_bound<S: serde::de::DeserializeOwned>(
    checkpoints: &CheckpointWriter,
) -> Result<Option<S>, ModelError> {
    match checkpoints.load()? {
        Some(mut saved) => Ok(saved.bound()?),
        None => Ok(None),
    }
}
