//! What needs predictions of the fit itself: noise by expectation maximisation, hyperparameters by held-out data.

use super::curvature::Curvature;
use super::fitting::{Fitting, Solved};
use super::options::{NoiseModel, Tune};
use super::tune::HeldOut;
use crate::LaplaceError;
use crate::accumulate::FitSums;
use crate::predict::{Wanted, displaced, displacement};
use crate::prior::scaled;
use crate::problem::Part;
use crate::run::{Run, Stage};
use crate::scores::{HeldOutReport, check_enough, plain_noise};
use posterior_likelihoods::{Likelihood, NoiseStatistics, OutputLikelihood};
use posterior_linalg::random::Streams;
use posterior_linear::curvature::is_gaussian;
use posterior_networks::Precision;
use posterior_networks::train::Examples;
use posterior_tangent::{Batch, batch_size, ranges};
use rand::seq::SliceRandom;

/// The largest relative change of a noise variance.
pub(super) fn noise_change(before: &OutputLikelihood, after: &OutputLikelihood) -> f64 {
    let variances = |l: &OutputLikelihood| match l {
        OutputLikelihood::Gaussian(g) => g.noise_variances().to_vec(),
        OutputLikelihood::FullGaussian(g) => {
            let n = g.outputs();
            (0..n).map(|i| g.covariance()[i * n + i]).collect()
        }
        _ => Vec::new(),
    };
    variances(before).iter().zip(variances(after)).map(|(a, b)| (b / a - 1.0).abs()).fold(0.0, f64::max)
}

impl<T: Precision> Fitting<'_, T> {
    /// One round of expectation maximisation for noise variances or a noise covariance.
    pub(super) fn noise(
        &self,
        curvature: &Curvature<T>,
        solved: &Solved,
        run: &mut Run<'_>,
    ) -> Result<OutputLikelihood, LaplaceError> {
        let (network, likelihood) = (self.data.network, &self.likelihood);
        let outputs = likelihood.outputs();
        let full = self.options.noise == NoiseModel::Full;
        let mut statistics =
            if full { NoiseStatistics::full(outputs) } else { NoiseStatistics::independent(outputs) };
        let settings = [(solved.prior.clone(), solved.noise_variance)];
        let posterior = curvature.conditioned((network, &self.selection), likelihood, &settings)?;
        // Residuals are those of the linear model, whose posterior this is.
        let direction = displacement(network, &self.selection, &solved.mode, solved.displacement());
        let count = self.data.examples.len();
        for range in ranges(0, count, batch_size(network, outputs)) {
            let batch = Batch::read(self.data.examples, range, likelihood)?;
            let mut latent = posterior.latent(network, &batch.x, Wanted::Full)?;
            if let Some(direction) = &direction {
                let moved = displaced(network, &self.selection, &batch.x, direction)?;
                latent.mean.iter_mut().zip(moved).for_each(|(m, d)| *m += d);
            }
            for i in 0..batch.range.len() {
                let latent = latent.example(i);
                let residual: Vec<f64> =
                    batch.target(i).iter().zip(latent.mean).map(|(y, m)| y - m).collect();
                statistics.add(&residual, latent.covariance)?;
            }
            run.step(Stage::Noise, batch.range.end, count)?;
        }
        const FLOOR: f64 = 1e-12;
        Ok(match full {
            true => OutputLikelihood::FullGaussian(statistics.to_full(FLOOR)?),
            false => OutputLikelihood::Gaussian(statistics.to_independent(FLOOR)?),
        })
    }

    /// Hyperparameters by held-out data, if those were asked for.
    pub(super) fn held_out(
        &self,
        curvature: &Curvature<T>,
        fit: &FitSums,
        solved: &mut Solved,
        run: &mut Run<'_>,
    ) -> Result<Option<HeldOutReport>, LaplaceError> {
        let (options, problem) = (self.options, self.problem());
        let parts: Vec<Part<'_, T>>;
        let sets: Vec<(Curvature<T>, &dyn Examples<T>)> = match (options.tune, problem.validation) {
            (Tune::Validation, Some(validation)) => vec![(curvature.clone(), validation)],
            (Tune::CrossValidation { folds }, _) => {
                let mut order: Vec<usize> = (0..problem.examples.len()).collect();
                order.shuffle(&mut Streams::new(options.seed).stream("laplace/folds"));
                if folds > order.len() {
                    let problem = format!("{folds} folds for {} examples: ask for fewer", order.len());
                    return Err(LaplaceError::Request(problem));
                }
                let fold = |k: usize, inside: bool| {
                    let indices =
                        order.iter().enumerate().filter(|(i, _)| (i % folds == k) == inside).map(|(_, e)| *e);
                    Part { whole: problem.examples, indices: indices.collect() }
                };
                parts = (0..folds).map(|k| fold(k, true)).collect();
                parts
                    .iter()
                    .enumerate()
                    .map(|(k, part)| {
                        let others = fold(k, false);
                        let (curvature, _) = self.curvature(&others, &mut run.unkept())?;
                        Ok((curvature, part as &dyn Examples<T>))
                    })
                    .collect::<Result<_, LaplaceError>>()?
            }
            _ => return Ok(None),
        };
        if !options.seen_by_network {
            check_enough(sets.iter().map(|s| s.1.len()).sum())?;
        }
        let displacement =
            displacement(problem.network, &self.selection, &solved.mode, solved.displacement());
        let held_out = HeldOut { problem, integration: options.integration, sets, displacement };
        let learn_noise = is_gaussian(&self.likelihood) && options.noise == NoiseModel::Scale;
        let plain_noise = plain_noise(fit, &self.likelihood, learn_noise);
        let report = held_out.search(&solved.prior, solved.noise_variance, learn_noise, plain_noise, run)?;
        solved.prior = scaled(&solved.prior, report.best.precision_factor)?;
        solved.noise_variance = report.best.noise_variance;
        solved.maximised = None;
        Ok(Some(report))
    }
}
