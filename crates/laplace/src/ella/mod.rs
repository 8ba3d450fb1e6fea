//! **ELLA**: linearised Laplace in the span of a few directions of the weights, the leading ones of the Jacobian at some landmarks.
//!
//! The features `psi(x) = J(x) V` are K for each output, made by K products forward; the curvature `G = sum psi' B psi` is K x K and made in one pass over the data, which may end early, where held-out data say so; the
//! posterior covariance of the outputs is `psi (s G + a I)^-1 psi'`, never more than that of the whole linearised model.
//!
//! Source: spec `valla`, section 7.2; Deng, Zhou and Zhu (2022).

mod fit;
mod posterior;

pub use crate::plan::ella as plan;
pub use posterior::{ConditionedElla, Ella};

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
