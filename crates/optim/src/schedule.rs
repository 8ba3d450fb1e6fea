//! Step sizes over time, as multiples of a base step size.

use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// A factor for each step, given the number of steps planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// 1 throughout.
    #[default]
    Constant,
    /// From 1 to 0 along half a cosine (Loshchilov and Hutter 2017, without restarts).
    Cosine,
    /// Up from 1/25 to 1 over the first `warm_up` share of the steps, down to 1e-4 / 25 over the rest, both along
    /// half a cosine (Smith and Topin 2019).
    OneCycle {
        /// Share of the steps spent rising, in (0, 1).
        warm_up: f64,
    },
    /// Multiplied by `factor` every `every` steps.
    Step {
        /// Steps between drops.
        every: usize,
        /// What each drop multiplies by.
        factor: f64,
    },
    /// `rate` to the power of the step.
    Exponential {
        /// Factor of each step.
        rate: f64,
    },
    /// Linear from 0 to 1 over `steps` steps, then 1.
    WarmUp {
        /// Length of the rise.
        steps: usize,
    },
}

impl Schedule {
    /// The factor at `step` (from 0) of `planned`.
    pub fn factor(self, step: usize, planned: usize) -> f64 {
        let progress = step as f64 / planned.max(1) as f64;
        let glide =
            |from: f64, to: f64, t: f64| to + (from - to) * 0.5 * (1.0 + (PI * t.clamp(0.0, 1.0)).cos());
        match self {
            Self::Constant => 1.0,
            Self::Cosine => glide(1.0, 0.0, progress),
            Self::OneCycle { warm_up } if progress < warm_up => glide(1.0 / 25.0, 1.0, progress / warm_up),
            Self::OneCycle { warm_up } => glide(1.0, 1e-4 / 25.0, (progress - warm_up) / (1.0 - warm_up)),
            Self::Step { every, factor } => factor.powi((step / every.max(1)) as i32),
            Self::Exponential { rate } => rate.powi(step as i32),
            Self::WarmUp { steps } => ((step + 1) as f64 / steps.max(1) as f64).min(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn landmarks() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(Schedule::Constant.factor(7, 10), 1.0);
        close(Schedule::Cosine.factor(0, 10), 1.0);
        close(Schedule::Cosine.factor(5, 10), 0.5);
        close(Schedule::Cosine.factor(10, 10), 0.0);
        let one_cycle = Schedule::OneCycle { warm_up: 0.3 };
        close(one_cycle.factor(0, 10), 0.04);
        close(one_cycle.factor(3, 10), 1.0);
        close(one_cycle.factor(10, 10), 4e-6);
        close(Schedule::Step { every: 3, factor: 0.1 }.factor(7, 10), 0.01);
        close(Schedule::Exponential { rate: 0.5 }.factor(3, 10), 0.125);
        close(Schedule::WarmUp { steps: 4 }.factor(0, 10), 0.25);
        close(Schedule::WarmUp { steps: 4 }.factor(9, 10), 1.0);
    }
}
