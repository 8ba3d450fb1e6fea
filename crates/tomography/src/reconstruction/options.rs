//! What is asked for.

use crate::Filter;
use crate::image_prior::{DeepImagePriorOptions, PretrainOptions};
use crate::total_variation::{AdamOptions, PrimalDualOptions};
use posterior_networks::architecture::Unet;
use serde::{Deserialize, Serialize};

/// How total variation is minimised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TotalVariationSolver {
    /// Primal-dual, with a bound on how far it is from the minimum.
    PrimalDual(PrimalDualOptions),
    /// Adam on the pixels, as published.
    Adam(AdamOptions),
}

/// A picture by total variation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TotalVariationRequest {
    /// Its weight lambda beside the mean squared error, for pictures of brightness 1; None: chosen on measurements that are held back.
    pub weight: Option<f64>,
    /// How it is minimised.
    pub solver: TotalVariationSolver,
    /// Seed of the measurements that are held back.
    pub seed: u64,
}

impl Default for TotalVariationRequest {
    fn default() -> Self {
        Self { weight: None, solver: TotalVariationSolver::PrimalDual(PrimalDualOptions::default()), seed: 0 }
    }
}

/// A picture by the deep image prior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeepImagePriorRequest {
    /// The network; its `input` is that of the scan.
    pub network: Unet,
    /// Weight of total variation; None: that of total variation alone, chosen on measurements that are held back. On a walnut-like phantom of 64 x 64 and 30 angles a tenth of it lost 0.8 dB.
    pub weight: Option<f64>,
    /// Training.
    pub training: DeepImagePriorOptions,
    /// Pretraining on ellipses, where the weights are fresh.
    pub pretraining: Option<PretrainOptions>,
    /// Seed of the weights.
    pub seed: u64,
}

impl Default for DeepImagePriorRequest {
    /// Three scales of 32 channels with norms, a linear output, 3000 steps of 1e-3 from fresh weights.
    fn default() -> Self {
        Self {
            network: Unet { sigmoid: false, ..Unet::small(true) },
            weight: None,
            training: DeepImagePriorOptions { learning_rate: 1e-3, ..DeepImagePriorOptions::default() },
            pretraining: None,
            seed: 0,
        }
    }
}

/// How the picture is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// In closed form.
    Filtered(Filter),
    /// By total variation.
    TotalVariation(TotalVariationRequest),
    /// By the deep image prior.
    DeepImagePrior(Box<DeepImagePriorRequest>),
}
