//! What both bounds depend on: the prior, the likelihood, and where the inducing points are.

use super::DEFAULT_JITTER;
use crate::data::check_finite;
use crate::{GpError, Mean, MeanForm};
use faer::{Mat, MatRef};
use posterior_kernels::Kernel;
use posterior_kernels::inducing::Whitening;
use posterior_linalg::cholesky::JitterPolicy;
use posterior_optim::{Parameters, Segment, Transform};

/// C latent Gaussian processes with one kernel, summarised at m inducing inputs, behind a likelihood L.
///
/// Its parameters are those of the kernel, of the means, of the likelihood (all fixed unless
/// [`learn_hyperparameters`](Self::learn_hyperparameters), the last also unless [`learn_likelihood`](Self::learn_likelihood)) and `inducing_inputs` (m x D, by columns; fixed unless
/// [`learn_inducing`](Self::learn_inducing)).
#[derive(Debug)]
pub struct SparseGp<L> {
    pub(super) kernel: Box<dyn Kernel<f64>>,
    pub(super) mean: Mean,
    pub(super) likelihood: L,
    pub(super) inducing: Mat<f64>,
    pub(super) target_width: usize,
    /// Whether a fit moves kernel, means and likelihood.
    pub learn_hyperparameters: bool,
    /// Whether a fit that moves hyperparameters moves those of the likelihood, too.
    pub learn_likelihood: bool,
    /// Whether a fit moves the inducing inputs.
    pub learn_inducing: bool,
    /// Always added to the diagonal of `K_ZZ`, relative to its mean. The result is still a bound: that for inducing values
    /// seen through a little noise.
    pub jitter: f64,
    /// What to do when `K_ZZ` is still not numerically positive definite.
    pub policy: JitterPolicy,
}

impl<L: Clone> Clone for SparseGp<L> {
    fn clone(&self) -> Self {
        Self {
            kernel: self.kernel.clone_box(),
            mean: self.mean.clone(),
            likelihood: self.likelihood.clone(),
            inducing: self.inducing.clone(),
            ..*self
        }
    }
}

impl<L> SparseGp<L> {
    /// A model with `latents` latent functions for targets of `target_width` numbers, with inducing inputs m x D.
    ///
    /// # Errors
    /// [`GpError::Empty`] or [`GpError::NotFinite`] for unusable inducing inputs, [`GpError::Empty`] for no targets.
    pub(super) fn with_latents(
        kernel: Box<dyn Kernel<f64>>,
        mean: MeanForm,
        likelihood: L,
        inducing: Mat<f64>,
        target_width: usize,
        latents: usize,
    ) -> Result<Self, GpError> {
        if inducing.nrows() == 0 {
            return Err(GpError::Empty { what: "the set of inducing inputs" });
        }
        if target_width == 0 {
            return Err(GpError::Empty { what: "the set of targets" });
        }
        check_finite("inducing input", inducing.as_ref())?;
        Ok(Self {
            kernel,
            mean: Mean::new(mean, inducing.ncols(), latents),
            likelihood,
            inducing,
            target_width,
            learn_hyperparameters: true,
            learn_likelihood: true,
            learn_inducing: true,
            jitter: DEFAULT_JITTER,
            policy: JitterPolicy::default(),
        })
    }

    /// The covariance function of all latent functions.
    pub fn kernel(&self) -> &dyn Kernel<f64> {
        &*self.kernel
    }

    /// The prior means.
    pub fn mean(&self) -> &Mean {
        &self.mean
    }

    /// How observations scatter.
    pub fn likelihood(&self) -> &L {
        &self.likelihood
    }

    /// Inducing inputs, m x D.
    pub fn inducing(&self) -> MatRef<'_, f64> {
        self.inducing.as_ref()
    }

    /// Number of latent functions, C.
    pub fn latents(&self) -> usize {
        self.mean.target_count()
    }

    pub(super) fn whitening(&self) -> Result<Whitening, GpError> {
        Ok(Whitening::new(self.kernel(), self.inducing(), self.jitter, self.policy)?)
    }
}

impl<L: Parameters> Parameters for SparseGp<L> {
    fn segments(&self) -> Vec<Segment> {
        let mut likelihood = self.likelihood.segments();
        if !self.learn_likelihood {
            likelihood.iter_mut().for_each(|segment| segment.transform = Transform::Fixed);
        }
        let mut out = [self.kernel.segments(), self.mean.segments(), likelihood].concat();
        if !self.learn_hyperparameters {
            out.iter_mut().for_each(|segment| segment.transform = Transform::Fixed);
        }
        let transform = if self.learn_inducing { Transform::Identity } else { Transform::Fixed };
        let shape = vec![self.inducing.nrows(), self.inducing.ncols()];
        out.push(Segment { name: "inducing_inputs".into(), shape, transform });
        out
    }

    fn values(&self) -> Vec<f64> {
        let inducing = by_columns(&self.inducing);
        [self.kernel.values(), self.mean.values(), self.likelihood.values(), inducing].concat()
    }

    fn set_values(&mut self, values: &[f64]) {
        let (kernel, rest) = values.split_at(self.kernel.values().len());
        let (mean, rest) = rest.split_at(self.mean.values().len());
        let (likelihood, inducing) = rest.split_at(self.likelihood.values().len());
        self.kernel.set_values(kernel);
        self.mean.set_values(mean);
        self.likelihood.set_values(likelihood);
        let (m, d) = (self.inducing.nrows(), self.inducing.ncols());
        self.inducing.copy_from(MatRef::from_column_major_slice(inducing, m, d));
    }
}

/// The entries of a matrix, columns end to end.
pub(super) fn by_columns(matrix: &Mat<f64>) -> Vec<f64> {
    (0..matrix.ncols()).flat_map(|j| matrix.col_as_slice(j).iter().copied()).collect()
}
