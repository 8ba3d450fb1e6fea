//! The posterior of any inducing-point method: predictions, joint covariances, samples, observations.

use super::{InducingDistribution, InducingError};
use crate::data::{check_finite, same_width};
use crate::{GpError, JointPrediction, Mean, Posterior, Prediction};
use faer::{Mat, MatRef};
use posterior_kernels::inducing::Whitening;
use posterior_kernels::{Kernel, diagonal, gram};
use posterior_likelihoods::{Likelihood, LikelihoodError, Prediction as Observation};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::parallel;
use posterior_linalg::random::ChaCha8Rng;
use posterior_linalg::tiles::pieces;
use rand_distr::{Distribution, StandardNormal};

/// Test points handled at a time: bounds the extra memory of a prediction.
const BLOCK: usize = 1024;

/// Gaussian marginals of C latent functions at k points.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentMarginals {
    /// Means, k x C.
    pub mean: Mat<f64>,
    /// Variances, k x C.
    pub variance: Mat<f64>,
    /// Variances that rounding had made negative and that were raised to 0.
    pub clipped: usize,
}

/// `f = m + k(·, Z) L⁻ᵀ v` plus what inducing values cannot say, with `v ~ q`: what a collapsed or a stochastic fit leaves behind. Keeps
/// nothing of the data: `O(m²)` numbers.
#[derive(Debug)]
pub struct InducingPosterior {
    pub(super) kernel: Box<dyn Kernel<f64>>,
    pub(super) mean: Mean,
    pub(super) likelihood: Box<dyn Likelihood>,
    pub(super) inducing: Mat<f64>,
    pub(super) whitening: Whitening,
    pub(super) distribution: InducingDistribution,
    /// What [`Posterior::sample`] may add to a joint covariance.
    pub jitter: JitterPolicy,
}

impl Clone for InducingPosterior {
    fn clone(&self) -> Self {
        Self {
            kernel: self.kernel.clone_box(),
            mean: self.mean.clone(),
            likelihood: self.likelihood.clone(),
            inducing: self.inducing.clone(),
            whitening: self.whitening.clone(),
            distribution: self.distribution.clone(),
            jitter: self.jitter,
        }
    }
}

impl InducingPosterior {
    /// A posterior from its parts, as a fit or a model file has them: nothing is recomputed, so predictions are equal to the last bit.
    /// `factor` is the Cholesky factor of `K_ZZ` (jitter included), `inducing` is m x D.
    ///
    /// # Errors
    /// [`GpError::Shape`] or [`GpError::NotFinite`] when the parts do not fit together.
    pub fn from_parts(
        kernel: Box<dyn Kernel<f64>>,
        mean: Mean,
        likelihood: Box<dyn Likelihood>,
        inducing: Mat<f64>,
        factor: Cholesky,
        distribution: InducingDistribution,
    ) -> Result<Self, GpError> {
        check_finite("inducing input", inducing.as_ref())?;
        same_width("columns of the inducing inputs", mean.input_dimension(), inducing.ncols())?;
        same_width("rows of the factor", inducing.nrows(), factor.dimension())?;
        same_width("inducing values", inducing.nrows(), distribution.rank())?;
        same_width("latent functions", mean.target_count(), distribution.latents())?;
        same_width("latent functions", likelihood.outputs(), distribution.latents())?;
        let relative_jitter = 0.0;
        let whitening = Whitening { cholesky: factor, relative_jitter };
        let jitter = JitterPolicy::default();
        Ok(Self { kernel, mean, likelihood, inducing, whitening, distribution, jitter })
    }

    /// The covariance function.
    pub fn kernel(&self) -> &dyn Kernel<f64> {
        &*self.kernel
    }

    /// The prior means, one for each latent function.
    pub fn mean(&self) -> &Mean {
        &self.mean
    }

    /// How observations scatter.
    pub fn likelihood(&self) -> &dyn Likelihood {
        &*self.likelihood
    }

    /// Inducing inputs, m x D.
    pub fn inducing(&self) -> MatRef<'_, f64> {
        self.inducing.as_ref()
    }

    /// The factor of `K_ZZ`.
    pub fn factor(&self) -> &Cholesky {
        &self.whitening.cholesky
    }

    /// The distribution of the whitened inducing values.
    pub fn distribution(&self) -> &InducingDistribution {
        &self.distribution
    }

    /// Weights of the inducing points, m x C: the mean is `m(x) + k(x, Z) w` with `w = L⁻ᵀ E[v]`. Cost `m² C` flops.
    pub fn weights(&self) -> Mat<f64> {
        let mut weights = self.distribution.mean().to_owned();
        self.whitening.cholesky.solve_factor_transpose_in_place(weights.as_mut());
        weights
    }

    pub(super) fn check(&self, x: MatRef<'_, f64>) -> Result<(), GpError> {
        same_width("columns of the inputs to predict", self.inducing.ncols(), x.ncols())?;
        check_finite("input", x)
    }

    pub(super) fn features(&self, x: MatRef<'_, f64>) -> Mat<f64> {
        self.whitening.features(self.kernel(), self.inducing(), x)
    }

    /// Marginals of the latent functions at the rows of `x` (k x D). Cost `(1 + roots) k m²` flops.
    ///
    /// # Errors
    /// [`GpError`] when the width is wrong or a value is not finite.
    pub fn latent(&self, x: MatRef<'_, f64>) -> Result<LatentMarginals, GpError> {
        let mut all = Self::latent_of_all(&[self], x)?;
        all.pop().ok_or(GpError::Empty { what: "the set of posteriors" })
    }

    /// The same of several posteriors; of those that [share their features](Self::shares_features) these are computed once.
    ///
    /// # Errors
    /// As [`Self::latent`].
    pub fn latent_of_all(posteriors: &[&Self], x: MatRef<'_, f64>) -> Result<Vec<LatentMarginals>, GpError> {
        let Some(first) = posteriors.first() else { return Ok(Vec::new()) };
        posteriors.iter().try_for_each(|p| p.check(x))?;
        let shared: Vec<bool> = posteriors.iter().map(|p| first.shares_features(p)).collect();
        let k = x.nrows();
        let begin = |p: &&Self| LatentMarginals {
            mean: p.mean.evaluate(x),
            variance: Mat::zeros(k, p.distribution.latents()),
            clipped: 0,
        };
        let mut all: Vec<LatentMarginals> = posteriors.iter().map(begin).collect();
        for rows in pieces(k, BLOCK) {
            let points = x.subrows(rows.start, rows.len());
            let features = first.features(points);
            let prior = diagonal(first.kernel(), points);
            for ((posterior, out), shared) in posteriors.iter().zip(&mut all).zip(&shared) {
                if *shared {
                    posterior.add_marginals(rows.start, &features, &prior, out);
                } else {
                    let prior = diagonal(posterior.kernel(), points);
                    posterior.add_marginals(rows.start, &posterior.features(points), &prior, out);
                }
            }
        }
        Ok(all)
    }

    /// Adds what the inducing values say to prior means, and writes variances, of rows from `start` on.
    fn add_marginals(&self, start: usize, features: &Mat<f64>, prior: &[f64], out: &mut LatentMarginals) {
        let latents = self.distribution.latents();
        let mut target = out.mean.as_mut().subrows_mut(start, features.ncols());
        target += features.transpose() * self.distribution.mean();
        for index in 0..self.distribution.roots().len() {
            let rooted = self.distribution.rooted(index, features.as_ref());
            for i in 0..features.ncols() {
                let explained = features.col(i).squared_norm_l2() - rooted.col(i).squared_norm_l2();
                let value = prior[i] - explained;
                out.clipped += usize::from(value < 0.0);
                let value = if value < 0.0 { 0.0 } else { value };
                for latent in (0..latents).filter(|&c| self.distribution.root_of(c) == index) {
                    out.variance[(start + i, latent)] = value;
                }
            }
        }
    }

    /// What will be observed at the rows of `x`: probabilities of classes or events, or moments, one for each row.
    ///
    /// # Errors
    /// As [`InducingPosterior::latent`].
    pub fn predict_observations(&self, x: MatRef<'_, f64>) -> Result<Vec<Observation>, GpError> {
        let LatentMarginals { mean, variance, .. } = self.latent(x)?;
        let row = |matrix: &Mat<f64>, i: usize| matrix.row(i).iter().copied().collect::<Vec<f64>>();
        Ok(parallel::map(x.nrows(), 2, |i| self.likelihood.predict(&row(&mean, i), &row(&variance, i))))
    }

    /// The log predictive density of each row of `targets` (k x width) at the rows of `x`, in nats.
    ///
    /// # Errors
    /// As [`InducingPosterior::latent`], and [`InducingError::Target`] for a target that the likelihood cannot produce.
    pub fn log_predictive_density(
        &self,
        x: MatRef<'_, f64>,
        targets: MatRef<'_, f64>,
    ) -> Result<Vec<f64>, GpError> {
        same_width("rows of the targets", x.nrows(), targets.nrows())?;
        same_width("columns of the targets", self.likelihood.target_width(), targets.ncols())?;
        let LatentMarginals { mean, variance, .. } = self.latent(x)?;
        let row = |matrix: MatRef<'_, f64>, i: usize| matrix.row(i).iter().copied().collect::<Vec<f64>>();
        let densities = parallel::map(x.nrows(), 2, |i| {
            let y = row(targets, i);
            self.likelihood.check_target(&y).map_err(|error| InducingError::Target { row: i, error })?;
            let (mean, variance) = (row(mean.as_ref(), i), row(variance.as_ref(), i));
            Ok(self.likelihood.log_predictive_density(&y, &mean, &variance))
        });
        densities.into_iter().collect()
    }

    /// Refuses a Gaussian answer for other observations.
    fn noise_variance(&self) -> Result<f64, GpError> {
        let likelihood = self.likelihood.name();
        self.likelihood.shared_noise_variance().ok_or(InducingError::NotGaussian { likelihood }.into())
    }

    /// The covariance of latent function `latent` at the rows of x, k x k.
    fn covariance(&self, x: MatRef<'_, f64>, features: &Mat<f64>, latent: usize) -> Mat<f64> {
        let rooted = self.distribution.rooted(self.distribution.root_of(latent), features.as_ref());
        gram(self.kernel(), x) - features.transpose() * features + rooted.transpose() * &rooted
    }
}

/// Answers for Gaussian noise; [`InducingPosterior::latent`] and [`InducingPosterior::predict_observations`] are for every likelihood.
impl Posterior for InducingPosterior {
    /// Cost `2m²` flops a point.
    fn predict(&self, x: MatRef<'_, f64>) -> Result<Prediction, GpError> {
        let noise_variance = self.noise_variance()?;
        let shared = self.distribution.roots().len() == 1;
        let LatentMarginals { mean, variance, clipped } = self.latent(x)?;
        if !shared {
            // A Gaussian likelihood always shares, except from parts; one variance cannot stand for several.
            return Err(GpError::Shape {
                what: "roots of a Gaussian posterior",
                expected: 1,
                actual: self.distribution.roots().len(),
            });
        }
        Ok(Prediction { mean, latent_variance: variance.col_as_slice(0).to_vec(), noise_variance, clipped })
    }

    /// Cost `2m²k + 2mk²` flops for k points.
    fn joint(&self, x: MatRef<'_, f64>) -> Result<JointPrediction, GpError> {
        self.noise_variance()?;
        self.check(x)?;
        let features = self.features(x);
        let mean = self.mean.evaluate(x) + features.transpose() * self.distribution.mean();
        Ok(JointPrediction { mean, covariance: self.covariance(x, &features, 0) })
    }

    /// For every likelihood: draws of latent function `target`. Cost `k³/3` flops on top of the joint prediction;
    /// [`super::PathwiseSamples`] are cheaper for many points.
    fn sample(
        &self,
        x: MatRef<'_, f64>,
        target: usize,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Mat<f64>, f64), GpError> {
        self.check(x)?;
        let latents = self.distribution.latents();
        if target >= latents {
            return Err(GpError::Shape {
                what: "targets of the model",
                expected: target + 1,
                actual: latents,
            });
        }
        let features = self.features(x);
        let mean = self.mean.evaluate(x) + features.transpose() * self.distribution.mean();
        let covariance = self.covariance(x, &features, target);
        let factored = Cholesky::of(covariance.as_ref(), self.jitter)?;
        let white = Mat::from_fn(x.nrows(), count, |_, _| StandardNormal.sample(rng));
        let mut draws = factored.multiply_factor(white.as_ref());
        for j in 0..count {
            let values = draws.col_as_slice_mut(j).iter_mut();
            values.zip(mean.col_as_slice(target)).for_each(|(d, m)| *d += m);
        }
        Ok((draws, factored.info().jitter))
    }
}

/// The first row whose target the likelihood cannot produce, as an error.
pub(crate) fn check_targets(
    likelihood: &dyn Likelihood,
    targets: MatRef<'_, f64>,
) -> Result<(), InducingError> {
    let mut y = vec![0.0; targets.ncols()];
    for row in 0..targets.nrows() {
        y.iter_mut().zip(targets.row(row).iter()).for_each(|(y, t)| *y = *t);
        let checked: Result<(), LikelihoodError> = likelihood.check_target(&y);
        checked.map_err(|error| InducingError::Target { row, error })?;
    }
    Ok(())
}
