//! The model of a collapsed bound.

use crate::data::same_width;
use crate::inducing::SparseGp;
use crate::{GpError, MeanForm, RowSource};
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

    pub(super) fn check_widths(&self, data: &dyn RowSource) -> Result<(), GpError> {
        let [inputs, targets] = data.widths();
        same_width("columns of the inputs", self.inducing.ncols(), inputs)?;
        same_width("columns of the targets", self.mean.target_count(), targets)
    }
}
