//! What one step does to the weights.

use crate::array::{Precision, adam_update, sgd_update};
use serde::{Deserialize, Serialize};

/// How weights follow their gradient. Weights, moments and arithmetic have the network's precision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rule {
    /// Adam (Kingma and Ba, 2015).
    Adam {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the root of the second moment.
        epsilon: f64,
        /// Weight decay.
        weight_decay: f64,
        /// Whether the decay shrinks the weights themselves (AdamW; Loshchilov and Hutter, 2019) instead of joining the gradient.
        decoupled: bool,
    },
    /// Gradient descent with momentum: `m <- momentum m + g`, then a step along `m`, or along `g + momentum m` for Nesterov's form.
    Sgd {
        /// Momentum, 0 to 1.
        momentum: f64,
        /// Nesterov's form.
        nesterov: bool,
        /// Weight decay, joining the gradient.
        weight_decay: f64,
    },
}

impl Rule {
    /// Adam with its published constants.
    pub fn adam() -> Self {
        Self::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0, decoupled: false }
    }

    /// AdamW.
    pub fn adamw(weight_decay: f64) -> Self {
        Self::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay, decoupled: true }
    }

    /// Nesterov momentum.
    pub fn nesterov(momentum: f64, weight_decay: f64) -> Self {
        Self::Sgd { momentum, nesterov: true, weight_decay }
    }

    /// The weight decay, and whether it shrinks the weights themselves.
    pub fn weight_decay(self) -> (f64, bool) {
        match self {
            Self::Adam { weight_decay, decoupled, .. } => (weight_decay, decoupled),
            Self::Sgd { weight_decay, .. } => (weight_decay, false),
        }
    }

    /// The same rule with another weight decay.
    pub fn with_weight_decay(mut self, decay: f64) -> Self {
        match &mut self {
            Self::Adam { weight_decay, .. } | Self::Sgd { weight_decay, .. } => *weight_decay = decay,
        }
        self
    }

    /// What is out of range, if anything.
    pub(super) fn problem(self) -> Option<&'static str> {
        let share = |v: f64| (0.0..1.0).contains(&v);
        match self {
            Self::Adam { beta1, beta2, .. } if !share(beta1) || !share(beta2) => {
                Some("betas must lie in [0, 1)")
            }
            Self::Adam { epsilon, .. } if !(epsilon > 0.0 && epsilon.is_finite()) => {
                Some("epsilon must be positive")
            }
            Self::Sgd { momentum, .. } if !share(momentum) => Some("momentum must lie in [0, 1)"),
            Self::Adam { weight_decay, .. } | Self::Sgd { weight_decay, .. }
                if !(weight_decay >= 0.0 && weight_decay.is_finite()) =>
            {
                Some("weight decay must be zero or positive")
            }
            _ => None,
        }
    }

    /// Moves `values`; `first` and `second` are their moments (SGD uses the first), `taken` counts this step from 1.
    pub(super) fn step<T: Precision>(
        self,
        values: &mut [T],
        gradient: &[T],
        first: &mut [T],
        second: &mut [T],
        rate: f64,
        taken: usize,
    ) {
        match self {
            Self::Adam { beta1, beta2, epsilon, weight_decay, decoupled } => {
                let power = taken.min(i32::MAX as usize) as i32;
                let constants = [
                    beta1,
                    beta2,
                    epsilon,
                    rate / (1.0 - beta1.powi(power)),
                    1.0 / (1.0 - beta2.powi(power)).sqrt(),
                    if decoupled { 0.0 } else { weight_decay },
                    if decoupled { 1.0 - rate * weight_decay } else { 1.0 },
                ];
                adam_update(values, gradient, first, second, constants.map(T::from_f64));
            }
            Self::Sgd { momentum, nesterov, weight_decay } => {
                sgd_update(
                    values,
                    gradient,
                    first,
                    [rate, momentum, weight_decay].map(T::from_f64),
                    nesterov,
                );
            }
        }
    }
}
