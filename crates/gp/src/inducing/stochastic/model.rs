//! The model of a stochastic bound.

use crate::data::same_width;
use crate::inducing::collapsed::CollapsedGp;
use crate::inducing::posterior::check_targets;
use crate::inducing::{InducingDistribution, InducingError, InducingPosterior, Plan, SparseGp};
use crate::{GpError, MeanForm, RowSource};
use faer::Mat;
use posterior_kernels::Kernel;
use posterior_likelihoods::{Gaussian, Likelihood};
use posterior_linalg::tiles::pieces;

/// Rows whose targets are looked at together.
const CHECKED: usize = 4096;

/// C latent Gaussian processes with one kernel, summarised at m inducing inputs, behind a likelihood.
pub type StochasticGp = SparseGp<Box<dyn Likelihood>>;

impl StochasticGp {
    /// A model with a latent function for each of the likelihood's latent values and inducing inputs m x D.
    ///
    /// # Errors
    /// [`GpError::Empty`] or [`GpError::NotFinite`] for unusable inducing inputs.
    pub fn new(
        kernel: Box<dyn Kernel<f64>>,
        mean: MeanForm,
        likelihood: Box<dyn Likelihood>,
        inducing: Mat<f64>,
    ) -> Result<Self, GpError> {
        let (target_width, latents) = (likelihood.target_width(), likelihood.outputs());
        Self::with_latents(kernel, mean, likelihood, inducing, target_width, latents)
    }

    /// A distribution of inducing values to begin with: the prior.
    pub fn prior(&self) -> InducingDistribution {
        InducingDistribution::prior(self.inducing.nrows(), self.latents(), self.roots() == 1)
    }

    /// The same prior, noise and inducing inputs with the inducing values integrated out, for Gaussian noise that all outputs share: [`CollapsedGp::condition`] has, by one pass over all rows, the best
    /// distribution of inducing values where steps on batches leave one that the last of them pulled about. None for other likelihoods.
    pub fn collapsed(&self) -> Option<CollapsedGp> {
        let noise = Gaussian::new(self.likelihood.shared_noise_variance()?, 0.0);
        Some(CollapsedGp {
            kernel: self.kernel.clone_box(),
            mean: self.mean.clone(),
            likelihood: noise,
            inducing: self.inducing.clone(),
            target_width: self.target_width,
            learn_hyperparameters: self.learn_hyperparameters,
            learn_likelihood: self.learn_likelihood,
            learn_inducing: self.learn_inducing,
            jitter: self.jitter,
            policy: self.policy,
        })
    }

    /// Covariances of a distribution of inducing values: Gaussian noise that all outputs share needs one only.
    pub(super) fn roots(&self) -> usize {
        self.likelihood.shared_noise_variance().map_or(self.latents(), |_| 1)
    }

    /// What a fit to so many rows in batches of `batch` will take.
    pub fn plan(&self, rows: usize, batch: usize) -> Plan {
        let (m, inputs) = (self.inducing.nrows(), self.inducing.ncols());
        Plan::stochastic(rows, inputs, self.target_width, m, self.latents(), self.roots(), batch)
    }

    /// Whether the data fit the model; looks at every target once, a few thousand at a time.
    ///
    /// # Errors
    /// [`GpError::Shape`], [`InducingError::Target`] or [`InducingError::RowNoise`]; [`GpError::Rows`] where rows cannot be had.
    pub fn check(&self, data: &dyn RowSource) -> Result<(), GpError> {
        let [inputs, targets] = data.widths();
        same_width("columns of the inputs", self.inducing.ncols(), inputs)?;
        same_width("columns of the targets", self.target_width, targets)?;
        if data.has_row_noise() && self.likelihood.with_row_noise(0.0).is_none() {
            return Err(InducingError::RowNoise { likelihood: self.likelihood.name() }.into());
        }
        for rows in pieces(data.rows(), CHECKED) {
            let start = rows.start;
            let block = data.block(rows)?;
            check_targets(&*self.likelihood, block.targets()).map_err(|error| match error {
                InducingError::Target { row, error } => InducingError::Target { row: start + row, error },
                other => other,
            })?;
        }
        Ok(())
    }

    pub(super) fn check_distribution(&self, distribution: &InducingDistribution) -> Result<(), GpError> {
        same_width("inducing values", self.inducing.nrows(), distribution.rank())?;
        same_width("latent functions", self.latents(), distribution.latents())
    }

    /// The posterior with the given distribution of inducing values. Cost `m³/3` flops.
    ///
    /// # Errors
    /// [`GpError::Cholesky`] when `K_ZZ` cannot be factored, [`GpError::Shape`] when sizes differ.
    pub fn posterior(&self, distribution: InducingDistribution) -> Result<InducingPosterior, GpError> {
        InducingPosterior::from_parts(
            self.kernel.clone_box(),
            self.mean.clone(),
            self.likelihood.clone(),
            self.inducing.clone(),
            self.whitening()?.cholesky,
            distribution,
        )
    }
}
