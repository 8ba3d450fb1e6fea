//! **Rare classes**: probabilities that a handful of rows have made too sure.

use serde::{Deserialize, Serialize};

/// **Probabilities averaged with the shares of the classes**, of targets that are nearly always of one class: `w p + (1 - w) π`.
///
/// A handful of rows of the other classes tells next to nothing of how far to trust probabilities, which a search that saw them has made too sure, and the logarithm of the score has no bound. The weight w is the mean of its posterior
/// under a Beta(1, 4) prior and the likelihood of the judged rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharesMixture {
    /// w, what the model counts.
    pub weight: f64,
    /// π, the share of each class among the training rows.
    pub shares: Vec<f64>,
    /// Judged rows of other classes than the most frequent one.
    pub rare: usize,
}

/// Rows of other classes than the most frequent one below which probabilities are averaged with shares, and the share that they are below.
const RARE: (usize, f64) = (20, 0.05);

/// Prior rows that speak for shares.
const DOUBT: f64 = 4.0;

/// Steps of the integral over the weight.
const STEPS: usize = 200;

impl SharesMixture {
    /// From the probabilities of judged rows, as they are predicted; none where no class is rare.
    pub(super) fn learn(
        (probabilities, width): (&[f64], usize),
        labels: &[usize],
        shares: &[f64],
    ) -> Option<Self> {
        let counts = labels.iter().fold(vec![0; width], |mut counts, label| {
            counts[*label] += 1;
            counts
        });
        let rare = labels.len() - counts.iter().max()?;
        if shares.len() != width || rare >= RARE.0 || rare as f64 >= RARE.1 * labels.len() as f64 {
            return None;
        }
        let rows: Vec<(f64, f64)> =
            labels.iter().enumerate().map(|(i, y)| (probabilities[i * width + y], shares[*y])).collect();
        // By the midpoint rule.
        let weights = (0..STEPS).map(|k| (k as f64 + 0.5) / STEPS as f64);
        let logs: Vec<(f64, f64)> = weights
            .map(|w| {
                let likelihood: f64 = rows.iter().map(|(p, share)| (w * p + (1.0 - w) * share).ln()).sum();
                (w, likelihood + (DOUBT - 1.0) * (1.0 - w).ln())
            })
            .collect();
        let peak = logs.iter().map(|own| own.1).fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut first) = (0.0, 0.0);
        for (w, log) in logs {
            sum += (log - peak).exp();
            first += w * (log - peak).exp();
        }
        let weight = first / sum;
        (weight > 0.0 && weight < 1.0).then(|| Self { weight, shares: shares.to_vec(), rare })
    }

    /// Changes the probabilities of a row.
    pub(super) fn apply(&self, row: &mut [f64]) {
        row.iter_mut()
            .zip(&self.shares)
            .for_each(|(p, share)| *p = self.weight * *p + (1.0 - self.weight) * share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two events in a thousand rows say little: a model that had both right in its own rows counts less than half, one that had both wrong next to nothing; of many events nothing is averaged.
    #[test]
    fn a_few_events_do_not_make_probabilities_sure() {
        let shares = [0.998, 0.002];
        let labels: Vec<usize> = (0..1000).map(|i| usize::from(i >= 998)).collect();
        let of = |p_event: f64, labels: &[usize]| {
            let rows = labels.iter().flat_map(|y| match y {
                1 => [1.0 - p_event, p_event],
                _ => shares,
            });
            SharesMixture::learn((&rows.collect::<Vec<_>>(), 2), labels, &shares)
        };
        // Beta(1, 4) and a likelihood of w²: (1 + 2) / (1 + 2 + 4).
        let right = of(0.999, &labels).unwrap();
        assert!((right.weight - 3.0 / 7.0).abs() < 0.02 && right.rare == 2, "{right:?}");
        assert!(of(1e-9, &labels).unwrap().weight < 0.2);
        let mut row = [0.0, 1.0];
        right.apply(&mut row);
        assert!((row[0] + row[1] - 1.0).abs() < 1e-15 && row[0] > 0.5, "{row:?}");
        let many: Vec<usize> = (0..1000).map(|i| usize::from(i >= 970)).collect();
        assert!(of(0.9, &many).is_none());
    }
}
