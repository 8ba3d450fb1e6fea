//! **Mean-field fine-tuning**: the trained weights become independent Gaussians, and means and deviations are trained on for a few epochs (spec `valla`, section 7.4).
//!
//! `q(w) = prod_p N(mu_p, e^(2 psi_p))` under the prior `N(0, 1 / (N wd))`, `wd` the weight decay of training. The loss of an example is `E_q[-log p(y | g_w(x))] + KL(q | prior) / N`, so that weight decay
//! joins the gradient of `mu` as `wd mu`, and that of `psi` as `wd e^(2 psi) - 1/N`. Predictions are those of the **network itself** at draws of its weights, averaged: their mean is not the trained network's
//! output, unlike that of every linearised method.
//!
//! **Noise.** A batch is cut into a few groups, and each sees weights drawn for it, in antithetic pairs. Flipout and local reparameterisation give every example a draw of its own by formulas that hold for
//! layers that are linear in one weight matrix; draws by group hold for every layer of every architecture (gains of normalisation, attention, embeddings), are draws from `q` itself and not of its outputs layer
//! by layer, and leave of the noise that a batch shares the part `1 / groups`. They cost one pass over the weights for each group, beside the passes of its examples.
//!
//! Batch normalisation stays in evaluation mode, with the statistics of training.
//!
//! | file | what |
//! |---|---|
//! | `options` | what can be asked, and what it takes |
//! | `fit` | the run: driven, kept, gone on from |
//! | `steps` | one step, its gradients, the noise of observations |
//! | `predict` | draws, moments and mixtures |
//! | `report` | how it went |

mod fit;
mod options;
mod predict;
mod report;
mod steps;

pub use options::MeanFieldOptions;
pub use report::{EpochSummary, MeanFieldSummary};

use posterior_likelihoods::OutputLikelihood;
use posterior_networks::Selection;
use std::sync::OnceLock;

/// A network whose selected weights are independent Gaussians.
#[derive(Clone, Debug)]
pub struct MeanField<T> {
    selection: Selection,
    likelihood: OutputLikelihood,
    mean: Vec<T>,
    log_deviation: Vec<T>,
    samples: usize,
    seed: u64,
    /// Draws of the weights, `[samples, weights]`, made when they are first asked for.
    draws: OnceLock<Vec<T>>,
    /// What was done.
    pub summary: MeanFieldSummary,
}
