//! What a Gaussian has in common with the density that it stands for.

use serde::{Deserialize, Serialize};

/// How a Gaussian is chosen for the density of `ψ`, the logarithm or logit of a conjugate variable `ω`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Matching {
    /// Moments of the positive variable
    ///
    /// Mean and variance of `ω`, by a log-normal. For Gamma distributions only. Source: Milios et al. (2018), *Dirichlet-based Gaussian
    /// processes for large-scale calibrated classification*.
    MomentOriginal,
    /// Moments
    ///
    /// Mean and variance of `ψ`: the least `KL(p ‖ q)`.
    Moment,
    /// Laplace's method
    ///
    /// The mode of the density of `ψ`, and minus the inverse of its second log derivative there. Source: Hobbhahn and Hennig (2022),
    /// *Laplace matching for fast approximate inference in latent Gaussian models*.
    Laplace,
    /// Variational
    ///
    /// The least `KL(q ‖ p)`.
    #[default]
    Variational,
}

impl Matching {
    /// Its name in a configuration and on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::MomentOriginal => "moment-original",
            Self::Moment => "moment",
            Self::Laplace => "laplace",
            Self::Variational => "variational",
        }
    }
}
