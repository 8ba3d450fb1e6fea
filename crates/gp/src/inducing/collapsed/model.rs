//! The prior, the noise and where the inducing points are: everything that a collapsed bound depends on.

use crate::data::check_finite;
use crate::inducing::DEFAULT_JITTER;
use crate::{GpError, Mean, MeanForm, data::same_width};
use faer::{Mat, MatRef};
use posterior_kernels::Kernel;
use posterior_likelihoods::Gaussian;
use posterior_linalg::cholesky::JitterPolicy;
use posterior_optim::{Parameters, Segment, Transform};

/// A Gaussian process with Gaussian noise that is summarised at m inducing inputs.
///
/// Its parameters are those of the kernel, then those of the mean, then `noise_variance`, then `inducing_inputs` (m x D,
/// by columns; fixed unless [`learn_inducing`](Self::learn_inducing)).
#[derive(Debug)]
pub struct CollapsedGp {
    pub(super) kernel: Box<dyn Kernel<f64>>,
    pub(super) mean: Mean,
    pub(super) noise: Gaussian,
    pub(super) inducing: Mat<f64>,
    /// Whether a fit moves the inducing inputs.
    pub learn_inducing: bool,
    /// Always added to the diagonal of `K_ZZ`, relative to its mean. The result is still a bound: that for inducing values
    /// seen through a little noise.
    pub jitter: f64,
    /// What to do when `K_ZZ` is still not numerically positive definite.
    pub policy: JitterPolicy,
}

impl Clone for CollapsedGp {
    fn clone(&self) -> Self {
        Self {
            kernel: self.kernel.clone_box(),
            mean: self.mean.clone(),
            noise: self.noise,
            inducing: self.inducing.clone(),
            ..*self
        }
    }
}

impl CollapsedGp {
    /// A process for `targets` outputs that share kernel, noise and inducing inputs (m x D).
    ///
    /// # Errors
    /// [`GpError::Empty`] or [`GpError::NotFinite`] for unusable inducing inputs.
    pub fn new(
        kernel: Box<dyn Kernel<f64>>,
        mean: MeanForm,
        noise: Gaussian,
        inducing: Mat<f64>,
        targets: usize,
    ) -> Result<Self, GpError> {
        if inducing.nrows() == 0 {
            return Err(GpError::Empty { what: "the set of inducing inputs" });
        }
        check_finite("inducing input", inducing.as_ref())?;
        Ok(Self {
            kernel,
            mean: Mean::new(mean, inducing.ncols(), targets),
            noise,
            inducing,
            learn_inducing: true,
            jitter: DEFAULT_JITTER,
            policy: JitterPolicy::default(),
        })
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

    /// Inducing inputs, m x D.
    pub fn inducing(&self) -> MatRef<'_, f64> {
        self.inducing.as_ref()
    }

    pub(super) fn check(&self, data: &crate::Observations) -> Result<(), GpError> {
        same_width("columns of the inputs", self.inducing.ncols(), data.inputs().ncols())?;
        same_width("columns of the targets", self.mean.target_count(), data.targets().ncols())
    }
}

impl Parameters for CollapsedGp {
    fn segments(&self) -> Vec<Segment> {
        let transform = if self.learn_inducing { Transform::Identity } else { Transform::Fixed };
        let shape = vec![self.inducing.nrows(), self.inducing.ncols()];
        let inducing = Segment { name: "inducing_inputs".into(), shape, transform };
        [self.kernel.segments(), self.mean.segments(), self.noise.segments(), vec![inducing]].concat()
    }

    fn values(&self) -> Vec<f64> {
        let inducing = by_columns(&self.inducing);
        [self.kernel.values(), self.mean.values(), self.noise.values(), inducing].concat()
    }

    fn set_values(&mut self, values: &[f64]) {
        let (kernel, rest) = values.split_at(self.kernel.values().len());
        let (mean, rest) = rest.split_at(self.mean.values().len());
        let (noise, inducing) = rest.split_at(self.noise.values().len());
        self.kernel.set_values(kernel);
        self.mean.set_values(mean);
        self.noise.set_values(noise);
        let (m, d) = (self.inducing.nrows(), self.inducing.ncols());
        self.inducing.copy_from(MatRef::from_column_major_slice(inducing, m, d));
    }
}

/// The entries of a matrix, columns end to end.
pub(in crate::inducing) fn by_columns(matrix: &Mat<f64>) -> Vec<f64> {
    (0..matrix.ncols()).flat_map(|j| matrix.col_as_slice(j).iter().copied()).collect()
}
