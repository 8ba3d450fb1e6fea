//! What is asked for, and how a fit went.

use serde::{Deserialize, Serialize};

/// What to make, and from how much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EllaOptions {
    /// Training examples whose Jacobian rows are decomposed, as many of each class where targets are classes; None: 2,000, or all where there are fewer.
    pub landmarks: Option<usize>,
    /// Directions that are kept.
    pub features: usize,
    /// Whether each landmark looks at a random output, as published, instead of that of its class.
    pub random_classes: bool,
    /// Examples between two looks at the held-out ones, after which the pass may end; None for one whole pass.
    pub val_every: Option<usize>,
    /// Looks without improvement after which the pass ends; what was best is kept.
    pub patience: usize,
    /// Prior precision for those looks, for all data: for a part of them it is scaled by their share.
    pub val_precision: f64,
}

impl Default for EllaOptions {
    fn default() -> Self {
        Self {
            landmarks: None,
            features: 20,
            random_classes: false,
            val_every: None,
            patience: 1,
            val_precision: 1.0,
        }
    }
}

/// Landmarks where no number is given (spec `valla`, section 9).
const LANDMARKS: usize = 2000;

impl EllaOptions {
    /// How many landmarks there are of so many examples.
    pub fn landmarks(&self, examples: usize) -> usize {
        self.landmarks.unwrap_or_else(|| LANDMARKS.min(examples))
    }
}

/// How a fit went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EllaReport {
    /// Landmarks that were used.
    pub landmarks: usize,
    /// Eigenvalues of their kernel that were kept, the largest first.
    pub eigenvalues: Vec<f64>,
    /// Directions asked for that rounding cannot tell from none.
    pub dropped: usize,
    /// Examples in the curvature that was kept.
    pub examples: usize,
    /// Held-out scores: examples seen, mean negative log predictive density.
    pub scores: Vec<(usize, f64)>,
    /// Whether held-out data ended the pass.
    pub stopped_early: bool,
    /// Things to know, in sentences.
    pub notes: Vec<String>,
}
