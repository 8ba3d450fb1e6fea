//! Priors on hyperparameters: densities on their natural values, added to the evidence (maximum a posteriori).
//!
//! The density is that of the natural value (a lengthscale, not its logarithm) and no Jacobian of the
//! optimiser's transform enters, so that the estimate does not depend on how the optimiser sees the parameter.

use crate::GpError;
use posterior_optim::Parameters;
use serde::{Deserialize, Serialize};

/// A density on positive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "density")]
pub enum Density {
    /// `log θ ~ N(location, scale²)`
    LogNormal {
        /// Mean of the logarithm.
        location: f64,
        /// Standard deviation of the logarithm; positive.
        scale: f64,
    },
    /// `p(θ) ∝ θ^(shape-1) exp(-rate θ)`
    Gamma {
        /// Shape; positive.
        shape: f64,
        /// Rate, the inverse of the scale; positive.
        rate: f64,
    },
}

impl Density {
    /// `log p(θ)`, normalised, and its derivative in `θ`.
    ///
    pub fn log_density(self, theta: f64) -> (f64, f64) {
        let log = theta.ln();
        match self {
            Self::LogNormal { location, scale } => {
                let z = (log - location) / scale;
                let normaliser = scale.ln() + 0.5 * (2.0 * std::f64::consts::PI).ln();
                (-0.5 * z * z - log - normaliser, -(z / scale + 1.0) / theta)
            }
            Self::Gamma { shape, rate } => {
                let value = (shape - 1.0) * log - rate * theta + shape * rate.ln() - libm::lgamma(shape);
                (value, (shape - 1.0) / theta - rate)
            }
        }
    }
}

/// The amplitude, in standard deviations of the target, that costs two nats under [`Hyperprior::weak_amplitude`].
pub const WEAK_AMPLITUDE: f64 = 5.0;

/// A density for every entry of the hyperparameter called `parameter`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hyperprior {
    /// Name of a segment of the model's parameters, such as `matern32.lengthscale`.
    pub parameter: String,
    /// Its density.
    #[serde(flatten)]
    pub density: Density,
}

impl Hyperprior {
    /// The weak prior that functions of `inputs` standardised features change over a distance of order `√inputs`:
    /// `log ℓ ~ N(√2 + ½ ln inputs, 3)` (Hvarfner, Hellsten and Nardi 2024). Data overrule it easily; where they are silent it
    /// keeps lengthscales of irrelevant features from running to infinity.
    pub fn weak_lengthscale(parameter: impl Into<String>, inputs: usize) -> Self {
        let location = 2f64.sqrt() + 0.5 * (inputs.max(1) as f64).ln();
        Self { parameter: parameter.into(), density: Density::LogNormal { location, scale: 3f64.sqrt() } }
    }

    /// The weak prior that a stationary function varies about as much as its target, in standard units: an exponential density of the variance, under which an
    /// amplitude of [`WEAK_AMPLITUDE`] is two nats less likely than one near 0, and one of half of that half a nat. Far from the data such a function is as
    /// uncertain as its amplitude, and there the evidence alone says next to nothing: amplitude and lengthscales grow together.
    pub fn weak_amplitude(parameter: impl Into<String>) -> Self {
        let rate = 2.0 / (WEAK_AMPLITUDE * WEAK_AMPLITUDE);
        Self { parameter: parameter.into(), density: Density::Gamma { shape: 1.0, rate } }
    }

    /// The weak prior that no function explains a measured target exactly: Gamma(2, 2), of a noise variance in units of the target's. Ten times less noise costs 2.3 nats, which many rows that
    /// agree with a function outweigh. Few rows with many features can be explained by next to no noise as well, and rows to come are then predicted with none.
    pub fn weak_noise(parameter: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), density: Density::Gamma { shape: 2.0, rate: 2.0 } }
    }

    /// The weak prior of a Student-t distribution's degrees of freedom, Gamma(2, 0.1) (Juárez and Steel 2010): between 4 and 47 with probability 0.9.
    pub fn weak_degrees_of_freedom(parameter: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), density: Density::Gamma { shape: 2.0, rate: 0.1 } }
    }
}

/// The summed log density of the model's natural values and its gradient in them (added to `gradient`).
pub(crate) fn log_prior(
    hyperpriors: &[Hyperprior],
    model: &dyn Parameters,
    gradient: &mut [f64],
) -> Result<f64, GpError> {
    let (segments, values) = (model.segments(), model.values());
    let mut total = 0.0;
    for hyperprior in hyperpriors {
        let mut start = 0;
        let mut found = false;
        for segment in &segments {
            let range = start..start + segment.len();
            start = range.end;
            if segment.name == hyperprior.parameter {
                found = true;
                for i in range {
                    let (value, slope) = hyperprior.density.log_density(values[i]);
                    total += value;
                    gradient[i] += slope;
                }
            }
        }
        if !found {
            let known = segments.into_iter().map(|s| s.name).collect();
            return Err(GpError::UnknownParameter { name: hyperprior.parameter.clone(), known });
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_integrate_to_one_and_differentiate() {
        let amplitude = Hyperprior::weak_amplitude("v").density;
        for density in [
            Density::LogNormal { location: 0.3, scale: 0.7 },
            Density::Gamma { shape: 2.5, rate: 1.7 },
            amplitude,
            Hyperprior::weak_degrees_of_freedom("v").density,
        ] {
            // Midpoint rule in log θ, where both integrands are smooth and vanish at both ends.
            let h = 1e-3;
            let mass: f64 = (-25_000..7_000)
                .map(|i| {
                    let theta = ((i as f64 + 0.5) * h).exp();
                    density.log_density(theta).0.exp() * theta * h
                })
                .sum();
            assert!((mass - 1.0).abs() < 1e-9, "{density:?}: {mass}");
            for theta in [0.2, 1.0, 3.0] {
                let numeric =
                    (density.log_density(theta + 1e-6).0 - density.log_density(theta - 1e-6).0) / 2e-6;
                assert!((numeric - density.log_density(theta).1).abs() < 1e-7);
            }
        }
        // 90 % of the degrees of freedom lie between 3.55 and 47.4 (tables of the gamma distribution).
        let degrees = Hyperprior::weak_degrees_of_freedom("v").density;
        let inside: f64 =
            (0..43_885).map(|i| 1e-3 * degrees.log_density(3.5536 + 1e-3 * (i as f64 + 0.5)).0.exp()).sum();
        assert!((inside - 0.9).abs() < 1e-5, "{inside}");
        let lost = |deviations: f64| {
            amplitude.log_density(1e-300).0 - amplitude.log_density(deviations * deviations).0
        };
        assert!((lost(5.0) - 2.0).abs() < 1e-12 && (lost(2.5) - 0.5).abs() < 1e-12);
    }
}
