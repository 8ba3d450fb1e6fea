//! One categorical distribution per row.

use crate::MetricsError;

/// How far the probabilities of a row may miss 1. Softmax in single precision over 1,000 classes misses by some 1e-5.
pub const SUM_TOLERANCE: f64 = 1e-4;

/// A checked table of class probabilities, one categorical distribution per row.
#[derive(Clone, Copy, Debug)]
pub struct Probabilities<'a> {
    values: &'a [f64],
    classes: usize,
}

impl<'a> Probabilities<'a> {
    /// Checks `values`, row-major of `classes` probabilities each: not negative, finite, every row summing to 1 within
    /// [`SUM_TOLERANCE`]. Values are used as they are, not normalised again. Cost linear.
    ///
    /// # Errors
    /// [`MetricsError::Empty`], `Shape`, `Probability` or `ProbabilitySum`, naming the row.
    pub fn new(values: &'a [f64], classes: usize) -> Result<Self, MetricsError> {
        if classes == 0 || !values.len().is_multiple_of(classes) {
            let rows = values.len().checked_div(classes).unwrap_or(0);
            let what = "probabilities";
            return Err(MetricsError::Shape { what, values: values.len(), rows, columns: classes });
        }
        if values.is_empty() {
            return Err(MetricsError::Empty);
        }
        for (row, distribution) in values.chunks_exact(classes).enumerate() {
            // The comparison is false for NaN as well.
            if let Some(class) = distribution.iter().position(|p| !(*p >= 0.0 && p.is_finite())) {
                return Err(MetricsError::Probability { row, class, value: distribution[class] });
            }
            let sum: f64 = distribution.iter().sum();
            if sum.is_nan() || (sum - 1.0).abs() > SUM_TOLERANCE {
                return Err(MetricsError::ProbabilitySum { row, sum });
            }
        }
        Ok(Self { values, classes })
    }

    /// Number of rows, at least 1.
    pub fn len(&self) -> usize {
        self.values.len() / self.classes
    }

    /// Always false: an empty table is refused.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The distributions in order, each of [`Self::classes`] probabilities.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'a [f64]> + use<'a> {
        self.values.chunks_exact(self.classes)
    }

    /// All probabilities, row-major.
    pub(crate) fn values(&self) -> &'a [f64] {
        self.values
    }

    /// The most probable class of each row; the first of several equals.
    pub fn predictions(&self) -> Vec<usize> {
        self.rows().map(|row| most_probable(row).0).collect()
    }

    /// The largest probability of each row.
    pub fn maximum_probabilities(&self) -> Vec<f64> {
        self.rows().map(|row| most_probable(row).1).collect()
    }

    /// The [`entropy`] of each row, in nats.
    pub fn entropies(&self) -> Vec<f64> {
        self.rows().map(entropy).collect()
    }
}

/// The most probable class, the first of several equals, and its probability.
pub(super) fn most_probable(row: &[f64]) -> (usize, f64) {
    row.iter().enumerate().fold(
        (0, f64::NEG_INFINITY),
        |best, (class, p)| {
            if *p > best.1 { (class, *p) } else { best }
        },
    )
}

/// `-Σ p log p` of one distribution in nats, with `0 log 0 = 0`; between 0 and the logarithm of the number of classes.
/// NaN if a probability is negative or NaN.
pub fn entropy(probabilities: &[f64]) -> f64 {
    // From +0, so that a certain prediction has entropy 0 and not -0.
    probabilities.iter().fold(0.0, |sum, p| if *p == 0.0 { sum } else { sum - p * p.ln() })
}
