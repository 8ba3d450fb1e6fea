//! What is predicted at one input.

/// The predictive distribution of one observation, summarised.
#[derive(Clone, Debug, PartialEq)]
pub enum Prediction {
    /// C class probabilities that sum to one.
    Classes(Vec<f64>),
    /// The probability of each of C events.
    Events(Vec<f64>),
    /// Moments of each number of a target ([`crate::Likelihood::target_width`] entries each).
    Moments {
        /// Mean of an observation, in units of the target.
        mean: Vec<f64>,
        /// Variance of an observation, noise included.
        variance: Vec<f64>,
        /// Variance of the latent value (the mean of Gaussian noise, the logarithm of a rate), as the model gave it; without noise.
        latent_variance: Vec<f64>,
    },
}
