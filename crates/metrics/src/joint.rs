//! Joint log-likelihoods of several labels, which see whether errors are predicted together.
//!
//! The score of one label at a time cannot tell a posterior that knows how predictions depend on each other from one that
//! does not. Dyadic sampling (Osband et al. 2022, "The neural testbed") can: the test set is cut into sets of κ points, and
//! points are repeated within each set until it holds τ = 10(κ - 1), so that knowing one label says much about the others.
//! A set's score is `log (1/k) Σ_j Π_m p(y_m | f_j(x_m))^n_m`, with n_m repetitions of point m and k posterior samples f_j
//! (spec `linearised_laplace`, section 7). Each point of a set is taken once, and the remaining τ - κ repetitions are
//! drawn uniformly with replacement. κ = 1 takes each point once: the ordinary Monte-Carlo log-likelihood.

use crate::{Average, MetricsError};
use posterior_linalg::random::Streams;
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// More shuffles than this are refused.
pub const MOST_SHUFFLES: usize = 10_000;

/// Sets of κ test points in which labels are scored together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DyadicGroups {
    /// Points per set, κ.
    pub points: usize,
    /// How often the test set is shuffled and cut anew.
    pub shuffles: usize,
    /// Seed of shuffles and repetitions: methods scored with one seed are scored on the same sets.
    pub seed: u64,
}

/// The score of [`DyadicGroups`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JointLogLikelihood {
    /// Points per set, κ.
    pub points: usize,
    /// Labels per set, τ.
    pub labels: usize,
    /// Mean over sets and shuffles of the joint log-likelihood of τ labels, in nats.
    pub mean: f64,
    /// Standard deviation over sets divided by the root of the number of sets of one shuffle: further shuffles reuse the same
    /// points and are not counted as new evidence. None for a single set.
    pub standard_error: Option<f64>,
    /// Sets per shuffle.
    pub sets: usize,
}

impl DyadicGroups {
    /// Sets of `points`, over 10 shuffles.
    pub fn new(points: usize, seed: u64) -> Self {
        Self { points, shuffles: 10, seed }
    }

    /// Labels per set: τ = 10(κ - 1), and 1 for κ = 1.
    pub fn labels(&self) -> usize {
        if self.points == 1 { 1 } else { self.points.saturating_sub(1).saturating_mul(10) }
    }

    /// Scores `log_likelihoods`, row-major [samples × `rows`], each `log p(y_i | f_s(x_i))` in nats; minus infinity is allowed
    /// where other samples explain the label. Points left over when the rows are cut into sets are dropped. Cost
    /// `O(shuffles · rows · (samples + 10))`.
    ///
    /// # Errors
    /// [`MetricsError::Shape`] if the table is not full or is empty, `Setting` for κ outside 1 to `rows` or a number of
    /// shuffles outside its range, `NotFinite` (naming the column) for NaN or plus infinity, `Impossible` if a set has probability
    /// 0 under all samples.
    pub fn score(&self, log_likelihoods: &[f64], rows: usize) -> Result<JointLogLikelihood, MetricsError> {
        let samples = self.check(log_likelihoods, rows)?;
        let (sets, labels) = (rows / self.points, self.labels());
        let streams = Streams::new(self.seed);
        let mut order: Vec<usize> = (0..rows).collect();
        let mut repetitions = vec![0u32; self.points];
        let mut joint = vec![0.0; samples];
        let mut scores = Vec::with_capacity(sets * self.shuffles);
        for shuffle in 0..self.shuffles {
            let mut rng = streams.child("metrics/shuffle", shuffle as u64).stream("metrics/dyadic");
            order.shuffle(&mut rng);
            for set in order.chunks_exact(self.points) {
                repetitions.fill(1);
                for _ in self.points..labels {
                    repetitions[rng.random_range(0..self.points)] += 1;
                }
                joint.fill(0.0);
                for (point, count) in set.iter().zip(&repetitions) {
                    for (sample, joint) in joint.iter_mut().enumerate() {
                        *joint += f64::from(*count) * log_likelihoods[sample * rows + point];
                    }
                }
                let score = log_mean_exp(&joint);
                if !score.is_finite() {
                    return Err(MetricsError::Impossible { row: set[0] });
                }
                scores.push(score);
            }
        }
        let Average { mean, standard_error } = Average::of(&scores)?;
        // Undo the division by the number of all sets.
        let standard_error = standard_error.filter(|_| sets > 1).map(|e| e * (self.shuffles as f64).sqrt());
        Ok(JointLogLikelihood { points: self.points, labels, mean, standard_error, sets })
    }

    /// The number of samples, after checking everything.
    fn check(&self, log_likelihoods: &[f64], rows: usize) -> Result<usize, MetricsError> {
        if rows == 0 || log_likelihoods.is_empty() || !log_likelihoods.len().is_multiple_of(rows) {
            let values = log_likelihoods.len();
            let samples = values.checked_div(rows).unwrap_or(0);
            return Err(MetricsError::Shape {
                what: "log-likelihoods",
                values,
                rows: samples,
                columns: rows,
            });
        }
        for (what, value, most) in [
            ("the number of points per set", self.points, rows),
            ("the number of shuffles", self.shuffles, MOST_SHUFFLES),
        ] {
            if !(1..=most).contains(&value) {
                return Err(MetricsError::Setting { what, value, least: 1, most });
            }
        }
        match log_likelihoods.iter().position(|l| l.is_nan() || *l == f64::INFINITY) {
            Some(i) => {
                let (what, row, value) = ("log-likelihood", i % rows, log_likelihoods[i]);
                Err(MetricsError::NotFinite { what, row, value })
            }
            None => Ok(log_likelihoods.len() / rows),
        }
    }
}

/// `log (1/k) Σ exp v`, without overflow; minus infinity if all are.
fn log_mean_exp(values: &[f64]) -> f64 {
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    top + (values.iter().map(|v| (v - top).exp()).sum::<f64>() / values.len() as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(samples: usize, rows: usize) -> Vec<f64> {
        let mut rng = Streams::new(4).stream("metrics/joint");
        (0..samples * rows).map(|_| rng.random::<f64>().ln()).collect()
    }

    #[test]
    fn one_point_per_set_is_the_marginal_likelihood() {
        let (samples, rows) = (7, 50);
        let table = random(samples, rows);
        let score = DyadicGroups::new(1, 0).score(&table, rows).unwrap();
        let terms: Vec<f64> = (0..rows)
            .map(|i| ((0..samples).map(|s| table[s * rows + i].exp()).sum::<f64>() / samples as f64).ln())
            .collect();
        let expected = Average::of(&terms).unwrap();
        assert!((score.mean - expected.mean).abs() < 1e-13);
        assert_eq!((score.labels, score.sets), (1, rows));
        // Ten shuffles of the same values: the divisor n - 1 is all that differs.
        let ratio = score.standard_error.unwrap() / expected.standard_error.unwrap();
        assert!((ratio - (10.0 * 49.0 / 499.0f64).sqrt()).abs() < 1e-12, "{ratio}");
    }

    /// One set of two points holds ten labels: n - 1 of the first is binomial(8, ½), so the expectation is a sum of nine terms.
    #[test]
    fn pairs_agree_with_the_exact_expectation_over_repetitions() {
        let table = [0.9f64.ln(), 0.2f64.ln(), 0.3f64.ln(), 0.6f64.ln(), 0.5f64.ln(), 0.5f64.ln()];
        let groups = DyadicGroups { points: 2, shuffles: 10_000, seed: 1 };
        let found = groups.score(&table, 2).unwrap();
        assert_eq!((found.labels, found.sets, found.standard_error), (10, 1, None));
        let (mut mean, mut square, mut weight) = (0.0, 0.0, 1.0 / 256.0);
        for extra in 0..=8 {
            let (a, b) = (f64::from(1 + extra), f64::from(9 - extra));
            let value =
                ((0..3).map(|s| (a * table[2 * s] + b * table[2 * s + 1]).exp()).sum::<f64>() / 3.0).ln();
            mean += weight * value;
            square += weight * value * value;
            weight *= f64::from(8 - extra) / f64::from(extra + 1);
        }
        let error = ((square - mean * mean) / 1e4).sqrt();
        assert!((found.mean - mean).abs() < 5.0 * error, "{} {mean} {error}", found.mean);
    }

    /// With one sample the score is linear, so the expectation is τ times the mean: published rows of a plain network divided by
    /// τ are its ordinary log-likelihood.
    #[test]
    fn a_single_sample_scores_labels_times_the_marginal() {
        let rows = 6_000;
        let table = random(1, rows);
        let marginal = Average::of(&table).unwrap();
        for points in [2, 3, 5] {
            let score = DyadicGroups::new(points, 3).score(&table, rows).unwrap();
            assert_eq!((score.labels, score.sets), (10 * (points - 1), rows / points));
            let per_label = score.mean / score.labels as f64;
            // All sets together hold every point once, so only the repetitions are random: a fraction of the error reported.
            let error = score.standard_error.unwrap() / score.labels as f64;
            assert!(
                (per_label - marginal.mean).abs() < 2.0 * error,
                "{points}: {per_label} {}",
                marginal.mean
            );
        }
    }

    #[test]
    fn dependent_predictions_beat_independent_ones_jointly_but_not_one_by_one() {
        // Two samples that agree on all labels against two that disagree row by row: same marginals, other joints.
        let rows = 200;
        let together: Vec<f64> = (0..2 * rows).map(|i| if i < rows { 0.9f64 } else { 0.1 }.ln()).collect();
        let apart: Vec<f64> =
            (0..2 * rows).map(|i| if (i / rows + i) % 2 == 0 { 0.9f64 } else { 0.1 }.ln()).collect();
        let score = |table: &[f64], k| DyadicGroups::new(k, 0).score(table, rows).unwrap().mean;
        assert!((score(&together, 1) - score(&apart, 1)).abs() < 1e-12);
        assert!(score(&together, 3) > score(&apart, 3) + 1.0);
        assert_eq!(score(&apart, 3), score(&apart, 3), "one seed, one score");
    }

    #[test]
    fn ragged_sets_impossible_labels_and_bad_input() {
        let table = random(3, 11);
        assert_eq!(DyadicGroups::new(4, 0).score(&table, 11).unwrap().sets, 2);
        let groups = DyadicGroups::new(2, 0);
        assert!(matches!(groups.score(&table, 0), Err(MetricsError::Shape { .. })));
        assert!(matches!(groups.score(&table, 10), Err(MetricsError::Shape { .. })));
        assert!(matches!(groups.score(&[], 2), Err(MetricsError::Shape { .. })));
        for points in [0, 12, usize::MAX] {
            let error = DyadicGroups::new(points, 0).score(&table, 11).unwrap_err();
            assert!(matches!(error, MetricsError::Setting { value, .. } if value == points));
        }
        assert!(DyadicGroups { shuffles: 0, ..groups }.score(&table, 11).is_err());
        assert!(DyadicGroups { shuffles: usize::MAX, ..groups }.score(&table, 11).is_err());
        let mut bad = table.clone();
        bad[13] = f64::NAN;
        assert!(matches!(groups.score(&bad, 11), Err(MetricsError::NotFinite { row: 2, .. })));
        // One sample that excludes a label is fine; all of them are not.
        bad[13] = f64::NEG_INFINITY;
        assert!(groups.score(&bad, 11).is_ok());
        (bad[2], bad[24]) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        assert!(matches!(DyadicGroups::new(1, 0).score(&bad, 11), Err(MetricsError::Impossible { row: 2 })));
    }
}
