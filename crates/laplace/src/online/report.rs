//! What was learned, epoch by epoch.

use super::Select;
use serde::{Deserialize, Serialize};

/// Hyperparameters after one move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnlineStep {
    /// The epoch after which they moved, from 1.
    pub epoch: usize,
    /// Prior precisions by group.
    pub precisions: Vec<f64>,
    /// Noise variances by target; empty without Gaussian noise of its own.
    pub noise_variances: Vec<f64>,
    /// The log evidence of the epoch's weights with these hyperparameters, the first-order term included.
    pub log_evidence: f64,
    /// The same with the hyperparameters before the move.
    pub log_evidence_before: f64,
    /// `log p(Y | v)`.
    pub log_likelihood: f64,
    /// `1/2 q^T H^-1 q`, where asked for.
    pub first_order: Option<f64>,
    /// The effective dimension.
    pub effective_dimension: f64,
}

/// What online Laplace learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnlineReport {
    /// The curvature.
    pub curvature: String,
    /// Names of the groups with a precision each.
    pub groups: Vec<String>,
    /// Which weights were kept.
    pub select: Select,
    /// Epoch of the weights kept, from 1.
    pub epoch: usize,
    /// The prior precisions that go with them.
    pub precisions: Vec<f64>,
    /// The noise variances that go with them; empty without Gaussian noise of its own.
    pub noise_variances: Vec<f64>,
    /// Every move.
    pub trace: Vec<OnlineStep>,
}
