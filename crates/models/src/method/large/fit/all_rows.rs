//! The stochastic search on all rows: asked for, or as what follows blocks, which is judged before it is taken.

use super::Fitting;
use super::hyperparameters::{STOCHASTIC_SHARE, pathwise_model, set_noise};
use crate::method::training::{Allowance, Found, Stage};
use crate::options::IterativeOptions;
use crate::text::number;
use crate::{EvidenceSearchSummary, FitStage, Hyperparameter, ModelError, SolverPrecision};
use faer::Mat;
use posterior_gp::exact::{self, ExactGp};
use posterior_gp::iterative::{Blocks, ProbeKind, SearchState, search_evidence};
use posterior_gp::{GpError, Hyperprior, Observations};
use posterior_notes::fixes::{LEARNING_RATE, NOISE_FLOOR};
use posterior_optim::Parameters;
use std::time::Instant;

/// Some steps of the stochastic search on all rows, from where blocks led; none where they failed, which nobody asked for: the reason is noted, and what blocks found stays.
pub(crate) fn by_steps(
    fitting: &mut Fitting<'_, '_>,
    asked: &IterativeOptions,
    mut begin: Begin<'_, f64>,
    found: &mut Found,
) -> Result<Option<Ended<f64>>, ModelError> {
    let Fitting { prepared, request, .. } = *fitting;
    let before = found.clone();
    // It may want the noise that blocks wanted.
    if let Some(noise) = found.noise_raised_from.take() {
        set_noise(&mut begin.model, noise);
    }
    let own = asked.following_blocks();
    let (started, blocks) = (Instant::now(), begin.model.clone());
    let failed = match on_all_rows::<f64>(fitting, &own, begin, found) {
        Ok(ended) => match worse(&blocks, &ended.0, &prepared.data, request.seed) {
            None => return Ok(Some(ended)),
            Some(why) => why,
        },
        Err(error @ (ModelError::Interrupted | ModelError::Store(_))) => return Err(error),
        Err(error) => error.to_string(),
    };
    // The time is gone, whatever came of it.
    let seconds = found.seconds.max(before.seconds + started.elapsed().as_secs_f64());
    *found = Found { following_failed: Some(failed), seconds, ..before };
    Ok(None)
}

/// Rows on which a search is judged that nobody asked for, and nats of each by which their evidence may fall: what all rows prefer is not quite what these do.
const JUDGING_ROWS: usize = 2000;
const MOST_FALL: f64 = 0.1;

/// Why what a search on all rows that began at blocks ended with is not taken: the exact evidence of some rows, drawn anew, under it and under what it began with.
pub(crate) fn worse(before: &ExactGp, after: &ExactGp, data: &Observations, seed: u64) -> Option<String> {
    let before = evidence_of_row(before, data, seed).ok()?;
    match evidence_of_row(after, data, seed) {
        Ok(after) if after >= before - MOST_FALL => None,
        Ok(after) => {
            let (from, to, rows) = (number(before), number(after), JUDGING_ROWS.min(data.rows()));
            Some(format!("the evidence of {rows} rows would have fallen from {from} to {to} nats each"))
        }
        Err(error) => Some(error.to_string()),
    }
}

/// The exact evidence of some rows, drawn anew, for each of them.
pub(crate) fn evidence_of_row(model: &ExactGp, data: &Observations, seed: u64) -> Result<f64, GpError> {
    let rows = Blocks { uniform: 1, neighbourhoods: 0, size: JUDGING_ROWS, seed }
        .uniform_rows(data.rows(), JUDGED_BLOCK);
    let found = exact::log_evidence(model, &data.select(&rows)?, None)?;
    Ok(found.value / rows.len() as f64)
}

/// The uniform block that is none of those that searches see.
const JUDGED_BLOCK: usize = 1 << 20;

/// Where a search on all rows ends: a model, and the solutions that it left.
pub(crate) type Ended<T> = (ExactGp, Option<Mat<T>>);

/// Where a search on all rows begins.
pub(crate) struct Begin<'a, T: SolverPrecision> {
    pub(crate) model: ExactGp,
    pub(crate) state: Option<SearchState<T>>,
    pub(crate) hyperpriors: &'a [Hyperprior],
}

/// Refuses parameters that steps of a search have driven to where no model is.
fn check_found(model: &ExactGp) -> Result<(), ModelError> {
    let what = "a hyperparameter that the stochastic search ended at";
    for (found, segment) in Hyperparameter::of(model).iter().zip(model.segments()) {
        if let Some((value, _)) = found.out_of_range(&segment) {
            let expected =
                format!("finite, and positive where its parameter is: take a smaller {LEARNING_RATE}");
            return Err(ModelError::Setting { what, value, expected });
        }
    }
    let (noise, floor) = (model.noise().noise_variance(), model.noise().floor());
    if noise <= floor {
        let expected =
            format!("above the noise floor: take a smaller {LEARNING_RATE} or a lower {NOISE_FLOOR}");
        return Err(ModelError::Setting { what, value: noise, expected });
    }
    Ok(())
}

/// The stochastic search on all rows; gives up the solutions that a solve for the model can begin with.
pub(crate) fn on_all_rows<T: SolverPrecision>(
    fitting: &mut Fitting<'_, '_>,
    asked: &IterativeOptions,
    Begin { mut model, state, hyperpriors }: Begin<'_, T>,
    found: &mut Found,
) -> Result<Ended<T>, ModelError> {
    let Fitting { prepared, request, allowance, .. } = *fitting;
    let mut seconds = 0.0;
    let process = pathwise_model::<T>(prepared, request, &model)?;
    let mut options = asked.stochastic_search(request.seed, prepared.data.rows(), request.limits.memory);
    options.hyperpriors = hyperpriors.to_vec();
    options.memory_limit = request.limits.memory;
    // What is left up to half of the budget, and what earlier runs of this search had of it.
    options.time = Allowance::duration(
        allowance.until(STOCHASTIC_SHARE).map(|s| s + state.as_ref().map_or(0.0, |s| s.header.seconds())),
    );
    let tolerance = options.solves.budget.tolerance;
    let resumed_from = state.as_ref().map_or(0, |s| s.header.step());
    let saw = found.clone();
    let result = search_evidence(process, &prepared.data, &options, state, &mut |progress, search| {
        seconds = progress.elapsed.as_secs_f64();
        let signal = (fitting.observer)(progress, &FitStage::EvidenceSearch { solve: search.solve() });
        fitting.checkpoints.observe(signal, &saw, || Ok(Stage::Search(search.state(progress))))
    })?;
    fitting.checkpoints.finish()?;
    ModelError::heed(result.reason)?;
    model.set_values(&result.model.values());
    check_found(&model)?;
    let last = result.trace.last();
    // Random signs are no samples.
    let handed_on = options.probes == ProbeKind::Pathwise && result.solution.is_some();
    let solutions = result.solution.map(|solution| {
        let columns = if handed_on { solution.weights.ncols() } else { 1 };
        solution.weights.subcols(0, columns).to_owned()
    });
    let rows = prepared.data.rows();
    let rows_of_step = options.method.rows_of_a_step(rows, asked.search.probes + 1);
    let recent = &result.trace[result.trace.len() - result.trace.len().div_ceil(4)..];
    found.search = Some(EvidenceSearchSummary {
        steps: result.steps,
        resumed_from,
        solver_steps: result.solver_steps,
        passes: result.solver_steps as f64 * rows_of_step as f64 / rows as f64,
        last_gain: recent.iter().map(|step| step.gain).sum(),
        gradient_norm: last.map(|s| s.gradient_norm),
        residual: last.and_then(|s| s.residual),
        unsolved: result.trace.iter().filter(|s| s.residual.is_none_or(|r| r > tolerance)).count(),
        ended: result.reason,
        handed_on,
        at_bounds: result.at_bounds,
    });
    found.seconds += seconds;
    Ok((model, solutions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_gp::MeanForm;
    use posterior_kernels::KernelExpression;
    use posterior_likelihoods::Gaussian;

    /// Values of a smooth function, seen with a little noise.
    fn wave(rows: usize) -> Observations {
        let x = Mat::from_fn(rows, 1, |i, _| (i as f64 * 0.618_034) % 1.0);
        let noise = |i: usize| 0.05 * ((i as f64 * 12.9898).sin() * 43_758.547).fract();
        let y = Mat::from_fn(rows, 1, |i, _| (9.0 * x[(i, 0)]).sin() + noise(i));
        Observations::new(x, y, None).unwrap()
    }

    #[test]
    fn searches_that_run_away_are_not_taken() {
        let model = |lengthscale: f64, noise: f64| {
            let kernel: KernelExpression = format!("matern32(lengthscale={lengthscale})").parse().unwrap();
            let noise = Gaussian::new(noise, 1e-8);
            ExactGp::new(kernel.build(&["x".into()]).unwrap(), MeanForm::Zero, noise, 1, 1)
        };
        let data = wave(2_500);
        let blocks = model(0.3, 1e-3);
        // A little further, or back, is no reason; so short a lengthscale that rows know nothing of each other is.
        for (lengthscale, noise) in [(0.3, 1e-3), (0.35, 9e-4), (0.28, 1.1e-3)] {
            assert_eq!(worse(&blocks, &model(lengthscale, noise), &data, 0), None, "{lengthscale}");
        }
        let why = worse(&blocks, &model(1e-4, 1e-4), &data, 0).unwrap();
        assert!(why.contains("the evidence of 2000 rows would have fallen from "), "{why}");
    }
}
