//! **Predictions of a target that was mapped** (its logarithm, say, was learned): Gaussian where they were made, in the target's own units whatever the way back makes of that.
//!
//! Quantiles and draws go back as they are: the map is increasing. Means and deviations are those of `g(m + s u)` with standard normal u: in closed form for the logarithm, else by the trapezoidal rule in u, whose error is below that of
//! rounding for smooth maps and about 1e-5 of a deviation where a power changes its form at 0.

use posterior_data::{Standardisation, TargetTransform, TransformedTarget};
use posterior_metrics::{Gaussians, MappedGaussians, MetricsError, RegressionScores, standard_normal_cdf};
use std::f64::consts::PI;

/// Distance of the rule's points, and how far they reach.
const STEP: f64 = 0.25;
const FARTHEST: i32 = 36;

/// `log Φ(z)`, by its asymptotic form where `Φ` would underflow.
fn log_normal_tail(z: f64) -> f64 {
    if z > -35.0 { standard_normal_cdf(z).ln() } else { log_normal_density(z, 1.0) - (-z).ln() }
}

/// `log φ(z)/s`.
fn log_normal_density(z: f64, deviation: f64) -> f64 {
    -0.5 * (2.0 * PI * deviation * deviation).ln() - 0.5 * z * z
}

/// From standard units to those of the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetMap {
    own: TransformedTarget,
    centre: f64,
    scale: f64,
}

impl TargetMap {
    /// Of a model whose target was mapped.
    pub fn of(standard: &Standardisation) -> Option<Self> {
        let own = standard.transform.as_deref()?;
        Some(Self { own: *own, centre: standard.target_mean, scale: standard.target_scale })
    }

    /// A value in the target's units.
    pub fn back(self, z: f64) -> f64 {
        self.own.invert(self.centre + self.scale * z)
    }

    /// A value in standard units.
    pub fn standard(self, y: f64) -> f64 {
        (self.own.apply(y) - self.centre) / self.scale
    }

    /// What a log density in standard units gains in the target's.
    pub fn log_slope(self, y: f64) -> f64 {
        self.own.by.log_slope(y) - self.scale.ln()
    }

    /// `log p(y)` in the target's units of a normal distribution in standard ones; of a value on a bound, or nearer to 0 than is told, the logarithm of the probability that lies there. Minus infinity without an image.
    pub fn log_density(self, (mean, deviation): (f64, f64), y: f64) -> f64 {
        let z = (self.standard(y) - mean) / deviation;
        let support = self.own.support;
        let own = if support.floor.is_some_and(|floor| y <= floor) {
            log_normal_tail(z)
        } else if support.ceiling.is_some_and(|ceiling| y >= ceiling) {
            log_normal_tail(-z)
        } else {
            self.log_slope(y) + log_normal_density(z, deviation)
        };
        if own.is_nan() { f64::NEG_INFINITY } else { own }
    }

    /// Mean and variance, in the target's units, of a normal distribution in standard ones.
    pub fn moments(self, mean: f64, deviation: f64) -> (f64, f64) {
        if self.own.by == TargetTransform::Log && self.own.support.ceiling.is_none() {
            let variance = (self.scale * deviation).powi(2);
            let mean = (self.centre + self.scale * mean + 0.5 * variance).exp();
            return (mean, mean * mean * variance.exp_m1());
        }
        let centre = self.back(mean);
        let (mut weights, mut first, mut second) = (0.0, 0.0, 0.0);
        for k in -FARTHEST..=FARTHEST {
            let u = STEP * f64::from(k);
            let weight = (-0.5 * u * u).exp();
            // From the middle, so that nothing is lost where the deviation is small.
            let away = self.back(mean + deviation * u) - centre;
            weights += weight;
            first += weight * away;
            second += weight * away * away;
        }
        let (first, second) = (first / weights, second / weights);
        (centre + first, (second - first * first).max(0.0))
    }
}

/// Predictions of rows where they are Gaussian.
#[derive(Clone, Debug, PartialEq)]
pub struct MappedPredictions {
    /// The way back.
    pub map: TargetMap,
    /// Means in standard units.
    pub mean: Vec<f64>,
    /// Standard deviations of observations, recalibrated where the model is, in standard units.
    pub deviation: Vec<f64>,
    /// Standard deviations of the function, in standard units.
    pub latent_deviation: Vec<f64>,
}

impl MappedPredictions {
    /// Means and deviations of observations, and deviations of the function, in the target's units.
    pub fn moments(&self) -> [Vec<f64>; 3] {
        let mut out: [Vec<f64>; 3] = Default::default();
        for ((m, s), l) in self.mean.iter().zip(&self.deviation).zip(&self.latent_deviation) {
            let (mean, variance) = self.map.moments(*m, *s);
            out[0].push(mean);
            out[1].push(variance.sqrt());
            out[2].push(self.map.moments(*m, *l).1.sqrt());
        }
        out
    }

    /// So many deviations above the mean, of observations or of the function, in the target's units.
    pub fn quantile(&self, deviations: f64, noise: bool) -> Vec<f64> {
        let own = if noise { &self.deviation } else { &self.latent_deviation };
        self.mean.iter().zip(own).map(|(m, s)| self.map.back(m + deviations * s)).collect()
    }

    /// `log p(y)` of each row in the target's units; minus infinity where the map has no image of it.
    pub fn log_densities(&self, truths: &[f64]) -> Vec<f64> {
        let density = |((m, s), y): ((&f64, &f64), &f64)| self.map.log_density((*m, *s), *y);
        self.mean.iter().zip(&self.deviation).zip(truths).map(density).collect()
    }

    /// Normal quantiles of the predicted probabilities of truths.
    pub fn residuals(&self, truths: &[f64]) -> Vec<f64> {
        let rows = self.mean.iter().zip(&self.deviation).zip(truths);
        rows.map(|((m, s), y)| (self.map.standard(*y) - m) / s).collect()
    }

    /// Scores against truths, with the means that were predicted in the target's units; `scale` is that of the target in training.
    ///
    /// # Errors
    /// [`MetricsError`], also for truths that the map has no image of.
    pub fn scores(
        &self,
        means: &[f64],
        truths: &[f64],
        scale: f64,
    ) -> Result<RegressionScores, MetricsError> {
        let variances: Vec<f64> = self.deviation.iter().map(|s| s * s).collect();
        let images: Vec<f64> = truths.iter().map(|y| self.map.standard(*y)).collect();
        // What makes of a density in standard units the target's, or the probability of a bound.
        let rows = self.mean.iter().zip(&self.deviation).zip(truths.iter().zip(&images));
        let slopes: Vec<f64> = rows
            .map(|((m, s), (y, image))| {
                self.map.log_density((*m, *s), *y) - log_normal_density((image - m) / s, *s)
            })
            .collect();
        let behind = Gaussians::new(&self.mean, &variances, &images)?;
        MappedGaussians { behind, means, truths, log_slopes: &slopes }.scores(scale, |z| self.map.back(z))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_data::Support;

    fn map(by: TargetTransform) -> TargetMap {
        let own = TransformedTarget { by, mean: 0.0, scale: 1.0, support: Support::default() };
        TargetMap { own, centre: 0.3, scale: 1.7 }
    }

    /// By the midpoint rule in steps of a thousandth.
    fn fine(map: TargetMap, mean: f64, deviation: f64) -> (f64, f64) {
        let (mut weights, mut first, mut second) = (0.0, 0.0, 0.0);
        for k in -12_000..12_000 {
            let u = (f64::from(k) + 0.5) / 1000.0;
            let (weight, y) = ((-0.5 * u * u).exp(), map.back(mean + deviation * u));
            weights += weight;
            first += weight * y;
            second += weight * y * y;
        }
        let mean = first / weights;
        (mean, second / weights - mean * mean)
    }

    #[test]
    fn moments_are_those_of_the_distribution_behind_the_map() {
        let powers = [0.0, 0.4, 1.6].map(|exponent| TargetTransform::YeoJohnson { exponent, unit: 20.0 });
        for by in powers.into_iter().chain([TargetTransform::Log]) {
            for (m, s) in [(0.1, 0.5), (-0.6, 0.2), (1.2, 0.05)] {
                let (mean, variance) = map(by).moments(m, s);
                let (own, other) = fine(map(by), m, s);
                assert!((mean - own).abs() < 1e-5 * other.sqrt().max(own.abs()), "{by} {mean} {own}");
                assert!((variance / other - 1.0).abs() < 1e-4, "{by} {variance} {other}");
            }
            // Of hardly any deviation nothing is lost: the slope times it.
            let (_, variance) = map(by).moments(0.7, 1e-9);
            let slope = (-map(by).log_slope(map(by).back(0.7))).exp();
            assert!((variance.sqrt() / (1e-9 * slope) - 1.0).abs() < 1e-6, "{by}");
        }
    }

    #[test]
    fn densities_have_mass_one_and_quantiles_hold_theirs() {
        let by = TargetTransform::YeoJohnson { exponent: 0.3, unit: 5.0 };
        let own = MappedPredictions {
            map: map(by),
            mean: vec![0.4],
            deviation: vec![0.3],
            latent_deviation: vec![0.1],
        };
        let [low, high] = [-8.0, 8.0].map(|z| own.quantile(z, true)[0]);
        let (steps, mut mass, mut below) = (400_000, 0.0, 0.0);
        let edge = own.quantile(0.7, true)[0];
        for k in 0..steps {
            let y = low + (high - low) * (f64::from(k) + 0.5) / f64::from(steps);
            let p = own.log_densities(&[y])[0].exp() * (high - low) / f64::from(steps);
            mass += p;
            below += if y < edge { p } else { 0.0 };
        }
        assert!((mass - 1.0).abs() < 1e-4, "{mass}");
        assert!((below - posterior_metrics::standard_normal_cdf(0.7)).abs() < 1e-3);
        assert!((own.residuals(&[edge])[0] - 0.7).abs() < 1e-12);
        assert!(own.quantile(1.0, false)[0] < own.quantile(1.0, true)[0]);
        // What no logarithm is of has no density, and is no panic.
        let log = MappedPredictions { map: map(TargetTransform::Log), ..own };
        assert_eq!(log.log_densities(&[-1.0]), [f64::NEG_INFINITY]);
        assert_eq!(log.log_densities(&[0.0]), [f64::NEG_INFINITY]);
    }

    #[test]
    fn scores_take_means_where_they_are_and_coverage_behind_the_map() {
        let own = MappedPredictions {
            map: map(TargetTransform::Log),
            mean: vec![0.0, 1.0],
            deviation: vec![0.5, 0.5],
            latent_deviation: vec![0.1, 0.1],
        };
        let truths: Vec<f64> = [0.1, 3.0].iter().map(|z| own.map.back(*z)).collect();
        let [means, ..] = own.moments();
        let scores = own.scores(&means, &truths, 1.0).unwrap();
        assert_eq!((scores.coverage_95, scores.n), (0.5, 2));
        let nll = -own.log_densities(&truths).iter().sum::<f64>() / 2.0;
        assert!((scores.nll - nll).abs() < 1e-12);
        assert!(own.scores(&means, &[1.0, -1.0], 1.0).is_err());
    }
}
