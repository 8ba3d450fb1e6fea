//! The next prior precision.

use crate::evidence::precision_update;
use posterior_linalg::solve::SpectralMeasure;
use serde::{Deserialize, Serialize};

/// How a turn of expectation maximisation chooses a precision from the mode and the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Update {
    /// MacKay's update
    ///
    /// `gamma / |w|²`: two turns where the full update needs a hundred.
    #[default]
    Mackay,
    /// The maximum of the bound on the evidence
    ///
    /// For the mode, `a |w|² = sum lambda / (lambda + a)`.
    Evidence,
    /// The decoupled bound: classical expectation maximisation
    ///
    /// The maximum of the variational bound whose covariance stays, `d / (|w|² + Tr H^-1)`.
    DecoupledElbo,
}

/// What [`Update`] looks at, of one group of weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// Weights.
    pub(super) size: usize,
    /// `|w|²` of the mode.
    pub(super) squared_norm: f64,
    /// Its effective dimension, estimated.
    pub(super) effective_dimension: f64,
    /// `Tr H^-1`, estimated: the mean of the samples' squared norms.
    pub(super) trace: f64,
}

/// Least and largest effective dimension that is believed of so many weights: between 1 and one less than all, where there are that many.
pub fn dimension_bounds(size: usize) -> (f64, f64) {
    let size = size as f64;
    (0.5 * size.min(2.0), (size - 1.0).max(0.5 * size))
}

impl Update {
    /// The next precision; `spectrum` is that of the curvature times its strength, which [`Update::Evidence`] looks at.
    pub(super) fn next(self, group: Group, spectrum: Option<(&SpectralMeasure, f64)>) -> f64 {
        let (low, high) = dimension_bounds(group.size);
        let norm = group.squared_norm.max(f64::MIN_POSITIVE);
        match (self, spectrum) {
            (Self::DecoupledElbo, _) => group.size as f64 / (norm + group.trace),
            (Self::Evidence, Some((measure, strength))) => balanced(norm, |a| {
                let share = |e: f64| strength * e.max(0.0) / (strength * e.max(0.0) + a);
                measure.trace(share).mean
            }),
            _ => precision_update(group.effective_dimension.clamp(low, high), norm),
        }
    }
}

/// The `a` with `a |w|² = gamma(a)`, whose left side grows and right side falls: by bisection of its logarithm to the last digit.
pub(super) fn balanced(squared_norm: f64, dimension: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (1e-12f64.ln(), 1e14f64.ln());
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        let a = middle.exp();
        if a * squared_norm < dimension(a) { low = middle } else { high = middle }
    }
    (0.5 * (low + high)).exp()
}

/// The sampled bound of the log evidence, `1/2 [d log a - a (|w|² + Tr H^-1)]` for each group, up to what does not depend on the precisions while the samples stay.
///
/// Source: spec `linearised_laplace`, section 6.
pub fn sampled_bound(sizes: &[usize], precisions: &[f64], squared_norms: &[f64], traces: &[f64]) -> f64 {
    let group = |g: usize| {
        let a = precisions[g];
        sizes[g] as f64 * a.ln() - a * (squared_norms[g] + traces[g])
    };
    0.5 * (0..sizes.len()).map(group).sum::<f64>()
}
