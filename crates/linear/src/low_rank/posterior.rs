//! What is known after a fit: predictions, joint covariances, functions.

use super::{FeatureValues, LearnedFeatures, LowRankData, ObservedRows, WeightDistribution};
use crate::LinearError;
use crate::check::{finite_matrix, same};
use faer::{Mat, MatRef};
use posterior_likelihoods::Likelihood;
use posterior_linalg::parallel;
use posterior_linalg::random::ChaCha8Rng;
use posterior_linalg::tiles::pieces;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Rows that one thread scores before it takes others.
const SCORED_AT_ONCE: usize = 64;

/// What is added to the variance that features can say, `|Rᵀ a(x)|²`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResidualVariance {
    /// Nothing.
    None,
    /// What the prior variance of the features is short of the largest one in training, `max(M - |a(x)|², 0)`: far from all rows, where learned features die, this is all of it.
    Uniform {
        /// M.
        largest: f64,
    },
    /// What the process's own variance is above that of its features, `k(x, x) - |a(x)|²`.
    Own,
}

/// Gaussian marginals of C latent functions at k points.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightMarginals {
    /// Means, k x C.
    pub mean: Mat<f64>,
    /// Variances, k x C.
    pub variance: Mat<f64>,
}

/// Latent functions `f_c(x) = a(x)ᵀ w_c`, plus a rest that is independent from point to point.
#[derive(Debug)]
pub struct LowRankPosterior {
    features: Box<dyn LearnedFeatures>,
    distribution: WeightDistribution,
    likelihood: Box<dyn Likelihood>,
    residual_variance: ResidualVariance,
}

impl Clone for LowRankPosterior {
    fn clone(&self) -> Self {
        Self {
            features: self.features.clone_box(),
            distribution: self.distribution.clone(),
            likelihood: self.likelihood.clone(),
            residual_variance: self.residual_variance,
        }
    }
}

impl LowRankPosterior {
    /// From its parts, as a fit or a file has them.
    ///
    /// # Errors
    /// [`LinearError::Shape`] when they do not fit together.
    pub fn new(
        features: Box<dyn LearnedFeatures>,
        distribution: WeightDistribution,
        likelihood: Box<dyn Likelihood>,
        residual_variance: ResidualVariance,
    ) -> Result<Self, LinearError> {
        same("weights of each function", features.rank(), distribution.rank())?;
        same("latent functions", likelihood.outputs(), distribution.latents())?;
        Ok(Self { features, distribution, likelihood, residual_variance })
    }

    /// The features.
    pub fn features(&self) -> &dyn LearnedFeatures {
        &*self.features
    }

    /// The distribution of the weights.
    pub fn distribution(&self) -> &WeightDistribution {
        &self.distribution
    }

    /// How observations scatter.
    pub fn likelihood(&self) -> &dyn Likelihood {
        &*self.likelihood
    }

    /// What is added to the variances.
    pub fn residual_variance(&self) -> ResidualVariance {
        self.residual_variance
    }

    fn residual_variances(&self, values: &FeatureValues) -> Vec<f64> {
        let squares = (0..values.features.ncols()).map(|i| values.features.col(i).squared_norm_l2());
        match self.residual_variance {
            ResidualVariance::None => vec![0.0; values.features.ncols()],
            ResidualVariance::Uniform { largest } => squares.map(|k| (largest - k).max(0.0)).collect(),
            ResidualVariance::Own => squares.zip(&values.variances).map(|(k, v)| (v - k).max(0.0)).collect(),
        }
    }

    fn check(&self, x: MatRef<'_, f64>) -> Result<(), LinearError> {
        same("columns of the inputs", self.features.inputs(), x.ncols())?;
        finite_matrix("an input", x)
    }

    /// Marginals at the rows of x (k x D). Cost: the features, and `m²` flops a point and root.
    ///
    /// # Errors
    /// For inputs of another width or not finite.
    pub fn latent(&self, x: MatRef<'_, f64>) -> Result<WeightMarginals, LinearError> {
        self.check(x)?;
        let (k, latents) = (x.nrows(), self.distribution.latents());
        let (mut mean, mut variance) = (Mat::zeros(k, latents), Mat::zeros(k, latents));
        for rows in pieces(k, self.features.rows_at_once()) {
            let values = self.features.values(x.subrows(rows.start, rows.len()))?;
            let residual_variance = self.residual_variances(&values);
            let own = values.features.transpose() * self.distribution.mean();
            mean.as_mut().subrows_mut(rows.start, rows.len()).copy_from(own);
            for index in 0..self.distribution.roots().len() {
                let rooted = self.distribution.rooted(index, values.features.as_ref());
                for latent in (0..latents).filter(|&c| self.distribution.root_of(c) == index) {
                    for (i, residual_variance) in residual_variance.iter().enumerate() {
                        variance[(rows.start + i, latent)] =
                            rooted.col(i).squared_norm_l2() + residual_variance;
                    }
                }
            }
        }
        Ok(WeightMarginals { mean, variance })
    }

    /// The sum over rows of the log predictive densities of what was observed at the rows of x, times their weights, nats.
    ///
    /// # Errors
    /// As [`Self::latent`].
    pub fn log_predictive_density(
        &self,
        x: MatRef<'_, f64>,
        observed: &ObservedRows<'_>,
    ) -> Result<f64, LinearError> {
        let WeightMarginals { mean, variance } = self.latent(x)?;
        let (latents, width) = (self.distribution.latents(), observed.targets.ncols());
        let ranges: Vec<_> = pieces(x.nrows(), SCORED_AT_ONCE).collect();
        let piece = |rows: &Range<usize>| {
            let (mut y, mut m, mut v) = (vec![0.0; width], vec![0.0; latents], vec![0.0; latents]);
            let mut sum = 0.0;
            for i in rows.clone() {
                y.iter_mut().enumerate().for_each(|(j, y)| *y = observed.targets[(i, j)]);
                let offset = observed.offsets.map_or(0.0, |offsets| offsets[i]);
                for c in 0..latents {
                    (m[c], v[c]) = (mean[(i, c)] + offset, variance[(i, c)]);
                }
                let noisier = observed.noise.and_then(|noise| self.likelihood.with_row_noise(noise[i]));
                let likelihood: &dyn Likelihood = noisier.as_deref().unwrap_or(&*self.likelihood);
                let weight = observed.weights.map_or(1.0, |weights| weights[i]);
                sum += weight * likelihood.log_predictive_density(&y, &m, &v);
            }
            sum
        };
        // Pieces are summed in their order, so that the result does not depend on the number of threads.
        Ok(parallel::map(ranges.len(), 1, |i| piece(&ranges[i])).into_iter().sum())
    }

    /// The mean of `-log p(y)` of rows, each as often as its weight says, nats: what training is stopped by and ways to train are compared by.
    ///
    /// # Errors
    /// As [`Self::latent`].
    pub fn surprise(&self, data: &LowRankData<'_>) -> Result<f64, LinearError> {
        let rows = data.inputs.nrows() as f64;
        let all = data.observed.weights.map_or(rows, |weights| weights.iter().sum());
        Ok(-self.log_predictive_density(data.inputs, &data.observed)? / all)
    }

    /// Means (k x C) and the covariance (k x k) of function `latent` at the rows of x. Cost `k m² + k² m` flops.
    ///
    /// # Errors
    /// As [`Self::latent`].
    pub fn joint(&self, x: MatRef<'_, f64>, latent: usize) -> Result<(Mat<f64>, Mat<f64>), LinearError> {
        self.check(x)?;
        let values = self.features.values(x)?;
        let rooted = self.distribution.rooted(self.distribution.root_of(latent), values.features.as_ref());
        let mut covariance = rooted.transpose() * &rooted;
        for (i, residual_variance) in self.residual_variances(&values).into_iter().enumerate() {
            covariance[(i, i)] += residual_variance;
        }
        Ok((values.features.transpose() * self.distribution.mean(), covariance))
    }

    /// The prior's covariance at the rows of x (k x k): `a(x)ᵀ a(z)`, and on the diagonal the rest, which is independent from place to place. Cost: the features, and `k² m` flops.
    ///
    /// # Errors
    /// As [`Self::latent`].
    pub fn prior_gram(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        self.check(x)?;
        let values = self.features.values(x)?;
        let mut gram = values.features.transpose() * &values.features;
        for (i, residual_variance) in self.residual_variances(&values).into_iter().enumerate() {
            gram[(i, i)] += residual_variance;
        }
        Ok(gram)
    }

    /// The prior's covariance between the rows of x (k x D) and those of z (l x D), k x l, which are taken as different places: `a(x)ᵀ a(z)` without a rest.
    ///
    /// # Errors
    /// As [`Self::latent`].
    pub fn prior_cross(&self, x: MatRef<'_, f64>, z: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        self.check(x)?;
        self.check(z)?;
        Ok(self.features.values(x)?.features.transpose() * self.features.values(z)?.features)
    }

    /// The diagonal of [`Self::prior_gram`], k numbers: `|a(x)|²` and the rest.
    ///
    /// # Errors
    /// As [`Self::latent`].
    pub fn prior_variances(&self, x: MatRef<'_, f64>) -> Result<Vec<f64>, LinearError> {
        self.check(x)?;
        let mut variances = Vec::with_capacity(x.nrows());
        for rows in pieces(x.nrows(), self.features.rows_at_once()) {
            let values = self.features.values(x.subrows(rows.start, rows.len()))?;
            let residual_variance = self.residual_variances(&values);
            variances.extend(
                residual_variance
                    .iter()
                    .enumerate()
                    .map(|(i, r)| values.features.col(i).squared_norm_l2() + r),
            );
        }
        Ok(variances)
    }

    /// Weights of drawn functions, m x count.
    fn drawn_weights(&self, latent: usize, count: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
        let m = self.distribution.rank();
        let white = Mat::<f64>::from_fn(m, count, |_, _| StandardNormal.sample(rng));
        let mut weights = &self.distribution.roots()[self.distribution.root_of(latent)] * white;
        let mean = self.distribution.mean_of(latent);
        for j in 0..count {
            weights.col_as_slice_mut(j).iter_mut().zip(mean).for_each(|(w, m)| *w += m);
        }
        weights
    }

    /// Draws of function `latent` that are functions: in closed form anywhere, for as long as they are kept. What features cannot say is no part of them.
    pub fn functions(&self, latent: usize, count: usize, rng: &mut ChaCha8Rng) -> LowRankFunctions {
        LowRankFunctions {
            features: self.features.clone_box(),
            weights: self.drawn_weights(latent, count, rng),
        }
    }

    /// Draws of function `latent` at the rows of x, k x count: weights drawn once, so that they are functions, in `k m` flops each. The rest is drawn point by point.
    ///
    /// # Errors
    /// As [`Self::latent`].
    pub fn draws(
        &self,
        x: MatRef<'_, f64>,
        latent: usize,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Mat<f64>, LinearError> {
        self.check(x)?;
        let weights = self.drawn_weights(latent, count, rng);
        let mut draws = Mat::zeros(x.nrows(), count);
        for rows in pieces(x.nrows(), self.features.rows_at_once()) {
            let values = self.features.values(x.subrows(rows.start, rows.len()))?;
            let mut own = values.features.transpose() * &weights;
            for (i, residual_variance) in self.residual_variances(&values).into_iter().enumerate() {
                let scale = residual_variance.sqrt();
                own.row_mut(i).iter_mut().for_each(|f| {
                    let e: f64 = StandardNormal.sample(rng);
                    *f += scale * e;
                });
            }
            draws.as_mut().subrows_mut(rows.start, rows.len()).copy_from(own);
        }
        Ok(draws)
    }
}

/// Functions `a(x)ᵀ w` of drawn weights.
#[derive(Debug)]
pub struct LowRankFunctions {
    features: Box<dyn LearnedFeatures>,
    weights: Mat<f64>,
}

impl LowRankFunctions {
    /// Their values at the rows of x, k x count. Cost `k m` flops each, and the features.
    ///
    /// # Errors
    /// For inputs of another width or not finite.
    pub fn values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        same("columns of the inputs", self.features.inputs(), x.ncols())?;
        finite_matrix("an input", x)?;
        let mut out = Mat::zeros(x.nrows(), self.weights.ncols());
        for rows in pieces(x.nrows(), self.features.rows_at_once()) {
            let values = self.features.values(x.subrows(rows.start, rows.len()))?;
            out.as_mut()
                .subrows_mut(rows.start, rows.len())
                .copy_from(values.features.transpose() * &self.weights);
        }
        Ok(out)
    }
}
