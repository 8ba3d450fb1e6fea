//! The prior and the noise: everything that has hyperparameters.

use crate::{GpError, Mean, MeanForm, Observations, data::same_width, parameters};
use faer::prelude::ReborrowMut;
use faer::{Accum, Mat};
use posterior_kernels::{Kernel, gram_lower_into};
use posterior_likelihoods::Gaussian;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::multiply_into;
use posterior_optim::{Parameters, Segment};

/// A Gaussian process with Gaussian noise: kernel, mean, noise variance.
///
/// Its parameters are those of the kernel, then those of the mean, then `noise_variance`.
#[derive(Debug)]
pub struct ExactGp {
    kernel: Box<dyn Kernel<f64>>,
    mean: Mean,
    noise: Gaussian,
    /// What to do when `K̃` is not numerically positive definite.
    pub jitter: JitterPolicy,
}

impl Clone for ExactGp {
    fn clone(&self) -> Self {
        Self {
            kernel: self.kernel.clone_box(),
            mean: self.mean.clone(),
            noise: self.noise.clone(),
            jitter: self.jitter,
        }
    }
}

/// `K̃ = L Lᵀ`, the residuals `r = y - m(X)` and the weights `α = K̃⁻¹ r`, both n x t.
pub(super) struct Factored {
    pub(super) cholesky: Cholesky,
    pub(super) residuals: Mat<f64>,
    pub(super) weights: Mat<f64>,
}

impl ExactGp {
    /// A process for inputs of dimension `inputs` and `targets` outputs that share kernel and noise.
    pub fn new(
        kernel: Box<dyn Kernel<f64>>,
        mean: MeanForm,
        noise: Gaussian,
        inputs: usize,
        targets: usize,
    ) -> Self {
        Self { kernel, mean: Mean::new(mean, inputs, targets), noise, jitter: JitterPolicy::default() }
    }

    /// The covariance function.
    pub fn kernel(&self) -> &dyn Kernel<f64> {
        &*self.kernel
    }

    /// The prior mean.
    pub fn mean(&self) -> &Mean {
        &self.mean
    }

    /// The noise model.
    pub fn noise(&self) -> &Gaussian {
        &self.noise
    }

    /// Factors `K̃` in `buffer` (n x n, overwritten; allocated when absent or of another size) and solves for the weights.
    pub(super) fn factor(&self, data: &Observations, buffer: Option<Mat<f64>>) -> Result<Factored, GpError> {
        let n = data.rows();
        same_width("columns of the inputs", self.mean.input_dimension(), data.inputs().ncols())?;
        same_width("columns of the targets", self.mean.target_count(), data.targets().ncols())?;
        data.without_offsets()?;
        let buffer = buffer.filter(|b| b.nrows() == n && b.ncols() == n).unwrap_or_else(|| Mat::zeros(n, n));
        let cholesky = Cholesky::factor_with(buffer, self.jitter, |mut out| {
            gram_lower_into(self.kernel(), data.inputs(), out.rb_mut());
            for i in 0..n {
                out[(i, i)] += self.noise_variance_of_row(data, i);
            }
        })?;
        let residuals = data.targets() - self.mean.evaluate(data.inputs());
        let weights = cholesky.solve(residuals.as_ref());
        Ok(Factored { cholesky, residuals, weights })
    }

    /// The likelihood's noise variance plus the known one of row `i`, of all that the row counts as together.
    pub(super) fn noise_variance_of_row(&self, data: &Observations, i: usize) -> f64 {
        self.noise_variance_of_observation(data, i) / data.weights().map_or(1.0, |w| w[i])
    }

    /// The same of one observation.
    pub(super) fn noise_variance_of_observation(&self, data: &Observations, i: usize) -> f64 {
        self.noise.noise_variance() + data.noise_variances().map_or(0.0, |v| v[i])
    }

    /// Gradients of kernel, mean and noise laid end to end, as [`Parameters`] orders them.
    pub(super) fn gradient(&self, kernel: Vec<f64>, mean: Vec<f64>, noise: f64) -> Vec<f64> {
        let mut out = kernel;
        out.extend(mean);
        out.push(noise);
        out
    }
}

impl Parameters for ExactGp {
    fn segments(&self) -> Vec<Segment> {
        parameters::segments([&*self.kernel, &self.mean, &self.noise])
    }

    fn values(&self) -> Vec<f64> {
        parameters::values([&*self.kernel, &self.mean, &self.noise])
    }

    fn set_values(&mut self, values: &[f64]) {
        parameters::set_values([&mut *self.kernel, &mut self.mean, &mut self.noise], values);
    }
}

/// `A <- A + scale · B Cᵀ` on whole matrices, in parallel when they are large.
pub(super) fn add_outer(a: &mut Mat<f64>, b: &Mat<f64>, c: &Mat<f64>, scale: f64) {
    multiply_into(a.as_mut(), Accum::Add, b.as_ref(), c.transpose(), scale);
}
