//! **Tempering**: variances times a factor, chosen on rows that were not trained on; means stay.
//!
//! Of Gaussian noise `y ~ N(m, α (r + σ²))` and the best factor is the mean of `(y - m)² / (r + σ²)`; of other likelihoods latent variances are multiplied, by one factor for each function, which minimise the rows'
//! negative log predictive density. Means over rows are weighted ones, where rows have weights.
//!
//! Source: spec `generalised_variational_inference`, section 9.3, (5.9) and (5.10) (erratum E10: the factor is positive).

use super::model::{GeneralisedData, GeneralisedGp};
use super::risk::total_weight;
use crate::GpError;
use faer::Mat;
use posterior_linear::low_rank::{ObservedRows, RowTerms};
use posterior_optim::{
    Lbfgs, LoopOptions, Objective, ObjectiveError, Optimiser, Parameters, Signal, Transform, minimise,
};
use serde::{Deserialize, Serialize};

/// Factors that are searched for lie between one over this and this.
const MOST: f64 = 1e4;

/// How factors are found.
#[derive(Clone, Debug, PartialEq)]
pub enum TemperingMethod {
    /// In closed form where noise is Gaussian, by L-BFGS between 1e-4 and 1e4 else: rows that are all predicted, or not at all, have no best factor.
    Best,
    /// By so many steps of a rule on their logarithms, as published (AdaBelief, 5,000 steps of 1e-3).
    Gradient {
        /// The rule with its step size.
        optimiser: Optimiser,
        /// Steps.
        steps: usize,
    },
}

/// What tempering did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tempered {
    /// What the variances of each function are multiplied by (C).
    pub factors: Vec<f64>,
    /// Mean negative log predictive density of the rows before, each with its weight, nats.
    pub before: f64,
    /// The same after; optimistic, since the factors were chosen by it.
    pub after: f64,
    /// Rows that chose.
    pub rows: usize,
}

/// Latent Gaussians of some rows under Q, with what was observed.
struct Rows<'a> {
    model: &'a GeneralisedGp,
    observed: ObservedRows<'a>,
    /// The sum of weights of rows.
    total: f64,
    means: Mat<f64>,
    variances: Mat<f64>,
    /// From what is searched to a factor.
    transform: Transform,
}

impl Rows<'_> {
    fn factors(&self, theta: &[f64]) -> Vec<f64> {
        theta.iter().map(|t| self.transform.forward(0, *t)).collect()
    }

    /// Mean negative log predictive density at factors, with slopes in them.
    fn at(&self, factors: &[f64]) -> (f64, Vec<f64>) {
        let (b, functions) = self.means.shape();
        let total = self.total;
        let variances = Mat::from_fn(b, functions, |i, c| factors[c] * self.variances[(i, c)]);
        let likelihood = self.model.noise_times(factors);
        let likelihood = likelihood.as_deref().unwrap_or(self.model.likelihood());
        let terms = RowTerms::of(likelihood, 1.0, &self.observed, (&self.means, &variances));
        let mut slopes = vec![0.0; functions];
        for (c, slope) in slopes.iter_mut().enumerate() {
            let pairs = terms.variances.col_as_slice(c).iter().zip(self.variances.col_as_slice(c));
            *slope = -pairs.map(|(s, v)| s * v).sum::<f64>() / total;
        }
        if self.model.is_gaussian() {
            // Noise is multiplied as well, and there is one of it.
            let noise = self.model.likelihood().shared_noise_variance().unwrap_or(0.0);
            slopes[0] -= terms.parameters[0] * noise / total;
        }
        (-terms.value / total, slopes)
    }
}

impl Objective for Rows<'_> {
    fn dimension(&self) -> usize {
        self.model.functions()
    }

    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        let (value, slopes) = self.at(&self.factors(theta));
        let ways = theta.iter().map(|t| self.transform.derivative(0, *t));
        gradient.iter_mut().zip(slopes).zip(ways).for_each(|((g, s), d)| *g = s * d);
        Ok(value)
    }
}

impl GeneralisedGp {
    /// Whether one function is observed under Gaussian noise, which tempering multiplies as well.
    pub(super) fn is_gaussian(&self) -> bool {
        self.functions() == 1 && self.likelihood.shared_noise_variance().is_some()
    }

    /// The likelihood under factors, where these are of its noise as well.
    pub(super) fn noise_times(&self, factors: &[f64]) -> Option<Box<dyn posterior_likelihoods::Likelihood>> {
        self.is_gaussian().then(|| {
            let mut likelihood = self.likelihood.clone();
            let noise: Vec<f64> = likelihood.values().iter().map(|v| v * factors[0]).collect();
            likelihood.set_values(&noise);
            likelihood
        })
    }

    /// The same process with variances that suit rows which it was not trained on. Cost that of predicting them.
    ///
    /// # Errors
    /// [`GpError`] for rows that do not fit; [`GpError::Optim`] when factors cannot be searched for.
    pub fn temper(
        self,
        data: &GeneralisedData<'_>,
        way: &TemperingMethod,
    ) -> Result<(Self, Tempered), GpError> {
        self.check(data)?;
        let mut model = self.tempered_by_one()?;
        let observations = data.observations;
        let rows = observations.rows();
        let latent = model.latent(observations.inputs(), data.given)?;
        let (noise, weights) = (observations.noise_variances(), observations.weights());
        let observed =
            ObservedRows { targets: observations.targets(), noise, weights, offsets: observations.offsets() };
        let total = total_weight(observations);
        let (means, variances) = (latent.mean, latent.variance);
        let mut of = Rows { model: &model, observed, total, means, variances, transform: Transform::Log };
        let one = vec![1.0; model.functions()];
        let (before, _) = of.at(&one);
        let closed = model.is_gaussian() && noise.is_none();
        let factors = match way {
            TemperingMethod::Best if closed => {
                let sigma = model.likelihood().shared_noise_variance().unwrap_or(0.0);
                let ratio = |i: usize| {
                    let offset = observations.offsets().map_or(0.0, |offsets| offsets[i]);
                    let residual = observations.targets()[(i, 0)] - of.means[(i, 0)] - offset;
                    let weight = weights.map_or(1.0, |weights| weights[i]);
                    weight * residual * residual / (of.variances[(i, 0)] + sigma)
                };
                vec![(0..rows).map(ratio).sum::<f64>() / total]
            }
            TemperingMethod::Best => {
                let options = LoopOptions {
                    gradient_tolerance: 1e-9,
                    value_tolerance: 1e-12,
                    ..LoopOptions::default()
                };
                // Some rows have no best factor: of classes that are all predicted, or none, larger or smaller is better for ever.
                of.transform = Transform::LogBounded { lower: 1.0 / MOST, upper: MOST };
                let start = vec![of.transform.inverse(0, 1.0); one.len()];
                let optimiser = Optimiser::Lbfgs(Lbfgs::default());
                let found = minimise(&mut of, &start, optimiser, &options, &mut |_, _| Signal::Continue)?;
                of.factors(&found.theta)
            }
            TemperingMethod::Gradient { optimiser, steps } => {
                let options = LoopOptions {
                    steps: *steps,
                    gradient_tolerance: 1e-9,
                    value_tolerance: 0.0,
                    patience: usize::MAX,
                    time: None,
                };
                let start = vec![0.0; one.len()];
                let found =
                    minimise(&mut of, &start, optimiser.clone(), &options, &mut |_, _| Signal::Continue)?;
                of.factors(&found.theta)
            }
        };
        // All residuals may be zero, and a factor of zero is no distribution.
        let factors: Vec<f64> = factors.into_iter().map(|f| f.max(f64::MIN_POSITIVE.sqrt())).collect();
        let (after, _) = of.at(&factors);
        let likelihood = model.noise_times(&factors);
        if let Some(likelihood) = likelihood {
            model.likelihood = likelihood;
        }
        let tempered = Tempered { factors: factors.clone(), before, after, rows };
        Ok((model.tempered(factors)?, tempered))
    }

    /// Without the tempering that there is, but for the noise, which stays.
    fn tempered_by_one(self) -> Result<Self, GpError> {
        let one = vec![1.0; self.functions()];
        self.tempered(one)
    }
}
