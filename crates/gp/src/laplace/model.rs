//! The prior and the likelihood: everything that has hyperparameters.

use crate::data::same_width;
use crate::exact::Plan;
use crate::inducing::InducingError;
use crate::{GpError, Mean, MeanForm, Observations, parameters};
use posterior_kernels::Kernel;
use posterior_likelihoods::Likelihood;
use posterior_linalg::cholesky::JitterPolicy;
use posterior_optim::{Parameters, Segment};

/// Latent Gaussian processes with one kernel, one for each latent value of a likelihood.
///
/// Its parameters are those of the kernel, of the means, of the likelihood.
#[derive(Debug)]
pub struct LaplaceGp {
    pub(super) kernel: Box<dyn Kernel<f64>>,
    pub(super) mean: Mean,
    pub(super) likelihood: Box<dyn Likelihood>,
    /// What to do when a matrix is not numerically positive definite.
    pub jitter: JitterPolicy,
}

impl Clone for LaplaceGp {
    fn clone(&self) -> Self {
        Self {
            kernel: self.kernel.clone_box(),
            mean: self.mean.clone(),
            likelihood: self.likelihood.clone(),
            jitter: self.jitter,
        }
    }
}

impl LaplaceGp {
    /// For inputs of dimension `inputs`.
    pub fn new(
        kernel: Box<dyn Kernel<f64>>,
        mean: MeanForm,
        likelihood: Box<dyn Likelihood>,
        inputs: usize,
    ) -> Self {
        let mean = Mean::new(mean, inputs, likelihood.outputs());
        Self { kernel, mean, likelihood, jitter: JitterPolicy::default() }
    }

    /// The covariance function of all latent functions.
    pub fn kernel(&self) -> &dyn Kernel<f64> {
        &*self.kernel
    }

    /// The prior means, one for each latent function.
    pub fn mean(&self) -> &Mean {
        &self.mean
    }

    /// The likelihood.
    pub fn likelihood(&self) -> &dyn Likelihood {
        &*self.likelihood
    }

    /// Number of latent functions, C.
    pub fn latents(&self) -> usize {
        self.mean.target_count()
    }

    /// What a fit to so many rows takes.
    pub fn plan(&self, rows: usize) -> Plan {
        Plan::laplace(rows, self.mean.input_dimension(), self.latents(), !self.likelihood.is_diagonal())
    }

    /// Whether the data fit the model; looks at every target once.
    pub(super) fn check(&self, data: &Observations) -> Result<(), GpError> {
        same_width("columns of the inputs", self.mean.input_dimension(), data.inputs().ncols())?;
        same_width("columns of the targets", self.likelihood.target_width(), data.targets().ncols())?;
        if data.noise_variances().is_some() {
            return Err(InducingError::RowNoise { likelihood: self.likelihood.name() }.into());
        }
        self.likelihood.check_curvature()?;
        Ok(crate::inducing::check_targets(&*self.likelihood, data.targets())?)
    }
}

impl Parameters for LaplaceGp {
    fn segments(&self) -> Vec<Segment> {
        parameters::segments([&*self.kernel, &self.mean, &self.likelihood])
    }

    fn values(&self) -> Vec<f64> {
        parameters::values([&*self.kernel, &self.mean, &self.likelihood])
    }

    fn set_values(&mut self, values: &[f64]) {
        parameters::set_values([&mut *self.kernel, &mut self.mean, &mut self.likelihood], values);
    }
}
