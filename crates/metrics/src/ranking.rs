//! How well a score ranks positives above negatives.

use crate::{MetricsError, Probabilities};
use serde::{Deserialize, Serialize};

/// The area under the receiver operating characteristic: the probability that a random positive scores above a random
/// negative, equals counting half. 1 is perfect, ½ is chance. By the rank statistic of Mann and Whitney (1947) with
/// mid-ranks for ties; infinite scores are allowed. Cost `O(n log n)`.
///
/// # Errors
/// [`MetricsError::OneGroup`] if either group is empty, `NotFinite` for NaN, naming its group and row.
pub fn roc_auc(negatives: &[f64], positives: &[f64]) -> Result<f64, MetricsError> {
    if negatives.is_empty() || positives.is_empty() {
        return Err(MetricsError::OneGroup { negatives: negatives.len(), positives: positives.len() });
    }
    for (what, values) in [("score of the negatives", negatives), ("score of the positives", positives)] {
        if let Some(row) = values.iter().position(|v| v.is_nan()) {
            return Err(MetricsError::NotFinite { what, row, value: values[row] });
        }
    }
    let mut scores: Vec<(f64, bool)> = negatives.iter().map(|v| (*v, false)).collect();
    scores.extend(positives.iter().map(|v| (*v, true)));
    scores.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Counting pairs group by group keeps the sum an exact multiple of ½ below 2^53: no rounding.
    let (mut below, mut wins) = (0.0, 0.0);
    for equals in scores.chunk_by(|a, b| a.0 == b.0) {
        let positives = equals.iter().filter(|e| e.1).count() as f64;
        let negatives = equals.len() as f64 - positives;
        wins += positives * (below + 0.5 * negatives);
        below += negatives;
    }
    Ok(wins / (negatives.len() as f64 * positives.len() as f64))
}

/// The rank of each value among all, 1 for the smallest; equal ones share the mean of their ranks, and NaN ranks behind every number. So ranks of n values always sum to n (n + 1) / 2. Cost `O(n log n)`.
pub fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    let nan_last = |v: f64| if v.is_nan() { (1, 0.0) } else { (0, v) };
    order.sort_by(|&i, &j| {
        let ((a, x), (b, y)) = (nan_last(values[i]), nan_last(values[j]));
        a.cmp(&b).then(x.total_cmp(&y))
    });
    let equal = |i: usize, j: usize| values[i] == values[j] || (values[i].is_nan() && values[j].is_nan());
    let (mut ranks, mut below) = (vec![0.0; values.len()], 0);
    for group in order.chunk_by(|&i, &j| equal(i, j)) {
        let middle = below as f64 + 0.5 * (group.len() + 1) as f64;
        group.iter().for_each(|&i| ranks[i] = middle);
        below += group.len();
    }
    ranks
}

/// By what predictions on strange inputs are told from those on familiar ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UncertaintyScore {
    /// Entropy of the prediction (the default of the papers).
    #[default]
    Entropy,
    /// One minus the largest probability.
    MaximumProbability,
}

impl UncertaintyScore {
    /// The score of each row; larger is less certain.
    pub fn of(self, probabilities: &Probabilities) -> Vec<f64> {
        match self {
            Self::Entropy => probabilities.entropies(),
            // The negative ranks as one minus does, and keeps the digits of probabilities close to 0.
            Self::MaximumProbability => probabilities.maximum_probabilities().iter().map(|p| -p).collect(),
        }
    }
}

/// [`roc_auc`] of finding out-of-distribution rows (the positives) by the uncertainty of the prediction (spec `valla`,
/// section 8.2).
///
/// # Errors
/// [`MetricsError::Unequal`] if the tables differ in classes.
pub fn out_of_distribution_auc(
    inside: &Probabilities,
    outside: &Probabilities,
    score: UncertaintyScore,
) -> Result<f64, MetricsError> {
    if inside.classes() != outside.classes() {
        return Err(MetricsError::Unequal {
            left_what: "classes inside",
            left: inside.classes(),
            right_what: "classes outside the distribution",
            right: outside.classes(),
        });
    }
    roc_auc(&score.of(inside), &score.of(outside))
}

/// [`roc_auc`] of finding out-of-distribution rows (the positives) by how small their largest output is, before any softmax: outputs are [rows × `classes`], row-major. The largest
/// probability forgets what all outputs have in common, this does not (spec `likelihood_approximations`, section 7).
///
/// # Errors
/// [`MetricsError::Shape`] where outputs are no whole rows of at least one class, `OneGroup` if either group is empty, `NotFinite` for NaN, with its row.
pub fn out_of_distribution_auc_of_logits(
    inside: &[f64],
    outside: &[f64],
    classes: usize,
) -> Result<f64, MetricsError> {
    // The negative ranks from certain to uncertain.
    let score = |what: &'static str, outputs: &[f64]| -> Result<Vec<f64>, MetricsError> {
        if classes == 0 || !outputs.len().is_multiple_of(classes) {
            let (values, rows) = (outputs.len(), outputs.len().checked_div(classes).unwrap_or(0));
            return Err(MetricsError::Shape { what, values, rows, columns: classes });
        }
        if let Some(at) = outputs.iter().position(|v| v.is_nan()) {
            return Err(MetricsError::NotFinite { what, row: at / classes, value: outputs[at] });
        }
        let largest = |row: &[f64]| row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Ok(outputs.chunks_exact(classes).map(|row| -largest(row)).collect())
    };
    roc_auc(&score("outputs inside", inside)?, &score("outputs outside the distribution", outside)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every pair, as the definition says.
    fn brute_force(negatives: &[f64], positives: &[f64]) -> f64 {
        let mut wins = 0.0;
        for p in positives {
            for n in negatives {
                wins += if p > n {
                    1.0
                } else if p == n {
                    0.5
                } else {
                    0.0
                };
            }
        }
        wins / (negatives.len() * positives.len()) as f64
    }

    #[test]
    fn examples_and_refusals() {
        assert_eq!(roc_auc(&[0.0, 1.0], &[2.0, f64::INFINITY]), Ok(1.0));
        assert_eq!(roc_auc(&[2.0], &[1.0]), Ok(0.0));
        assert_eq!(roc_auc(&[1.0, 1.0], &[1.0]), Ok(0.5));
        assert_eq!(roc_auc(&[-0.0], &[0.0]), Ok(0.5), "the two zeros are equal");
        assert_eq!(roc_auc(&[], &[1.0]), Err(MetricsError::OneGroup { negatives: 0, positives: 1 }));
        assert!(matches!(roc_auc(&[1.0], &[0.0, f64::NAN]), Err(MetricsError::NotFinite { row: 1, .. })));
    }

    #[test]
    fn equal_values_share_their_ranks_and_what_is_no_number_is_last() {
        assert_eq!(mid_ranks(&[0.3, -1.0, 0.3, 7.0]), [2.5, 1.0, 2.5, 4.0]);
        assert_eq!(mid_ranks(&[f64::NAN, f64::INFINITY, -f64::NAN, -0.0, 0.0]), [4.5, 3.0, 4.5, 1.5, 1.5]);
        assert!(mid_ranks(&[]).is_empty());
    }

    #[test]
    fn uncertain_predictions_are_found_by_either_score() {
        let inside = [0.9, 0.1, 0.0, 0.8, 0.1, 0.1];
        let outside = [0.4, 0.3, 0.3, 0.85, 0.15, 0.0];
        let (inside, outside) =
            (Probabilities::new(&inside, 3).unwrap(), Probabilities::new(&outside, 3).unwrap());
        // Entropies: inside 0.325, 0.639; outside 1.089, 0.423: three of four pairs. Largest: 0.9, 0.8 and 0.4, 0.85: three.
        for score in [UncertaintyScore::Entropy, UncertaintyScore::MaximumProbability] {
            assert_eq!(out_of_distribution_auc(&inside, &outside, score), Ok(0.75));
        }
        let two = Probabilities::new(&[0.5, 0.5], 2).unwrap();
        assert!(out_of_distribution_auc(&inside, &two, UncertaintyScore::Entropy).is_err());
    }

    #[test]
    fn outputs_that_are_no_table_are_refused() {
        let refusal = |inside: &[f64], outside: &[f64], classes| {
            out_of_distribution_auc_of_logits(inside, outside, classes).unwrap_err()
        };
        assert!(matches!(
            refusal(&[1.0; 4], &[1.0; 3], 2),
            MetricsError::Shape { values: 3, columns: 2, .. }
        ));
        assert!(matches!(refusal(&[1.0; 4], &[1.0; 4], 0), MetricsError::Shape { columns: 0, .. }));
        assert!(matches!(refusal(&[], &[1.0], 1), MetricsError::OneGroup { negatives: 0, positives: 1 }));
        let nan = [0.0, 1.0, 2.0, f64::NAN];
        assert!(matches!(refusal(&nan, &[1.0; 2], 2), MetricsError::NotFinite { row: 1, .. }));
        // Two rows that share their differences: the softmax cannot tell them apart, the largest output can.
        assert_eq!(out_of_distribution_auc_of_logits(&[5.0, 4.0], &[2.0, 1.0], 2), Ok(1.0));
    }

    proptest! {
        #[test]
        fn the_largest_output_is_what_ranks(
            inside in prop::collection::vec(prop::array::uniform3((-4i32..4).prop_map(f64::from)), 1..20),
            outside in prop::collection::vec(prop::array::uniform3((-4i32..4).prop_map(f64::from)), 1..20),
        ) {
            let mut wins = 0.0;
            for (a, b) in inside.iter().flat_map(|a| outside.iter().map(move |b| (a, b))) {
                let top = |row: &[f64; 3]| row[0].max(row[1]).max(row[2]);
                wins += if top(a) > top(b) { 1.0 } else if top(a) == top(b) { 0.5 } else { 0.0 };
            }
            let found = out_of_distribution_auc_of_logits(&inside.concat(), &outside.concat(), 3).unwrap();
            prop_assert!((found - wins / (inside.len() * outside.len()) as f64).abs() < 1e-14);
        }

        #[test]
        fn ranks_count_who_is_below(values in prop::collection::vec((-5i32..5).prop_map(f64::from), 1..30)) {
            for (rank, v) in mid_ranks(&values).into_iter().zip(&values) {
                let below = values.iter().filter(|o| *o < v).count() as f64;
                let equal = values.iter().filter(|o| *o == v).count() as f64;
                prop_assert_eq!(rank, below + 0.5 * (equal + 1.0));
            }
        }

        #[test]
        fn it_counts_all_pairs(
            negatives in prop::collection::vec((-9i32..9).prop_map(|v| f64::from(v) / 4.0), 1..40),
            positives in prop::collection::vec((-9i32..9).prop_map(|v| f64::from(v) / 4.0), 1..40),
        ) {
            let auc = roc_auc(&negatives, &positives).unwrap();
            prop_assert!((auc - brute_force(&negatives, &positives)).abs() < 1e-14);
            prop_assert!((auc + roc_auc(&positives, &negatives).unwrap() - 1.0).abs() < 1e-14);
            let up: Vec<f64> = positives.iter().map(|v| v.exp()).collect();
            let down: Vec<f64> = negatives.iter().map(|v| v.exp()).collect();
            prop_assert_eq!(roc_auc(&down, &up).unwrap(), auc, "only the order matters");
        }
    }
}
