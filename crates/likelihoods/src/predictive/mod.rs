//! **Predictive distributions**: what will be observed, when the latent values are Gaussian.
//!
//! A [`PredictiveRule`] is prepared once for a likelihood and an [`Integration`]; it then turns a [`LatentGaussian`] into a
//! [`Prediction`], or a target into its log density, for as many inputs as there are.
//!
//! | file | what |
//! |---|---|
//! | [`LatentGaussian`] | mean and covariance of the latent values at one input |
//! | [`Integration`] | how the latent values are averaged over |
//! | [`PredictiveRule`] | the rule, with random numbers that all inputs share |
//! | [`Prediction`] | probabilities or moments |
//! | [`laplace_bridge`], [`dirichlet_bridge`] | the Dirichlet distribution nearest to a softmax of Gaussians, and the way back |
//! | [`LabelInformation`] | the part of a label's uncertainty that more data would remove |
//! | [`CountMixture`] | distribution function and quantiles of counts whose log rate is Gaussian |
//! | `mixture` | equal mixtures of predictive distributions |
//! | `root`, `draws` | sampled latent values, also for singular covariances |
//! | `log_density` | log predictive densities of targets |
//! | `log_integral` | the logarithm of a one-dimensional integral |

mod bridge;
mod count_mixture;
mod draws;
mod information;
mod integration;
mod latent;
mod log_density;
mod log_integral;
mod mixture;
mod prediction;
mod root;
mod rule;

pub use bridge::{dirichlet_bridge, laplace_bridge};
pub use count_mixture::CountMixture;
pub use information::LabelInformation;
pub use integration::Integration;
pub use latent::{Clipping, Covariance, LatentGaussian};
pub(crate) use log_density::{
    counts as counts_log_mixture, gaussian as gaussian_log_density,
    heteroscedastic as heteroscedastic_log_mixture, student_t as student_t_log_mixture,
};
pub(crate) use log_integral::significant;
pub use mixture::{average, log_average_exp, mixture_moments};
pub use prediction::Prediction;
pub(crate) use root::root;
pub use rule::{PredictiveRule, PredictiveWorkspace};
