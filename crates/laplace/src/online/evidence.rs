//! The evidence of the **tangent model at weights that are no minimum**, and steps up its slope.
//!
//! With `q = s g + A v` the gradient of the regularised loss at `v` (`s` the noise precision, `g` the gradient of the sum of squares), `H = s M + A` and `z = H^-1 q`, the mode of
//! the tangent model is `v - z` and its evidence under Gaussian noise `G_v + 1/2 q^T z` (spec `linearised_laplace`, section 3.4). The slopes are those of the evidence at that mode:
//! `1/2 (gamma_l - a_l |v_l - z_l|^2)`, and likewise for the noise, without another pass over the data.

use super::HyperparameterRule;
use crate::LaplaceError;
use posterior_linear::Prior;
use posterior_linear::evidence::{
    DataFit, EvidenceOptions, EvidenceValue, LaplaceEvidence, noise_update, precision_update,
};
use posterior_linear::structure::Structure;
use posterior_optim::Adaptive;

/// The evidence as a function of precisions and noise, with or without the first-order term.
pub struct TangentEvidence<'a> {
    evidence: LaplaceEvidence<'a>,
    structure: &'a Structure,
    prior: Prior,
    weights: &'a [f64],
    gradient: Option<&'a [f64]>,
    fit: DataFit,
}

impl<'a> TangentEvidence<'a> {
    /// At weights `v`, with the curvature and fit there. With `gradient`, that of the negative log-likelihood at noise variance 1 in each weight, the first-order term is added.
    ///
    /// # Errors
    /// When sizes differ, a number is not finite, or a first-order term is asked for a likelihood without Gaussian noise.
    pub fn new(
        structure: &'a Structure,
        prior: Prior,
        weights: &'a [f64],
        gradient: Option<&'a [f64]>,
        fit: DataFit,
    ) -> Result<Self, LaplaceError> {
        if let Some(gradient) = gradient {
            if !fit.has_noise() {
                return Err(LaplaceError::Request(
                    "the first-order term of the evidence is known for Gaussian noise only: leave it out"
                        .into(),
                ));
            }
            if gradient.len() != weights.len() || gradient.iter().any(|g| !g.is_finite()) {
                return Err(LaplaceError::Request(format!(
                    "the first-order term needs a finite gradient of {} weights, but got {}",
                    weights.len(),
                    gradient.len()
                )));
            }
        }
        let evidence = LaplaceEvidence::new(structure, prior.clone(), weights, fit)?;
        Ok(Self { evidence, structure, prior, weights, gradient, fit })
    }

    /// The value, with its first-order term: the latter is part of the log evidence, and slopes are those of the sum.
    ///
    /// # Errors
    /// When a precision is not positive or a factorisation fails.
    pub fn at(&self, precisions: &[f64], noise: f64) -> Result<(EvidenceValue, f64), LaplaceError> {
        let mut value = self.evidence.at(precisions, noise)?;
        let Some(gradient) = self.gradient else { return Ok((value, 0.0)) };
        let prior = self.prior.with_precisions(precisions)?;
        let strength = self.fit.strength(noise);
        let each = prior.precision_of_each(0..self.weights.len());
        let q: Vec<f64> =
            gradient.iter().zip(&each).zip(self.weights).map(|((g, a), v)| strength * g + a * v).collect();
        let z = self.structure.condition(&prior, strength)?.solve(&q);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let term = 0.5 * dot(&q, &z);
        value.log_evidence += term;
        // 1/2 (gamma - a |v - z|^2) instead of 1/2 (gamma - a |v|^2).
        let mode: Vec<f64> = self.weights.iter().zip(&z).map(|(v, z)| v - z).collect();
        let (at_weights, at_mode) = (prior.squared_norms(self.weights), prior.squared_norms(&mode));
        for (((slope, a), v), w) in value.slopes.iter_mut().zip(precisions).zip(at_weights).zip(at_mode) {
            *slope += 0.5 * a * (v - w);
        }
        value.noise_slope -= strength * (dot(gradient, &z) - 0.5 * dot(&z, &self.structure.apply(&z)));
        Ok((value, term))
    }

    /// Climbs `steps` times from `precisions` and `noise`, which become the best that were met, and returns the value before the first step and there, with its first-order term.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub(super) fn climb(
        &self,
        precisions: &mut [f64],
        noise: &mut f64,
        learn_noise: bool,
        rule: HyperparameterRule,
        steps: usize,
        adam: &mut Option<Adaptive>,
    ) -> Result<(f64, EvidenceValue, f64), LaplaceError> {
        let learn_noise = learn_noise && self.fit.has_noise();
        let bounds = EvidenceOptions::default();
        let within = |v: f64, (low, high): (f64, f64)| v.clamp(low, high);
        let start = self.at(precisions, *noise)?;
        let before = start.0.log_evidence;
        let mut best = (precisions.to_vec(), *noise, start.clone());
        let mut now = start;
        for _ in 0..steps {
            match rule {
                HyperparameterRule::Adam { learning_rate } => {
                    let mut theta: Vec<f64> = precisions.iter().map(|a| a.ln()).collect();
                    let mut gradient: Vec<f64> = now.0.slopes.iter().map(|s| -s).collect();
                    if learn_noise {
                        theta.push(noise.ln());
                        gradient.push(-now.0.noise_slope);
                    }
                    adam.get_or_insert_with(|| Adaptive::adam(learning_rate))
                        .step(&mut theta, &gradient, steps);
                    precisions
                        .iter_mut()
                        .zip(&theta)
                        .for_each(|(a, t)| *a = within(t.exp(), bounds.precisions));
                    if learn_noise {
                        *noise = within(theta[precisions.len()].exp(), bounds.noise_variances);
                    }
                }
                HyperparameterRule::Mackay => {
                    let gamma: f64 = now.0.effective_dimensions.iter().sum();
                    for ((a, g), slope) in
                        precisions.iter_mut().zip(&now.0.effective_dimensions).zip(&now.0.slopes)
                    {
                        // The slope is 1/2 (gamma - a |u|^2): what it lacks of gamma is the norm.
                        let norm = (g - 2.0 * slope).max(1e-300);
                        *a = within(precision_update(*g, norm / *a), bounds.precisions);
                    }
                    if let (true, DataFit::Gaussian { values, .. }) = (learn_noise, self.fit) {
                        let residual = (2.0 * now.0.noise_slope + values as f64 - gamma).max(0.0);
                        let wanted = noise_update(residual * *noise, values, gamma, *noise);
                        *noise = within(wanted, bounds.noise_variances);
                    }
                }
            }
            now = self.at(precisions, *noise)?;
            if now.0.log_evidence >= best.2.0.log_evidence {
                best = (precisions.to_vec(), *noise, now.clone());
            }
        }
        // Steps may pass the maximum, and fixed points run away under approximate curvatures: what is kept is never worse than the start.
        precisions.copy_from_slice(&best.0);
        *noise = best.1;
        Ok((before, best.2.0, best.2.1))
    }
}
