//! **Update rules**: what one step of Adam or of gradient descent does to parameters. The one place where they are computed, for vectors of doubles and for the weights of
//! networks, in place and in their own precision; moments stand with the caller.

use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use rayon::prelude::*;
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
    pub fn problem(self) -> Option<&'static str> {
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
    ///
    /// Bound by memory: seven numbers moved for each parameter of Adam, five of gradient descent.
    pub fn step<T: Real>(
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

/// Adam; `constants` are beta1, beta2, epsilon, rate over the first bias correction, the root of the second's inverse, the decay that joins the
/// gradient, and the factor on the weights.
fn adam_update<T: Real>(
    values: &mut [T],
    gradient: &[T],
    first: &mut [T],
    second: &mut [T],
    constants: [T; 7],
) {
    let [beta1, beta2, epsilon, rate, correct, decay, shrink] = constants;
    values
        .par_chunks_mut(PIECE)
        .zip(gradient.par_chunks(PIECE))
        .zip(first.par_chunks_mut(PIECE).zip(second.par_chunks_mut(PIECE)))
        .for_each(|((values, gradient), (first, second))| {
            dispatch(
                #[inline(always)]
                || {
                    for (((v, &g), m), s) in values.iter_mut().zip(gradient).zip(first).zip(second) {
                        let g = g + decay * *v;
                        *m += (T::ONE - beta1) * (g - *m);
                        *s += (T::ONE - beta2) * (g * g - *s);
                        *v = *v * shrink - rate * *m / (Real::sqrt(*s) * correct + epsilon);
                    }
                },
            );
        });
}

/// Gradient descent with momentum; `constants` are rate, momentum and decay.
fn sgd_update<T: Real>(
    values: &mut [T],
    gradient: &[T],
    moment: &mut [T],
    constants: [T; 3],
    nesterov: bool,
) {
    let [rate, momentum, decay] = constants;
    values.par_chunks_mut(PIECE).zip(gradient.par_chunks(PIECE)).zip(moment.par_chunks_mut(PIECE)).for_each(
        |((values, gradient), moment)| {
            dispatch(
                #[inline(always)]
                || {
                    for ((v, &g), m) in values.iter_mut().zip(gradient).zip(moment) {
                        let g = g + decay * *v;
                        *m = momentum * *m + g;
                        *v -= rate * if nesterov { g + momentum * *m } else { *m };
                    }
                },
            );
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_by_hand() {
        let mut state = (vec![1.0f64], vec![0.0], vec![0.0]);
        let mut step = |rule: Rule, g: f64, taken: usize| {
            rule.step(&mut state.0, &[g], &mut state.1, &mut state.2, 0.1, taken);
            state.0[0]
        };
        // The first step of Adam has the length of the learning rate, whatever the gradient.
        assert!((step(Rule::adam(), 7.0, 1) - 0.9).abs() < 1e-9);
        let (m, s) = (0.9 * 0.7 + 0.1 * 3.0, 0.999 * 0.049 + 0.001 * 9.0);
        let expected = 0.9 - 0.1 * (m / (1.0 - 0.81)) / ((s / (1.0 - 0.999f64.powi(2))).sqrt() + 1e-8);
        assert!((step(Rule::adam(), 3.0, 2) - expected).abs() < 1e-9);
        let mut w = vec![2.0];
        Rule::adamw(0.5).step(&mut w, &[0.0], &mut [0.0], &mut [0.0], 0.1, 1);
        assert!((w[0] - 1.9f64).abs() < 1e-12);
        let (mut w, mut m) = (vec![2.0f64], vec![1.0f64]);
        Rule::nesterov(0.9, 0.01).step(&mut w, &[1.0], &mut m, &mut [], 0.1, 1);
        let g = 1.0 + 0.02;
        assert!((m[0] - (0.9 + g)).abs() < 1e-12 && (w[0] - (2.0 - 0.1 * (g + 0.9 * m[0]))).abs() < 1e-12);
    }
}
