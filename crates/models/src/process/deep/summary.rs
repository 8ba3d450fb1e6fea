//! What became of training, as a header keeps it.

use posterior_linear::low_rank::{FeatureDiagnostics, Look, Rest};
use serde::{Deserialize, Serialize};

/// One way to train, and what the rows that were set aside say of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedSetting {
    /// In words.
    pub name: String,
    /// Mean of `-log p(y)` of the rows set aside, nats, of the standardised target or of labels and counts, at its best look.
    pub nll: f64,
    /// The same with the exact posterior of the weights for the features and noise then, or the best Gaussian of them where it has no closed form.
    pub refitted_nll: Option<f64>,
    /// The better of both after the first round, by which it was kept or left.
    pub first_nll: f64,
    /// Why the first round ended.
    pub first_ended: String,
    /// Noise variance, in standard units; None of targets that have no Gaussian noise.
    pub noise: Option<f64>,
    /// Steps taken, and before the best look.
    pub steps: [usize; 2],
    /// Looks, each with its step.
    pub looks: Vec<Look>,
    /// Why it ended, or what went wrong.
    pub ended: String,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// Learned features; part of the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeepSummary {
    /// Where the network comes from.
    pub origin: String,
    /// The network, as TOML.
    pub architecture: String,
    /// Whether features are inducing points behind the network; else they are its outputs.
    pub inducing: bool,
    /// Features.
    pub rank: usize,
    /// What is added to the features' variance.
    pub rest: Rest,
    /// Covariances of weights: one for each latent function, or one that all share.
    #[serde(default = "one")]
    pub roots: usize,
    /// The way that was chosen.
    pub chosen: String,
    /// Whether the weights are those of [`TriedSetting::refitted_nll`], rather than those of training.
    pub refitted: bool,
    /// All that were tried.
    pub tried: Vec<TriedSetting>,
    /// Rows that were set aside to stop and to choose.
    pub validation_rows: usize,
    /// Effective rank and range of variances.
    pub diagnostics: FeatureDiagnostics,
}

fn one() -> usize {
    1
}

/// Features that use fewer directions than this have collapsed.
const COLLAPSED: f64 = 1.5;

impl DeepSummary {
    /// What a user must know.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        let FeatureDiagnostics { effective_rank, smallest_variance, largest_variance } = self.diagnostics;
        if self.rank > 1 && effective_rank < COLLAPSED {
            out.push(format!(
                "the {} features have collapsed to nearly one direction (effective rank {effective_rank:.2}): the variance of predictions knows of little else, see whether intervals fit",
                self.rank
            ));
        }
        if !self.inducing && self.rest == Rest::None && largest_variance > 100.0 * smallest_variance {
            out.push(format!(
                "prior variances range from {smallest_variance:.2e} to {largest_variance:.2e} in training: where they are small, predictions are sure of themselves whatever the data (--correction full)"
            ));
        }
        out
    }
}
