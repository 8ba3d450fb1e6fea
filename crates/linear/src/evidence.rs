//! The **Laplace evidence** of a linear model with a structured curvature, and the hyperparameters that maximise it.
//!
//! With weights `u`, prior precision `A` and curvature `s M` (thesis eq. 5.6; the Gaussian constants of spec `linearised_laplace`, section 3.3):
//!
//! `G(A, s) = log p(Y | u) - 1/2 [ |u|_A^2 + log det(I + A^-1 s M) ]`.
//!
//! It is concave in `log A`, with the slope `1/2 (gamma_l - a_l |u_l|^2)`. Under Gaussian noise `s = 1 / sigma^2` and the slope in `log sigma^2` is
//! `1/2 (RSS / sigma^2 - n + gamma)`. Both vanish at MacKay's fixed points `a_l = gamma_l / |u_l|^2` and `sigma^2 = RSS / (n - gamma)`.

mod conjugate;
mod search;
mod spectral;

pub use conjugate::{DualModel, PrimalModel};
pub use search::{MOST_FITTED, noise_update, precision_update};
pub use spectral::SpectralEvidence;

use crate::structure::{Structure, StructureError};
use crate::{Prior, PriorError};
use posterior_optim::OptimError;
use serde::{Deserialize, Serialize};

/// How well the mode fits the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DataFit {
    /// `log p(Y | u)`; the curvature's strength is 1.
    LogLikelihood {
        /// In nats, summed over the data.
        value: f64,
    },
    /// Gaussian noise of precision `1 / sigma^2` (times fixed relative precisions of total log `log_relative_precision`); the curvature was summed with those relative precisions only.
    Gaussian {
        /// The (relatively weighted) sum of squared residuals.
        residual_sum: f64,
        /// Observed numbers: examples x outputs.
        values: usize,
        /// Sum of the logarithms of the relative precisions.
        log_relative_precision: f64,
    },
}

impl DataFit {
    /// `log p(Y | u)` at a noise variance (which likelihoods without noise ignore).
    pub fn log_likelihood(&self, noise_variance: f64) -> f64 {
        match *self {
            Self::LogLikelihood { value } => value,
            Self::Gaussian { residual_sum, values, log_relative_precision } => {
                let constant = values as f64 * (2.0 * std::f64::consts::PI * noise_variance).ln();
                0.5 * (log_relative_precision - constant - residual_sum / noise_variance)
            }
        }
    }

    /// The curvature's strength.
    pub fn strength(&self, noise_variance: f64) -> f64 {
        if self.has_noise() { 1.0 / noise_variance } else { 1.0 }
    }

    /// Whether there is a noise variance to learn.
    pub fn has_noise(&self) -> bool {
        matches!(self, Self::Gaussian { .. })
    }
}

/// The evidence as a function of the prior's precisions and the noise.
#[derive(Clone, Debug)]
pub struct LaplaceEvidence<'a> {
    structure: &'a Structure,
    prior: Prior,
    squared_norms: Vec<f64>,
    fit: DataFit,
}

/// The evidence at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceValue {
    /// The log evidence, nats.
    pub log_evidence: f64,
    /// `log p(Y | u)`.
    pub log_likelihood: f64,
    /// `|u|_A^2`.
    pub prior_term: f64,
    /// `log det(I + A^-1 s M)`.
    pub log_determinant: f64,
    /// `gamma` of each group.
    pub effective_dimensions: Vec<f64>,
    /// Its derivative in the logarithm of each precision.
    pub slopes: Vec<f64>,
    /// Its derivative in the logarithm of the noise variance; 0 without noise.
    pub noise_slope: f64,
}

/// How the maximum is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Maximiser {
    /// L-BFGS on the logarithms.
    Gradient,
    /// MacKay's fixed-point updates.
    Mackay,
}

/// Bounds and patience of the search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceOptions {
    /// Least and largest prior precision (spec `linearised_laplace`, section 4.2).
    pub precisions: (f64, f64),
    /// Least and largest noise variance.
    pub noise_variances: (f64, f64),
    /// Steps at most.
    pub steps: usize,
    /// The search ends when no logarithm changes by more.
    pub tolerance: f64,
}

impl Default for EvidenceOptions {
    fn default() -> Self {
        Self { precisions: (1e-8, 1e10), noise_variances: (1e-12, 1e12), steps: 200, tolerance: 1e-6 }
    }
}

/// One step of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceStep {
    /// Prior precisions by group.
    pub precisions: Vec<f64>,
    /// Noise variance.
    pub noise_variance: f64,
    /// Log evidence there.
    pub log_evidence: f64,
}

/// Where the search ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MaximisedEvidence {
    /// The prior with its best precisions.
    pub prior: Prior,
    /// The best noise variance (as given, without noise to learn).
    pub noise_variance: f64,
    /// The evidence there.
    pub value: EvidenceValue,
    /// Every evaluation, the start first and the result last.
    pub steps: Vec<EvidenceStep>,
    /// Whether the tolerance was reached.
    pub converged: bool,
    /// Groups whose precision ended at a bound, and `noise` if the noise did.
    pub at_bounds: Vec<String>,
}

/// What can fail on the way.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// The curvature.
    #[error(transparent)]
    Structure(#[from] StructureError),
    /// The prior.
    #[error(transparent)]
    Prior(#[from] PriorError),
    /// The search.
    #[error(transparent)]
    Optim(#[from] OptimError),
    /// Weights that are not finite or of another number.
    #[error("the evidence needs {expected} finite weights and a finite fit to the data, but got {found}")]
    Weights {
        /// Weights of the curvature.
        expected: usize,
        /// What was given.
        found: String,
    },
}

impl<'a> LaplaceEvidence<'a> {
    /// For weights `mode` (the `u` of the formula, in unscaled units) under a prior whose precisions are the start.
    ///
    /// # Errors
    /// When sizes differ or a number is not finite.
    pub fn new(
        structure: &'a Structure,
        prior: Prior,
        mode: &[f64],
        fit: DataFit,
    ) -> Result<Self, EvidenceError> {
        let expected = structure.dimension();
        let refuse = |found: String| Err(EvidenceError::Weights { expected, found });
        if mode.len() != expected {
            return refuse(format!("{} weights", mode.len()));
        }
        if prior.dimension() != expected {
            return Err(StructureError::Prior { expected, found: prior.dimension() }.into());
        }
        if let Some(i) = mode.iter().position(|w| !w.is_finite()) {
            return refuse(format!("{} as weight {i}", mode[i]));
        }
        if !fit.log_likelihood(1.0).is_finite() {
            return refuse(format!("a log likelihood of {}", fit.log_likelihood(1.0)));
        }
        let squared_norms = prior.squared_norms(&structure.scaled_coordinates(mode));
        Ok(Self { structure, prior, squared_norms, fit })
    }

    /// `|u_l|^2` of each group, in the coordinates the prior acts on.
    pub fn squared_norms(&self) -> &[f64] {
        &self.squared_norms
    }

    /// The evidence at given precisions and noise variance.
    ///
    /// # Errors
    /// When a precision is not positive or a factorisation fails.
    pub fn at(&self, precisions: &[f64], noise_variance: f64) -> Result<EvidenceValue, EvidenceError> {
        let prior = self.prior.with_precisions(precisions)?;
        let terms = self.structure.terms(&prior, self.fit.strength(noise_variance))?;
        let parts: Vec<f64> = precisions.iter().zip(&self.squared_norms).map(|(a, n)| a * n).collect();
        let prior_term: f64 = parts.iter().sum();
        let slopes = terms.effective_dimensions.iter().zip(&parts).map(|(g, p)| 0.5 * (g - p)).collect();
        let noise_slope = match self.fit {
            DataFit::LogLikelihood { .. } => 0.0,
            DataFit::Gaussian { residual_sum, values, .. } => {
                let gamma: f64 = terms.effective_dimensions.iter().sum();
                0.5 * (residual_sum / noise_variance - values as f64 + gamma)
            }
        };
        let log_likelihood = self.fit.log_likelihood(noise_variance);
        Ok(EvidenceValue {
            log_evidence: log_likelihood - 0.5 * (prior_term + terms.log_determinant),
            log_likelihood,
            prior_term,
            log_determinant: terms.log_determinant,
            effective_dimensions: terms.effective_dimensions,
            slopes,
            noise_slope,
        })
    }

    /// The best precisions (and noise variance, if `learn_noise` and there is noise), from the prior's own as the start.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn maximise(
        &self,
        noise_variance: f64,
        learn_noise: bool,
        maximiser: Maximiser,
        options: &EvidenceOptions,
    ) -> Result<MaximisedEvidence, EvidenceError> {
        let learn_noise = learn_noise && self.fit.has_noise();
        let start = self.at(self.prior.precisions(), noise_variance)?;
        let mut steps = vec![EvidenceStep {
            precisions: self.prior.precisions().to_vec(),
            noise_variance,
            log_evidence: start.log_evidence,
        }];
        let converged = match maximiser {
            Maximiser::Mackay => self.mackay(learn_noise, options, &mut steps)?,
            Maximiser::Gradient => self.gradient(learn_noise, options, &mut steps)?,
        };
        // Where a search ends is where it was best; the start is one of its steps.
        let best = steps.iter().rev().filter(|s| s.log_evidence.is_finite());
        let best = best.fold(None, |best: Option<&EvidenceStep>, s| match best {
            Some(b) if b.log_evidence >= s.log_evidence => Some(b),
            _ => Some(s),
        });
        let EvidenceStep { precisions, noise_variance, .. } = best.unwrap_or(&steps[0]).clone();
        let value = self.at(&precisions, noise_variance)?;
        let near = |v: f64, (low, high): (f64, f64)| v <= low * 1.000_001 || v >= high / 1.000_001;
        let mut at_bounds: Vec<String> = precisions
            .iter()
            .zip(self.prior.names())
            .filter(|(p, _)| near(**p, options.precisions))
            .map(|(_, name)| name.clone())
            .collect();
        if learn_noise && near(noise_variance, options.noise_variances) {
            at_bounds.push("noise".into());
        }
        let prior = self.prior.with_precisions(&precisions)?;
        Ok(MaximisedEvidence { prior, noise_variance, value, steps, converged, at_bounds })
    }
}
