//! How well a model fits.

use crate::evidence::DataFit;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::parallel;
use serde::{Deserialize, Serialize};

/// How well the model at its expansion point fits the examples seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FitSums {
    /// Examples.
    pub examples: usize,
    /// `sum log p(y | f)`.
    pub log_likelihood: f64,
    /// `sum log p(y | y)` under Gaussian noise: the constant part.
    pub constant: f64,
}

impl FitSums {
    pub(super) fn add(&mut self, other: &Self) {
        self.examples += other.examples;
        self.log_likelihood += other.log_likelihood;
        self.constant += other.constant;
    }

    /// Adds a batch with targets and outputs `f` (nC); the order of summation does not depend on threads.
    pub fn add_batch(&mut self, likelihood: &OutputLikelihood, targets: &[f64], f: &[f64]) {
        let (gaussian, c) = (is_gaussian(likelihood), likelihood.outputs());
        let width = likelihood.target_width();
        let one = |i: usize| {
            let (f, y) = (&f[i * c..][..c], &targets[i * width..][..width]);
            let constant = if gaussian { likelihood.log_density(y, y) } else { 0.0 };
            (likelihood.log_density(y, f), constant)
        };
        let terms: Vec<(f64, f64)> = parallel::map(f.len() / c, 64, one);
        self.examples += terms.len();
        for (log_likelihood, constant) in terms {
            self.log_likelihood += log_likelihood;
            self.constant += constant;
        }
    }

    /// The fit as the evidence wants it. Under Gaussian noise the noise variance of the evidence is a multiple of the likelihood's own.
    pub fn data_fit(&self, likelihood: &OutputLikelihood) -> DataFit {
        if !is_gaussian(likelihood) {
            return DataFit::LogLikelihood { value: self.log_likelihood };
        }
        let values = self.examples * likelihood.outputs();
        let constant = values as f64 * (2.0 * std::f64::consts::PI).ln();
        DataFit::Gaussian {
            residual_sum: 2.0 * (self.constant - self.log_likelihood),
            values,
            log_relative_precision: 2.0 * self.constant + constant,
        }
    }
}

/// Whether the noise is additive, Gaussian and the same everywhere.
pub fn is_gaussian(likelihood: &OutputLikelihood) -> bool {
    matches!(likelihood, OutputLikelihood::Gaussian(_) | OutputLikelihood::FullGaussian(_))
}
