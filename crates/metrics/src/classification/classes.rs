//! Class probabilities with the labels that came true, and their scores.

use super::probabilities::most_probable;
use super::{DEFAULT_BINS, Probabilities};
use crate::MetricsError;
use serde::{Deserialize, Serialize};

/// More probabilities than this are not ranked.
const MOST_RANKED: usize = 50_000_000;

/// Checked class probabilities, with the true class of each row.
#[derive(Clone, Copy, Debug)]
pub struct Classes<'a> {
    probabilities: Probabilities<'a>,
    labels: &'a [usize],
}

/// Scores of class probabilities. NLL and entropy are in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassificationScores {
    /// Number of rows.
    pub rows: usize,
    /// Number of classes.
    pub classes: usize,
    /// Share of rows whose most probable class (the first of several equals) is the label.
    pub accuracy: f64,
    /// Mean of `-log p(label)`. A probability below the smallest normal double counts as that number, 2.2e-308 (708 nats),
    /// so that the score is a number; how many rows that touched is in `impossible_labels`.
    pub nll: f64,
    /// Mean over rows of `Σ_c (p_c - 1[c = label])²`, between 0 and 2; not halved (Brier 1950).
    pub brier: f64,
    /// Expected calibration error of the most probable class, 15 bins of equal width
    /// ([`Classes::expected_calibration_error`]).
    pub ece: f64,
    /// The same with 15 bins of equally many rows ([`Classes::adaptive_calibration_error`]).
    pub adaptive_ece: f64,
    /// Area under the receiver operating characteristic: how well its probability tells each class from the others, averaged over the classes that occur with equal weight (Hand and Till
    /// 2001 call it the mean of one against the rest); of two classes the usual area. None where only one class occurs, or for more than 5e7 probabilities.
    pub auc: Option<f64>,
    /// Share of the rows predicted to be of a class that are: its mean over the classes that are predicted or occur, each with equal weight (macro average); 0 for a class that is never predicted.
    pub precision: f64,
    /// Share of a class's rows that are predicted to be of it, averaged in the same way; 0 for a class that does not occur.
    pub recall: f64,
    /// Harmonic mean of precision and recall of each class (F1), averaged in the same way.
    pub f1: f64,
    /// Mean probability of the most probable class.
    pub mean_confidence: f64,
    /// Mean entropy of the predictions.
    pub mean_entropy: f64,
    /// Rows whose label had probability 0 (or below the smallest normal double): the true NLL is infinite if there are any.
    pub impossible_labels: usize,
}

impl<'a> Classes<'a> {
    /// Checks `probabilities` as [`Probabilities::new`] does, [labels × `classes`] row-major, and that each of `labels` is a
    /// class, counted from 0.
    ///
    /// # Errors
    /// A [`MetricsError`] naming the row.
    pub fn new(probabilities: &'a [f64], classes: usize, labels: &'a [usize]) -> Result<Self, MetricsError> {
        if classes == 0 || labels.len().checked_mul(classes) != Some(probabilities.len()) {
            let (values, rows) = (probabilities.len(), labels.len());
            return Err(MetricsError::Shape { what: "probabilities", values, rows, columns: classes });
        }
        Self::label(Probabilities::new(probabilities, classes)?, labels)
    }

    /// Adds labels to checked probabilities.
    ///
    /// # Errors
    /// [`MetricsError::Unequal`] or `Label`.
    pub fn label(probabilities: Probabilities<'a>, labels: &'a [usize]) -> Result<Self, MetricsError> {
        if probabilities.len() != labels.len() {
            return Err(MetricsError::Unequal {
                left_what: "rows of probabilities",
                left: probabilities.len(),
                right_what: "labels",
                right: labels.len(),
            });
        }
        let classes = probabilities.classes();
        match labels.iter().position(|label| *label >= classes) {
            Some(row) => Err(MetricsError::Label { row, label: labels[row], classes }),
            None => Ok(Self { probabilities, labels }),
        }
    }

    /// The probabilities without their labels.
    pub fn probabilities(&self) -> Probabilities<'a> {
        self.probabilities
    }

    /// The true classes.
    pub fn labels(&self) -> &'a [usize] {
        self.labels
    }

    /// `log p(label)` of each row, in nats; probabilities below the smallest normal double count as that number.
    pub fn log_likelihoods(&self) -> Vec<f64> {
        self.rows().map(|(row, label)| row[label].max(f64::MIN_POSITIVE).ln()).collect()
    }

    /// All scores at once. Cost `O(n C + n log n)`.
    pub fn scores(&self) -> ClassificationScores {
        let (mut hits, mut nll, mut brier, mut confidence, mut entropy) = (0usize, 0.0, 0.0, 0.0, 0.0);
        let mut impossible_labels = 0;
        for (row, label) in self.rows() {
            let (prediction, probability) = most_probable(row);
            hits += usize::from(prediction == label);
            confidence += probability;
            impossible_labels += usize::from(row[label] < f64::MIN_POSITIVE);
            nll -= row[label].max(f64::MIN_POSITIVE).ln();
            brier += row
                .iter()
                .enumerate()
                .map(|(class, p)| (p - f64::from(u8::from(class == label))).powi(2))
                .sum::<f64>();
            entropy += super::entropy(row);
        }
        let n = self.labels.len() as f64;
        let (ece, adaptive_ece) = self.calibration_errors();
        let [precision, recall, f1] = self.macro_averages();
        ClassificationScores {
            rows: self.labels.len(),
            classes: self.probabilities.classes(),
            accuracy: hits as f64 / n,
            nll: nll / n,
            brier: brier / n,
            ece,
            adaptive_ece,
            auc: self.area_under_the_curve(),
            precision,
            recall,
            f1,
            mean_confidence: confidence / n,
            mean_entropy: entropy / n,
            impossible_labels,
        }
    }

    /// Precision, recall and F1, averaged over the classes that are predicted or occur. Cost `O(n C)`, memory 3 C counts.
    fn macro_averages(&self) -> [f64; 3] {
        // Rows of a class, rows predicted to be of it, and both.
        let mut counts = vec![[0usize; 3]; self.probabilities.classes()];
        for (row, label) in self.rows() {
            let prediction = most_probable(row).0;
            counts[label][0] += 1;
            counts[prediction][1] += 1;
            counts[label][2] += usize::from(prediction == label);
        }
        let ratio = |part: usize, of: usize| if of == 0 { 0.0 } else { part as f64 / of as f64 };
        let (mut sums, mut seen) = ([0.0; 3], 0.0);
        for [occurs, predicted, both] in
            counts.into_iter().filter(|[occurs, predicted, _]| occurs + predicted > 0)
        {
            let each = [ratio(both, predicted), ratio(both, occurs), ratio(2 * both, occurs + predicted)];
            sums.iter_mut().zip(each).for_each(|(sum, own)| *sum += own);
            seen += 1.0;
        }
        sums.map(|sum| sum / seen)
    }

    /// One class against the rest, averaged over classes. Cost `O(C n log n)`.
    fn area_under_the_curve(&self) -> Option<f64> {
        let classes = self.probabilities.classes();
        if self.labels.len().saturating_mul(classes) > MOST_RANKED {
            return None;
        }
        let (mut sum, mut count) = (0.0, 0.0);
        // The second of two classes says what the first does.
        for class in (0..classes).skip(usize::from(classes == 2)) {
            let of = |occurs: bool| -> Vec<f64> {
                self.rows()
                    .filter(|(_, label)| (*label == class) == occurs)
                    .map(|(row, _)| row[class])
                    .collect()
            };
            if let Ok(auc) = crate::roc_auc(&of(false), &of(true)) {
                sum += auc;
                count += 1.0;
            }
        }
        (count > 0.0).then(|| sum / count)
    }

    fn calibration_errors(&self) -> (f64, f64) {
        let (confidences, hits) = self.top_class();
        (
            super::binned_error(&confidences, &hits, DEFAULT_BINS),
            super::calibration::adaptive_error(&confidences, &hits, DEFAULT_BINS),
        )
    }

    /// The probability of the most probable class of each row, and whether it is the label.
    pub(super) fn top_class(&self) -> (Vec<f64>, Vec<bool>) {
        self.rows()
            .map(|(row, label)| {
                let (prediction, probability) = most_probable(row);
                (probability, prediction == label)
            })
            .unzip()
    }

    fn rows(&self) -> impl Iterator<Item = (&'a [f64], usize)> + use<'a> {
        self.probabilities.rows().zip(self.labels.iter().copied())
    }
}
