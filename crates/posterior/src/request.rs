//! What a user asks of a fit.

use posterior_data::Selection;
use posterior_gp::MeanForm;
use posterior_gp::exact::FitOptions;
use posterior_kernels::KernelExpression;
use serde::{Deserialize, Serialize};

/// How the posterior is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Chosen by size: so far exact, where it fits into memory.
    #[default]
    Auto,
    /// Cholesky factorisation of the whole kernel matrix.
    Exact,
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
        }
    }
}
