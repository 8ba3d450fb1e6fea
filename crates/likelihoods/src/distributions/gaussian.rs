//! `y_c = f_c + ε_c`, `ε_c ~ N(0, σ_c²)` independently.

use super::{is_one, one};
use crate::error::check_outputs;
use crate::expectation::{Slopes, sum_over_outputs};
use crate::likelihood::assert_lengths;
use crate::{Likelihood, LikelihoodError};
use posterior_optim::{Constrained, Constraint, OptimError, Parameters, Segment, Transform};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

const NAME: &str = "gaussian";

/// Additive Gaussian noise, independent between outputs: one variance that all share, or one for each. Noise that is known for
/// each row is added by the model that holds the rows ([`Likelihood::with_row_noise`]).
///
/// Written with `noise_variance` and its `floor` where the variance is shared, else with a list `noise_variances`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Gaussian {
    /// One for each output.
    noise_variances: Vec<f64>,
    /// Whether all are one parameter.
    shared: bool,
    floor: f64,
    /// How it moves where a user has said so, and what was said: no part of what is written.
    constrained: Option<Box<(Transform, Vec<Constraint>)>>,
}

/// As written, before it is checked.
#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Written {
    Shared {
        noise_variance: f64,
        floor: f64,
        #[serde(default = "one", skip_serializing_if = "is_one")]
        outputs: usize,
    },
    ByOutput {
        noise_variances: Vec<f64>,
    },
}

impl TryFrom<Written> for Gaussian {
    type Error = LikelihoodError;
    fn try_from(written: Written) -> Result<Self, LikelihoodError> {
        match written {
            Written::ByOutput { noise_variances } => Self::independent(noise_variances),
            Written::Shared { noise_variance, floor, outputs } => {
                check_outputs(NAME, "outputs", outputs, 1, "give the number of targets of one observation")?;
                if floor >= 0.0 && noise_variance > floor && noise_variance.is_finite() {
                    return Ok(Self::new(noise_variance, floor).with_outputs(outputs));
                }
                Err(LikelihoodError::Parameter {
                    owner: NAME,
                    parameter: "noise_variance".into(),
                    value: format!("{noise_variance} with a floor of {floor}"),
                    remedy: "give a finite variance above its floor, and a floor that is not negative",
                })
            }
        }
    }
}

impl From<Gaussian> for Written {
    fn from(gaussian: Gaussian) -> Self {
        let (noise_variance, outputs) = (gaussian.noise_variance(), gaussian.outputs());
        match gaussian {
            Gaussian { shared: true, floor, .. } => Self::Shared { noise_variance, floor, outputs },
            Gaussian { noise_variances, .. } => Self::ByOutput { noise_variances },
        }
    }
}

impl Gaussian {
    /// Noise of the given variance on one output, never learned to be below `floor` (both in squared units of the target).
    ///
    /// The floor keeps `K + noise` factorable when the data seem free of noise.
    ///
    /// # Panics
    /// Unless `0 <= floor < noise_variance`.
    pub fn new(noise_variance: f64, floor: f64) -> Self {
        assert!(floor >= 0.0 && noise_variance > floor, "the noise variance must be above its floor");
        Self { noise_variances: vec![noise_variance], shared: true, floor, constrained: None }
    }

    /// This noise as searches may move it under what a user says of `noise_variance`: held, or between bounds, within which its value is moved. Nothing changes where nothing is said.
    ///
    /// # Errors
    /// [`OptimError::Constraint`] for another parameter, for what is below the floor, and for several constraints.
    ///
    /// # Panics
    /// For variances that outputs do not share.
    pub fn constrained(mut self, constraints: &[Constraint]) -> Result<Self, OptimError> {
        assert!(self.shared, "a noise variance that all outputs share");
        let map = Constrained::new(&mut self, constraints)?;
        self.constrained = match (constraints, map.transforms().first()) {
            ([_, ..], Some(transform)) => Some(Box::new((*transform, constraints.to_vec()))),
            _ => None,
        };
        Ok(self)
    }

    /// Where this variance stands at a bound that [`constrained`](Self::constrained) set, with that bound.
    pub fn at_bounds(&self) -> Vec<(String, f64)> {
        let Some((_, constraints)) = self.constrained.as_deref() else { return Vec::new() };
        let free = Self { constrained: None, ..self.clone() };
        let map = Constrained::new(&mut free.clone(), constraints);
        map.map_or_else(|_| Vec::new(), |map| map.at_bounds(&free.values()))
    }

    /// The noise of the first output on each of so many outputs, which share its variance.
    pub fn with_outputs(&self, outputs: usize) -> Self {
        Self { noise_variances: vec![self.noise_variance(); outputs], ..self.clone() }
    }

    /// Noise of the given variances, one for each output, in squared units of the target.
    ///
    /// # Errors
    /// When there is none, or one is not positive and finite.
    pub fn independent(noise_variances: Vec<f64>) -> Result<Self, LikelihoodError> {
        check_outputs(
            NAME,
            "the number of noise_variances",
            noise_variances.len(),
            1,
            "give one for each output",
        )?;
        if let Some(i) = noise_variances.iter().position(|&v| !(v > 0.0 && v.is_finite())) {
            return Err(LikelihoodError::Parameter {
                owner: NAME,
                parameter: format!("noise_variances[{i}]"),
                value: noise_variances[i].to_string(),
                remedy: "give a positive, finite variance in squared units of the target",
            });
        }
        Ok(Self { noise_variances, shared: false, floor: 0.0, constrained: None })
    }

    /// The variance of the noise of the first output, which is that of all where they share it.
    pub fn noise_variance(&self) -> f64 {
        self.noise_variances[0]
    }

    /// The variance of the noise of each output.
    pub fn noise_variances(&self) -> &[f64] {
        &self.noise_variances
    }

    /// The least variance that is learned.
    pub fn floor(&self) -> f64 {
        self.floor
    }
}

/// `log N(y; f, variance)`.
fn log_density(y: f64, f: f64, variance: f64) -> f64 {
    -0.5 * ((2.0 * PI * variance).ln() + (y - f) * (y - f) / variance)
}

/// The α-energy of one residual `r = y - m` under a latent variance and a noise variance.
pub(super) struct Energy {
    pub(super) value: f64,
    /// In the latent mean.
    pub(super) toward_mean: f64,
    /// In the latent variance.
    pub(super) toward_variance: f64,
    /// In the logarithm of the noise variance.
    pub(super) toward_noise: f64,
    /// The second derivative there.
    pub(super) noise_bend: f64,
}

impl Energy {
    pub(super) fn new(alpha: f64, residual: f64, variance: f64, noise: f64) -> Self {
        // Not `f64::max`, which would turn NaN into certainty.
        let variance = if variance < 0.0 { 0.0 } else { variance };
        let total = alpha * variance + noise;
        let ratio = alpha * variance / noise;
        // A variance that is infinitely many times the noise still has a logarithm.
        let spread = match alpha {
            0.0 => 0.5 * variance / noise,
            _ if ratio < 1e15 => ratio.ln_1p() / (2.0 * alpha),
            _ => (total.ln() - noise.ln()) / (2.0 * alpha),
        };
        let (scaled, square) = (residual / total, residual * residual / total);
        Self {
            value: 0.5 * (2.0 * PI * noise).ln() + spread + 0.5 * square,
            toward_mean: -scaled,
            toward_variance: 0.5 / total - 0.5 * alpha * scaled * scaled,
            toward_noise: 0.5 - 0.5 * variance / total - 0.5 * noise * scaled * scaled,
            noise_bend: noise
                * (0.5 * (variance - residual * residual) / (total * total)
                    + noise * scaled * scaled / total),
        }
    }
}

impl Parameters for Gaussian {
    fn segments(&self) -> Vec<Segment> {
        let usual = Transform::LogAbove { lower: self.floor };
        let transform = self.constrained.as_deref().map_or(usual, |(transform, _)| *transform);
        vec![Segment { name: "noise_variance".into(), shape: vec![self.values().len()], transform }]
    }
    fn values(&self) -> Vec<f64> {
        self.noise_variances[..if self.shared { 1 } else { self.outputs() }].to_vec()
    }
    fn set_values(&mut self, values: &[f64]) {
        assert_eq!(values.len(), self.values().len(), "one noise variance, or one for each output");
        match self.shared {
            true => self.noise_variances.fill(values[0]),
            false => self.noise_variances.copy_from_slice(values),
        }
    }
}

impl Likelihood for Gaussian {
    fn outputs(&self) -> usize {
        self.noise_variances.len()
    }
    fn name(&self) -> &'static str {
        NAME
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        assert_lengths(self, y, f);
        self.noise_variances.iter().zip(y.iter().zip(f)).map(|(v, (y, f))| log_density(*y, *f, *v)).sum()
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), f.len(), "a gradient has C numbers");
        for (i, out) in out.iter_mut().enumerate() {
            *out = (y[i] - f[i]) / self.noise_variances[i];
        }
    }
    /// `1 / σ_c²`.
    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), f.len(), "a diagonal has C numbers");
        out.iter_mut().zip(&self.noise_variances).for_each(|(out, v)| *out = 1.0 / v);
    }
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        mean.copy_from_slice(f);
        variance.copy_from_slice(&self.noise_variances);
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        assert_eq!((f.len(), out.len()), (self.outputs(), self.target_width()), "latent values and target");
        for (i, out) in out.iter_mut().enumerate() {
            let noise: f64 = StandardNormal.sample(rng);
            *out = f[i] + self.noise_variances[i].sqrt() * noise;
        }
    }
    fn shared_noise_variance(&self) -> Option<f64> {
        (self.shared || self.outputs() == 1).then(|| self.noise_variance())
    }
    fn with_row_noise(&self, variance: f64) -> Option<Box<dyn Likelihood>> {
        let noise_variances = self.noise_variances.iter().map(|v| v + variance).collect();
        Some(Box::new(Self { noise_variances, shared: self.shared, floor: 0.0, constrained: None }))
    }
    /// `log N(y; mean, σ²) - variance / (2σ²)`.
    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        sum_over_outputs(slopes, |i, parameters| {
            let noise = self.noise_variances[i];
            let squared = (y[i] - mean[i]).powi(2) + variance[i];
            parameters[if self.shared { 0 } else { i }] += 0.5 * (squared / noise - 1.0) / noise;
            let value = log_density(y[i], mean[i], noise) - 0.5 * variance[i] / noise;
            (value, (y[i] - mean[i]) / noise, -0.5 / noise)
        })
    }
    /// With `u = α v + σ²`: `½ log(2π σ²) + log(1 + α v / σ²) / (2 α) + r² / (2 u)`, whose limit at α = 0 has `v / (2 σ²)` in the middle.
    fn alpha_energy(&self, alpha: f64, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        sum_over_outputs(slopes, |i, parameters| {
            let noise = self.noise_variances[i];
            let energy = Energy::new(alpha, y[i] - mean[i], variance[i], noise);
            parameters[if self.shared { 0 } else { i }] += energy.toward_noise / noise;
            (energy.value, energy.toward_mean, energy.toward_variance)
        })
    }
    fn predictive_moments(&self, mean: &[f64], variance: &[f64], out: (&mut [f64], &mut [f64])) {
        out.0.copy_from_slice(mean);
        for (i, out) in out.1.iter_mut().enumerate() {
            *out = variance[i] + self.noise_variances[i];
        }
    }
    fn log_predictive_density(&self, y: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
        assert_lengths(self, y, mean);
        let total = |i: usize| self.noise_variances[i] + variance[i].max(0.0);
        (0..y.len()).map(|i| log_density(y[i], mean[i], total(i))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GaussHermite;
    use crate::expectation::tests::expect;
    use posterior_optim::check;
    use statrs::distribution::{Continuous, Normal};

    #[test]
    fn the_density_and_its_derivatives() {
        let likelihood = Gaussian::new(0.4, 0.0);
        let reference = Normal::new(1.2, 0.4f64.sqrt()).unwrap();
        assert!((likelihood.log_density(&[0.5], &[1.2]) - reference.ln_pdf(0.5)).abs() < 1e-14);
        let gradient = |f: f64| {
            let mut out = [0.0];
            likelihood.gradient(&[0.5], &[f], &mut out);
            out[0]
        };
        let numeric = check::gradient(|f| likelihood.log_density(&[0.5], f), &[1.2]);
        check::assert_close(&[gradient(1.2)], &numeric, 1e-9, 1e-10);
        let mut curvature = [0.0];
        likelihood.hessian(&[0.5], &[1.2], &mut curvature);
        let numeric = check::gradient(|f| -gradient(f[0]), &[1.2]);
        check::assert_close(&curvature, &numeric, 1e-9, 1e-10);
    }

    #[test]
    fn expectations_agree_with_quadrature_and_their_slopes_with_differences() {
        let likelihood = Gaussian::new(0.3, 0.0);
        let (value, slopes) = expect(&likelihood, &[0.7], &[-0.2], &[0.5]);
        let numeric: f64 = GaussHermite::standard()
            .nodes(-0.2, 0.5)
            .map(|(f, w)| w * likelihood.log_density(&[0.7], &[f]))
            .sum();
        assert!((value - numeric).abs() < 1e-12);
        let numeric = check::gradient(
            |p| expect(&Gaussian::new(p[2], 0.0), &[0.7], &p[..1], &p[1..2]).0,
            &[-0.2, 0.5, 0.3],
        );
        check::assert_close(&slopes, &numeric, 1e-9, 1e-9);
    }

    #[test]
    fn constraints_move_it_and_say_where_it_ended() {
        let held = |value| Constraint::Fixed { parameter: "noise_variance".into(), value };
        let noise = Gaussian::new(0.4, 1e-3);
        assert_eq!(noise.clone().constrained(&[]).unwrap(), noise);
        let fixed = noise.clone().constrained(&[held(Some(0.02))]).unwrap();
        assert_eq!((fixed.noise_variance(), fixed.unconstrained()), (0.02, vec![]));
        assert_eq!((fixed.chain(&[], &[3.0]), fixed.at_bounds()), (vec![], vec![]));
        let between = Constraint::Between { parameter: "noise_variance".into(), lower: 0.01, upper: 0.1 };
        let mut bounded = noise.clone().constrained(std::slice::from_ref(&between)).unwrap();
        assert!(bounded.noise_variance() < 0.1 && bounded.at_bounds().is_empty());
        for (u, bound) in [(-50.0, 0.01), (50.0, 0.1)] {
            bounded.set_unconstrained(&[u]);
            assert_eq!(bounded.at_bounds(), [("noise_variance".to_string(), bound)]);
        }
        for (constraints, problem) in [
            (vec![held(Some(1e-4))], "above 0.001"),
            (vec![held(None), between], "two constraints"),
            (
                vec![Constraint::Fixed { parameter: "lengthscale".into(), value: None }],
                "there are: noise_variance",
            ),
        ] {
            let told = noise.clone().constrained(&constraints).unwrap_err().to_string();
            assert!(told.contains(problem), "{told}");
        }
    }

    #[test]
    fn shared_noise_is_one_parameter_and_other_noise_several() {
        let mut shared = Gaussian::new(0.4, 0.1).with_outputs(3);
        assert_eq!((shared.values(), shared.shared_noise_variance()), (vec![0.4], Some(0.4)));
        shared.set_values(&[0.7]);
        assert_eq!(shared.noise_variances(), [0.7; 3]);
        let mut each = Gaussian::independent(vec![0.4, 0.2]).unwrap();
        assert_eq!((each.values(), each.shared_noise_variance()), (vec![0.4, 0.2], None));
        each.set_values(&[0.1, 0.3]);
        assert_eq!(each.noise_variances(), [0.1, 0.3]);
        let (y, mean, variance) = ([0.7, -0.3], [0.1, 0.2], [0.5, 0.9]);
        let numeric = check::gradient(
            |s| expect(&Gaussian::independent(s.to_vec()).unwrap(), &y, &mean, &variance).0,
            &[0.1, 0.3],
        );
        check::assert_close(&expect(&each, &y, &mean, &variance).1[4..], &numeric, 1e-9, 1e-9);
    }
}
