//! Scores of predicted events: Bernoulli outputs, one or several per row.

use crate::classification::{DEFAULT_BINS, binned_error, check_bins, reliability};
use crate::{MetricsError, ReliabilityBin, roc_auc};
use serde::{Deserialize, Serialize};

/// Checked probabilities of events, with what happened. Row-major [rows × outputs].
#[derive(Clone, Copy, Debug)]
pub struct BinaryEvents<'a> {
    probabilities: &'a [f64],
    outputs: usize,
    truths: &'a [bool],
}

/// Scores of predicted events; means over events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BinaryScores {
    /// Number of events.
    pub events: usize,
    /// Share of them that happened.
    pub prevalence: f64,
    /// Share that happened exactly if their probability was above ½.
    pub accuracy: f64,
    /// Mean of `-log p(what happened)`, in nats; probabilities below the smallest normal double count as that number, and
    /// `impossible_events` says how often.
    pub nll: f64,
    /// Mean of `(p - 1[happened])²`, between 0 and 1.
    pub brier: f64,
    /// Calibration error of the event's probability over 15 bins of equal width.
    pub ece: f64,
    /// Area under the receiver operating characteristic; none if all or no events happened.
    pub auc: Option<f64>,
    /// Events that turned out as they could not: the true NLL is infinite if there are any.
    pub impossible_events: usize,
}

impl<'a> BinaryEvents<'a> {
    /// Checks `probabilities` that events happen, in [0, 1], and `truths`, whether they did: both row-major with `outputs`
    /// values per row.
    ///
    /// # Errors
    /// A [`MetricsError`] naming the row.
    pub fn new(probabilities: &'a [f64], outputs: usize, truths: &'a [bool]) -> Result<Self, MetricsError> {
        if probabilities.len() != truths.len() {
            return Err(MetricsError::Unequal {
                left_what: "probabilities",
                left: probabilities.len(),
                right_what: "truths",
                right: truths.len(),
            });
        }
        if outputs == 0 || !truths.len().is_multiple_of(outputs) {
            let rows = truths.len().checked_div(outputs).unwrap_or(0);
            return Err(MetricsError::Shape { what: "truths", values: truths.len(), rows, columns: outputs });
        }
        if truths.is_empty() {
            return Err(MetricsError::Empty);
        }
        match probabilities.iter().position(|p| !(0.0..=1.0).contains(p)) {
            Some(i) => {
                let value = probabilities[i];
                Err(MetricsError::Probability { row: i / outputs, class: i % outputs, value })
            }
            None => Ok(Self { probabilities, outputs, truths }),
        }
    }

    /// Scores of all events together. Cost `O(n log n)`.
    pub fn scores(&self) -> BinaryScores {
        score(self.probabilities, self.truths)
    }

    /// Scores of each output by itself, in order.
    pub fn scores_of_outputs(&self) -> Vec<BinaryScores> {
        (0..self.outputs)
            .map(|k| {
                let p: Vec<f64> = self.probabilities.iter().skip(k).step_by(self.outputs).copied().collect();
                let y: Vec<bool> = self.truths.iter().skip(k).step_by(self.outputs).copied().collect();
                score(&p, &y)
            })
            .collect()
    }

    /// In each of `bins` bins of equal width, the share of events that happened against their mean probability.
    ///
    /// # Errors
    /// [`MetricsError::Setting`] for a number of bins outside its range.
    pub fn reliability(&self, bins: usize) -> Result<Vec<ReliabilityBin>, MetricsError> {
        check_bins(bins)?;
        Ok(reliability(self.probabilities.iter().copied().zip(self.truths.iter().copied()), bins))
    }
}

fn score(probabilities: &[f64], truths: &[bool]) -> BinaryScores {
    let n = truths.len() as f64;
    let (mut right, mut nll, mut brier, mut impossible_events) = (0usize, 0.0, 0.0, 0);
    let (mut negatives, mut positives) = (Vec::new(), Vec::new());
    for (&p, &happened) in probabilities.iter().zip(truths) {
        right += usize::from((p > 0.5) == happened);
        // ln(1 - p) keeps its digits for tiny p.
        let log_likelihood = if happened { p.ln() } else { (-p).ln_1p() };
        impossible_events += usize::from(log_likelihood < f64::MIN_POSITIVE.ln());
        nll -= log_likelihood.max(f64::MIN_POSITIVE.ln());
        brier += (p - f64::from(u8::from(happened))).powi(2);
        if happened { &mut positives } else { &mut negatives }.push(p);
    }
    BinaryScores {
        events: truths.len(),
        prevalence: positives.len() as f64 / n,
        accuracy: right as f64 / n,
        nll: nll / n,
        brier: brier / n,
        ece: binned_error(probabilities, truths, DEFAULT_BINS),
        // The only error left is a missing group: probabilities were checked.
        auc: roc_auc(&negatives, &positives).ok(),
        impossible_events,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Classes;
    use proptest::prelude::*;

    #[test]
    fn a_small_example_by_hand() {
        let events = BinaryEvents::new(&[0.9, 0.5, 0.2, 0.0], 2, &[true, true, true, false]).unwrap();
        let scores = events.scores();
        assert_eq!((scores.events, scores.prevalence, scores.accuracy), (4, 0.75, 0.5));
        assert!((scores.nll + (0.9f64.ln() + 0.5f64.ln() + 0.2f64.ln()) / 4.0).abs() < 1e-15);
        assert!((scores.brier - (0.01 + 0.25 + 0.64) / 4.0).abs() < 1e-15);
        assert!((scores.ece - (0.1 + 0.5 + 0.8 + 0.0) / 4.0).abs() < 1e-15);
        assert_eq!((scores.auc, scores.impossible_events), (Some(1.0), 0));
        let outputs = events.scores_of_outputs();
        assert_eq!((outputs.len(), outputs[0].auc, outputs[1].auc), (2, None, Some(1.0)));
        assert!((outputs[0].nll + outputs[1].nll - 2.0 * scores.nll).abs() < 1e-15);
        let certain = BinaryEvents::new(&[1.0, 0.0], 1, &[false, true]).unwrap().scores();
        assert_eq!((certain.impossible_events, certain.brier, certain.auc), (2, 1.0, Some(0.0)));
        assert!(certain.nll.is_finite());
        assert_eq!(events.reliability(1).unwrap()[0].count, 4);
    }

    #[test]
    fn bad_input_is_named() {
        assert!(matches!(BinaryEvents::new(&[], 1, &[]), Err(MetricsError::Empty)));
        assert!(matches!(BinaryEvents::new(&[], 0, &[]), Err(MetricsError::Shape { .. })));
        assert!(BinaryEvents::new(&[0.5], 1, &[]).is_err() && BinaryEvents::new(&[0.5], 2, &[true]).is_err());
        for bad in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            let error = BinaryEvents::new(&[0.5, 0.5, 0.5, bad], 2, &[true; 4]).unwrap_err();
            assert!(matches!(error, MetricsError::Probability { row: 1, class: 1, .. }));
        }
    }

    proptest! {
        /// One event is a choice between two classes: NLL is the same, the two-class Brier score counts each error twice.
        #[test]
        fn events_are_two_classes(rows in prop::collection::vec((0.001..0.999f64, any::<bool>()), 1..40)) {
            let (p, y): (Vec<f64>, Vec<bool>) = rows.into_iter().unzip();
            let events = BinaryEvents::new(&p, 1, &y).unwrap().scores();
            let both: Vec<f64> = p.iter().flat_map(|p| [1.0 - p, *p]).collect();
            let labels: Vec<usize> = y.iter().map(|y| usize::from(*y)).collect();
            let classes = Classes::new(&both, 2, &labels).unwrap().scores();
            prop_assert!((events.nll - classes.nll).abs() < 1e-12);
            prop_assert!((2.0 * events.brier - classes.brier).abs() < 1e-12);
            prop_assert!((0.0..=1.0).contains(&events.ece));
        }
    }
}
