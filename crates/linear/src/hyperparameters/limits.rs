//! Where updates are kept.

use crate::LinearError;
use serde::{Deserialize, Serialize};

/// Ranges that updates may not leave. A layer's precision can run off to infinity when the evidence prunes it, and the effective
/// dimension can round to zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Least effective dimension of a group; the most is its number of parameters.
    pub dimension: f64,
    /// Range of precisions.
    pub precision: (f64, f64),
    /// Range of the factor on the noise precision.
    pub noise: (f64, f64),
}

impl Default for Limits {
    /// Effective dimensions from 1e-6, precisions in [1e-8, 1e10] (spec `linearised_laplace`, section 4.2), noise factors in [1e-12, 1e12].
    fn default() -> Self {
        Self { dimension: 1e-6, precision: (1e-8, 1e10), noise: (1e-12, 1e12) }
    }
}

/// What was moved to the edge of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limited {
    /// The effective dimension of a group.
    EffectiveDimension(usize),
    /// The precision of a group was too small: its weights are hardly regularised.
    PrecisionLow(usize),
    /// The precision of a group was too large: the group is pruned.
    PrecisionHigh(usize),
    /// The noise precision.
    Noise,
}

/// An edge that was hit, with the value before it was moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// What was moved.
    pub what: Limited,
    /// The value that was wanted.
    pub wanted: f64,
}

impl Limits {
    pub(super) fn check(&self) -> Result<(), LinearError> {
        let expected = "positive, finite, the lower limit below the upper";
        let good = |(low, high): (f64, f64)| low > 0.0 && low < high && high.is_finite();
        if !(self.dimension > 0.0 && self.dimension.is_finite()) {
            return Err(LinearError::Option { name: "limits.dimension", value: self.dimension, expected });
        }
        for (name, range) in [("limits.precision", self.precision), ("limits.noise", self.noise)] {
            if !good(range) {
                return Err(LinearError::Option { name, value: range.0, expected });
            }
        }
        Ok(())
    }

    pub(super) fn dimension(&self, group: usize, size: usize, value: f64, hits: &mut Vec<Hit>) -> f64 {
        let kept = value.clamp(self.dimension.min(size as f64), size as f64);
        if kept != value {
            hits.push(Hit { what: Limited::EffectiveDimension(group), wanted: value });
        }
        kept
    }

    pub(super) fn precision(&self, group: usize, value: f64, hits: &mut Vec<Hit>) -> f64 {
        let (low, high) = self.precision;
        if value < low {
            hits.push(Hit { what: Limited::PrecisionLow(group), wanted: value });
        } else if value > high {
            hits.push(Hit { what: Limited::PrecisionHigh(group), wanted: value });
        }
        value.clamp(low, high)
    }

    pub(super) fn noise(&self, value: f64, hits: &mut Vec<Hit>) -> f64 {
        let kept = value.clamp(self.noise.0, self.noise.1);
        if kept != value {
            hits.push(Hit { what: Limited::Noise, wanted: value });
        }
        kept
    }
}
