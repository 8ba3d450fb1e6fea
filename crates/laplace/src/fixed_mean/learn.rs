//! The fit for one kind of kernel: by steps, or in closed form.

use super::options::FixedMeanOptions;
use super::report::{FixedMeanReport, named};
use super::saved::{Earlier, Initialisation, earlier, saved, saved_pass};
use crate::LaplaceError;
use crate::rows::{Rows, amplitudes, scored};
use crate::run::{Run, Stage};
use faer::Mat;
use posterior_gp::inducing::fixed_mean::{
    ClosedForm, CurvatureSoFar, FixedMeanData, FixedMeanError, FixedMeanModel, FixedMeanState,
    PointCovariances, ProjectedCurvature, SparseCovariance, fit_fixed_mean,
};
use posterior_kernels::LearnedBlockKernel;
use posterior_likelihoods::Slopes;
use posterior_linalg::random::Streams;
use posterior_linalg::tiles::pieces;
use posterior_optim::Reason;
use rand::seq::SliceRandom;
use std::cell::Cell;
use std::time::Instant;

/// Rows of a piece of the pass in closed form.
pub(super) const BLOCK: usize = 256;

/// Rows that the beginning of the steps is computed from.
const BEGINNING: usize = 5000;

/// Validation rows with their points.
pub(super) struct Held<'a, P> {
    pub(super) rows: &'a Rows,
    /// The points of all of them.
    pub(super) points: P,
}

/// All that a fit needs beside the model.
pub(super) struct Learning<'a, 'b, K: LearnedBlockKernel> {
    pub(super) rows: &'a Rows,
    pub(super) points: &'a dyn Fn(&[usize]) -> K::Points,
    pub(super) held: Option<Held<'a, K::Points>>,
    pub(super) options: &'a FixedMeanOptions,
    pub(super) seed: u64,
    pub(super) run: &'a mut Run<'b>,
}

/// A fitted model with its posterior, and how it went.
type Fitted<K> = (FixedMeanModel<K>, SparseCovariance<f64>, FixedMeanReport);

impl<K: LearnedBlockKernel + Clone> Learning<'_, '_, K> {
    /// The fit.
    ///
    /// # Errors
    /// [`LaplaceError`]; interruption, after the state has been kept.
    pub(super) fn run(self, model: FixedMeanModel<K>) -> Result<Fitted<K>, LaplaceError> {
        if self.options.closed_form { self.closed_form(model) } else { self.steps(model) }
    }

    fn steps(mut self, mut model: FixedMeanModel<K>) -> Result<Fitted<K>, LaplaceError> {
        let (state, begun) = match earlier(&mut self.run.checkpointer)? {
            Some(Earlier::Steps(state, begun)) => (Some(*state), begun),
            Some(Earlier::Pass(so_far)) => {
                (None, self.conditioned(&mut model, Some(BEGINNING), Some(so_far))?.0)
            }
            None if self.options.closed_form_start => {
                (None, self.conditioned(&mut model, Some(BEGINNING), None)?.0)
            }
            None => (None, Initialisation::default()),
        };
        // Every score adds to it.
        let clipped = Cell::new(begun.clipped);
        let so_far = || Initialisation { clipped: clipped.get(), ..begun.clone() };
        let Self { rows, points, held, options, seed, run } = self;
        let data = FixedMeanData { points, means: rows.means.as_ref(), targets: rows.targets.as_ref() };
        let settings = options.steps(seed);
        let mut validate = |model: &FixedMeanModel<K>| match &held {
            Some(held) => {
                let (own, negative) = scores(model, &[model.covariance()?], held)?;
                clipped.set(clipped.get() + negative);
                Ok(own[0])
            }
            None => Ok(0.0),
        };
        let validate: Option<&mut posterior_gp::inducing::fixed_mean::Validate<'_, K>> =
            if held.is_some() { Some(&mut validate) } else { None };
        let fit = fit_fixed_mean(model, data, &settings, validate, state, &mut |progress, iterate| {
            let done = (Stage::Process, progress.step, progress.steps_planned);
            run.offer(done, || saved(&iterate.state(progress), &so_far()))
        });
        let fit = run.ended(fit)?;
        if fit.reason == Reason::Interrupted {
            run.checkpointer.keep(|| saved(&fit.state, &so_far()))?;
            return Err(LaplaceError::Interrupted);
        }
        let covariance = fit.model.covariance()?;
        let mut report = describe(&fit.model, fit.model.divergence()?);
        let FixedMeanState {
            step, best, scores, losses, trajectory, clipped: of_steps, jitter, seconds, ..
        } = fit.state;
        (report.steps, report.reason) = (step, Some(fit.reason));
        (report.losses, report.scores, report.trajectory) = (losses, scores, trajectory);
        report.best_step = best.map(|best| best.step);
        (report.clipped, report.jitter) = (of_steps + clipped.get(), jitter.max(begun.jitter));
        (report.amplitudes, report.seconds) = (begun.amplitudes, seconds);
        Ok((fit.model, covariance, report))
    }

    fn closed_form(mut self, mut model: FixedMeanModel<K>) -> Result<Fitted<K>, LaplaceError> {
        let started = Instant::now();
        let so_far = match earlier(&mut self.run.checkpointer)? {
            Some(Earlier::Pass(so_far)) => Some(so_far),
            _ => None,
        };
        let (begun, found) = self.conditioned(&mut model, None, so_far)?;
        let mut report = describe(&model, found.divergence);
        (report.amplitudes, report.jitter, report.clipped) = (begun.amplitudes, begun.jitter, begun.clipped);
        report.seconds = started.elapsed().as_secs_f64();
        Ok((model, found.covariance, report))
    }

    /// The curvature that the closed form is conditioned on, of all rows or of so many drawn at random, whose sum then stands for all; on from what an interrupted pass had summed.
    fn curvature(
        &mut self,
        model: &FixedMeanModel<K>,
        most: Option<usize>,
        so_far: Option<CurvatureSoFar>,
    ) -> Result<ProjectedCurvature, LaplaceError> {
        let Self { rows, points, run, seed, .. } = self;
        let mut pass = |so_far: &CurvatureSoFar, all: usize| {
            run.save((Stage::Process, so_far.rows, all), || saved_pass(so_far))
        };
        let n = rows.means.nrows();
        let found = match most.filter(|most| *most < n) {
            None => {
                let data = FixedMeanData {
                    points: *points,
                    means: rows.means.as_ref(),
                    targets: rows.targets.as_ref(),
                };
                ProjectedCurvature::new(model, data, BLOCK, so_far, &mut pass)
            }
            Some(most) => {
                let mut chosen: Vec<usize> = (0..n).collect();
                chosen.shuffle(&mut Streams::new(*seed).stream("laplace/fixed-mean/start"));
                chosen.truncate(most);
                let of = |m: &Mat<f64>| Mat::from_fn(most, m.ncols(), |i, j| m[(chosen[i], j)]);
                let (means, targets) = (of(&rows.means), of(&rows.targets));
                let picked = |own: &[usize]| points(&own.iter().map(|&i| chosen[i]).collect::<Vec<_>>());
                let data =
                    FixedMeanData { points: &picked, means: means.as_ref(), targets: targets.as_ref() };
                let share = n as f64 / most as f64;
                ProjectedCurvature::new(model, data, BLOCK, so_far, &mut pass)
                    .map(|found| found.map(|found| found.scaled(share)))
            }
        };
        run.ended(found)?.ok_or(LaplaceError::Interrupted)
    }

    /// Where the prior variance is learned and there are validation rows: those that were tried in closed form, with their scores, and how many variances rounding had made negative. The model has the best of them then.
    fn amplitudes(
        &self,
        model: &mut FixedMeanModel<K>,
        curvature: &ProjectedCurvature,
    ) -> Result<(Vec<(f64, f64)>, usize), LaplaceError> {
        let (true, Some(held)) = (self.options.learn_amplitude, &self.held) else {
            return Ok((Vec::new(), 0));
        };
        let mut covariances = Vec::new();
        for amplitude in amplitudes() {
            model.set_amplitude(self.options.initial_amplitude * amplitude)?;
            covariances.push(curvature.condition(model)?.covariance);
        }
        let (scores, clipped) = scores(model, &covariances, held)?;
        let amplitudes = scored(covariances.iter().map(SparseCovariance::amplitude).zip(scores))?;
        if let Some(best) = amplitudes.iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
            model.set_amplitude(best.0)?;
        }
        Ok((amplitudes, clipped))
    }

    /// Moves the model to the closed form of all rows or some ([`Self::curvature`]), with the prior variance that validation rows choose.
    fn conditioned(
        &mut self,
        model: &mut FixedMeanModel<K>,
        most: Option<usize>,
        so_far: Option<CurvatureSoFar>,
    ) -> Result<(Initialisation, ClosedForm), LaplaceError> {
        let curvature = self.curvature(model, most, so_far)?;
        let (amplitudes, clipped) = self.amplitudes(model, &curvature)?;
        let found = curvature.condition(model)?;
        Ok((Initialisation { amplitudes, clipped, jitter: found.jitter }, found))
    }
}

/// Minus the mean log predictive density of held-out rows (the energy of order one) under each covariance, in one pass over the kernel, and how many variances rounding had made negative.
fn scores<K: LearnedBlockKernel>(
    model: &FixedMeanModel<K>,
    covariances: &[SparseCovariance<f64>],
    held: &Held<'_, K::Points>,
) -> Result<(Vec<f64>, usize), FixedMeanError> {
    let Held { rows, points } = held;
    let (n, c, likelihood) = (rows.means.nrows(), model.outputs(), model.likelihood());
    let refused = |e: K::Error| FixedMeanError::Kernel(Box::new(e));
    let inducing = model.prepared_points()?;
    let (mut means, mut slopes) = (vec![0.0; c], vec![0.0; c]);
    let mut own = vec![0.0; likelihood.values().len()];
    let (mut target, mut mean) = (vec![0.0; rows.targets.ncols()], vec![0.0; c]);
    let (mut totals, mut clipped) = (vec![0.0; covariances.len()], 0);
    let each = covariances.first().map_or(n, |covariance| covariance.points_at_once(model.kernel()));
    for range in pieces(n, each) {
        let seen =
            PointCovariances::new(model.kernel(), &inducing, (points, range.clone())).map_err(refused)?;
        for (covariance, total) in covariances.iter().zip(&mut totals) {
            let (variances, negative) = covariance.covariances_of(&seen, false);
            clipped += negative;
            for (i, variances) in range.clone().zip(variances.chunks_exact(c)) {
                target.iter_mut().enumerate().for_each(|(j, t)| *t = rows.targets[(i, j)]);
                mean.iter_mut().enumerate().for_each(|(j, m)| *m = rows.means[(i, j)]);
                let place = Slopes { means: &mut means, variances: &mut slopes, parameters: &mut own };
                *total += likelihood.alpha_energy(1.0, &target, &mean, variances, place);
            }
        }
    }
    Ok((totals.into_iter().map(|total| total / n as f64).collect(), clipped))
}

/// What a model says about itself.
fn describe<K: LearnedBlockKernel>(model: &FixedMeanModel<K>, divergence: f64) -> FixedMeanReport {
    FixedMeanReport {
        companion: model.companion().is_some(),
        amplitude: model.amplitude(),
        kernel: named(model.kernel().segments(), model.kernel().values()),
        noise: named(model.likelihood().segments(), model.likelihood().values()),
        divergence,
        labels: model.labels().to_vec(),
        ..FixedMeanReport::default()
    }
}
