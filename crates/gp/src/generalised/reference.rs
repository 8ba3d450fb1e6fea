//! **The process that regularises**, `P = GP(m_P, k)`: a prior whose hyperparameters were learned on the inducing points, or the exact posterior that it has given them.
//!
//! ```text
//! prior       m_P(x),                                    k(x, x)
//! posterior   m_P(x) + k(x, Z) (K_ZZ + σ² I)⁻¹ (U - m_Z),   k(x, x) - k(x, Z) (K_ZZ + σ² I)⁻¹ k(Z, x)      (5.8)
//! ```
//!
//! Its marginals do not change while the variational process is trained, so they are computed once for each row: O(1) each for the prior, O(M²) for the posterior.
//!
//! Source: spec `generalised_variational_inference`, sections 2.2 and 9.2. The posterior has seen the inducing targets, which are data; both modes leave out the noise unless
//! asked for it (the published program adds it to the prior alone, erratum E31).

use super::variational::FLOOR;
use crate::data::same_width;
use crate::exact::ExactPosterior;
use crate::{GpError, Posterior};
use faer::{Mat, MatRef};
use posterior_kernels::inducing::Whitening;
use posterior_kernels::{Kernel, diagonal, gram};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use serde::{Deserialize, Serialize};

/// Which process regularises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Mode {
    /// The prior with learned hyperparameters
    #[default]
    Prior,
    /// Its exact posterior given the inducing points and their targets, which uses these twice
    Posterior,
}

/// P for C functions that share kernel, inducing points and noise; C processes of one function each where they do not.
#[derive(Clone, Debug)]
pub struct ReferenceProcess {
    posterior: ExactPosterior,
    whitening: Whitening,
    mode: Mode,
    include_noise: bool,
    least_variance: f64,
}

/// Marginals of P at some points.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceMarginals {
    /// b x C.
    pub means: Mat<f64>,
    /// b, shared by the functions; not below [`ReferenceProcess::least_variance`].
    pub variances: Vec<f64>,
    /// Which of them were raised to it (b).
    pub raised: Vec<bool>,
}

/// Relative jitter of `K_ZZ`, the published one.
pub const JITTER: f64 = 1e-10;

/// Further jitter where that is not enough: kernels of few features have singular matrices, and what matters of the inverse are products with columns of the same kernel.
const MORE: JitterPolicy = JitterPolicy { initial: 1e-10, growth: 10.0, largest: 1e-4 };

impl ReferenceProcess {
    /// From the exact posterior on the inducing points: inputs Z (M x D), targets U (M x C). `jitter` times the mean of its diagonal is added to `K_ZZ`, and more where that is not enough. Cost `M³/3`.
    ///
    /// # Errors
    /// [`GpError::Cholesky`] when `K_ZZ` cannot be factored.
    pub fn new(
        posterior: ExactPosterior,
        mode: Mode,
        include_noise: bool,
        jitter: f64,
    ) -> Result<Self, GpError> {
        let whitening = Whitening::new(posterior.model().kernel(), posterior.data().inputs(), jitter, MORE)?;
        Ok(Self::of_parts(posterior, whitening, mode, include_noise))
    }

    /// From parts that were computed before (a model file): `factor` is that of `K_ZZ`, jitter included. Nothing is computed again, so that predictions are equal to the last bit.
    ///
    /// # Errors
    /// [`GpError::Shape`] when they do not fit together.
    pub fn from_parts(
        posterior: ExactPosterior,
        factor: Cholesky,
        mode: Mode,
        include_noise: bool,
    ) -> Result<Self, GpError> {
        same_width("rows of the factor", posterior.data().rows(), factor.dimension())?;
        let whitening = Whitening { cholesky: factor, relative_jitter: 0.0 };
        Ok(Self::of_parts(posterior, whitening, mode, include_noise))
    }

    fn of_parts(posterior: ExactPosterior, whitening: Whitening, mode: Mode, include_noise: bool) -> Self {
        let own = diagonal(posterior.model().kernel(), posterior.data().inputs());
        let least_variance = FLOOR * own.iter().sum::<f64>() / own.len() as f64;
        Self { posterior, whitening, mode, include_noise, least_variance }
    }

    /// What variances of P are raised to: divergences from a process of no variance are infinite. 1e-10 times the mean of the prior's variances at the inducing points.
    pub fn least_variance(&self) -> f64 {
        self.least_variance
    }

    /// The prior's covariance function.
    pub fn kernel(&self) -> &dyn Kernel<f64> {
        self.posterior.model().kernel()
    }

    /// Z, M x D.
    pub fn inducing(&self) -> MatRef<'_, f64> {
        self.posterior.data().inputs()
    }

    /// M.
    pub fn rank(&self) -> usize {
        self.inducing().nrows()
    }

    /// Number of functions, C.
    pub fn functions(&self) -> usize {
        self.posterior.data().targets().ncols()
    }

    /// The factor of `K_ZZ`, with what was added.
    pub fn whitening(&self) -> &Whitening {
        &self.whitening
    }

    /// The exact posterior on the inducing points, whatever the mode.
    pub fn posterior(&self) -> &ExactPosterior {
        &self.posterior
    }

    /// Which of both regularises.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether its variances are those of observations.
    pub fn includes_noise(&self) -> bool {
        self.include_noise
    }

    /// The noise variance that was learned with the kernel.
    pub fn noise_variance(&self) -> f64 {
        self.posterior.model().noise().noise_variance()
    }

    /// `m_P` at the rows of x, b x C.
    pub fn prior_means(&self, x: MatRef<'_, f64>) -> Mat<f64> {
        self.posterior.model().mean().evaluate(x)
    }

    /// Marginals at the rows of x (b x D). Variances are not below [`Self::least_variance`]; those that were raised to it are told.
    ///
    /// # Errors
    /// [`GpError::Shape`] for another width; [`GpError::NotFinite`].
    pub fn marginals(&self, x: MatRef<'_, f64>) -> Result<ReferenceMarginals, GpError> {
        same_width("columns of the inputs", self.inducing().ncols(), x.ncols())?;
        let (means, mut variances) = match self.mode {
            Mode::Prior => (self.prior_means(x), diagonal(self.kernel(), x)),
            Mode::Posterior => {
                let found = self.posterior.predict(x)?;
                (found.mean, found.latent_variance)
            }
        };
        if self.include_noise {
            let noise = self.noise_variance();
            variances.iter_mut().for_each(|v| *v += noise);
        }
        let raised: Vec<bool> = variances.iter().map(|v| *v < self.least_variance).collect();
        let low = variances.iter_mut().zip(&raised).filter(|(_, raised)| **raised);
        low.for_each(|(v, _)| *v = self.least_variance);
        Ok(ReferenceMarginals { means, variances, raised })
    }

    /// The joint covariance at the rows of x, b x b; its diagonal is not raised.
    ///
    /// # Errors
    /// As [`Self::marginals`].
    pub fn covariance(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        let mut covariance = match self.mode {
            Mode::Prior => gram(self.kernel(), x),
            Mode::Posterior => self.posterior.joint(x)?.covariance,
        };
        if self.include_noise {
            (0..x.nrows()).for_each(|i| covariance[(i, i)] += self.noise_variance());
        }
        Ok(covariance)
    }
}
