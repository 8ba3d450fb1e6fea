//! The diagonal of the curvature: every weight on its own.

use super::{LocalPrior, StructureError, Terms, scales_of};

/// A diagonal block.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagonal {
    values: Vec<f64>,
    scales: Option<Vec<f64>>,
}

/// Its posterior: a variance for each weight.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionedDiagonal {
    /// `(H^-1)_ii`, in the units of the unscaled weights.
    pub variances: Vec<f64>,
}

impl Diagonal {
    /// With the given entries, each at least zero.
    pub fn new(values: Vec<f64>) -> Self {
        Self { values, scales: None }
    }

    /// The entries.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    pub(crate) fn dimension(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.values.iter().all(|v| v.is_finite() && *v >= 0.0)
    }

    pub(crate) fn scales(&self) -> Option<&[f64]> {
        self.scales.as_deref()
    }

    pub(crate) fn normalised(self) -> Result<Self, StructureError> {
        if self.scales.is_some() {
            return Err(StructureError::ScaledTwice);
        }
        let scales = scales_of(&self.values);
        let values = self.values.iter().zip(&scales).map(|(m, s)| m * s * s).collect();
        Ok(Self { values, scales: Some(scales) })
    }

    pub(crate) fn add_terms(&self, local: &LocalPrior, strength: f64, terms: &mut Terms) {
        for (range, group, precision) in &local.stretches {
            let (mut log_determinant, mut effective) = (0.0, 0.0);
            for m in &self.values[range.clone()] {
                let ratio = strength * m / precision;
                log_determinant += ratio.ln_1p();
                effective += ratio / (1.0 + ratio);
            }
            terms.log_determinant += log_determinant;
            terms.effective_dimensions[*group] += effective;
        }
    }

    pub(crate) fn condition(&self, local: &LocalPrior, strength: f64) -> ConditionedDiagonal {
        let mut variances: Vec<f64> =
            self.values.iter().zip(local.each()).map(|(m, a)| 1.0 / (strength * m + a)).collect();
        if let Some(scales) = &self.scales {
            variances.iter_mut().zip(scales).for_each(|(v, s)| *v *= s * s);
        }
        ConditionedDiagonal { variances }
    }
}
