//! **Predictions that are Gaussian behind a monotone map** of the target (a logarithm, say): log-normal ones and their like, scored in the target's own units.
//!
//! With `y = g(t)` and `t ~ N(m, s²)` the quantile of level p is `g(m + s Φ⁻¹(p))`, the log density that of t plus `ln dt/dy`, and the continuous ranked probability score
//!
//! ```text
//! ∫_{-∞}^{z} Φ(u)² dg + ∫_z^∞ (1 - Φ(u))² dg        g = g(m + s u), z = (t - m) / s
//! ```
//!
//! by steps of g weighted in their middles, 128 on each side of the truth: exact where predictions are certain, to about a thousandth elsewhere.

use crate::interval::{half_width_factor, standard_normal_cdf};
use crate::scores::Terms;
use crate::{Gaussians, MetricsError, RegressionScores};
use std::f64::consts::PI;

/// Steps on each side of the truth.
const STEPS: usize = 128;

/// Beyond so many deviations a normal distribution has no mass.
const FARTHEST: f64 = 9.0;

/// Predictive distributions of observations that are Gaussian behind a map.
#[derive(Clone, Copy, Debug)]
pub struct MappedGaussians<'a> {
    /// Means, variances and truths where they are Gaussian.
    pub behind: Gaussians<'a>,
    /// Point predictions in the target's units.
    pub means: &'a [f64],
    /// Truths in the target's units.
    pub truths: &'a [f64],
    /// `ln dt/dy` at each truth.
    pub log_slopes: &'a [f64],
}

impl MappedGaussians<'_> {
    /// All scores in the target's units, by the way back from the image to them; `scale` is the target's standard deviation in training. Cost `O(256 n)` of the map.
    ///
    /// # Errors
    /// [`MetricsError::Scale`], [`MetricsError::Lengths`], [`MetricsError::Overflow`].
    pub fn scores(&self, scale: f64, back: impl Fn(f64) -> f64) -> Result<RegressionScores, MetricsError> {
        let Self { behind, means, truths, log_slopes } = self;
        let n = behind.rows().count();
        if [means.len(), truths.len(), log_slopes.len()] != [n; 3] {
            let (means, variances, truths) = (means.len(), log_slopes.len(), truths.len());
            return Err(MetricsError::Lengths { means, variances, truths });
        }
        let mean_of = |terms: &mut dyn Iterator<Item = f64>| terms.sum::<f64>() / n as f64;
        let nll = behind
            .rows()
            .zip(*log_slopes)
            .map(|((m, v, t), slope)| 0.5 * ((2.0 * PI * v).ln() + (t - m).powi(2) / v) - slope);
        let nll = mean_of(&mut nll.into_iter());
        let crps = mean_of(&mut behind.rows().map(|(m, v, t)| crps(m, v.sqrt(), t, &back)));
        let residuals = behind.standardised_residuals();
        Terms { means, truths, residuals, nll, crps }.scores(scale, |level| {
            let half = half_width_factor(level);
            let width = |(m, v, _): (f64, f64, f64)| back(m + half * v.sqrt()) - back(m - half * v.sqrt());
            mean_of(&mut behind.rows().map(width))
        })
    }
}

/// Of one prediction.
fn crps(mean: f64, deviation: f64, truth: f64, back: &dyn Fn(f64) -> f64) -> f64 {
    let z = (truth - mean) / deviation;
    let side = |sign: f64| {
        // From the truth to where the distribution ends on this side: weights are 1 beyond it, and 0 where there is nothing left.
        let (from, to) = (sign * z, f64::max(FARTHEST, sign * z));
        let step = (to - from.max(-FARTHEST)) / STEPS as f64;
        let value = |u: f64| sign * back(mean + deviation * sign * u);
        let weight = |u: f64| standard_normal_cdf(-u).powi(2);
        let start = from.max(-FARTHEST);
        let certain = value(start) - value(from);
        let steps = (0..STEPS).map(|k| {
            let (a, b) = (start + step * k as f64, start + step * (k + 1) as f64);
            weight(0.5 * (a + b)) * (value(b) - value(a))
        });
        certain + steps.sum::<f64>()
    };
    side(1.0) + side(-1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{Continuous, ContinuousCDF, LogNormal, Normal};

    #[test]
    fn without_a_map_they_are_those_of_gaussians() {
        let (m, v, y) = ([0.0, 1.0, -2.0], [1.0, 0.04, 9.0], [0.3, 2.5, -30.0]);
        let behind = Gaussians::new(&m, &v, &y).unwrap();
        let own = MappedGaussians { behind, means: &m, truths: &y, log_slopes: &[0.0; 3] };
        let (a, b) = (own.scores(2.0, |t| t).unwrap(), behind.scores(2.0).unwrap());
        assert!((a.crps / b.crps - 1.0).abs() < 1e-3, "{} {}", a.crps, b.crps);
        assert!((a.width_90 / b.width_90 - 1.0).abs() < 1e-12);
        let rest = RegressionScores {
            crps: b.crps,
            standardised: b.standardised,
            width_50: b.width_50,
            width_80: b.width_80,
            width_90: b.width_90,
            width_95: b.width_95,
            ..a
        };
        assert_eq!(rest, b);
    }

    #[test]
    fn log_normal_ones_have_their_closed_forms() {
        for (m, s, y) in [(0.2f64, 0.5f64, 1.4f64), (1.0, 1.2, 0.3), (-1.0, 0.1, 0.9), (0.0, 0.7, 1e-3)] {
            let t = y.ln();
            let mean = (m + 0.5 * s * s).exp();
            let (means, truths, slopes) = ([mean], [y], [-t]);
            let (at, variance, image) = ([m], [s * s], [t]);
            let behind = Gaussians::new(&at, &variance, &image).unwrap();
            let own = MappedGaussians { behind, means: &means, truths: &truths, log_slopes: &slopes };
            let scores = own.scores(1.0, f64::exp).unwrap();
            let density = LogNormal::new(m, s).unwrap();
            assert!((scores.nll + density.ln_pdf(y)).abs() < 1e-12);
            // Baran and Lerch, Quarterly Journal of the Royal Meteorological Society 141, 2015.
            let normal = Normal::new(0.0, 1.0).unwrap();
            let z = (t - m) / s;
            let closed = y * (2.0 * normal.cdf(z) - 1.0)
                - 2.0 * mean * (normal.cdf(z - s) + normal.cdf(s / 2f64.sqrt()) - 1.0);
            assert!((scores.crps / closed - 1.0).abs() < 2e-3, "{} {closed}", scores.crps);
            let width = density.inverse_cdf(0.95) - density.inverse_cdf(0.05);
            assert!((scores.width_90 / width - 1.0).abs() < 1e-6);
            assert!((scores.rmse - (y - mean).abs()).abs() < 1e-14);
        }
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let behind = Gaussians::new(&[0.0], &[1.0], &[0.0]).unwrap();
        let own = MappedGaussians { behind, means: &[0.0], truths: &[0.0], log_slopes: &[] };
        assert!(matches!(own.scores(1.0, |t| t), Err(MetricsError::Lengths { .. })));
    }
}
