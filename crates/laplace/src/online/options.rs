//! What is learned while training, and how often.

use crate::{Approximation, FisherEstimate, LaplaceError, PriorKind, Weights};
use posterior_networks::train::{Keep, TrainOptions};
use serde::{Deserialize, Serialize};

/// How hyperparameters climb.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum HyperparameterRule {
    /// Adam on the logarithms of precisions and noise.
    Adam {
        /// Step size.
        learning_rate: f64,
    },
    /// MacKay's fixed points `a = gamma / |u|^2`, `s^2 = RSS / (n - gamma)`.
    Mackay,
}

/// Which weights are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Select {
    /// Those with the largest evidence.
    Evidence,
    /// The last.
    #[default]
    Last,
    /// Those with the lowest validation loss.
    Validation,
}

impl Select {
    pub(super) fn keep(self) -> Keep {
        match self {
            Self::Evidence => Keep::Score,
            Self::Last => Keep::Last,
            Self::Validation => Keep::Validation,
        }
    }
}

/// How hyperparameters are learned while a network is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnlineOptions {
    /// Weights whose prior is learned; others keep the training rule's weight decay.
    pub weights: Weights,
    /// The curvature, one that is made of sums. A sampled Fisher matrix draws anew at every epoch.
    pub approximation: Approximation,
    /// Groups of weights with a precision each: scalar, layerwise (also for `Auto`), by parameter, or named.
    pub prior: PriorKind,
    /// Precision at the start; None takes the training rule's weight decay, or 1 where there is none.
    pub initial_precision: Option<f64>,
    /// Noise variance at the start for the mean-square loss, on the scale of the targets the network sees. Modest, so that the burn-in fits the data: from large noise and a decay to
    /// match the way often leads to a network that explains nothing.
    pub initial_noise: f64,
    /// Whether the noise of Gaussian losses is learned by the evidence.
    pub learn_noise: bool,
    /// Epochs before hyperparameters move.
    pub burn_in: usize,
    /// Epochs from one move to the next; the last epoch always has one.
    pub every: usize,
    /// Steps of a move.
    pub steps: usize,
    /// What a step is.
    pub rule: HyperparameterRule,
    /// Whether the first-order term of weights that are not at a minimum is added: one more pass back. For Gaussian noise and the full curvature (of all weights or of some) only: with
    /// an approximate one the term is unbounded, since `g^T M^-1 g` may then exceed the sum of squares that it is a part of, and noise would be learned away.
    pub first_order: bool,
    /// Which weights are kept.
    pub select: Select,
    /// Memory for the curvature, bytes.
    pub memory: u64,
}

impl Default for OnlineOptions {
    fn default() -> Self {
        Self {
            weights: Weights::All,
            approximation: Approximation::Kronecker(FisherEstimate::Exact),
            prior: PriorKind::Layerwise,
            initial_precision: None,
            initial_noise: 0.1,
            learn_noise: true,
            burn_in: 5,
            every: 5,
            steps: 20,
            rule: HyperparameterRule::Adam { learning_rate: 0.1 },
            first_order: false,
            select: Select::Last,
            memory: 8 << 30,
        }
    }
}

impl OnlineOptions {
    pub(super) fn check(&self, options: &TrainOptions, validation: bool) -> Result<(), LaplaceError> {
        let positive = |v: f64| v.is_finite() && v > 0.0;
        let problem = if options.rule.weight_decay().1 {
            "decoupled weight decay is not a prior: train with adam or sgd, whose decay joins the gradient"
        } else if self.approximation.form().is_none() {
            "hyperparameters are learned online with a curvature made of sums: full, block, diagonal or kronecker"
        } else if matches!(self.prior, PriorKind::Diagonal | PriorKind::GPrior) {
            "weight decay is one number for each parameter tensor: use a scalar, layerwise or parameter prior, or named groups"
        } else if matches!(self.weights, Weights::Subnetwork { .. }) {
            "weight decay is one number for each parameter tensor: choose all weights, the last layer, or tensors by name, not a sub-network"
        } else if self.every == 0 || self.steps == 0 {
            "hyperparameters need at least one step, every epoch or less often"
        } else if self.burn_in >= options.epochs {
            "the burn-in leaves no epoch for hyperparameters: train longer or shorten it"
        } else if !self.initial_precision.is_none_or(positive) || !positive(self.initial_noise) {
            "precision and noise variance at the start must be positive and finite"
        } else if matches!(self.rule, HyperparameterRule::Adam { learning_rate } if !positive(learning_rate))
        {
            "the step size of hyperparameters must be positive and finite"
        } else if self.first_order && self.approximation != Approximation::Full {
            "the first-order term needs the full curvature (of all weights or of the last layer): with an approximate one it has no bound"
        } else if self.select == Select::Validation && !validation {
            "weights chosen by validation need validation examples: set a part aside"
        } else {
            return Ok(());
        };
        Err(LaplaceError::Request(problem.into()))
    }

    pub(super) fn due(&self, epoch: usize, epochs: usize) -> bool {
        epoch == epochs || (epoch > self.burn_in && (epoch - self.burn_in).is_multiple_of(self.every))
    }
}
