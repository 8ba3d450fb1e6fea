//! The prior, the likelihood and where the inducing points are.

use crate::data::{check_finite, same_width};
use crate::inducing::collapsed::by_columns;
use crate::inducing::posterior::check_targets;
use crate::inducing::whitening::Whitening;
use crate::inducing::{DEFAULT_JITTER, InducingDistribution, InducingError, InducingPosterior, Plan};
use crate::{GpError, Mean, MeanForm, Observations};
use faer::{Mat, MatRef};
use posterior_kernels::Kernel;
use posterior_likelihoods::VariationalLikelihood;
use posterior_linalg::cholesky::JitterPolicy;
use posterior_optim::{Parameters, Segment, Transform};

/// C latent Gaussian processes with one kernel, summarised at m inducing inputs, behind a likelihood.
///
/// Its parameters are those of the kernel, of the means, of the likelihood (all fixed unless
/// [`learn_hyperparameters`](Self::learn_hyperparameters)) and `inducing_inputs` (m x D, by columns; fixed unless
/// [`learn_inducing`](Self::learn_inducing)).
#[derive(Debug)]
pub struct StochasticGp {
    pub(super) kernel: Box<dyn Kernel<f64>>,
    pub(super) mean: Mean,
    pub(super) likelihood: VariationalLikelihood,
    pub(super) inducing: Mat<f64>,
    target_width: usize,
    /// Whether a fit moves kernel, means and likelihood.
    pub learn_hyperparameters: bool,
    /// Whether a fit moves the inducing inputs.
    pub learn_inducing: bool,
    /// Always added to the diagonal of `K_ZZ`, relative to its mean.
    pub jitter: f64,
    /// What to do when `K_ZZ` is still not numerically positive definite.
    pub policy: JitterPolicy,
}

impl Clone for StochasticGp {
    fn clone(&self) -> Self {
        Self {
            kernel: self.kernel.clone_box(),
            mean: self.mean.clone(),
            inducing: self.inducing.clone(),
            ..*self
        }
    }
}

impl StochasticGp {
    /// A model for targets of `target_width` numbers (1 for a class index) with inducing inputs m x D.
    ///
    /// # Errors
    /// [`GpError::Empty`] or [`GpError::NotFinite`] for unusable inducing inputs, [`GpError::Shape`] when a class index is not
    /// one number.
    pub fn new(
        kernel: Box<dyn Kernel<f64>>,
        mean: MeanForm,
        likelihood: VariationalLikelihood,
        inducing: Mat<f64>,
        target_width: usize,
    ) -> Result<Self, GpError> {
        if inducing.nrows() == 0 {
            return Err(GpError::Empty { what: "the set of inducing inputs" });
        }
        if target_width == 0 {
            return Err(GpError::Empty { what: "the set of targets" });
        }
        if matches!(likelihood, VariationalLikelihood::Softmax(_)) {
            same_width("numbers of a class index", 1, target_width)?;
        }
        check_finite("inducing input", inducing.as_ref())?;
        Ok(Self {
            kernel,
            mean: Mean::new(mean, inducing.ncols(), likelihood.latents(target_width)),
            likelihood,
            inducing,
            target_width,
            learn_hyperparameters: true,
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
    pub fn likelihood(&self) -> &VariationalLikelihood {
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

    /// A distribution of inducing values to begin with: the prior.
    pub fn prior(&self) -> InducingDistribution {
        let shared = self.likelihood.shares_covariance();
        InducingDistribution::prior(self.inducing.nrows(), self.latents(), shared)
    }

    /// What a fit to so many rows in batches of `batch` will take.
    pub fn plan(&self, rows: usize, batch: usize) -> Plan {
        let roots = if self.likelihood.shares_covariance() { 1 } else { self.latents() };
        let (m, inputs) = (self.inducing.nrows(), self.inducing.ncols());
        Plan::stochastic(rows, inputs, self.target_width, m, self.latents(), roots, batch)
    }

    /// Whether the data fit the model; looks at every target once.
    ///
    /// # Errors
    /// [`GpError::Shape`], [`InducingError::Target`] or [`InducingError::RowNoise`].
    pub fn check(&self, data: &Observations) -> Result<(), GpError> {
        same_width("columns of the inputs", self.inducing.ncols(), data.inputs().ncols())?;
        same_width("columns of the targets", self.target_width, data.targets().ncols())?;
        if data.noise_variances().is_some() && !matches!(self.likelihood, VariationalLikelihood::Gaussian(_))
        {
            return Err(InducingError::RowNoise { likelihood: self.likelihood.name() }.into());
        }
        Ok(check_targets(&self.likelihood, data.targets())?)
    }

    pub(super) fn check_distribution(&self, distribution: &InducingDistribution) -> Result<(), GpError> {
        same_width("inducing values", self.inducing.nrows(), distribution.inducing())?;
        same_width("latent functions", self.latents(), distribution.latents())
    }

    pub(super) fn whitening(&self) -> Result<Whitening, GpError> {
        Whitening::new(self.kernel(), self.inducing(), self.jitter, self.policy)
    }

    /// The posterior with the given distribution of inducing values. Cost `m³/3` flops.
    ///
    /// # Errors
    /// [`GpError::Cholesky`] when `K_ZZ` cannot be factored, [`GpError::Shape`] when sizes differ.
    pub fn posterior(&self, distribution: InducingDistribution) -> Result<InducingPosterior, GpError> {
        InducingPosterior::from_parts(
            self.kernel.clone_box(),
            self.mean.clone(),
            self.likelihood,
            self.inducing.clone(),
            self.whitening()?.cholesky,
            distribution,
        )
    }
}

impl Parameters for StochasticGp {
    fn segments(&self) -> Vec<Segment> {
        let mut out = [self.kernel.segments(), self.mean.segments(), self.likelihood.segments()].concat();
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
