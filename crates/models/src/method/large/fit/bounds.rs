//! Inducing points: hyperparameters and posterior from one bound.

use super::Fitting;
use super::hyperparameters::initial;
use super::judge::HeldBack;
use crate::hyperparameter::FunctionUnits;
use crate::method::large::plan::closing_flops;
use crate::method::large::run_time::rate;
use crate::method::training::{Allowance, Found, ScalableFit, Stage, set, train};
use crate::options::{InducingOptions, KernelPrecision, MethodName, SgprOptions, SvgpOptions};
use crate::prepare::candidates;
use crate::speed::dense_rate;
use crate::{FitRequest, FitStage, Hyperparameter, ModelError, Prepared, ScalableSummary, Solver};
use posterior_gp::exact::{ExactGp, FitOptions};
use posterior_gp::inducing::InducingPosterior;
use posterior_gp::inducing::collapsed::{CollapsedGp, CollapsedOptions, fit_collapsed};
use posterior_gp::inducing::stochastic::StochasticGp;
use posterior_gp::{GpError, Hyperprior, RowSource};
use posterior_kernels::inducing::ChosenPoints;
use posterior_linalg::random::Streams;
use posterior_optim::{Parameters, Progress, Reason, State};
use posterior_store::StoreError;
use std::sync::Arc;
use std::time::Instant;

/// What both bounds begin with.
struct Beginning {
    started: Instant,
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
    /// What is believed of them then.
    hyperpriors: Vec<Hyperprior>,
}

fn beginning<D: RowSource>(
    prepared: &Prepared<D>,
    request: &FitRequest,
    (inducing, fixed): (&InducingOptions, bool),
    start: Option<&[Hyperparameter]>,
) -> Result<Beginning, ModelError> {
    let started = Instant::now();
    let mut model = initial(prepared, request)?;
    if let Some(given) = request.start.hyperparameters().or(start) {
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
    let chosen = inducing.choice().choose(model.kernel(), candidates.inputs(), inducing.points(), streams)?;
    // Counts that move become fractions and then negative, where the kernel is not defined.
    let counts = request.prior.kernel.count_columns(&prepared.schema.feature_names());
    let moves = !fixed && counts.is_empty();
    let learns = request.start.hyperparameters().is_none();
    let inputs = prepared.data.widths()[0];
    let hyperpriors =
        if learns { request.hyperpriors_of(&model, (inputs, FunctionUnits::Target)) } else { Vec::new() };
    Ok(Beginning { started, model, chosen, among, moves, learns, hyperpriors })
}

impl Beginning {
    fn summary(&self, solver: Solver) -> ScalableSummary {
        let source = if self.learns { "the bound" } else { "given" };
        ScalableSummary {
            inducing: self.chosen.points.nrows(),
            inducing_radius: self.chosen.radius,
            inducing_candidates: self.among,
            inducing_moved: self.moves,
            ..ScalableSummary::new(solver, KernelPrecision::Double, source.into())
        }
    }

    /// What came of it: a process with the value of its bound, judged on the rows held back.
    fn fit(
        self,
        (mut summary, held): (ScalableSummary, Option<&HeldBack>),
        (method, process): (MethodName, &dyn Parameters),
        (posterior, bound): (InducingPosterior, f64),
        (reason, largest_jitter): (Reason, f64),
    ) -> Result<ScalableFit, ModelError> {
        summary.bound = Some(bound);
        summary.seconds[1] = self.started.elapsed().as_secs_f64();
        let held = held.filter(|_| reason != Reason::Interrupted);
        let check = held.map(|held| held.check(&held.predictions(&posterior)?, None)).transpose()?;
        let hyperparameters = match self.learns {
            true => Hyperparameter::without_inducing(process),
            false => Hyperparameter::of(&self.model),
        };
        let ended = (reason, largest_jitter);
        let fit = ScalableFit::new(method, Arc::new(posterior), hyperparameters, ended);
        Ok(ScalableFit { check, hyperpriors: self.hyperpriors, summary: Some(summary), ..fit })
    }
}

/// The collapsed bound, or its closed form where nothing is learned.
pub(crate) fn collapsed<D: RowSource>(
    fitting: &mut Fitting<'_, '_, D>,
    asked: &SgprOptions,
) -> Result<ScalableFit, ModelError> {
    let Fitting { prepared, request, held, allowance, .. } = *fitting;
    let inducing = (&asked.inducing, asked.fixed_inducing);
    let own = beginning(prepared, request, inducing, None)?;
    let mut summary = own.summary(Solver::Collapsed);
    let (kernel, noise, z) =
        (own.model.kernel().clone_box(), own.model.noise().clone(), own.chosen.points.clone());
    let mut process = CollapsedGp::new(kernel, request.prior.mean, noise, z, 1)?;
    copy_mean(&own.model, &mut process);
    (process.learn_inducing, process.learn_hyperparameters) = (own.moves, own.learns);
    if !own.learns && !own.moves {
        let found = process.clone().condition(&prepared.data)?;
        summary.ended = "closed form".into();
        return own.fit((summary, held), (MethodName::Sgpr, &process), found, (Reason::Value, 0.0));
    }
    let mut options = CollapsedOptions {
        steps: FitOptions::default().steps,
        hyperpriors: own.hyperpriors.clone(),
        constraints: if own.learns { asked.constraints.all() } else { Vec::new() },
        memory_limit: request.limits.memory,
    };
    options.steps.steps = asked.steps();
    let mut found = Found::default();
    let keeping = &mut fitting.checkpoints.keeping(&mut found);
    let state: Option<State> = keeping.checkpoints.bound()?;
    options.steps.time = Allowance::duration(allowance.left());
    summary.resumed_from = state.as_ref().map_or(0, |s| s.step);
    let fitted = fit_collapsed(process, &prepared.data, &options, state, &mut |progress, state| {
        let signal = (fitting.observer)(progress, &FitStage::Search);
        keeping.observe(signal, || posterior_store::to_value(&state))
    })?;
    keeping.checkpoints.finish()?;
    summary.ended = fitted.reason.to_string();
    summary.at_bounds = fitted.at_bounds;
    summary.steps = fitted.steps;
    let (found, ended) = ((fitted.posterior, fitted.bound), (fitted.reason, fitted.largest_jitter));
    own.fit((summary, held), (MethodName::Sgpr, &fitted.model), found, ended)
}

/// The stochastic bound, whose hyperparameters begin at `start` where they are known.
pub(crate) fn stochastic<D: RowSource>(
    fitting: &mut Fitting<'_, '_, D>,
    asked: &SvgpOptions,
    start: Option<&[Hyperparameter]>,
) -> Result<ScalableFit, ModelError> {
    let Fitting { prepared, request, held, allowance, .. } = *fitting;
    let inducing = (&asked.inducing, asked.fixed_inducing);
    let own = beginning(prepared, request, inducing, start)?;
    let mut summary = own.summary(Solver::Stochastic { optimizer: asked.optimizer() });
    let (kernel, z) = (own.model.kernel().clone_box(), own.chosen.points.clone());
    let mut process = StochasticGp::new(kernel, request.prior.mean, Box::new(own.model.noise().clone()), z)?;
    copy_mean(&own.model, &mut process);
    (process.learn_inducing, process.learn_hyperparameters) = (own.moves, own.learns);
    let closing = Closing::planned(prepared, (request, asked), allowance);
    let (time, mut found) = (Allowance::duration(closing.left), Found::default());
    let keeping = &mut fitting.checkpoints.keeping(&mut found);
    let told = (request, asked, &own.hyperpriors[..]);
    let fitted = train(process, &prepared.data, told, time, (&mut *keeping, &mut *fitting.observer))?;
    summary.resumed_from = fitted.resumed_from;
    let fitted = fitted.fit;
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
            (fitting.observer)(&progress, &FitStage::Closing)
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
                keeping.checkpoints.save::<f64>(keeping.found, Stage::Bound(state))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    summary.ended = reason.to_string();
    summary.steps = fitted.steps;
    let ended = (reason, fitted.largest_jitter);
    own.fit((summary, held), (MethodName::Svgp, &fitted.model), (posterior, bound), ended)
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
        let flops = closing_flops(asked, rows, inputs);
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
