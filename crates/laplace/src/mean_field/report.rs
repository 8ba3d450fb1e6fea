//! How a fit went.

use serde::{Deserialize, Serialize};

/// What an epoch came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochSummary {
    /// From 1.
    pub epoch: usize,
    /// Mean of `-log p` over the epoch's examples, each at weights drawn for its group, before its step.
    pub nll: f64,
    /// `KL(q | prior)` after the epoch, nats.
    pub divergence: f64,
    /// Factor on Gaussian noise variances after the epoch; 1 without noise, or where it is held.
    pub noise_factor: f64,
}

/// What a mean-field fit did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanFieldSummary {
    /// Epoch by epoch.
    pub history: Vec<EpochSummary>,
    /// How often it began anew with half the step sizes.
    pub restarts: usize,
    /// Seconds, those of earlier runs included.
    pub seconds: f64,
}
