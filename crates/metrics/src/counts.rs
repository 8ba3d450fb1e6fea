//! Scores of predicted counts.

use crate::MetricsError;
use serde::{Deserialize, Serialize};
use statrs::function::factorial::ln_factorial;

/// Checked predictive means of counts, with the counts that were seen.
#[derive(Clone, Copy, Debug)]
pub struct Counts<'a> {
    means: &'a [f64],
    counts: &'a [u64],
}

/// Scores of predicted counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountScores {
    /// Number of rows.
    pub rows: usize,
    /// Mean negative log-likelihood, in nats.
    pub nll: f64,
    /// Root mean squared error of the predictive mean.
    pub rmse: f64,
    /// Mean Poisson deviance of the predictive mean, `2 (y log(y/m) - y + m)`: 0 for perfect means, about 1 for Poisson counts
    /// around the right means of more than a few.
    pub deviance: f64,
}

impl<'a> Counts<'a> {
    /// Checks that `means` are positive and finite and as many as `counts`.
    ///
    /// # Errors
    /// [`MetricsError::Empty`], `Unequal` or `Rate`, naming the row.
    pub fn new(means: &'a [f64], counts: &'a [u64]) -> Result<Self, MetricsError> {
        let (left, right) = (means.len(), counts.len());
        if left != right {
            return Err(MetricsError::Unequal { left_what: "means", left, right_what: "counts", right });
        }
        if counts.is_empty() {
            return Err(MetricsError::Empty);
        }
        match means.iter().position(|m| !(*m > 0.0 && m.is_finite())) {
            Some(row) => Err(MetricsError::Rate { row, value: means[row] }),
            None => Ok(Self { means, counts }),
        }
    }

    /// Scores of the Poisson distribution with these means.
    ///
    /// # Errors
    /// [`MetricsError::Overflow`] for means so large that a score is not finite.
    pub fn poisson_scores(&self) -> Result<CountScores, MetricsError> {
        let log_likelihoods: Vec<f64> =
            self.rows().map(|(m, y)| y as f64 * m.ln() - m - ln_factorial(y)).collect();
        self.scores(&log_likelihoods)
    }

    /// Scores of any predictive distribution with these means, such as a Poisson whose rate is uncertain:
    /// `log_likelihoods` are the logarithms of its probability of each count.
    ///
    /// # Errors
    /// [`MetricsError::Unequal`], `NotFinite` or `Overflow`.
    pub fn scores(&self, log_likelihoods: &[f64]) -> Result<CountScores, MetricsError> {
        if log_likelihoods.len() != self.counts.len() {
            return Err(MetricsError::Unequal {
                left_what: "log-likelihoods",
                left: log_likelihoods.len(),
                right_what: "counts",
                right: self.counts.len(),
            });
        }
        if let Some(row) = log_likelihoods.iter().position(|l| !l.is_finite()) {
            return Err(MetricsError::NotFinite { what: "log-likelihood", row, value: log_likelihoods[row] });
        }
        let n = self.counts.len() as f64;
        let scores = CountScores {
            rows: self.counts.len(),
            nll: -log_likelihoods.iter().sum::<f64>() / n,
            rmse: (self.rows().map(|(m, y)| (y as f64 - m).powi(2)).sum::<f64>() / n).sqrt(),
            deviance: self.rows().map(|(m, y)| deviance(m, y as f64)).sum::<f64>() / n,
        };
        if [scores.nll, scores.rmse, scores.deviance].iter().all(|s| s.is_finite()) {
            Ok(scores)
        } else {
            Err(MetricsError::Overflow)
        }
    }

    fn rows(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.means.iter().copied().zip(self.counts.iter().copied())
    }
}

/// `2 (y log(y/m) - y + m)`, with `0 log 0 = 0`; never negative.
fn deviance(mean: f64, count: f64) -> f64 {
    let logarithm = if count == 0.0 { 0.0 } else { count * (count / mean).ln() };
    (2.0 * (logarithm - (count - mean))).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use statrs::distribution::{Discrete, Poisson};

    #[test]
    fn a_small_example_by_hand() {
        let scores = Counts::new(&[2.0, 1.0], &[0, 2]).unwrap().poisson_scores().unwrap();
        // -log: 2 and 1 + log 2! - 2 log 1.
        assert!((scores.nll - (3.0 + 2f64.ln()) / 2.0).abs() < 1e-15);
        assert!((scores.rmse - (2.5f64).sqrt()).abs() < 1e-15);
        assert!((scores.deviance - (4.0 + 2.0 * (2.0 * 2f64.ln() - 1.0)) / 2.0).abs() < 1e-15);
    }

    #[test]
    fn bad_input_is_named() {
        assert!(matches!(Counts::new(&[], &[]), Err(MetricsError::Empty)));
        assert!(matches!(Counts::new(&[1.0], &[]), Err(MetricsError::Unequal { .. })));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Counts::new(&[1.0, bad], &[1, 1]), Err(MetricsError::Rate { row: 1, .. })));
        }
        let counts = Counts::new(&[1.0], &[1]).unwrap();
        assert!(counts.scores(&[]).is_err() && counts.scores(&[f64::NEG_INFINITY]).is_err());
        assert_eq!(Counts::new(&[1e300], &[1]).unwrap().poisson_scores(), Err(MetricsError::Overflow));
    }

    proptest! {
        /// The deviance is twice the log-likelihood lost against the perfect mean.
        #[test]
        fn deviance_is_a_difference_of_likelihoods(mean in 0.01..50.0f64, count in 1u64..60) {
            let scores = Counts::new(&[mean], &[count]).unwrap().poisson_scores().unwrap();
            let reference = |m: f64| Poisson::new(m).unwrap().ln_pmf(count);
            prop_assert!((scores.nll + reference(mean)).abs() < 1e-10);
            let lost = 2.0 * (reference(count as f64) - reference(mean));
            prop_assert!((scores.deviance - lost).abs() < 1e-9 * (1.0 + lost));
        }
    }
}
