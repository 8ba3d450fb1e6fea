//! Central intervals of the normal distribution.

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

/// `Φ⁻¹((1 + level)/2)`: half the width of the central interval of the standard normal, for a level in [0, 1).
pub fn half_width_factor(level: f64) -> f64 {
    Normal::standard().inverse_cdf(0.5 + 0.5 * level)
}

/// `Φ(z)`
pub fn standard_normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// `φ(z)`
pub fn standard_normal_density(z: f64) -> f64 {
    Normal::standard().pdf(z)
}

#[cfg(test)]
mod tests {
    #[test]
    fn known_quantiles() {
        for (level, expected) in
            [(0.5, 0.674_489_750_196), (0.9, 1.644_853_626_951), (0.95, 1.959_963_984_540), (0.0, 0.0)]
        {
            assert!((super::half_width_factor(level) - expected).abs() < 1e-9, "{level}");
        }
    }
}
