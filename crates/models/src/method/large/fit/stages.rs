//! Searches by exact evidences: of blocks, of all rows, of neighbourhoods, one stage after the other.

use super::Fitting;
use super::hyperparameters::{EXACT_SHARE, set_noise, solvable};
use crate::method::large::refinement::{REFINING_EVALUATIONS, refining_memory};
use crate::method::training::{Allowance, Found, Stage};
use crate::options::IterativeOptions;
use crate::{FitRequest, FitStage, ModelError, SolverPrecision};
use posterior_gp::Hyperprior;
use posterior_gp::exact::{self, ExactGp, FitOptions};
use posterior_gp::iterative::{BlockFit, Blocks, fit_on_blocks, fit_on_neighbourhoods};
use posterior_optim::{Parameters, Reason, Signal};
use std::time::Instant;

/// Shares of the budget by whose end the stages of a search on blocks are over.
const FIRST_SHARE: f64 = 0.15;
const SECOND_SHARE: f64 = 0.4;

/// A search by exact evidence under these priors.
fn believing(request: &FitRequest, asked: &IterativeOptions, hyperpriors: &[Hyperprior]) -> FitOptions {
    FitOptions { hyperpriors: hyperpriors.to_vec(), ..request.fit_options(&asked.evidence) }
}

/// A search by exact evidences, one stage after the other.
pub(crate) struct Stages<'s, 'f, 'o> {
    pub(crate) fitting: &'s mut Fitting<'f, 'o>,
    pub(crate) options: &'s IterativeOptions,
    /// What is believed of hyperparameters.
    pub(crate) hyperpriors: &'s [Hyperprior],
}

impl Stages<'_, '_, '_> {
    /// The joint evidence on many small blocks, then on few larger ones from where that led.
    pub(crate) fn on_blocks<T: SolverPrecision>(
        &mut self,
        mut model: ExactGp,
        found: &mut Found,
    ) -> Result<ExactGp, ModelError> {
        let Self { options: asked, hyperpriors, .. } = *self;
        let Fitting { prepared, request, allowance, .. } = *self.fitting;
        let first = asked.search.blocks(request.seed);
        let (n, d) = (prepared.data.rows(), prepared.data.inputs().ncols());
        let base = believing(request, asked, hyperpriors);
        if found.blocks.is_empty() {
            let mut options = base.clone();
            options.steps.time = Allowance::duration(allowance.until(FIRST_SHARE));
            let rows = first.rows(&prepared.data)?;
            model = self.stage::<T>(model, &rows, &options, found)?;
        } else if let Some((_, values)) = found.blocks.last() {
            model.set_values(values);
        }
        if found.blocks.len() < 2 && first.size < n {
            let seconds = allowance.until(SECOND_SHARE);
            let evaluations: usize = found.blocks[0].0.attempts.iter().map(|a| a.evaluations).sum();
            let each = found.seconds / evaluations.max(1) as f64;
            let rate = first.plan(n, d).flops_per_evaluation / each.max(1e-9);
            let size = refining_size(
                asked.search.refining_rows.min(n),
                first.size,
                refining_memory(request.limits.memory),
                d,
                |flops| seconds.is_none_or(|left| REFINING_EVALUATIONS * flops / rate <= left),
            );
            if let Some(size) = size {
                let uniform = Blocks { uniform: 1, neighbourhoods: 0, size, ..first };
                let near = Blocks { uniform: 0, neighbourhoods: 1, size: size / 2, ..first };
                let mut rows = uniform.rows(&prepared.data)?;
                if size < n {
                    rows.extend(near.rows(&prepared.data)?);
                }
                let mut options = FitOptions { restarts: 1, ..base.clone() };
                options.steps.time = Allowance::duration(seconds);
                model = self.stage::<T>(model, &rows, &options, found)?;
            }
        }
        found.noise_raised_from = solvable::<T>(&mut model, prepared, &asked.evidence);
        Ok(model)
    }

    /// The exact evidence of all rows, from where blocks led.
    pub(crate) fn on_all_rows<T: SolverPrecision>(
        &mut self,
        mut model: ExactGp,
        found: &mut Found,
    ) -> Result<ExactGp, ModelError> {
        let Self { options: asked, hyperpriors, .. } = *self;
        let Fitting { prepared, request, allowance, .. } = *self.fitting;
        if let Some(noise) = found.noise_raised_from.take() {
            set_noise(&mut model, noise);
        }
        let mut options = FitOptions { restarts: 1, ..believing(request, asked, hyperpriors) };
        options.steps.time = Allowance::duration(allowance.until(EXACT_SHARE));
        let rows = vec![(0..prepared.data.rows()).collect()];
        let mut model = self.stage::<T>(model, &rows, &options, found)?;
        found.noise_raised_from = solvable::<T>(&mut model, prepared, &asked.evidence);
        Ok(model)
    }

    /// One stage, kept when it is finished.
    fn stage<T: SolverPrecision>(
        &mut self,
        model: ExactGp,
        rows: &[Vec<usize>],
        options: &FitOptions,
        found: &mut Found,
    ) -> Result<ExactGp, ModelError> {
        let (started, number) = (Instant::now(), found.blocks.len());
        let (model, fit): (ExactGp, BlockFit) =
            fit_on_blocks(model, &self.fitting.prepared.data, rows, options, &mut |progress, _| {
                (self.fitting.observer)(progress, &FitStage::Blocks { stage: number })
            })?;
        ModelError::heed(fit.reason)?;
        found.largest_jitter = found.largest_jitter.max(fit.largest_jitter);
        found.seconds += started.elapsed().as_secs_f64();
        found.blocks.push((fit, model.values()));
        self.fitting.checkpoints.save::<T>(found, Stage::Between)?;
        Ok(model)
    }
}

/// Most rows of a second stage that fit memory and time; none where that is hardly more than the first had.
fn refining_size(
    most: usize,
    first: usize,
    memory: u64,
    inputs: usize,
    in_time: impl Fn(f64) -> bool,
) -> Option<usize> {
    let fits = |size: usize| {
        let plan = exact::Plan::evidence(size, inputs, 1);
        plan.peak_bytes <= memory && in_time(1.2 * plan.flops_per_evaluation)
    };
    (0..=20)
        .map(|k| (most as f64 * 0.9f64.powi(k)) as usize)
        .find(|&size| fits(size))
        .filter(|&size| size > first + first / 2)
}

/// Averages over the exact evidences of neighbourhoods, behind those that an earlier run had finished.
pub(crate) fn on_neighbourhoods<T: SolverPrecision>(
    fitting: &mut Fitting<'_, '_>,
    asked: &IterativeOptions,
    model: ExactGp,
    (found, hyperpriors): (&mut Found, &[Hyperprior]),
) -> Result<ExactGp, ModelError> {
    let Fitting { prepared, request, .. } = *fitting;
    let started = Instant::now();
    let before = found.seconds;
    let options = FitOptions { restarts: 1, ..believing(request, asked, hyperpriors) };
    let earlier = found.neighbourhoods.clone();
    let mut failed = None;
    let (averaged, fits) = fit_on_neighbourhoods(
        &model,
        &prepared.data,
        asked.search.neighbourhoods(request.seed),
        &options,
        earlier,
        &mut |progress, done| {
            if done.len() > found.neighbourhoods.len() {
                found.neighbourhoods = done.to_vec();
                found.seconds = before + started.elapsed().as_secs_f64();
                if let Err(error) = fitting.checkpoints.save::<T>(found, Stage::Between) {
                    failed = Some(error);
                    return Signal::Stop;
                }
            }
            (fitting.observer)(progress, &FitStage::Neighbourhoods)
        },
    )?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if fits.iter().any(|f| f.reason == Reason::Interrupted) {
        return Err(ModelError::Interrupted);
    }
    found.largest_jitter = fits.iter().map(|f| f.largest_jitter).fold(0.0, f64::max);
    found.neighbourhoods = fits;
    found.seconds = before + started.elapsed().as_secs_f64();
    Ok(averaged)
}
