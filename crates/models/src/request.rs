//! What a user asks of a fit.

use crate::ScalableSettings;
use posterior_data::Selection;
use posterior_gp::MeanForm;
use posterior_gp::exact::FitOptions;
use posterior_kernels::KernelExpression;
use serde::{Deserialize, Serialize};

/// How the posterior is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Chosen by rows, columns and memory: [`crate::choose`].
    #[default]
    Auto,
    /// Cholesky factorisation of the whole kernel matrix.
    Exact,
    /// Conjugate gradients.
    Cg,
    /// Stochastic gradient descent on the primal objective.
    Sgd,
    /// Stochastic dual descent.
    Sdd,
    /// Stochastic gradient descent on the weights of inducing points.
    InducingSgd,
    /// The collapsed bound of inducing points (Titsias).
    Sgpr,
    /// The stochastic bound of inducing points (Hensman).
    Svgp,
}

impl Method {
    /// Its name on the command line and in model files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Exact => "exact",
            Self::Cg => "cg",
            Self::Sgd => "sgd",
            Self::Sdd => "sdd",
            Self::InducingSgd => "inducing-sgd",
            Self::Sgpr => "sgpr",
            Self::Svgp => "svgp",
        }
    }
}

/// Everything that determines a fit, the data aside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitRequest {
    /// Roles of the columns.
    pub selection: Selection,
    /// The kernel, on standardised features.
    pub kernel: KernelExpression,
    /// The prior mean, on standardised features and target.
    pub mean: MeanForm,
    /// How the posterior is computed.
    pub method: Method,
    /// Noise variance at the start, in standard units (1 is the variance of the target).
    pub initial_noise: f64,
    /// Least noise variance, in standard units.
    pub noise_floor: f64,
    /// Whether lengthscales without a hyperprior of their own get [`posterior_gp::Hyperprior::weak_lengthscale`].
    pub weak_lengthscale_prior: bool,
    /// Optimiser, budget, restarts, seed, hyperpriors, memory limit.
    pub options: FitOptions,
    /// What methods for large tables are told beside.
    pub scalable: ScalableSettings,
}

impl Default for FitRequest {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            kernel: "matern32(ard)".parse().expect("the default kernel is valid text"),
            mean: MeanForm::Constant,
            method: Method::Auto,
            initial_noise: 0.1,
            noise_floor: 1e-4,
            weak_lengthscale_prior: true,
            options: FitOptions::default(),
            scalable: ScalableSettings::default(),
        }
    }
}
