//! What needs predictions of the fit itself: noise by expectation maximisation, hyperparameters by held-out data.

use super::NoiseModel;
use super::result::{Curvature, displacement};
use super::run::{Fitting, Observer};
use super::solve::Solved;
use crate::accumulate::FitSums;
use crate::predict::displaced;
use crate::tune::{HeldOut, HeldOutReport};
use crate::{Keeper, LaplaceError, Stage, Tune, Wanted};
use posterior_likelihoods::{NoiseStatistics, OutputLikelihood};
use posterior_linalg::random::{ChaCha8Rng, Streams};
use posterior_linear::curvature::is_gaussian;
use posterior_networks::train::{Examples, Targets};
use posterior_networks::{Array, Precision};
use posterior_optim::Signal;
use posterior_tangent::{Batch, batch_size, ranges};
use rand::seq::SliceRandom;

/// Some of the examples.
pub(crate) struct Part<'a, T> {
    pub(crate) whole: &'a dyn Examples<T>,
    pub(crate) indices: Vec<usize>,
}

impl<T: Precision> Examples<T> for Part<'_, T> {
    fn len(&self) -> usize {
        self.indices.len()
    }
    fn input_shape(&self) -> &[usize] {
        self.whole.input_shape()
    }
    fn batch(&self, indices: &[usize], augment: Option<&mut ChaCha8Rng>) -> (Array<T>, Targets<T>) {
        let own: Vec<usize> = indices.iter().map(|&i| self.indices[i]).collect();
        self.whole.batch(&own, augment)
    }
}

/// The largest relative change of a noise variance.
pub(super) fn noise_change(before: &OutputLikelihood, after: &OutputLikelihood) -> f64 {
    let variances = |l: &OutputLikelihood| match l {
        OutputLikelihood::Gaussian(g) => g.noise_variances().to_vec(),
        OutputLikelihood::FullGaussian(g) => {
            let n = posterior_likelihoods::Likelihood::outputs(g);
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
        likelihood: &OutputLikelihood,
        observer: Observer<'_>,
    ) -> Result<OutputLikelihood, LaplaceError> {
        let outputs = likelihood.outputs();
        let full = self.options.noise == NoiseModel::Full;
        let mut statistics =
            if full { NoiseStatistics::full(outputs) } else { NoiseStatistics::independent(outputs) };
        let settings = [(solved.prior.clone(), solved.noise_variance)];
        let mut predict = curvature.predictors(self.network, &self.selection, likelihood, &settings)?;
        // Residuals are those of the linear model, whose posterior this is.
        let direction = displacement(self.network, &self.selection, &solved.mode, solved.displacement());
        let count = self.examples.len();
        for range in ranges(0, count, batch_size(self.network, outputs)) {
            let batch = Batch::read(self.examples, range, likelihood)?;
            let mut latents = predict(&batch.x, Wanted::Full)?;
            if let Some(direction) = &direction {
                let moved = displaced(self.network, &self.selection, &batch.x, direction)?;
                latents[0].mean.iter_mut().zip(moved).for_each(|(m, d)| *m += d);
            }
            for i in 0..batch.range.len() {
                let latent = latents[0].example(i);
                let residual: Vec<f64> =
                    batch.target(i).iter().zip(latent.mean).map(|(y, m)| y - m).collect();
                statistics.add(&residual, latent.covariance)?;
            }
            if observer(Stage::Noise, batch.range.end, count) == Signal::Stop {
                return Err(LaplaceError::Interrupted);
            }
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
        validation: Option<&dyn Examples<T>>,
        curvature: &Curvature<T>,
        likelihood: &OutputLikelihood,
        fit: &FitSums,
        solved: &mut Solved,
        observer: Observer<'_>,
    ) -> Result<Option<HeldOutReport>, LaplaceError> {
        let options = self.options;
        let parts: Vec<Part<'_, T>>;
        let sets: Vec<(Curvature<T>, &dyn Examples<T>)> = match (options.tune, validation) {
            (Tune::Validation, Some(validation)) => vec![(curvature.clone(), validation)],
            (Tune::CrossValidation { folds }, _) => {
                let mut order: Vec<usize> = (0..self.examples.len()).collect();
                order.shuffle(&mut Streams::new(options.seed).stream("laplace/folds"));
                if folds > order.len() {
                    let problem = format!("{folds} folds for {} examples: ask for fewer", order.len());
                    return Err(LaplaceError::Request(problem));
                }
                let fold = |k: usize, inside: bool| {
                    let indices =
                        order.iter().enumerate().filter(|(i, _)| (i % folds == k) == inside).map(|(_, e)| *e);
                    Part { whole: self.examples, indices: indices.collect() }
                };
                parts = (0..folds).map(|k| fold(k, true)).collect();
                parts
                    .iter()
                    .enumerate()
                    .map(|(k, part)| {
                        let others = fold(k, false);
                        let (curvature, _) =
                            self.curvature(&others, likelihood, &mut Keeper::default(), observer)?;
                        Ok((curvature, part as &dyn Examples<T>))
                    })
                    .collect::<Result<_, LaplaceError>>()?
            }
            _ => return Ok(None),
        };
        if !options.seen_by_network {
            crate::unseen::check_enough(sets.iter().map(|s| s.1.len()).sum())?;
        }
        let held_out = HeldOut {
            network: self.network,
            selection: &self.selection,
            likelihood,
            integration: options.integration,
            sets,
            memory: options.memory,
            displacement: displacement(self.network, &self.selection, &solved.mode, solved.displacement()),
        };
        let gaussian = is_gaussian(likelihood);
        let learn_noise = gaussian && options.noise == NoiseModel::Scale;
        let plain_noise = crate::tune::plain_noise(fit, likelihood, learn_noise);
        let report =
            held_out.search(&solved.prior, solved.noise_variance, learn_noise, plain_noise, observer)?;
        solved.prior = crate::tune::scaled(&solved.prior, report.best.precision_factor)?;
        solved.noise_variance = report.best.noise_variance;
        solved.maximised = None;
        Ok(Some(report))
    }
}
