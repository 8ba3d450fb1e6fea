//! What `auto` does beyond the exact method's rows: a posterior is kept only if it is better than something simpler.
//!
//! 1. Hyperparameters from blocks of rows ([`crate::method::large::fit::hyperparameters`]).
//! 2. The exact posterior of a few thousand uniform rows with them: seconds, and what everything else must beat.
//! 3. The exact posterior of all rows, where memory and budget have room for it: what every solver goes to. Otherwise the solver that is expected to be the first at its end (stochastic dual descent, sketch-and-project, conjugate gradients: [`crate::method::large::fit::forecast`]), unless that is far beyond the budget.
//! 4. Where it did not converge, is not better than few rows, or its intervals do not fit and are not to be recalibrated: behind a solver the exact posterior of as many rows as the exact method takes by itself, then, if time is left,
//!    inducing points.
//! 5. The best on the rows that are held back, by negative log predictive density, recalibrated where it would be. All of them are recorded.

use super::forecast::{candidates, forecasts};
use super::hyperparameters::hyperparameters;
use super::judge::HeldBack;
use super::limited::limited;
use super::pathwise::{self, Judging};
use super::{Fitting, bounds};
use crate::method::large::plan::{ScalablePlan, whole_posterior};
use crate::method::large::run_time::expected_seconds;
use crate::method::training::{CheckpointWriter, Forecast, ScalableFit, Stage, few_rows_memory};
use crate::options::{AutoOptions, CalibrateName, MethodName, SvgpOptions};
use crate::prepare::saved_plan;
use crate::speed::dense_rate;
use crate::{
    EXACT_POSTERIOR_ROWS, EXACT_ROWS, FitRequest, Hyperparameter, Method, ModelError, Prepared,
    SolverPrecision, TriedMethod,
};
use posterior_gp::exact::ExactGp;
use posterior_gp::iterative::Blocks;
use posterior_notes::fixes::TIME_BUDGET;
use posterior_optim::Reason;
use std::sync::Arc;
use std::time::Instant;

/// A solver that is expected to take so many times what is left of the budget is not begun: forecasts were off by up to two and a half times either way, and what takes all of the time leaves none for inducing points.
const TOO_LATE: f64 = 2.0;

/// Seconds of which forecasts may take most: with fewer left, what is fastest for a few steps is taken.
const FORECASTING: f64 = 5.0;

/// Share of the time that is left which the exact posterior of all rows may be expected to take: nothing else is as good, and factorisations took up to 1.4 times what that of few rows promised.
const WHOLE_SHARE: f64 = 0.65;

/// Share of the budget that inducing points need to be worth a start.
const BOUND_SHARE: f64 = 0.12;

/// Tries what the budget allows and returns the best.
pub(crate) fn fit<T: SolverPrecision>(
    fitting: &mut Fitting<'_, '_>,
    options: &AutoOptions,
    held: &HeldBack,
) -> Result<ScalableFit, ModelError> {
    let Fitting { prepared, request, allowance, .. } = *fitting;
    let iterative = &options.descent.iterative;
    let mut saved = fitting.checkpoints.load()?;
    let mut searched = hyperparameters::<T>(fitting, iterative, saved.as_mut())?;
    let as_found = searched.as_found();
    let (mut hyperparameters, hyperpriors) = (Hyperparameter::of(&as_found), searched.hyperpriors.clone());
    let largest_jitter = searched.found.largest_jitter;
    let source = searched.source_as_found(prepared, iterative);
    let mut compared = Comparison { judged_by: (request, held), best: None, tried: Vec::new() };
    let started = Instant::now();
    let exactly = |rows: (usize, usize), means: &Means| -> Result<Option<ScalableFit>, ModelError> {
        let Some(rows) = affordable_rows(prepared, held, rows, means) else { return Ok(None) };
        let fit = uniform_rows(prepared, request, as_found.clone(), held, rows)?;
        let largest_jitter = largest_jitter.max(fit.largest_jitter);
        let (source, hyperpriors) = (Some(source.clone()), hyperpriors.clone());
        Ok(Some(ScalableFit { source, hyperpriors, largest_jitter, ..fit }))
    };
    let few = iterative.search.refining_rows.max(iterative.search.block_size);
    let memory = few_rows_memory(request.limits.memory);
    let sure =
        |seconds: Option<f64>, share: f64| Means { memory, seconds: seconds.map(|s| share * s), rate: RATE };
    let simple = exactly((2, few), &sure(allowance.until(0.5), 0.2))?;
    // Larger factorisations reach more; those of few rows say little.
    let enough = simple.as_ref().map(ScalableFit::rows).filter(|rows| *rows >= MEASURED_ROWS);
    let rate = enough.map_or(RATE, |rows| {
        flops_of_posterior(prepared, held, rows) / started.elapsed().as_secs_f64().max(1e-9)
    });
    let simple_rows = simple.as_ref().map_or(0, ScalableFit::rows);
    let foretold = |rows: usize, rate: f64| Some(flops_of_posterior(prepared, held, rows) / rate);
    if let Some(fit) = simple {
        compared.consider(fit, started, foretold(simple_rows, dense_rate()))?;
    }
    let to_beat = compared.best.as_ref().map(|(score, _)| *score);
    // What is under way goes on, whatever it can still reach.
    let under_way = saved.as_ref().is_some_and(|s| s.has_solver());
    let (n, d) = prepared.data.inputs().shape();
    // As it was planned: with the rows that are held back.
    let all = n + held.rows();
    let memory = whole_posterior(request, all, d);
    let mut whole = simple_rows == n;
    if !whole && !under_way && all <= EXACT_POSTERIOR_ROWS {
        let started = Instant::now();
        let seconds = allowance.left().map(|left| WHOLE_SHARE * left);
        let fit = match memory {
            Some(memory) => exactly((n, n), &Means { memory, seconds, rate })?,
            None => None,
        };
        whole = fit.is_some();
        match fit {
            Some(fit) => compared.consider(fit, started, foretold(n, rate))?,
            None => {
                let short = if memory.is_some() { "budget" } else { "memory" };
                compared
                    .skip(MethodName::Exact, format!("not tried on all rows: it does not fit the {short}"));
            }
        }
    }
    // It goes on while the budget lasts, unless it is given up in time for inducing points to have a turn.
    let mut solver = MethodName::Sdd;
    if whole {
        compared.skip(MethodName::Sdd, "not tried: the exact posterior of all rows is where it goes");
    } else {
        // As it was planned: the best so far is kept beside.
        let kept = saved_plan(few.min(all), d).peak_bytes.min(few_rows_memory(request.limits.memory));
        let worth = allowance.left().is_none_or(|left| left > FORECASTING);
        if !under_way {
            // By what double precision can follow; for single the noise is raised further.
            searched = limited::<T, f64>(fitting, iterative, searched)?;
            hyperparameters = Hyperparameter::of(&searched.as_found());
        }
        let ratio = searched.ratio(prepared);
        if searched.found.forecasts.is_empty() && !under_way && worth {
            let methods: Vec<Method> = candidates((request, options), (all, d), kept)
                .into_iter()
                .map(|method| method.for_system(n, ratio))
                .collect();
            let own = forecasts(fitting, (options, held), &searched, &methods)?;
            searched.found.forecasts = own;
            let stage = searched.solutions.clone().map_or(Stage::Between, Stage::Solved);
            fitting.checkpoints.save(&searched.found, stage)?;
        }
        // What forecasts took is gone.
        let (share, started) = (allowance.left(), Instant::now());
        let forecasts = searched.found.forecasts.clone();
        let method = forecasts.first().and_then(|first| options.solver_named(first.method));
        let method = method.unwrap_or_else(|| options.descending()).for_system(n, ratio);
        solver = method.name();
        let predicted = forecasts.first().and_then(|forecast| forecast.seconds);
        let too_late = !under_way
            && share.is_some_and(|left| predicted.is_some_and(|seconds| seconds > TOO_LATE * left));
        let others = if too_late { &forecasts[..] } else { forecasts.get(1..).unwrap_or_default() };
        if too_late {
            compared.tried.extend(others.iter().map(|own| passed_over(own, "longer than the budget")));
        } else {
            let before = saved.as_ref().map_or(0.0, |s| s.seconds() - searched.found.seconds);
            let judging = Judging { to_beat, seconds: share.map(|left| left + before.max(0.0)) };
            let state = (searched, saved);
            let fit = pathwise::fit_in_its_precision(fitting, iterative, &method, state, &judging)?;
            if fit.reason == Reason::Interrupted {
                return Ok(fit);
            }
            compared.consider(fit, started, predicted)?;
            compared
                .tried
                .extend(others.iter().map(|own| passed_over(own, &format!("{solver} was to be faster"))));
        }
    }
    let sound = compared.best.as_ref().is_some_and(|(score, fit)| {
        // Of all rows. Intervals of what no solver does better, and of a solver at its end, are recalibrated instead; where fewer rows were better, the model does not fit the table.
        let complete = if whole { fit.rows() == n } else { fit.method == solver };
        let recalibrated = request.validation.calibrate != CalibrateName::None;
        let good = fit.check.as_ref().is_some_and(|check| check.is_sound(recalibrated));
        complete && good && to_beat.is_none_or(|goal| *score <= goal)
    });
    if !sound && !whole {
        let started = Instant::now();
        // Hardly more rows are hardly better.
        let worth = simple_rows + simple_rows / 5 + 1;
        match exactly((worth, EXACT_ROWS), &sure(allowance.left(), 0.5))? {
            Some(fit) => {
                let predicted = foretold(fit.rows(), rate);
                compared.consider(fit, started, predicted)?;
            }
            None => compared.skip(
                MethodName::Exact,
                format!("not tried: {worth} rows and more do not fit the table, the memory or the budget"),
            ),
        }
    }
    let time = allowance.left();
    let worth = time.is_none_or(|left| left >= BOUND_SHARE * request.limits.time.unwrap_or_default());
    let rows_kept = |fit: &ScalableFit| if fit.rows() == n { all } else { fit.rows() } as u64;
    let kept = compared
        .best
        .as_ref()
        .map_or(0, |(_, fit)| rows_kept(fit).pow(2) * if fit.summary.is_none() { 8 } else { 0 });
    let names = prepared.schema.feature_names();
    let peak = |method: &Method| ScalablePlan::new(request, method, all, d).peak_bytes;
    let fits = |bound: &SvgpOptions, most: u64| peak(&bound.clone().into()).saturating_add(kept) <= most;
    // What was said before it began.
    let stated = peak(&options.descending()).min(request.limits.memory);
    let seconds_of = |bound: &SvgpOptions| expected_seconds(request, &bound.clone().into(), all, &names);
    let bound = match time {
        Some(left) if !sound && worth => as_many_points(options.stochastic_bound(), |bound| {
            fits(bound, stated)
                && seconds_of(bound).is_some_and(|seconds| seconds <= STEPS_BEYOND_TIME * left)
        }),
        _ => options.stochastic_bound(),
    };
    if !sound && !fits(&bound, request.limits.memory) {
        compared.skip(MethodName::Svgp, "not tried: it does not fit the memory");
    } else if !sound && !worth {
        compared.skip(MethodName::Svgp, "not tried: the budget is nearly used up");
    } else if !sound {
        let started = Instant::now();
        // Steps end with the budget.
        let predicted =
            seconds_of(&bound).map(|seconds| allowance.left().map_or(seconds, |left| seconds.min(left)));
        // An interruption here begins again behind the solve, whose state is kept.
        let checkpoints = &mut CheckpointWriter::new(None, f64::INFINITY);
        let (held, observer) = (Some(held), &mut *fitting.observer);
        let alone = &mut Fitting { prepared, request, held, allowance, checkpoints, observer };
        let fit = bounds::stochastic(alone, &bound, Some(&hyperparameters))?;
        ModelError::heed(fit.reason)?;
        compared.consider(fit, started, predicted)?;
    }
    let Some((_, mut fit)) = compared.best else {
        let what = "the time";
        let expected = format!("enough for at least one method: give more ({TIME_BUDGET})");
        return Err(ModelError::Setting { what, value: request.limits.time.unwrap_or(0.0), expected });
    };
    if let Some(check) = &mut fit.check {
        check.tried = compared.tried;
    }
    Ok(fit)
}

/// A bound is given more points while all its steps are expected to take no longer than so many times what is left: half of the steps with twice the points were the better model of a million rows (a negative log density of 0.66 instead of 0.70), and expectations are half as long again as what happens.
const STEPS_BEYOND_TIME: f64 = 3.0;

/// The bound with twice as many inducing points as usual, and twice as many again, for as long as that is affordable.
fn as_many_points(usual: SvgpOptions, affordable: impl Fn(&SvgpOptions) -> bool) -> SvgpOptions {
    /// Doublings: 4,096 points of 512.
    const MOST: u32 = 3;
    let more = (1..=MOST).map(|k| {
        let mut own = usual.clone();
        own.inducing.inducing = Some(usual.inducing.points() << k);
        own
    });
    more.take_while(|own| affordable(own)).last().unwrap_or(usual)
}

/// A solver that was not taken because of its forecast.
fn passed_over(forecast: &Forecast, why: &str) -> TriedMethod {
    match forecast.seconds {
        Some(seconds) => TriedMethod {
            predicted_seconds: Some(seconds),
            ..TriedMethod::untried(forecast.method, format!("not tried: {why}"))
        },
        None => TriedMethod::untried(forecast.method, "not tried: its end was not in sight on few rows"),
    }
}

/// What was tried so far.
struct Comparison<'a> {
    judged_by: (&'a FitRequest, &'a HeldBack),
    /// With what it is compared by.
    best: Option<(f64, ScalableFit)>,
    tried: Vec<TriedMethod>,
}

impl Comparison<'_> {
    /// Records why a method was not tried.
    fn skip(&mut self, method: MethodName, why: impl Into<String>) {
        self.tried.push(TriedMethod::untried(method, why));
    }

    /// Records a posterior, begun at `started`, with the seconds that were foretold for it, and keeps the better one.
    fn consider(
        &mut self,
        fit: ScalableFit,
        started: Instant,
        predicted_seconds: Option<f64>,
    ) -> Result<(), ModelError> {
        let outcome = match &fit.summary {
            Some(summary) => format!("{} steps, ended by {}", summary.steps, summary.ended),
            None => format!("the exact posterior of {} rows", fit.rows()),
        };
        let scores = fit.check.as_ref().map(|check| check.scores);
        let (request, held) = self.judged_by;
        let recalibrated_nll = held.recalibrated_nll(request, &held.predictions(&*fit.predictor)?)?;
        self.tried.push(TriedMethod {
            scores,
            recalibrated_nll,
            seconds: started.elapsed().as_secs_f64(),
            predicted_seconds,
            reached_seconds: fit.check.as_ref().and_then(|check| check.reached_seconds),
            ..TriedMethod::untried(fit.method, outcome)
        });
        let nll = recalibrated_nll.or(scores.map(|own| own.nll));
        let score = nll.filter(|nll| !nll.is_nan()).unwrap_or(f64::INFINITY);
        if self.best.as_ref().is_none_or(|(best, _)| score < *best) {
            self.best = Some((score, fit));
        }
        Ok(())
    }
}

/// Operations a second that a factorisation surely reaches: a small one is planned where time is short.
const RATE: f64 = 1e10;

/// Rows whose factorisation tells what larger ones reach.
const MEASURED_ROWS: usize = 1000;

/// What an exact posterior may take.
struct Means {
    /// Bytes.
    memory: u64,
    seconds: Option<f64>,
    /// Operations a second that it is taken to reach.
    rate: f64,
}

/// Operations of an exact posterior of so many rows with a look at the rows that are held back.
fn flops_of_posterior(prepared: &Prepared, held: &HeldBack, rows: usize) -> f64 {
    let plan = saved_plan(rows, prepared.data.inputs().ncols());
    plan.flops_per_evaluation / 3.0 + held.rows() as f64 * (rows as f64).powi(2)
}

/// How many rows an exact posterior may have: at most `most`, fewer where seconds or memory are short; none where not even `least` fit.
fn affordable_rows(
    prepared: &Prepared,
    held: &HeldBack,
    (least, most): (usize, usize),
    means: &Means,
) -> Option<usize> {
    let most = most.min(prepared.data.rows());
    let fits = |size: usize| {
        let plan = saved_plan(size, prepared.data.inputs().ncols());
        let needed = flops_of_posterior(prepared, held, size) / means.rate;
        plan.peak_bytes <= means.memory && means.seconds.is_none_or(|t| needed <= t)
    };
    (0..=20)
        .map(|k| (most as f64 * 0.9f64.powi(k)) as usize)
        .take_while(|&size| size >= least)
        .find(|&size| fits(size))
}

/// The exact posterior of so many uniform rows.
fn uniform_rows(
    prepared: &Prepared,
    request: &FitRequest,
    model: ExactGp,
    held: &HeldBack,
    size: usize,
) -> Result<ScalableFit, ModelError> {
    let blocks = Blocks { uniform: 1, neighbourhoods: 0, size, seed: request.seed };
    let rows = blocks.rows(&prepared.data)?.swap_remove(0);
    let hyperparameters = Hyperparameter::of(&model);
    let posterior = model.condition(prepared.data.select(&rows)?)?;
    let ended = (Reason::Value, posterior.cholesky().info().jitter);
    let check = Some(held.check(&held.predictions(&posterior)?, None)?);
    let fit = ScalableFit::new(MethodName::Exact, Arc::new(posterior), hyperparameters, ended);
    Ok(ScalableFit { check, ..fit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_double_while_they_are_affordable() {
        let points = |most: usize| {
            as_many_points(SvgpOptions::default(), |own| own.inducing.points() <= most).inducing.points()
        };
        assert_eq!([100, 1024, 3000, 1 << 20].map(points), [512, 1024, 2048, 4096]);
    }
}
