//! The model of a collapsed bound.

use crate::data::same_width;
use crate::inducing::SparseGp;
use crate::{GpError, MeanForm, Observations};
use faer::Mat;
use posterior_kernels::Kernel;
use posterior_likelihoods::Gaussian;

/// A Gaussian process with Gaussian noise that is summarised at m inducing inputs.
pub type CollapsedGp = SparseGp<Gaussian>;

impl CollapsedGp {
    /// A process for `targets` outputs that share kernel, noise and inducing inputs (m x D).
    ///
    /// # Errors
    /// [`GpError::Empty`] or [`GpError::NotFinite`] for unusable inducing inputs, [`GpError::Empty`] for no targets.
    pub fn new(
        kernel: Box<dyn Kernel<f64>>,
        mean: MeanForm,
        noise: Gaussian,
        inducing: Mat<f64>,
        targets: usize,
    ) -> Result<Self, GpError> {
        Self::with_latents(kernel, mean, noise, inducing, targets, targets)
    }

    pub(super) fn check_widths(&self, data: &Observations) -> Result<(), GpError> {
        same_width("columns of the inputs", self.inducing.ncols(), data.inputs().ncols())?;
        data.plain()?;
        same_width("columns of the targets", self.mean.target_count(), data.targets().ncols())
    }
}
