//! The whole fit: weights, curvature, mode, hyperparameters.

mod by_kernel;
mod conjugate;
mod extend;
mod held_out;
mod learned;
mod options;
mod restore;
mod result;
mod run;
mod samples;
mod solve;

pub use options::{Approximation, FitOptions, NoiseModel};
pub use restore::{RestoredCurvature, SavedPosterior, least_numbers};
pub use result::{FitSummary, Laplace, ModeSummary};
pub use run::fit;

pub(crate) use by_kernel::{kernel_bytes, kernels};
pub(crate) use conjugate::LARGEST;
pub(crate) use held_out::Part;
pub(crate) use result::{Curvature, Posterior, between};
pub(crate) use run::Choices;

use crate::LaplaceError;
use posterior_likelihoods::{FullGaussian, Gaussian, OutputLikelihood};

/// The likelihood with its noise variances multiplied by a factor; likelihoods without noise stay as they are.
///
/// # Errors
/// When the product is not a positive number.
pub fn scaled_noise(likelihood: &OutputLikelihood, factor: f64) -> Result<OutputLikelihood, LaplaceError> {
    let times = |v: &[f64]| v.iter().map(|v| v * factor).collect();
    Ok(match likelihood {
        OutputLikelihood::Gaussian(g) => {
            OutputLikelihood::Gaussian(Gaussian::independent(times(g.noise_variances()))?)
        }
        OutputLikelihood::FullGaussian(g) => {
            let outputs = posterior_likelihoods::Likelihood::outputs(g);
            OutputLikelihood::FullGaussian(FullGaussian::new(outputs, times(g.covariance()))?)
        }
        other => other.clone(),
    })
}
