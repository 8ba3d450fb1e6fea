//! All scores of a set of Gaussian predictions at once.

use crate::calibration::{centred_quantile_metric, centred_quantile_metric_exact};
use crate::interval::{half_width_factor, standard_normal_cdf, standard_normal_density};
use crate::{CalibrationPoint, MetricsError, calibration_curve};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Gaussian predictive distributions of observations, with the truths.
#[derive(Clone, Copy, Debug)]
pub struct Gaussians<'a> {
    means: &'a [f64],
    variances: &'a [f64],
    truths: &'a [f64],
}

/// Scores in standard units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StandardisedScores {
    /// Root mean squared error over the target's scale.
    pub rmse: f64,
    /// Mean absolute error over the target's scale.
    pub mae: f64,
    /// Negative log likelihood of the standardised target, in nats.
    pub nll: f64,
    /// Continuous ranked probability score over the target's scale.
    pub crps: f64,
}

/// Scores of Gaussian predictions. Lengths are in target units, NLL in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegressionScores {
    /// Number of predictions.
    pub n: usize,
    /// Root mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
    /// Share of the truths' squares about their mean that the means explain, 1 - SSE / SST; none where all truths are equal. Below 0 when their mean
    /// would do better.
    pub r2: Option<f64>,
    /// The same after taking the mean residual away, so never below `r2`: 1 - Var(y - m) / Var(y).
    pub explained_variance: Option<f64>,
    /// Mean negative log likelihood.
    pub nll: f64,
    /// Mean continuous ranked probability score.
    pub crps: f64,
    /// Share of truths in the central 50 % interval.
    pub coverage_50: f64,
    /// Share of truths in the central 80 % interval.
    pub coverage_80: f64,
    /// Share of truths in the central 90 % interval.
    pub coverage_90: f64,
    /// Share of truths in the central 95 % interval.
    pub coverage_95: f64,
    /// Mean width of the central 50 % interval.
    pub width_50: f64,
    /// Mean width of the central 80 % interval.
    pub width_80: f64,
    /// Mean width of the central 90 % interval.
    pub width_90: f64,
    /// Mean width of the central 95 % interval.
    pub width_95: f64,
    /// Centred quantile metric, 11-point trapezoid.
    pub cqm: f64,
    /// Centred quantile metric, exact integral.
    pub cqm_exact: f64,
    /// The same in standard units.
    pub standardised: StandardisedScores,
}

impl<'a> Gaussians<'a> {
    /// Checks that there are equally many, finite, with positive variances.
    ///
    /// # Errors
    /// A [`MetricsError`] naming the row.
    pub fn new(means: &'a [f64], variances: &'a [f64], truths: &'a [f64]) -> Result<Self, MetricsError> {
        if means.len() != truths.len() || variances.len() != truths.len() {
            let (means, variances, truths) = (means.len(), variances.len(), truths.len());
            return Err(MetricsError::Lengths { means, variances, truths });
        }
        if truths.is_empty() {
            return Err(MetricsError::Empty);
        }
        for (what, values) in [("mean", means), ("variance", variances), ("truth", truths)] {
            if let Some(row) = values.iter().position(|v| !v.is_finite()) {
                return Err(MetricsError::NotFinite { what, row, value: values[row] });
            }
        }
        match variances.iter().position(|v| *v <= 0.0) {
            Some(row) => Err(MetricsError::VarianceNotPositive { row, value: variances[row] }),
            None => Ok(Self { means, variances, truths }),
        }
    }

    /// `z = (y - m) / s` of each prediction.
    pub fn standardised_residuals(&self) -> Vec<f64> {
        self.rows().map(|(m, v, y)| (y - m) / v.sqrt()).collect()
    }

    /// Share of truths inside the central interval of this level, which is open; nothing is inside at 0, everything at 1.
    pub fn coverage(&self, level: f64) -> f64 {
        let edge = half_width_factor(level);
        let inside = self.standardised_residuals().into_iter().filter(|z| z.abs() < edge).count();
        inside as f64 / self.truths.len() as f64
    }

    /// The calibration curve at `count + 1` levels.
    pub fn calibration(&self, count: usize) -> Vec<CalibrationPoint> {
        calibration_curve(&self.standardised_residuals(), count)
    }

    /// All scores; `scale` is the target's standard deviation in training. Cost `O(n log n)`.
    ///
    /// # Errors
    /// [`MetricsError::Scale`].
    pub fn scores(&self, scale: f64) -> Result<RegressionScores, MetricsError> {
        let terms = Terms {
            means: self.means,
            truths: self.truths,
            residuals: self.standardised_residuals(),
            nll: self.mean_of(|m, v, y| 0.5 * ((2.0 * PI * v).ln() + (y - m).powi(2) / v)),
            crps: self.mean_of(|m, v, y| crps(m, v.sqrt(), y)),
        };
        let mean_deviation = self.mean_of(|_, v, _| v.sqrt());
        terms.scores(scale, |level| 2.0 * half_width_factor(level) * mean_deviation)
    }

    fn mean_of(&self, term: impl Fn(f64, f64, f64) -> f64) -> f64 {
        self.rows().map(|(m, v, y)| term(m, v, y)).sum::<f64>() / self.truths.len() as f64
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        self.means.iter().zip(self.variances).zip(self.truths).map(|((m, v), y)| (*m, *v, *y))
    }
}

/// What scores are made of, however predictions are distributed.
pub(crate) struct Terms<'a> {
    /// Point predictions.
    pub(crate) means: &'a [f64],
    pub(crate) truths: &'a [f64],
    /// Normal quantiles of the predicted probabilities of the truths.
    pub(crate) residuals: Vec<f64>,
    /// Mean over the rows.
    pub(crate) nll: f64,
    /// Mean over the rows.
    pub(crate) crps: f64,
}

impl Terms<'_> {
    /// All scores, with the mean width of central intervals by their level.
    pub(crate) fn scores(
        self,
        scale: f64,
        width: impl Fn(f64) -> f64,
    ) -> Result<RegressionScores, MetricsError> {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(MetricsError::Scale { value: scale });
        }
        let Self { means, truths, residuals: z, nll, crps } = self;
        let n = truths.len();
        let mean_of = |term: &dyn Fn(f64, f64) -> f64| {
            means.iter().zip(truths).map(|(m, y)| term(*m, *y)).sum::<f64>() / n as f64
        };
        let rmse = mean_of(&|m, y| (y - m).powi(2)).sqrt();
        let mae = mean_of(&|m, y| (y - m).abs());
        if !(rmse.is_finite() && nll.is_finite() && crps.is_finite()) {
            return Err(MetricsError::Overflow);
        }
        let centre = mean_of(&|_, y| y);
        let total = mean_of(&|_, y| (y - centre).powi(2));
        let bias = mean_of(&|m, y| y - m);
        let scatter = mean_of(&|m, y| (y - m - bias).powi(2));
        // Equal truths differ from their mean by rounding, but not from each other.
        let varied = truths.iter().any(|y| *y != truths[0]);
        let explained = |left: f64| varied.then(|| 1.0 - left / total).filter(|v| v.is_finite());
        let coverage = |level: f64| {
            let edge = half_width_factor(level);
            z.iter().filter(|z| z.abs() < edge).count() as f64 / n as f64
        };
        Ok(RegressionScores {
            n,
            rmse,
            mae,
            r2: explained(rmse * rmse),
            explained_variance: explained(scatter),
            nll,
            crps,
            coverage_50: coverage(0.5),
            coverage_80: coverage(0.8),
            coverage_90: coverage(0.9),
            coverage_95: coverage(0.95),
            width_50: width(0.5),
            width_80: width(0.8),
            width_90: width(0.9),
            width_95: width(0.95),
            cqm: centred_quantile_metric(&z),
            cqm_exact: centred_quantile_metric_exact(&z),
            standardised: StandardisedScores {
                rmse: rmse / scale,
                mae: mae / scale,
                nll: nll - scale.ln(),
                crps: crps / scale,
            },
        })
    }
}

/// The continuous ranked probability score of one Gaussian prediction.
fn crps(mean: f64, deviation: f64, truth: f64) -> f64 {
    let z = (truth - mean) / deviation;
    deviation
        * (z * (2.0 * standard_normal_cdf(z) - 1.0) + 2.0 * standard_normal_density(z) - 1.0 / PI.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use statrs::distribution::{Continuous, Normal};

    #[test]
    fn crps_is_the_integral_of_its_definition() {
        for (mean, deviation, truth) in [(0.0f64, 1.0f64, 0.3f64), (1.0, 0.2, 2.5), (-2.0, 3.0, -1.0)] {
            // ∫ (F(t) - 1[t >= y])² dt by the midpoint rule, split at y.
            let (steps, reach) = (200_000, 12.0 * deviation + (truth - mean).abs());
            let h = reach / steps as f64;
            let f = |t: f64| standard_normal_cdf((t - mean) / deviation);
            let numeric: f64 = (0..steps)
                .map(|k| {
                    let offset = (k as f64 + 0.5) * h;
                    h * (f(truth - offset).powi(2) + (1.0 - f(truth + offset)).powi(2))
                })
                .sum();
            assert!((crps(mean, deviation, truth) - numeric).abs() < 1e-6, "{numeric}");
        }
    }

    #[test]
    fn a_small_example_by_hand() {
        let scores = Gaussians::new(&[0.0, 1.0], &[1.0, 4.0], &[1.0, -1.0]).unwrap().scores(2.0).unwrap();
        assert!((scores.rmse - 2.5f64.sqrt()).abs() < 1e-14 && (scores.mae - 1.5).abs() < 1e-14);
        let nll =
            -0.5 * (Normal::new(0.0, 1.0).unwrap().ln_pdf(1.0) + Normal::new(1.0, 2.0).unwrap().ln_pdf(-1.0));
        assert!((scores.nll - nll).abs() < 1e-13);
        assert_eq!((scores.coverage_50, scores.coverage_80, scores.coverage_95), (0.0, 1.0, 1.0));
        // Both truths are one deviation away, where the interval of 68.27 % ends.
        let gaussians = Gaussians::new(&[0.0, 1.0], &[1.0, 4.0], &[1.0, -1.0]).unwrap();
        let shares = [0.0, 0.6826, 0.6827, 1.0].map(|level| gaussians.coverage(level));
        assert_eq!(shares, [0.0, 0.0, 1.0, 1.0]);
        assert!((scores.width_95 - 2.0 * 1.959_963_984_54 * 1.5).abs() < 1e-8);
        assert!((scores.standardised.nll - (nll - 2f64.ln())).abs() < 1e-13);
        // Truths 1 and -1: SST = 2, SSE = 5; residuals 1 and -2 scatter by 1.5 about -0.5.
        assert!((scores.r2.unwrap() + 1.5).abs() < 1e-14);
        assert!((scores.explained_variance.unwrap() - (1.0 - 2.25)).abs() < 1e-14);
        // So many that the rounding of their mean is seen.
        let (means, ones, truths) = (vec![0.1; 10_000], vec![1.0; 10_000], vec![0.3; 10_000]);
        let constant = Gaussians::new(&means, &ones, &truths).unwrap().scores(2.0).unwrap();
        assert_eq!((constant.r2, constant.explained_variance), (None, None));
    }

    #[test]
    fn bad_predictions_are_named() {
        assert_eq!(Gaussians::new(&[], &[], &[]).unwrap_err(), MetricsError::Empty);
        assert!(matches!(Gaussians::new(&[1.0], &[1.0, 2.0], &[1.0]), Err(MetricsError::Lengths { .. })));
        let error = Gaussians::new(&[0.0, f64::NAN], &[1.0, 1.0], &[0.0, 0.0]).unwrap_err();
        assert_eq!(error.to_string(), "the mean of row 1 is NaN");
        assert!(matches!(
            Gaussians::new(&[0.0], &[0.0], &[0.0]),
            Err(MetricsError::VarianceNotPositive { row: 0, .. })
        ));
        assert!(matches!(
            Gaussians::new(&[0.0], &[1.0], &[0.0]).unwrap().scores(0.0),
            Err(MetricsError::Scale { .. })
        ));
    }

    proptest! {
        #[test]
        fn scores_scale_with_the_units(
            rows in prop::collection::vec((-5.0..5.0f64, 0.1..4.0f64, -5.0..5.0f64), 1..30),
            scale in 0.01..100.0f64,
            shift in -10.0..10.0f64,
        ) {
            let column = |f: &dyn Fn(&(f64, f64, f64)) -> f64| -> Vec<f64> { rows.iter().map(f).collect() };
            let (m, v, y) = (column(&|r| r.0), column(&|r| r.1), column(&|r| r.2));
            let a = Gaussians::new(&m, &v, &y).unwrap().scores(1.0).unwrap();
            let (m, v, y) = (
                column(&|r| shift + scale * r.0),
                column(&|r| scale * scale * r.1),
                column(&|r| shift + scale * r.2),
            );
            let b = Gaussians::new(&m, &v, &y).unwrap().scores(scale).unwrap();
            let close = |x: f64, y: f64| (x - y).abs() <= 1e-9 * (1.0 + x.abs());
            prop_assert!(close(a.rmse * scale, b.rmse) && close(a.crps * scale, b.crps));
            prop_assert!(close(a.nll + scale.ln(), b.nll) && close(a.width_90 * scale, b.width_90));
            prop_assert!(close(a.standardised.nll, b.standardised.nll) && close(a.standardised.crps, b.standardised.crps));
            prop_assert!((a.cqm_exact - b.cqm_exact).abs() < 1e-7);
            if let (Some(a), Some(b)) = (a.r2, b.r2) {
                prop_assert!((a - b).abs() <= 1e-6 * (1.0 + a.abs()));
            }
            if let (Some(r2), Some(explained)) = (a.r2, a.explained_variance) {
                prop_assert!(explained >= r2 - 1e-12 * (1.0 + r2.abs()));
            }
        }
    }
}
