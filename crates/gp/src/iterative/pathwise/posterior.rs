//! The posterior as functions.

use super::condition::{Support, narrow};
use super::lanczos::CachedBasis;
use super::model::{PathwiseModel, PathwiseSettings};
use crate::data::{check_finite, same_width};
use crate::iterative::solver::Solution;
use crate::{GpError, JointPrediction, MeanForm, Observations, Posterior, Prediction};
use faer::{Mat, MatRef};
use posterior_kernels::features::PriorDrawGroups;
use posterior_kernels::matrix::{CrossMatrix, KernelMatrix};
use posterior_kernels::{Kernel, Request, pullback_tiles};
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::random::ChaCha8Rng;
use posterior_linalg::{PerPrecision, Real, compiled_here};
use posterior_optim::Parameters;
use rand::seq::index;
use std::sync::{Arc, Mutex};

/// Points handled at a time, which bounds the memory of predictions.
const BLOCK: usize = 4096;

/// A mean and s posterior samples, all of which are functions.
#[derive(Debug)]
pub struct PathwisePosterior<T: Real> {
    model: PathwiseModel<T>,
    data: Observations,
    support: Support,
    settings: PathwiseSettings,
    draws: Option<PriorDrawGroups<T>>,
    solution: Solution<T>,
    /// `k` at the support, for cross matrices; never stored.
    matrix: KernelMatrix<T>,
    /// The support's points.
    points: Mat<T>,
    /// The basis that variances by the Lanczos process were last computed with.
    pub(super) cached_basis: Mutex<Option<Arc<CachedBasis<T>>>>,
}

impl<T: Real> PathwisePosterior<T> {
    #[inline(never)]
    pub(super) fn new(
        model: PathwiseModel<T>,
        data: Observations,
        support: Support,
        settings: PathwiseSettings,
        draws: Option<PriorDrawGroups<T>>,
        solution: Solution<T>,
    ) -> Self {
        let points = match &support {
            Support::Rows(_) => narrow(data.inputs()),
            Support::Inducing(z, _) => narrow(z.as_ref()),
        };
        let matrix = KernelMatrix::new(&*model.kernel, points.as_ref());
        let cached_basis = Mutex::new(None);
        Self { model, data, support, settings, draws, solution, matrix, points, cached_basis }
    }

    #[allow(clippy::type_complexity)]
    pub(super) fn into_inner(
        self,
    ) -> (PathwiseModel<T>, Observations, Support, PathwiseSettings, Option<PriorDrawGroups<T>>, Solution<T>)
    {
        (self.model, self.data, self.support, self.settings, self.draws, self.solution)
    }

    /// The model.
    pub fn model(&self) -> &PathwiseModel<T> {
        &self.model
    }

    /// What it was conditioned on.
    pub fn data(&self) -> &Observations {
        &self.data
    }

    /// Which points carry the weights.
    pub fn support(&self) -> &Support {
        &self.support
    }

    /// How it was conditioned.
    pub fn settings(&self) -> &PathwiseSettings {
        &self.settings
    }

    /// How the solve ended; its weights are α (a column for each target) and u (a column for each sample).
    pub fn solution(&self) -> &Solution<T> {
        &self.solution
    }

    /// The prior functions of the samples.
    pub fn draws(&self) -> Option<&PriorDrawGroups<T>> {
        self.draws.as_ref()
    }

    /// The support's points (rows or inducing inputs) in the kernel's precision.
    pub fn points(&self) -> MatRef<'_, T> {
        self.points.as_ref()
    }

    fn targets(&self) -> usize {
        self.data.targets().ncols()
    }

    pub(super) fn check(&self, x: MatRef<'_, f64>) -> Result<(), GpError> {
        same_width("columns of the inputs to predict", self.data.inputs().ncols(), x.ncols())?;
        check_finite("input", x)
    }

    fn check_target(&self, target: usize) -> Result<(), GpError> {
        let actual = self.targets();
        if target < actual {
            return Ok(());
        }
        Err(GpError::Shape { what: "targets of the model", expected: target + 1, actual })
    }

    fn check_samples(&self, wanted: usize) -> Result<&PriorDrawGroups<T>, GpError> {
        let actual = self.settings.samples;
        match &self.draws {
            Some(draws) if wanted <= actual => Ok(draws),
            _ => Err(GpError::Shape { what: "samples of the posterior", expected: wanted, actual }),
        }
    }

    /// The mean of each target at m points, m x t. Cost `m n (D + t)`.
    ///
    /// # Errors
    /// [`GpError::Shape`] when the width is wrong, [`GpError::NotFinite`].
    pub fn mean(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        compiled_here!(T: Real, PerPrecision; ['a] mean, (posterior: &'a PathwisePosterior<T> = self, x: MatRef<'a, f64> = x) -> Result<Mat<f64>, GpError>)
    }

    /// Means (m x t) and zero-mean parts of the samples `f_j(x) - k(x, X) u_j` (m x s), by one product.
    ///
    /// # Errors
    /// As [`Self::mean`], and [`GpError::Shape`] without samples.
    pub fn mean_and_deviations(&self, x: MatRef<'_, f64>) -> Result<(Mat<f64>, Mat<f64>), GpError> {
        compiled_here!(T: Real, PerPrecision; ['a] mean_and_deviations, (
            posterior: &'a PathwisePosterior<T> = self,
            x: MatRef<'a, f64> = x,
        ) -> Result<(Mat<f64>, Mat<f64>), GpError>)
    }

    /// Latent variances at m points, means of squares of the zero-mean samples, and their relative standard error: that of finitely many samples and that of
    /// finitely many random features together, as groups of samples with features of their own differ from one another. None where there is one group.
    ///
    /// With group means `v_g` the error of their mean v is `(G (G - 1))^-½ ‖v_g - v‖`; its squares relative to `v²` are averaged over the points.
    ///
    /// # Errors
    /// As [`Self::mean_and_deviations`].
    pub fn variance_and_error(&self, x: MatRef<'_, f64>) -> Result<(Vec<f64>, Option<f64>), GpError> {
        let (_, deviations) = self.mean_and_deviations(x)?;
        let groups: Vec<_> = self.check_samples(1)?.ranges().collect();
        let of = |i: usize, range: &std::ops::Range<usize>| {
            range.clone().map(|j| deviations[(i, j)].powi(2)).sum::<f64>() / range.len() as f64
        };
        let count = groups.len() as f64;
        let mut squares = 0.0;
        let mut variances = Vec::with_capacity(x.nrows());
        for i in 0..x.nrows() {
            let variance = of(i, &(0..deviations.ncols()));
            let spread: f64 = groups.iter().map(|g| (of(i, g) - variance).powi(2)).sum();
            squares += spread / (count * (count - 1.0)) / variance.powi(2).max(f64::MIN_POSITIVE);
            variances.push(variance);
        }
        let error = (groups.len() > 1 && x.nrows() > 0).then(|| (squares / x.nrows() as f64).sqrt());
        Ok((variances, error))
    }

    /// All samples of one target at m points, m x s.
    ///
    /// # Errors
    /// As [`Self::mean_and_deviations`], and [`GpError::Shape`] for a target that does not exist.
    pub fn samples(&self, x: MatRef<'_, f64>, target: usize) -> Result<Mat<f64>, GpError> {
        self.check_target(target)?;
        let (mean, mut out) = self.mean_and_deviations(x)?;
        for j in 0..out.ncols() {
            out.col_mut(j).iter_mut().zip(mean.col(target).iter()).for_each(|(o, m)| *o += m);
        }
        Ok(out)
    }

    /// At point i the sample `which[i]` of one target alone (m). Cost `m (n D + d D)`, whatever s.
    ///
    /// # Errors
    /// As [`Self::samples`], and [`GpError::Shape`] for a sample that does not exist.
    pub fn samples_of(
        &self,
        x: MatRef<'_, f64>,
        target: usize,
        which: &[usize],
    ) -> Result<Vec<f64>, GpError> {
        compiled_here!(T: Real, PerPrecision; ['a] samples_of, (
            posterior: &'a PathwisePosterior<T> = self,
            x: MatRef<'a, f64> = x,
            target: usize = target,
            which: &'a [usize] = which,
        ) -> Result<Vec<f64>, GpError>)
    }

    /// The gradient at point i of the sample `which[i]` of one target, m x D. Cost as [`Self::samples_of`], times about two.
    ///
    /// # Errors
    /// As [`Self::samples_of`], and [`GpError::Features`] for kernels whose features are not differentiable.
    pub fn sample_gradients(
        &self,
        x: MatRef<'_, f64>,
        target: usize,
        which: &[usize],
    ) -> Result<Mat<f64>, GpError> {
        compiled_here!(T: Real, PerPrecision; ['a] sample_gradients, (
            posterior: &'a PathwisePosterior<T> = self,
            x: MatRef<'a, f64> = x,
            target: usize = target,
            which: &'a [usize] = which,
        ) -> Result<Mat<f64>, GpError>)
    }

    /// The slope of the prior mean of one target (D), if it has one.
    fn mean_slope(&self, target: usize) -> Option<Vec<f64>> {
        let mean = &self.model.mean;
        let d = mean.input_dimension();
        let start = mean.target_count() + target * d;
        (mean.form() == MeanForm::Linear).then(|| mean.values()[start..start + d].to_vec())
    }

    /// `α - u` of a target and a sample, n x 1.
    fn update_weights(&self, target: usize, sample: usize) -> Mat<T> {
        let (weights, t) = (&self.solution.weights, self.targets());
        Mat::from_fn(weights.nrows(), 1, |i, _| weights[(i, target)] - weights[(i, t + sample)])
    }

    fn check_which(
        &self,
        x: MatRef<'_, f64>,
        target: usize,
        which: &[usize],
    ) -> Result<&PriorDrawGroups<T>, GpError> {
        self.check(x)?;
        self.check_target(target)?;
        same_width("numbers of samples", x.nrows(), which.len())?;
        self.check_samples(which.iter().max().map_or(1, |largest| largest + 1))
    }

    /// `k(x, support)`, m x n, as an operator: for spectral analysis and acquisition functions.
    ///
    /// # Errors
    /// As [`Self::mean`].
    pub fn cross(&self, x: MatRef<'_, f64>) -> Result<CrossMatrix<T>, GpError> {
        self.check(x)?;
        Ok(self.matrix.cross(narrow::<T>(x).as_ref()))
    }

    /// The kernel.
    pub fn kernel(&self) -> &dyn Kernel<T> {
        &*self.model.kernel
    }
}

/// See [`PathwisePosterior::mean`].
fn mean<T: Real>(posterior: &PathwisePosterior<T>, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
    posterior.check(x)?;
    let mut out = posterior.model.mean.evaluate(x);
    let weights = posterior.solution.weights.get(.., ..posterior.targets());
    let product = posterior.matrix.cross(narrow::<T>(x).as_ref()).multiply(weights);
    for j in 0..out.ncols() {
        out.col_mut(j).iter_mut().zip(product.col(j).iter()).for_each(|(o, p)| *o += p.to_f64());
    }
    Ok(out)
}

/// See [`PathwisePosterior::mean_and_deviations`].
fn mean_and_deviations<T: Real>(
    posterior: &PathwisePosterior<T>,
    x: MatRef<'_, f64>,
) -> Result<(Mat<f64>, Mat<f64>), GpError> {
    posterior.check(x)?;
    let draws = posterior.check_samples(1)?;
    let (m, t) = (x.nrows(), posterior.targets());
    let mut mean = posterior.model.mean.evaluate(x);
    let mut deviations = Mat::zeros(m, draws.count());
    for start in (0..m).step_by(BLOCK) {
        let rows = BLOCK.min(m - start);
        let points = narrow::<T>(x.subrows(start, rows));
        let product = posterior.matrix.cross(points.as_ref()).multiply(posterior.solution.weights.as_ref());
        let prior = draws.values(points.as_ref());
        for i in 0..rows {
            for j in 0..t {
                mean[(start + i, j)] += product[(i, j)].to_f64();
            }
            for j in 0..draws.count() {
                deviations[(start + i, j)] = (prior[(i, j)] - product[(i, t + j)]).to_f64();
            }
        }
    }
    Ok((mean, deviations))
}

/// See [`PathwisePosterior::samples_of`].
fn samples_of<T: Real>(
    posterior: &PathwisePosterior<T>,
    x: MatRef<'_, f64>,
    target: usize,
    which: &[usize],
) -> Result<Vec<f64>, GpError> {
    let draws = posterior.check_which(x, target, which)?;
    let points = narrow::<T>(x);
    let mut out: Vec<f64> = draws.values_of(points.as_ref(), which).iter().map(|v| v.to_f64()).collect();
    let mean = posterior.model.mean.evaluate(x);
    out.iter_mut().enumerate().for_each(|(i, o)| *o += mean[(i, target)]);
    // Points of one sample share a product with one vector.
    for sample in 0..draws.count() {
        let mine: Vec<usize> = (0..which.len()).filter(|&i| which[i] == sample).collect();
        if mine.is_empty() {
            continue;
        }
        let block = Mat::from_fn(mine.len(), x.ncols(), |a, d| points[(mine[a], d)]);
        let weights = posterior.update_weights(target, sample);
        let product = posterior.matrix.cross(block.as_ref()).multiply(weights.as_ref());
        mine.iter().enumerate().for_each(|(a, &i)| out[i] += product[(a, 0)].to_f64());
    }
    Ok(out)
}

/// See [`PathwisePosterior::sample_gradients`].
fn sample_gradients<T: Real>(
    posterior: &PathwisePosterior<T>,
    x: MatRef<'_, f64>,
    target: usize,
    which: &[usize],
) -> Result<Mat<f64>, GpError> {
    let draws = posterior.check_which(x, target, which)?;
    let points = narrow::<T>(x);
    let prior = draws.gradients_of(points.as_ref(), which)?;
    let t = posterior.targets();
    let weights = &posterior.solution.weights;
    let kernel = pullback_tiles(
        &*posterior.model.kernel,
        points.as_ref(),
        posterior.points.as_ref(),
        &|rows, columns, mut tile| {
            for (b, k) in columns.enumerate() {
                for (a, i) in rows.clone().enumerate() {
                    tile[(a, b)] = weights[(k, target)] - weights[(k, t + which[i])];
                }
            }
        },
        Request { parameters: false, x: true, z: false },
    );
    let slope = posterior.mean_slope(target);
    Ok(Mat::from_fn(x.nrows(), x.ncols(), |i, d| {
        let update = kernel.x.as_ref().map_or(0.0, |g| g[(i, d)].to_f64());
        prior[(i, d)].to_f64() + update + slope.as_ref().map_or(0.0, |s| s[d])
    }))
}

impl<T: Real> Posterior for PathwisePosterior<T> {
    /// Variances are means of squares of the zero-mean samples: relative standard error `√(2/s)`. Memory: 4,096 points' samples at a time.
    fn predict(&self, x: MatRef<'_, f64>) -> Result<Prediction, GpError> {
        self.check(x)?;
        let mut mean = Mat::zeros(x.nrows(), self.targets());
        let mut latent_variance = vec![0.0; x.nrows()];
        for start in (0..x.nrows()).step_by(BLOCK) {
            let rows = BLOCK.min(x.nrows() - start);
            let (means, deviations) = self.mean_and_deviations(x.subrows(start, rows))?;
            mean.subrows_mut(start, rows).copy_from(means);
            let count = deviations.ncols() as f64;
            let variances = &mut latent_variance[start..start + rows];
            for j in 0..deviations.ncols() {
                variances.iter_mut().zip(deviations.col(j).iter()).for_each(|(v, d)| *v += d * d / count);
            }
        }
        Ok(Prediction {
            mean,
            latent_variance,
            noise_variance: self.model.noise.noise_variance(),
            clipped: 0,
        })
    }

    fn mean_values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        self.mean(x)
    }

    /// The covariance of the samples about the mean: of rank s at most.
    fn joint(&self, x: MatRef<'_, f64>) -> Result<JointPrediction, GpError> {
        let (mean, deviations) = self.mean_and_deviations(x)?;
        let scale = faer::Scale(1.0 / deviations.ncols() as f64);
        Ok(JointPrediction { covariance: &deviations * deviations.transpose() * scale, mean })
    }

    /// A random selection of the posterior's own samples, without repetition and without jitter.
    fn sample(
        &self,
        x: MatRef<'_, f64>,
        target: usize,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Mat<f64>, f64), GpError> {
        self.check_samples(count)?;
        let all = self.samples(x, target)?;
        let chosen = index::sample(rng, all.ncols(), count).into_vec();
        Ok((Mat::from_fn(x.nrows(), count, |i, j| all[(i, chosen[j])]), 0.0))
    }
}
