//! How the latent values are averaged over.

use serde::{Deserialize, Serialize};

/// How `E[p(y | f)]` under a Gaussian `f` is computed. Written as `{ kind = "monte_carlo", samples = 512, seed = 0 }`.
///
/// | | classes, softmax | classes, robust max | events, logit | events, probit | counts, moments | counts, log density | Gaussian noise | heteroscedastic |
/// |---|---|---|---|---|---|---|---|---|
/// | plug-in | at the mean | at the mean | at the mean | at the mean | at the mean | at the mean | at the mean | at the mean |
/// | probit | approximate | quadrature | approximate | exact | exact | quadrature | exact | exact; quadrature |
/// | Laplace bridges | approximate | no | no | no | no | no | no | no |
/// | Monte Carlo | sampled | sampled | sampled | sampled | exact | sampled | no | exact; sampled |
///
/// With several events, counts or heteroscedastic targets in one observation, the log density of `Probit` is the sum of
/// those of each target alone; only Monte Carlo sees how their latent values vary together. Gaussian noise is exact with
/// correlations. Student-t noise is as counts are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Integration {
    /// `p(y | mean)`: the latent variance is ignored. The prediction of a network without inference.
    PlugIn,
    /// The closed form of each likelihood, exact where there is an exact one. For classes `softmax(m_c / √(1 + π v_c / 8))`
    /// (Gibbs 1997, *Bayesian Gaussian processes for regression and classification*; MacKay 1992 for two classes), which
    /// ignores correlations between classes, as the quadrature for robust-max classes does.
    #[default]
    Probit,
    /// The mean of the Dirichlet distribution of [`crate::predictive::laplace_bridge`], which says where to trust it: not for
    /// small variances, where `Probit` is far better.
    LaplaceBridge,
    /// The same with latent values shrunk first where their variance is large, where the plain bridge is overconfident.
    NormalisedLaplaceBridge,
    /// Averages over sampled latent values with their full covariance. All inputs share the random numbers, so that
    /// differences between inputs are not noise; draws come in antithetic pairs `m ± L z`.
    MonteCarlo {
        /// How many samples; the standard error of a probability is below `0.5 / √samples`.
        samples: usize,
        /// The seed of the random numbers.
        seed: u64,
    },
}

impl Integration {
    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::PlugIn => "plug_in",
            Self::Probit => "probit",
            Self::LaplaceBridge => "laplace_bridge",
            Self::NormalisedLaplaceBridge => "normalised_laplace_bridge",
            Self::MonteCarlo { .. } => "monte_carlo",
        }
    }
}
