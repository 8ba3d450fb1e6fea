//! The posterior: predictions, joint covariances, samples, leave-one-out.

use super::evidence::value_of;
use super::leave_one_out::{LeaveOneOut, log_score};
use super::model::{ExactGp, Factored};
use super::weighted::gained;
use crate::data::{check_finite, same_width};
use crate::prediction::{run_means, runs_of};
use crate::{Averages, GpError, JointPrediction, Observations, Posterior, Prediction};
use faer::{Mat, MatRef};
use posterior_kernels::{cross, diagonal, gram};
use posterior_linalg::cholesky::{Cholesky, CholeskyInfo};
use posterior_linalg::random::ChaCha8Rng;
use posterior_linalg::tiles::pieces;
use rand_distr::{Distribution, StandardNormal};

/// Test points handled at a time: bounds the extra memory of a prediction to `8 · 512 n` bytes.
const BLOCK: usize = 512;

/// An exact Gaussian process conditioned on observations.
#[derive(Clone, Debug)]
pub struct ExactPosterior {
    pub(super) model: ExactGp,
    pub(super) data: Observations,
    pub(super) cholesky: Cholesky,
    /// `α = K̃⁻¹ (y - m(X))`, n x t.
    pub(super) weights: Mat<f64>,
}

impl ExactGp {
    /// Conditions on observations. Cost `n³/3` flops, `8n²` bytes.
    ///
    /// # Errors
    /// [`GpError::Cholesky`] when `K̃` is not positive definite, [`GpError::Shape`] when widths differ.
    pub fn condition(self, data: Observations) -> Result<ExactPosterior, GpError> {
        self.condition_in(data, None)
    }

    /// As [`ExactGp::condition`], in an n x n buffer that is no longer needed.
    pub(super) fn condition_in(
        self,
        data: Observations,
        buffer: Option<Mat<f64>>,
    ) -> Result<ExactPosterior, GpError> {
        let Factored { cholesky, weights, .. } = self.factor(&data, buffer)?;
        Ok(ExactPosterior { model: self, data, cholesky, weights })
    }
}

impl ExactPosterior {
    /// A posterior from parts that were computed before (a model file): nothing is recomputed, so predictions
    /// are equal to the last bit.
    ///
    /// # Errors
    /// [`GpError::Shape`] when the parts do not fit together.
    pub fn from_parts(
        model: ExactGp,
        data: Observations,
        cholesky: Cholesky,
        weights: Mat<f64>,
    ) -> Result<Self, GpError> {
        same_width("rows of the factor", data.rows(), cholesky.dimension())?;
        same_width("rows of the weights", data.rows(), weights.nrows())?;
        same_width("columns of the weights", data.targets().ncols(), weights.ncols())?;
        same_width("columns of the inputs", model.mean().input_dimension(), data.inputs().ncols())?;
        Ok(Self { model, data, cholesky, weights })
    }

    /// The model.
    pub fn model(&self) -> &ExactGp {
        &self.model
    }

    /// What it was conditioned on.
    pub fn data(&self) -> &Observations {
        &self.data
    }

    /// The factor of `K̃`.
    pub fn cholesky(&self) -> &Cholesky {
        &self.cholesky
    }

    /// The representer weights `α`, n x t.
    pub fn weights(&self) -> MatRef<'_, f64> {
        self.weights.as_ref()
    }

    /// What the factorisation needed.
    pub fn info(&self) -> CholeskyInfo {
        self.cholesky.info()
    }

    /// The log evidence of the observations, summed over targets. Cost `O(n)`: the factor is there.
    pub fn log_evidence(&self) -> f64 {
        let residuals = self.data.targets() - self.model.mean().evaluate(self.data.inputs());
        let of_weights = gained(&self.model, &self.data).0 * self.weights.ncols() as f64;
        value_of(&self.cholesky, &residuals, &self.weights) + of_weights
    }

    /// Each training row predicted from all the others, in closed form, as one observation whatever its weight. Cost `n³/3` flops.
    pub fn leave_one_out(&self) -> LeaveOneOut {
        let noise: Vec<f64> =
            (0..self.data.rows()).map(|i| self.model.noise_variance_of_row(&self.data, i)).collect();
        let mut own = LeaveOneOut::new(&self.cholesky, &self.weights, self.data.targets(), &noise);
        if self.data.weights().is_some() {
            let observed = |i: usize| self.model.noise_variance_of_observation(&self.data, i);
            own.variance = own.latent_variance.iter().enumerate().map(|(i, v)| v + observed(i)).collect();
            own.log_score = log_score(&own, self.data.targets());
        }
        own
    }

    fn check(&self, x: MatRef<'_, f64>) -> Result<(), GpError> {
        same_width("columns of the inputs to predict", self.data.inputs().ncols(), x.ncols())?;
        check_finite("input", x)
    }

    /// `m(x) + k(x, X) α` and `L⁻¹ k(X, x)`.
    fn mean_and_whitened(&self, x: MatRef<'_, f64>) -> (Mat<f64>, Mat<f64>) {
        let mut whitened = cross(self.model.kernel(), self.data.inputs(), x);
        let mean = self.model.mean().evaluate(x) + whitened.transpose() * &self.weights;
        self.cholesky.solve_factor_in_place(whitened.as_mut());
        (mean, whitened)
    }
}

impl Posterior for ExactPosterior {
    /// Cost `n²` flops a point, in blocks of 512 points.
    fn predict(&self, x: MatRef<'_, f64>) -> Result<Prediction, GpError> {
        self.check(x)?;
        let m = x.nrows();
        let mut mean = Mat::zeros(m, self.weights.ncols());
        let mut latent_variance = diagonal(self.model.kernel(), x);
        let mut clipped = 0;
        for start in (0..m).step_by(BLOCK) {
            let width = BLOCK.min(m - start);
            let (block_mean, whitened) = self.mean_and_whitened(x.subrows(start, width));
            mean.as_mut().subrows_mut(start, width).copy_from(&block_mean);
            for j in 0..width {
                let variance = &mut latent_variance[start + j];
                *variance -= whitened.col(j).squared_norm_l2();
                if *variance < 0.0 {
                    *variance = 0.0;
                    clipped += 1;
                }
            }
        }
        Ok(Prediction { mean, latent_variance, noise_variance: self.model.noise().noise_variance(), clipped })
    }

    /// Cost `O(n D)` a point: no variance is solved for.
    fn mean_values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        self.check(x)?;
        let mut mean = self.model.mean().evaluate(x);
        for rows in pieces(x.nrows(), BLOCK) {
            let across = cross(self.model.kernel(), self.data.inputs(), x.subrows(rows.start, rows.len()));
            let mut block = mean.as_mut().subrows_mut(rows.start, rows.len());
            block += across.transpose() * &self.weights;
        }
        Ok(mean)
    }

    /// By the averages of `k(X, x)` over each run: one solve of `n²` flops for each run and not for each point.
    fn averages(&self, x: MatRef<'_, f64>, each: usize) -> Result<Averages, GpError> {
        self.check(x)?;
        let (runs, kernel) = (runs_of(x.nrows(), each)?, self.model.kernel());
        let mut across = Mat::zeros(self.data.rows(), runs);
        let mut variance = Vec::with_capacity(runs);
        for run in 0..runs {
            let points = x.subrows(run * each, each);
            let block = cross(kernel, points, self.data.inputs());
            let averaged = run_means(block.as_ref(), each);
            across.col_mut(run).iter_mut().zip(averaged.row(0).iter()).for_each(|(a, v)| *a = *v);
            variance
                .push(run_means(run_means(gram(kernel, points).as_ref(), each).transpose(), each)[(0, 0)]);
        }
        let mean =
            run_means(self.model.mean().evaluate(x).as_ref(), each) + across.transpose() * &self.weights;
        self.cholesky.solve_factor_in_place(across.as_mut());
        for (run, variance) in variance.iter_mut().enumerate() {
            *variance = (*variance - across.col(run).squared_norm_l2()).max(0.0);
        }
        Ok(Averages { mean, variance })
    }

    /// Cost `n²m + nm²` flops.
    fn joint(&self, x: MatRef<'_, f64>) -> Result<JointPrediction, GpError> {
        self.check(x)?;
        let (mean, whitened) = self.mean_and_whitened(x);
        let covariance = gram(self.model.kernel(), x) - whitened.transpose() * &whitened;
        Ok(JointPrediction { mean, covariance })
    }

    /// Cost `m³/3` flops on top of the joint prediction.
    fn sample(
        &self,
        x: MatRef<'_, f64>,
        target: usize,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Mat<f64>, f64), GpError> {
        let targets = self.weights.ncols();
        if target >= targets {
            return Err(GpError::Shape {
                what: "targets of the model",
                expected: target + 1,
                actual: targets,
            });
        }
        let JointPrediction { mean, covariance } = self.joint(x)?;
        let factored = Cholesky::of(covariance.as_ref(), self.model.jitter)?;
        let white = Mat::from_fn(x.nrows(), count, |_, _| StandardNormal.sample(rng));
        let mut draws = factored.multiply_factor(white.as_ref());
        for j in 0..count {
            draws.as_mut().col_mut(j).iter_mut().zip(mean.col(target).iter()).for_each(|(d, m)| *d += m);
        }
        Ok((draws, factored.info().jitter))
    }
}
