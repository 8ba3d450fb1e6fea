//! **Several rows at a time**, chosen one after the other: the next is the best beside those before it, as if each of them had been observed where it is expected ([`PoolPosterior::pretend`]).
//! Rows that were asked for earlier and not yet told come first, so that what is asked at different times, or by different processes, is one batch.
//!
//! Cost for each row `O(n (P + t))` for every function, and one score of every free row.

use super::criterion::{Criterion, Latent, Scoring};
use super::{ClassGaussianLabels, PoolPosterior};
use crate::DecisionError;
use posterior_likelihoods::LikelihoodError;
use posterior_linalg::parallel;
use posterior_linalg::random::Streams;
use posterior_optim::Signal;
use rand::seq::SliceRandom;

/// A row that was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Its place among the rows of the posterior.
    pub row: usize,
    /// The criterion's value beside the rows before it, nats or squared units of the latent functions; 0 at random.
    pub value: f64,
    /// Class probabilities, by the labels that are known.
    pub probabilities: Vec<f64>,
}

/// Everything a choice is made by.
#[derive(Clone, Copy, Debug)]
pub struct Choosing<'a> {
    /// What labels say.
    pub gaussian_labels: &'a ClassGaussianLabels,
    /// The criterion.
    pub scoring: &'a Scoring,
    /// Rows that were asked for and not told.
    pub pending: &'a [usize],
    /// Rows that may be chosen.
    pub free: &'a [usize],
    /// Of ties, and of rows at random.
    pub streams: Streams,
}

impl PoolPosterior {
    /// Means and variances of all functions at a row, in the functions' own units.
    pub fn latent(&self, row: usize, gaussian_labels: &ClassGaussianLabels) -> (Vec<f64>, Vec<f64>) {
        let functions = 0..self.functions();
        let mean = functions.clone().map(|c| gaussian_labels.mean_back(self.mean(row, c))).collect();
        (mean, functions.map(|c| gaussian_labels.variance_back(self.variance(row, c))).collect())
    }
}

/// The best `count` rows (fewer where there are not so many); the posterior is as it was afterwards. Ties are broken by chance, so that a table in some order is not asked for in that order.
///
/// # Errors
/// [`DecisionError::Interrupted`]; [`DecisionError::Likelihood`] for latent values that are not finite.
pub fn choose(
    posterior: &mut PoolPosterior,
    choosing: Choosing<'_>,
    count: usize,
    observer: &mut dyn FnMut(usize, usize) -> Signal,
) -> Result<Vec<Chosen>, DecisionError> {
    let Choosing { gaussian_labels, scoring, pending, free, streams } = choosing;
    let mut order = free.to_vec();
    order.shuffle(&mut streams.stream("decisions/ties"));
    let count = count.min(order.len());
    let latent = |posterior: &PoolPosterior, row: usize| posterior.latent(row, gaussian_labels);
    let probabilities = |posterior: &PoolPosterior, row: usize| {
        let (mean, variance) = latent(posterior, row);
        scoring.probabilities(Latent { mean: &mean, variance: &variance })
    };
    if scoring.criterion() == Criterion::Random {
        let rows = order.into_iter().take(count);
        let chosen =
            rows.map(|row| Ok(Chosen { row, value: 0.0, probabilities: probabilities(posterior, row)? }));
        return chosen.collect::<Result<_, LikelihoodError>>().map_err(DecisionError::from);
    }
    let mark = posterior.mark();
    // Before anything is pretended: means stay, and so do these.
    let alone = parallel::map(order.len(), 2, |i| {
        let (mean, variance) = latent(posterior, order[i]);
        scoring.value(Latent { mean: &mean, variance: &variance })
    });
    let alone: Vec<f64> = alone.into_iter().collect::<Result<_, LikelihoodError>>()?;
    for &row in pending {
        let precisions = gaussian_labels.expected_precisions(&probabilities(posterior, row)?);
        posterior.pretend(row, &precisions);
    }
    let mut left: Vec<(usize, f64)> = order.into_iter().zip(alone).collect();
    let mut chosen: Vec<Chosen> = Vec::with_capacity(count);
    let mut stopped = false;
    while chosen.len() < count {
        if observer(chosen.len(), count) == Signal::Stop {
            stopped = true;
            break;
        }
        let beside = |&(row, alone): &(usize, f64)| {
            let (mean, now) = latent(posterior, row);
            let before: Vec<f64> =
                (0..now.len()).map(|c| gaussian_labels.variance_back(mark.variance(row, c))).collect();
            alone - scoring.information_of_batch(Latent { mean: &mean, variance: &before }, &now)
        };
        let values: Vec<f64> = parallel::map(left.len(), 2, |i| beside(&left[i]));
        // The first of the largest.
        let Some(place) = (0..values.len()).reduce(|best, i| if values[i] > values[best] { i } else { best })
        else {
            break;
        };
        let (row, _) = left.remove(place);
        let (mean, _) = latent(posterior, row);
        let before: Vec<f64> =
            (0..mean.len()).map(|c| gaussian_labels.variance_back(mark.variance(row, c))).collect();
        let probabilities = scoring.probabilities(Latent { mean: &mean, variance: &before })?;
        posterior.pretend(row, &gaussian_labels.expected_precisions(&probabilities));
        chosen.push(Chosen { row, value: values[place], probabilities });
    }
    posterior.go_back(&mark);
    if stopped {
        return Err(DecisionError::Interrupted);
    }
    Ok(chosen)
}
