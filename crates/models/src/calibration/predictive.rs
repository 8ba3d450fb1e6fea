//! **Predictive distributions** of a set of examples, of every family: what is predicted, and the latent marginals behind it.

use super::classes::PredictedSets;
use super::numbers::{self, Intervals};
use super::observed::ObservedTails;
use crate::{MappedPredictions, Truth, VarianceSolves};
use posterior_data::{InputMoments, Notes};
use posterior_likelihoods::CountMixture;
use posterior_metrics::entropy;
use rayon::prelude::*;
use serde::Serialize;
use std::f64::consts::PI;

/// What a model predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictedKind {
    /// Classes.
    Classes,
    /// Events that happen or not.
    Events,
    /// Numbers and counts.
    Values,
}

/// What is predicted, by kind of likelihood; `width` numbers for each example.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicted {
    /// Class probabilities.
    Classes(Vec<f64>),
    /// Probabilities of events.
    Events(Vec<f64>),
    /// Moments in the target's units.
    Moments {
        /// Means of observations.
        mean: Vec<f64>,
        /// Variances of observations, noise included.
        variance: Vec<f64>,
        /// Variances without noise.
        latent_variance: Vec<f64>,
    },
}

/// Predictions of a set of examples.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictive {
    /// What is predicted.
    pub predicted: Predicted,
    /// Whether observations are Gaussian given the input, so that they have simple quantiles.
    pub gaussian: bool,
    /// Whether it is the logarithm of what is predicted that is Gaussian: rates that are not observed themselves.
    pub log_gaussian: bool,
    /// Whether they are counts whose log rate is Gaussian and averaged over, so that moments tell the distribution.
    pub counts: bool,
    /// The predictions where they are Gaussian, of a target that was mapped.
    pub mapped: Option<MappedPredictions>,
    /// Numbers for each example: classes, events, or numbers of a target.
    pub width: usize,
    /// Latent values of each example: outputs of a network, functions of a process.
    pub outputs: usize,
    /// Means of the latent values, `[examples, outputs]`: a network's in its own units, a process's in the target's.
    pub latent_mean: Vec<f64>,
    /// Their standard deviations.
    pub latent_deviation: Vec<f64>,
    /// `log p(y | x)` of each example in nats, in the target's units, where truths are known.
    pub log_density: Option<Vec<f64>>,
    /// The part of each example's entropy that knowing the function would remove, nats: the mutual information of label and function; where it is known.
    pub removable_entropy: Option<Vec<f64>>,
    /// Latent variances that rounding had made negative and that were taken as zero.
    pub clipped: usize,
    /// Which examples of the data these are, where some have no prediction.
    pub examples: Option<Vec<usize>>,
    /// What came true, where the question wanted it.
    pub truth: Option<Truth>,
    /// What was left out and filled in of a table's rows.
    pub data: Notes,
    /// How exact variances by solves are, where there were solves.
    pub solves: Option<VarianceSolves>,
    /// How wide intervals of observations are where they were recalibrated, for each number of an example; empty where none were.
    pub intervals: Vec<Option<Intervals>>,
    /// What quantiles of counts and of numbers with outliers go by, where rows tell them.
    pub tails: Option<ObservedTails>,
    /// Sets of classes at the levels that were asked for.
    pub sets: Vec<PredictedSets>,
    /// Where the inputs lay, for [`Model::departures`](crate::Model::departures).
    pub inputs: InputMoments,
}

impl Predictive {
    /// Of no examples yet: `width` numbers and as many `outputs` for each that is to come.
    pub(crate) fn empty(predicted: Predicted, gaussian: bool, width: usize, outputs: usize) -> Self {
        Self {
            predicted,
            gaussian,
            log_gaussian: false,
            counts: false,
            mapped: None,
            width,
            outputs,
            latent_mean: Vec::new(),
            latent_deviation: Vec::new(),
            log_density: None,
            removable_entropy: None,
            clipped: 0,
            examples: None,
            truth: None,
            data: Notes::default(),
            solves: None,
            intervals: Vec::new(),
            tails: None,
            sets: Vec::new(),
            inputs: InputMoments::default(),
        }
    }

    /// Gaussian predictions of one number for each example, in the target's units, from means and the standard deviations of observations and of the function.
    pub fn gaussian(
        mean: Vec<f64>,
        deviation: &[f64],
        latent_deviation: Vec<f64>,
        truths: Option<&[f64]>,
    ) -> Self {
        let squared = |deviations: &[f64]| deviations.iter().map(|s| s * s).collect::<Vec<_>>();
        let (variance, latent_variance) = (squared(deviation), squared(&latent_deviation));
        let density = |((m, v), y): ((&f64, &f64), &f64)| -0.5 * ((2.0 * PI * v).ln() + (y - m).powi(2) / v);
        let log_density = truths.map(|truths| mean.iter().zip(&variance).zip(truths).map(density).collect());
        let latent_mean = mean.clone();
        let predicted = Predicted::Moments { mean, variance, latent_variance };
        Self { latent_mean, latent_deviation, log_density, ..Self::empty(predicted, true, 1, 1) }
    }

    /// The same of a target that was mapped: Gaussian where the map leads, with these moments in its own units.
    pub(crate) fn behind(self, mapped: MappedPredictions, truths: Option<&[f64]>) -> Self {
        let log_density = truths.map(|truths| mapped.log_densities(truths));
        Self { gaussian: false, mapped: Some(mapped), log_density, ..self }
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.latent_mean.len() / self.outputs.max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether scores of means and variances take observations as Gaussian that are not.
    pub fn is_approximated(&self) -> bool {
        !self.gaussian && self.mapped.is_none()
    }

    /// Probabilities of classes or events; None for numbers.
    pub fn probabilities(&self) -> Option<&[f64]> {
        match &self.predicted {
            Predicted::Classes(p) | Predicted::Events(p) => Some(p),
            Predicted::Moments { .. } => None,
        }
    }

    /// The `count` most probable classes of each example, most probable first, with their probabilities.
    pub fn top(&self, count: usize) -> Vec<Vec<(usize, f64)>> {
        let Predicted::Classes(p) = &self.predicted else { return Vec::new() };
        let top = |row: &[f64]| {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
            order.truncate(count);
            order.into_iter().map(|c| (c, row[c])).collect()
        };
        p.chunks_exact(self.width).map(top).collect()
    }

    /// Entropy of each example's class probabilities (or the sum over its events), nats; empty for numbers.
    pub fn entropies(&self) -> Vec<f64> {
        match &self.predicted {
            Predicted::Classes(p) => p.chunks_exact(self.width).map(entropy).collect(),
            Predicted::Events(p) => {
                let both = |p: &f64| entropy(&[*p, 1.0 - p]);
                p.chunks_exact(self.width).map(|row| row.iter().map(both).sum()).collect()
            }
            Predicted::Moments { .. } => Vec::new(),
        }
    }

    /// Normal quantiles of the predicted probabilities of truths (one number for each example), of predictions that are Gaussian or Gaussian behind a map; None of others.
    pub fn residuals(&self, truths: &[f64]) -> Option<Vec<f64>> {
        let Predicted::Moments { mean, variance, .. } = &self.predicted else { return None };
        if let Some(mapped) = &self.mapped {
            return Some(mapped.residuals(truths));
        }
        let rows = mean.iter().zip(variance).zip(truths);
        self.gaussian.then(|| rows.map(|((m, v), y)| (y - m) / v.sqrt()).collect())
    }

    /// Quantiles at `level` in (0, 1) of observations (or, without noise, of the function) under Gaussian noise, recalibrated where the model is, of mixtures of Gaussians that are recalibrated, of counts, of numbers with outliers where rows tell them, or of a rate whose logarithm is Gaussian; None for other predictions.
    pub fn quantiles(&self, level: f64, noise: bool) -> Option<Vec<f64>> {
        let Predicted::Moments { mean, variance, latent_variance } = &self.predicted else { return None };
        let intervals = |k: usize| self.intervals.get(k).and_then(Option::as_ref).filter(|_| noise);
        let each: Vec<f64> = (0..self.width.max(1)).map(|k| numbers::quantile(intervals(k), level)).collect();
        if let Some(mapped) = &self.mapped {
            return Some(mapped.quantile(each[0], noise));
        }
        if self.log_gaussian {
            // Of mean `exp(m + v/2)` and variance `mean² (exp(v) - 1)`.
            let of = |(mean, variance): (&f64, &f64)| {
                let v = (variance / (mean * mean)).ln_1p();
                mean * (each[0] * v.sqrt() - 0.5 * v).exp()
            };
            return Some(mean.iter().zip(latent_variance).map(of).collect());
        }
        let rows = || {
            let all = mean.par_iter().zip(variance).zip(latent_variance);
            all.map(|((m, v), latent)| (*m, *v, *latent))
        };
        if let (Some(tails), true) = (&self.tails, noise) {
            return Some(rows().map(|moments| tails.quantile(level, moments)).collect());
        }
        if self.counts && noise {
            let of = |(m, v, latent)| {
                CountMixture::from_moments(m, v, latent).map_or(f64::NAN, |own| own.quantile(level))
            };
            return Some(rows().map(of).collect());
        }
        let by_rows = noise && (0..self.width.max(1)).all(|k| intervals(k).is_some());
        if !self.gaussian && !by_rows {
            return None;
        }
        let variances = if noise { variance } else { latent_variance };
        let rows = mean.iter().zip(variances).zip(each.iter().cycle());
        Some(rows.map(|((m, v), z)| m + z * v.sqrt()).collect())
    }
}
