//! Does a share p of the events predicted with probability p happen?
//!
//! Expected calibration error: Naeini, Cooper and Hauskrecht (2015); Guo et al. (2017), eq. 3. With bins of equally many
//! rows: Nguyen and O'Connor (2015). Bins of equal width are open below and closed above, `(lower, upper]`; probability 0
//! joins the first.

use super::Classes;
use crate::MetricsError;
use serde::{Deserialize, Serialize};

/// Bins used when nothing else is said (spec `valla`, section 8.2).
pub const DEFAULT_BINS: usize = 15;
/// More bins than this are refused.
pub const MOST_BINS: usize = 100_000;

/// One bin of a reliability diagram. Empty bins are not listed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// Lower edge, outside the bin (except 0).
    pub lower: f64,
    /// Upper edge, inside the bin.
    pub upper: f64,
    /// Number of predicted events in it, at least 1.
    pub count: usize,
    /// Mean predicted probability of those.
    pub confidence: f64,
    /// Share of those that happened.
    pub frequency: f64,
}

impl Classes<'_> {
    /// `Σ_b (n_b/n) |accuracy_b - confidence_b|` of the most probable class over `bins` bins of equal width. Between 0 and 1;
    /// 0 is best. The default of papers is [`DEFAULT_BINS`]. Cost linear.
    ///
    /// # Errors
    /// [`MetricsError::Setting`] for no bins or more than [`MOST_BINS`].
    pub fn expected_calibration_error(&self, bins: usize) -> Result<f64, MetricsError> {
        check_bins(bins)?;
        let (confidences, hits) = self.top_class();
        Ok(binned_error(&confidences, &hits, bins))
    }

    /// The calibration error with the middle of each bin in the place of its mean confidence, `Σ_b (n_b/n) |accuracy_b - (b + ½)/bins|`, b from 0: what the software of Milios et al. (2018) calls calibration
    /// error, with 10 bins. It is not 0 for predictions that are certain and right, but half a bin; for comparison with numbers that were computed so, and for nothing else.
    ///
    /// # Errors
    /// [`MetricsError::Setting`] for no bins or more than [`MOST_BINS`].
    pub fn midpoint_calibration_error(&self, bins: usize) -> Result<f64, MetricsError> {
        let found = self.reliability_of_the_top_class(bins)?;
        let rows: usize = found.iter().map(|bin| bin.count).sum();
        let gap = |bin: &ReliabilityBin| (bin.frequency - 0.5 * (bin.lower + bin.upper)).abs();
        Ok(found.iter().map(|bin| bin.count as f64 * gap(bin)).sum::<f64>() / rows as f64)
    }

    /// The calibration error over `bins` bins of equally many rows (to within one), sorted by confidence. Rows of one
    /// confidence share their hits evenly, so that the order of the rows does not matter even where an edge cuts through
    /// them. Cost `O(n log n)`.
    ///
    /// # Errors
    /// [`MetricsError::Setting`] for no bins or more than [`MOST_BINS`].
    pub fn adaptive_calibration_error(&self, bins: usize) -> Result<f64, MetricsError> {
        check_bins(bins)?;
        let (confidences, hits) = self.top_class();
        Ok(adaptive_error(&confidences, &hits, bins))
    }

    /// Reliability of the most probable class: in each of `bins` bins of equal width, the accuracy against the confidence.
    ///
    /// # Errors
    /// [`MetricsError::Setting`] for no bins or more than [`MOST_BINS`].
    pub fn reliability_of_the_top_class(&self, bins: usize) -> Result<Vec<ReliabilityBin>, MetricsError> {
        check_bins(bins)?;
        let (confidences, hits) = self.top_class();
        Ok(reliability(confidences.iter().copied().zip(hits.iter().copied()), bins))
    }

    /// Reliability of all n·C predicted probabilities: in each bin, the share whose class is the label (spec
    /// `linearised_laplace`, section 7, which uses 10 bins).
    ///
    /// # Errors
    /// [`MetricsError::Setting`] for no bins or more than [`MOST_BINS`].
    pub fn reliability_of_every_class(&self, bins: usize) -> Result<Vec<ReliabilityBin>, MetricsError> {
        check_bins(bins)?;
        let classes = self.probabilities().classes();
        let events = self
            .probabilities()
            .values()
            .iter()
            .enumerate()
            .map(|(i, p)| (*p, self.labels()[i / classes] == i % classes));
        Ok(reliability(events, bins))
    }
}

pub(crate) fn check_bins(bins: usize) -> Result<(), MetricsError> {
    if (1..=MOST_BINS).contains(&bins) {
        Ok(())
    } else {
        Err(MetricsError::Setting { what: "the number of bins", value: bins, least: 1, most: MOST_BINS })
    }
}

/// The bin `(b/bins, (b + 1)/bins]` of a probability, with edges as floating-point division gives them.
fn bin_of(probability: f64, bins: usize) -> usize {
    let edge = |b: usize| b as f64 / bins as f64;
    let mut upper = ((probability * bins as f64).ceil() as usize).clamp(1, bins);
    // The product may round across an edge: at most one step either way.
    if upper > 1 && probability <= edge(upper - 1) {
        upper -= 1;
    } else if upper < bins && probability > edge(upper) {
        upper += 1;
    }
    upper - 1
}

pub(crate) fn reliability(events: impl Iterator<Item = (f64, bool)>, bins: usize) -> Vec<ReliabilityBin> {
    let mut sums = vec![(0usize, 0.0f64, 0usize); bins];
    for (probability, happened) in events {
        let (count, confidence, hits) = &mut sums[bin_of(probability, bins)];
        *count += 1;
        *confidence += probability;
        *hits += usize::from(happened);
    }
    sums.iter()
        .enumerate()
        .filter(|(_, (count, ..))| *count > 0)
        .map(|(b, (count, confidence, hits))| ReliabilityBin {
            lower: b as f64 / bins as f64,
            upper: (b + 1) as f64 / bins as f64,
            count: *count,
            confidence: confidence / *count as f64,
            frequency: *hits as f64 / *count as f64,
        })
        .collect()
}

/// Calibration error over bins of equal width; `bins` is checked.
pub(crate) fn binned_error(probabilities: &[f64], happened: &[bool], bins: usize) -> f64 {
    let n = probabilities.len() as f64;
    reliability(probabilities.iter().copied().zip(happened.iter().copied()), bins)
        .iter()
        .map(|bin| bin.count as f64 / n * (bin.frequency - bin.confidence).abs())
        .sum()
}

/// Calibration error over bins of equal counts; `bins` is checked.
pub(super) fn adaptive_error(probabilities: &[f64], happened: &[bool], bins: usize) -> f64 {
    let n = probabilities.len();
    let mut events: Vec<(f64, bool)> = probabilities.iter().copied().zip(happened.iter().copied()).collect();
    events.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Difference of hit and probability, hits shared among equals.
    let mut gaps = Vec::with_capacity(n);
    for equals in events.chunk_by(|a, b| a.0 == b.0) {
        let share = equals.iter().filter(|e| e.1).count() as f64 / equals.len() as f64;
        gaps.extend(equals.iter().map(|e| share - e.0));
    }
    // The widening keeps b·n from overflowing.
    let cut = |b: usize| (b as u128 * n as u128 / bins as u128) as usize;
    (0..bins).map(|b| gaps[cut(b)..cut(b + 1)].iter().sum::<f64>().abs()).sum::<f64>() / n as f64
}
