//! What asking takes, said before the work.

use super::model::EVIDENCE_ROWS;
use crate::DecisionError;
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use serde::Serialize;
use std::fmt;

/// Operations a second that are counted on, of one core.
const RATE: f64 = 2e9;

/// Operations of the score of a row: two classes by quadrature, others by draws for each function.
const SCORE: [f64; 2] = [6e3, 3e4];

/// Evaluations of the evidence in a search, and operations of one for each class beside `t³`.
const EVALUATIONS: f64 = 60.0;

/// Bytes of the draws of each function: three sets of a thousand and one of a few.
const DRAWS: u64 = 3 * 8 * 1000 + 512;

/// Memory and work of one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LabelPlan {
    /// Rows of the pool.
    pub rows: usize,
    /// Features.
    pub features: usize,
    /// Latent functions.
    pub functions: usize,
    /// Labels.
    pub labels: usize,
    /// Rows that are pretended to be labelled: pending ones, and those that are asked for.
    pub asked: usize,
    /// Bytes at most, the table included.
    pub peak_bytes: u64,
    /// Floating-point operations.
    pub operations: f64,
}

impl LabelPlan {
    pub(super) fn new(
        (rows, features, table): (usize, usize, u64),
        (classes, gaussianised): (usize, &Gaussianised),
        (labels, asked): (usize, usize),
        searched: bool,
    ) -> Self {
        let functions =
            if classes == 2 && gaussianised.matching() != Matching::MomentOriginal { 1 } else { classes };
        let searched_rows = labels.min(EVIDENCE_ROWS);
        let count = |factors: &[usize]| {
            factors.iter().try_fold(8u64, |all, f| all.checked_mul(*f as u64)).unwrap_or(u64::MAX)
        };
        let parts = [
            table,
            // Features as they are read, in standard units, and those of the posterior.
            count(&[3, rows, features]),
            // Columns; means and variances with those to go back to; scores.
            count(&[functions, rows, labels.saturating_add(asked)]),
            count(&[4, functions, rows]),
            count(&[6, rows]),
            // While all labels are learned at once: the rectangle twice, squares.
            count(&[2, labels, rows]),
            count(&[3, labels, labels]),
            if searched { count(&[4, searched_rows, searched_rows]) } else { 0 },
            DRAWS.saturating_mul(functions as u64),
        ];
        let peak_bytes = parts.iter().fold(0u64, |all, part| all.saturating_add(*part));
        let (n, c, t, b) = (rows as f64, functions as f64, labels as f64, asked as f64);
        let conditioning = c * (t.powi(3) / 3.0 + n * t * t) + 20.0 * n * t * features as f64;
        let updates = b * n * (20.0 * features as f64 + 2.0 * c * (t + b));
        let score = if functions == 1 { SCORE[0] } else { SCORE[1] * c };
        let search = if searched { EVALUATIONS * c * 2.0 * (searched_rows as f64).powi(3) } else { 0.0 };
        let operations = conditioning + updates + n * score * (1.0 + 0.2 * b) + search;
        Self { rows, features, functions, labels, asked, peak_bytes, operations }
    }

    /// Seconds on one core, about.
    pub fn seconds(&self) -> f64 {
        self.operations / RATE
    }

    /// # Errors
    /// [`DecisionError::LabelMemory`] where it takes more than `limit` bytes.
    pub fn check(self, limit: u64) -> Result<Self, DecisionError> {
        if self.peak_bytes > limit {
            return Err(DecisionError::LabelMemory { plan: Box::new(self), limit });
        }
        Ok(self)
    }
}

impl fmt::Display for LabelPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, features, functions, labels, asked, .. } = self;
        let plural = if *functions == 1 { "" } else { "s" };
        write!(
            f,
            "{rows} rows x {features} features, {functions} latent function{plural}, {labels} labels and {asked} rows to be labelled need {:.1} MB of memory, {:.2} Gflop, about {} on one core",
            self.peak_bytes as f64 / 1e6,
            self.operations / 1e9,
            match self.seconds() {
                s if s < 1.0 => "a second".into(),
                s => format!("{s:.0} s"),
            }
        )
    }
}
