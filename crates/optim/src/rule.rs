//! **Update rules**: what one step of Adam, of AdaBelief, of RMSProp or of gradient descent does to parameters. The one place where they are computed, for vectors of doubles and for the weights of
//! networks, in place and in their own precision; moments stand with the caller.
//!
//! Adaptive rules divide a mean of gradients by the root of a mean of squares, `θ <- θ - rate m̂ / (√ŝ + ε)`, and differ in the squares of what:
//!
//! | rule | m | s is a mean of | bias correction |
//! |---|---|---|---|
//! | Adam | mean of g | `g²` | yes |
//! | AdaBelief | mean of g | `(g - m)²`: steps are long where gradients are as expected | yes |
//! | RMSProp | g itself | `g²` | no |

use posterior_linalg::vectorised::dispatch;
use posterior_linalg::{Real, parallel};
use serde::{Deserialize, Serialize};

/// Entries that one thread moves at a time.
const PIECE: usize = 1 << 14;

/// How parameters follow their gradient.
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
    /// AdaBelief (Zhuang et al., *AdaBelief optimizer: adapting stepsizes by the belief in observed gradients*, NeurIPS 2020, algorithm 2; spec `generalised_variational_inference`, section 13):
    /// `m <- β₁ m + (1 - β₁) g`, `s <- β₂ s + (1 - β₂) (g - m)² + ε_root`, `θ <- θ - rate m̂ / (√ŝ + ε)`.
    ///
    /// Where gradients have no noise s falls with their changes, and steps can be far longer than the rate: give a schedule, or stop early.
    #[serde(rename = "adabelief")]
    AdaBelief {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the root of the second moment.
        epsilon: f64,
        /// Added to the second moment itself at each step, before its bias is corrected: s never falls below this over `1 - beta2`.
        root_epsilon: f64,
        /// Whether gradients are compared with the mean before this step, as a widespread implementation does, instead of the mean that has them in it, as the paper does. With the latter
        /// the difference is smaller by the factor beta1, and steps are longer by about its inverse.
        previous_mean: bool,
        /// Weight decay.
        weight_decay: f64,
        /// Whether the decay shrinks the weights themselves instead of joining the gradient.
        decoupled: bool,
    },
    /// RMSProp (Tieleman and Hinton, lecture 6.5 of *Neural networks for machine learning*, 2012): `s <- decay s + (1 - decay) g²`, `θ <- θ - rate g / (√s + ε)`. No momentum, and no bias
    /// correction: the first step is `1 / √(1 - decay)` times as long as the rate.
    #[serde(rename = "rmsprop")]
    RmsProp {
        /// Decay of the second moment.
        decay: f64,
        /// Added to the root of the second moment.
        epsilon: f64,
        /// Weight decay.
        weight_decay: f64,
        /// Whether the decay shrinks the weights themselves instead of joining the gradient.
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

    /// AdaBelief with its published constants (0.9, 0.999, 1e-16 twice) and the published difference, from the mean that has the gradient in it.
    pub fn adabelief() -> Self {
        Self::AdaBelief {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-16,
            root_epsilon: 1e-16,
            previous_mean: false,
            weight_decay: 0.0,
            decoupled: false,
        }
    }

    /// RMSProp with its customary constants (0.9, 1e-8).
    pub fn rmsprop() -> Self {
        Self::RmsProp { decay: 0.9, epsilon: 1e-8, weight_decay: 0.0, decoupled: false }
    }

    /// Nesterov momentum.
    pub fn nesterov(momentum: f64, weight_decay: f64) -> Self {
        Self::Sgd { momentum, nesterov: true, weight_decay }
    }

    /// Which moments it keeps, the first and the second. A moment that it does not keep is not looked at, so that its slice may be empty.
    pub fn moments(self) -> [bool; 2] {
        match self {
            Self::Adam { .. } | Self::AdaBelief { .. } => [true, true],
            Self::RmsProp { .. } => [false, true],
            Self::Sgd { .. } => [true, false],
        }
    }

    /// The weight decay, and whether it shrinks the weights themselves.
    pub fn weight_decay(self) -> (f64, bool) {
        match self {
            Self::Adam { weight_decay, decoupled, .. }
            | Self::AdaBelief { weight_decay, decoupled, .. }
            | Self::RmsProp { weight_decay, decoupled, .. } => (weight_decay, decoupled),
            Self::Sgd { weight_decay, .. } => (weight_decay, false),
        }
    }

    /// The same rule with another weight decay.
    pub fn with_weight_decay(mut self, decay: f64) -> Self {
        match &mut self {
            Self::Adam { weight_decay, .. }
            | Self::AdaBelief { weight_decay, .. }
            | Self::RmsProp { weight_decay, .. }
            | Self::Sgd { weight_decay, .. } => *weight_decay = decay,
        }
        self
    }

    /// The same rule with a weight decay that shrinks the weights themselves; that of gradient descent joins the gradient, which is the same without momentum.
    pub fn with_decoupled_decay(mut self, decay: f64) -> Self {
        match &mut self {
            Self::Adam { decoupled, .. }
            | Self::AdaBelief { decoupled, .. }
            | Self::RmsProp { decoupled, .. } => {
                *decoupled = true;
            }
            Self::Sgd { .. } => {}
        }
        self.with_weight_decay(decay)
    }

    /// What is out of range, if anything.
    pub fn problem(self) -> Option<&'static str> {
        let share = |v: f64| (0.0..1.0).contains(&v);
        let positive = |v: f64| v > 0.0 && v.is_finite();
        let decay = self.weight_decay().0;
        match self {
            Self::Adam { beta1, beta2, .. } | Self::AdaBelief { beta1, beta2, .. }
                if !share(beta1) || !share(beta2) =>
            {
                Some("betas must lie in [0, 1)")
            }
            Self::RmsProp { decay, .. } if !share(decay) => Some("the decay of squares must lie in [0, 1)"),
            Self::Adam { epsilon, .. } | Self::AdaBelief { epsilon, .. } | Self::RmsProp { epsilon, .. }
                if !positive(epsilon) =>
            {
                Some("epsilon must be positive")
            }
            Self::AdaBelief { root_epsilon, .. } if !(root_epsilon == 0.0 || positive(root_epsilon)) => {
                Some("epsilon within the root must be zero or positive")
            }
            Self::Sgd { momentum, .. } if !share(momentum) => Some("momentum must lie in [0, 1)"),
            _ if !(decay == 0.0 || positive(decay)) => Some("weight decay must be zero or positive"),
            _ => None,
        }
    }

    /// Moves `values`; `first` and `second` are their moments, as long as these where the rule [keeps them](Self::moments), `taken` counts this step from 1.
    ///
    /// Bound by memory: seven numbers moved for each parameter of Adam and AdaBelief, five of RMSProp and of gradient descent.
    #[inline(never)]
    pub fn step<T: Real>(
        self,
        values: &mut [T],
        gradient: &[T],
        first: &mut [T],
        second: &mut [T],
        rate: f64,
        taken: usize,
    ) {
        let (weight_decay, decoupled) = self.weight_decay();
        let decay = T::from_f64(if decoupled { 0.0 } else { weight_decay });
        let shrink = T::from_f64(if decoupled { 1.0 - rate * weight_decay } else { 1.0 });
        // What the step size and the root are multiplied by, for moments that began at zero.
        let power = taken.min(i32::MAX as usize) as i32;
        let corrections = |beta1: f64, beta2: f64| {
            [rate / (1.0 - beta1.powi(power)), 1.0 / (1.0 - beta2.powi(power)).sqrt()].map(T::from_f64)
        };
        match self {
            Self::Adam { beta1, beta2, epsilon, .. } => {
                let [rate, correct] = corrections(beta1, beta2);
                let [beta1, beta2, epsilon] = [beta1, beta2, epsilon].map(T::from_f64);
                with_two_moments(
                    (values, gradient, first, second),
                    #[inline(always)]
                    move |v, g, m, s| {
                        let g = g + decay * *v;
                        *m += (T::ONE - beta1) * (g - *m);
                        *s += (T::ONE - beta2) * (g * g - *s);
                        *v = *v * shrink - rate * *m / (Real::sqrt(*s) * correct + epsilon);
                    },
                );
            }
            Self::AdaBelief { beta1, beta2, epsilon, root_epsilon, previous_mean, .. } => {
                let [rate, correct] = corrections(beta1, beta2);
                let [beta1, beta2, epsilon, root_epsilon] =
                    [beta1, beta2, epsilon, root_epsilon].map(T::from_f64);
                with_two_moments(
                    (values, gradient, first, second),
                    #[inline(always)]
                    move |v, g, m, s| {
                        let g = g + decay * *v;
                        let before = g - *m;
                        *m += (T::ONE - beta1) * before;
                        let surprise = if previous_mean { before } else { g - *m };
                        *s += (T::ONE - beta2) * (surprise * surprise - *s) + root_epsilon;
                        *v = *v * shrink - rate * *m / (Real::sqrt(*s) * correct + epsilon);
                    },
                );
            }
            Self::RmsProp { decay: beta, epsilon, .. } => {
                let [rate, beta, epsilon] = [rate, beta, epsilon].map(T::from_f64);
                with_one_moment(
                    (values, gradient, second),
                    #[inline(always)]
                    move |v, g, s| {
                        let g = g + decay * *v;
                        *s += (T::ONE - beta) * (g * g - *s);
                        *v = *v * shrink - rate * g / (Real::sqrt(*s) + epsilon);
                    },
                );
            }
            Self::Sgd { momentum, nesterov, .. } => {
                let [rate, momentum] = [rate, momentum].map(T::from_f64);
                with_one_moment(
                    (values, gradient, first),
                    #[inline(always)]
                    move |v, g, m| {
                        let g = g + decay * *v;
                        *m = momentum * *m + g;
                        *v -= rate * if nesterov { g + momentum * *m } else { *m };
                    },
                );
            }
        }
    }
}

/// Each value by itself, with its gradient and both moments, by pieces that threads share.
fn with_two_moments<T: Real>(
    (values, gradient, first, second): (&mut [T], &[T], &mut [T], &mut [T]),
    update: impl Fn(&mut T, T, &mut T, &mut T) + Sync,
) {
    let moments = first.chunks_mut(PIECE).zip(second.chunks_mut(PIECE));
    let pieces = values.chunks_mut(PIECE).zip(gradient.chunks(PIECE)).zip(moments).collect();
    parallel::consume(pieces, |((values, gradient), (first, second))| {
        dispatch(
            #[inline(always)]
            || {
                for (((v, &g), m), s) in values.iter_mut().zip(gradient).zip(first).zip(second) {
                    update(v, g, m, s);
                }
            },
        );
    });
}

/// The same with one moment.
fn with_one_moment<T: Real>(
    (values, gradient, moment): (&mut [T], &[T], &mut [T]),
    update: impl Fn(&mut T, T, &mut T) + Sync,
) {
    let pieces = values.chunks_mut(PIECE).zip(gradient.chunks(PIECE)).zip(moment.chunks_mut(PIECE)).collect();
    parallel::consume(pieces, |((values, gradient), moment): ((&mut [T], &[T]), &mut [T])| {
        dispatch(
            #[inline(always)]
            || {
                for ((v, &g), m) in values.iter_mut().zip(gradient).zip(moment) {
                    update(v, g, m);
                }
            },
        );
    });
}

#[cfg(test)]
mod tests;
