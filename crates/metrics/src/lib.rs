//! **Proper scores and calibration** of Gaussian predictions.
//!
//! ```
//! use posterior_metrics::Gaussians;
//!
//! let (means, variances, truths) = ([1.0, 2.0, 3.0], [0.25; 3], [1.1, 1.8, 4.2]);
//! let scores = Gaussians::new(&means, &variances, &truths)?.scores(1.0)?;
//! // One of three truths lies outside of its interval of 1.96 standard deviations.
//! assert!((scores.coverage_95 - 2.0 / 3.0).abs() < 1e-12 && scores.nll > 0.0);
//! # Ok::<(), posterior_metrics::MetricsError>(())
//! ```
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
//!
//! Other kinds of predictions, each with a checked input whose errors name the row:
//!
//! | input | scores |
//! |---|---|
//! | [`MappedGaussians`] | the same of numbers that are Gaussian behind a map (log-normal ones) |
//! | [`Funnel`] | whether errors grow with the prediction |
//! | [`Classes`] | accuracy, NLL, Brier, calibration errors and reliability, entropy, confusion |
//! | [`BinaryEvents`] | the same for Bernoulli outputs, with the area under the ROC curve |
//! | [`Counts`] | NLL, error of the mean, Poisson deviance |
//! | [`DyadicGroups`] | joint log-likelihood of several labels from posterior samples |
//!
//! [`SplitConformal`] says how wide intervals have to be so that they hold what they say, from residuals of rows that a model has not seen; [`LabelSets`] which classes a set needs; [`Temperature`] makes class probabilities
//! sharper or flatter by what such rows say.
//!
//! Comparisons: [`roc_auc`], [`out_of_distribution_auc`], [`out_of_distribution_auc_of_logits`] and [`mid_ranks`] rank; [`symmetric_kl`] and [`squared_wasserstein2_gaussians`]
//! measure how far two predictions are apart; [`Average`] is a mean with its standard error, also of paired differences.

mod average;
mod binary;
mod calibration;
mod classification;
mod conformal;
mod conformal_tails;
mod counts;
mod distance;
mod error;
mod funnel;
mod interval;
mod joint;
mod label_sets;
mod mapped;
mod ranking;
mod scores;
mod temperature;
#[cfg(test)]
mod testing;

pub use average::Average;
pub use binary::{BinaryEvents, BinaryScores};
pub use calibration::{
    CalibrationPoint, calibration_curve, centred_quantile_metric, centred_quantile_metric_exact,
};
pub use classification::{
    Classes, ClassificationScores, ConfusionMatrix, DEFAULT_BINS, MOST_BINS, MOST_CONFUSION_CLASSES,
    Probabilities, ReliabilityBin, SUM_TOLERANCE, entropy,
};
pub use conformal::SplitConformal;
pub use conformal_tails::ConformalTails;
pub use counts::{CountScores, Counts};
pub use distance::{mean_symmetric_kl, squared_wasserstein2_gaussians, symmetric_kl, wasserstein2_marginals};
pub use error::MetricsError;
pub use funnel::Funnel;
pub use interval::{half_width_factor, standard_normal_cdf, standard_normal_density};
pub use joint::{DyadicGroups, JointLogLikelihood, MOST_SHUFFLES};
pub use label_sets::{LabelSets, SetScores};
pub use mapped::MappedGaussians;
pub use ranking::{
    UncertaintyScore, mid_ranks, out_of_distribution_auc, out_of_distribution_auc_of_logits, roc_auc,
};
pub use scores::{Gaussians, RegressionScores, StandardisedScores};
pub use temperature::Temperature;
