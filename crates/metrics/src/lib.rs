//! **Proper scores and calibration** of Gaussian predictions.
//!
//! With predicted means `m_i`, variances `s_i²` of the observations, truths `y_i` and `z_i = (y_i - m_i) / s_i`:
//!
//! | score | formula | best |
//! |---|---|---|
//! | RMSE, MAE | root mean square, mean magnitude of `y - m` | 0 |
//! | NLL | mean of `½ log(2π s²) + ½ z²` | low |
//! | CRPS | mean of `s (z (2Φ(z) - 1) + 2φ(z) - 1/√π)` (Gneiting and Raftery 2007, eq. 21) | 0 |
//! | coverage at level a | share of truths inside the central interval `m ± s Φ⁻¹((1 + a)/2)` | a |
//! | width at level a | mean length of that interval | short, given coverage |
//! | CQM | `∫₀¹ \|coverage(a) - a\| da` (spec `valla`, section 8.2) | 0 |
//!
//! Scores in target units, and in standard units (target divided by its training scale): lengths divide by the scale, NLL loses
//! its logarithm, coverage and CQM stay.

mod calibration;
mod error;
mod interval;
mod scores;

pub use calibration::{
    CalibrationPoint, calibration_curve, centred_quantile_metric, centred_quantile_metric_exact,
};
pub use error::MetricsError;
pub use interval::{half_width_factor, standard_normal_cdf, standard_normal_density};
pub use scores::{Gaussians, RegressionScores, StandardisedScores};
