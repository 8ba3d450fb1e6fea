//! What the variational process says: marginals, joint covariances, draws, observations.

use super::error::GeneralisedError;
use super::mean::VariationalMean;
use super::model::{GeneralisedGp, KnownRows};
use super::variational::Family;
use crate::data::{check_finite, same_width};
use crate::inducing::{InducingError, LatentMarginals};
use crate::{GpError, JointPrediction, Posterior, Prediction};
use faer::{Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, CholeskyError, JitterPolicy};
use posterior_linalg::random::ChaCha8Rng;
use posterior_linalg::tiles::pieces;
use rand_distr::{Distribution, StandardNormal};

/// Points handled at a time: bounds the extra memory of a prediction.
const BLOCK: usize = 1024;

impl GeneralisedGp {
    fn check_points(&self, x: MatRef<'_, f64>, given: Option<MatRef<'_, f64>>) -> Result<(), GpError> {
        same_width("columns of the inputs to predict", self.inputs(), x.ncols())?;
        check_finite("input", x)?;
        if let Some(given) = given {
            same_width("rows of the given means", x.nrows(), given.nrows())?;
            same_width("columns of the given means", self.functions(), given.ncols())?;
            check_finite("given mean", given)?;
        }
        Ok(())
    }

    /// Marginals of the latent functions at the rows of x (k x D), means that are `given` there (k x C) included, variances tempered. Cost `k M²` flops a reference and what the kernels cost.
    ///
    /// Variances that were raised to their floor are counted among the clipped ones.
    ///
    /// # Errors
    /// [`GpError`] when a width is wrong or a value is not finite.
    pub fn latent(
        &self,
        x: MatRef<'_, f64>,
        given: Option<MatRef<'_, f64>>,
    ) -> Result<LatentMarginals, GpError> {
        self.check_points(x, given)?;
        let functions = self.functions();
        let mut out = LatentMarginals {
            mean: Mat::zeros(x.nrows(), functions),
            variance: Mat::zeros(x.nrows(), functions),
            clipped: 0,
        };
        for rows in pieces(x.nrows(), BLOCK) {
            let points = x.subrows(rows.start, rows.len());
            let known = self.known(points)?;
            let given = given.map(|given| given.subrows(rows.start, rows.len()));
            let (means, variances, clipped) = self.marginals_of(points, &known, given)?;
            out.clipped += clipped;
            out.mean.as_mut().subrows_mut(rows.start, rows.len()).copy_from(&means);
            out.variance.as_mut().subrows_mut(rows.start, rows.len()).copy_from(&variances);
        }
        Ok(out)
    }

    /// The same of rows of which is known what does not change: means and variances (b x C each), and how many were clipped.
    pub(super) fn marginals_of(
        &self,
        x: MatRef<'_, f64>,
        known: &KnownRows,
        given: Option<MatRef<'_, f64>>,
    ) -> Result<(Mat<f64>, Mat<f64>, usize), GpError> {
        let features = |c: usize| &known.of[self.place(c)].features;
        let mut means = self.mean.means(x, self.prior_means(known), features)?;
        if let Some(given) = given {
            means += given;
        }
        let mut variances = Mat::zeros(x.nrows(), self.functions());
        let mut clipped = known.clipped();
        for c in 0..self.functions() {
            let evaluated = self.kernels[c].at(self.reference(c), &known.of[self.place(c)], x)?;
            clipped += evaluated.floored();
            let own = variances.col_as_slice_mut(c).iter_mut().zip(&evaluated.variances);
            own.for_each(|(out, v)| *out = self.tempering[c] * v);
        }
        Ok((means, variances, clipped))
    }

    /// The joint covariance of function c at the rows of x, k x k, tempered. Cost `k² M` flops, and `k³/3` of the fixed sparse family, which need not be a covariance. Variances that are zero but for rounding are raised to their floor.
    ///
    /// # Errors
    /// As [`Self::latent`]; [`GeneralisedError::NoCovariance`].
    pub fn covariance(&self, x: MatRef<'_, f64>, c: usize) -> Result<Mat<f64>, GpError> {
        self.check_points(x, None)?;
        let known = self.known(x)?;
        let evaluated = self.kernels[c].at(self.reference(c), &known.of[self.place(c)], x)?;
        let mut covariance = evaluated.covariance();
        let is_fixed = self.kernels[c].family() == Family::FixedSparsePosterior;
        // What is below zero by more than its floor is above it is no rounding.
        if is_fixed && (0..x.nrows()).any(|i| covariance[(i, i)] < -evaluated.variances[i]) {
            return Err(GeneralisedError::NoCovariance { points: x.nrows() }.into());
        }
        // A variance below its floor would make the matrix indefinite by more than rounding.
        for i in 0..x.nrows() {
            covariance[(i, i)] = f64::max(covariance[(i, i)], evaluated.variances[i]);
        }
        if is_fixed {
            Cholesky::of(covariance.as_ref(), JitterPolicy::default()).map_err(|error| match error {
                CholeskyError::NotPositiveDefinite { .. } => {
                    GpError::from(GeneralisedError::NoCovariance { points: x.nrows() })
                }
                other => other.into(),
            })?;
        }
        Ok(covariance * faer::Scale(self.tempering[c]))
    }

    /// Variational means at the rows of x, k x C, without those that are given.
    ///
    /// # Errors
    /// As [`Self::latent`].
    pub fn means(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        self.check_points(x, None)?;
        if let VariationalMean::Embedding(map) = &self.mean {
            return Ok(map.embedded(x)?);
        }
        let known = self.known(x)?;
        self.mean.means(x, self.prior_means(&known), |c| &known.of[self.place(c)].features)
    }

    fn noise_variance(&self) -> Result<f64, GpError> {
        let likelihood = self.likelihood.name();
        self.likelihood.shared_noise_variance().ok_or(InducingError::NotGaussian { likelihood }.into())
    }
}

/// Answers for one function under Gaussian noise (draws under any likelihood), without means that are given; [`GeneralisedGp::latent`] is for all.
impl Posterior for GeneralisedGp {
    fn predict(&self, x: MatRef<'_, f64>) -> Result<Prediction, GpError> {
        let noise_variance = self.noise_variance()?;
        same_width("functions of a Gaussian posterior", 1, self.functions())?;
        let LatentMarginals { mean, variance, clipped } = self.latent(x, None)?;
        Ok(Prediction { mean, latent_variance: variance.col_as_slice(0).to_vec(), noise_variance, clipped })
    }

    fn joint(&self, x: MatRef<'_, f64>) -> Result<JointPrediction, GpError> {
        self.noise_variance()?;
        Ok(JointPrediction { mean: self.means(x)?, covariance: self.covariance(x, 0)? })
    }

    fn sample(
        &self,
        x: MatRef<'_, f64>,
        target: usize,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Mat<f64>, f64), GpError> {
        if target >= self.functions() {
            let (expected, actual) = (target + 1, self.functions());
            return Err(GpError::Shape { what: "targets of the model", expected, actual });
        }
        let (mean, covariance) = (self.means(x)?, self.covariance(x, target)?);
        let factored = Cholesky::of(covariance.as_ref(), JitterPolicy::default())?;
        let white = Mat::from_fn(x.nrows(), count, |_, _| StandardNormal.sample(rng));
        let mut draws = factored.multiply_factor(white.as_ref());
        for j in 0..count {
            let values = draws.col_as_slice_mut(j).iter_mut();
            values.zip(mean.col_as_slice(target)).for_each(|(d, m)| *d += m);
        }
        Ok((draws, factored.info().jitter))
    }
}
