//! **Gradient descent** with momentum.

use crate::{Rule, Schedule};
use serde::{Deserialize, Serialize};

/// `v <- ρ v + g`, `θ <- θ - β v`; with `nesterov` the gradient acts once more through the momentum:
/// `θ <- θ - β (g + ρ v)` (Sutskever et al. 2013, eq. 3 and 4, in the form that evaluates at θ, with the step size outside the velocity).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sgd {
    /// Base step size β.
    pub learning_rate: f64,
    /// How the step size changes.
    pub schedule: Schedule,
    /// Momentum ρ in [0, 1).
    pub momentum: f64,
    /// Nesterov's form of the momentum.
    pub nesterov: bool,
    velocity: Vec<f64>,
    taken: usize,
}

impl Sgd {
    /// Descent with the given step size and momentum.
    pub fn new(learning_rate: f64, momentum: f64, nesterov: bool) -> Self {
        Self {
            learning_rate,
            schedule: Schedule::Constant,
            momentum,
            nesterov,
            velocity: Vec::new(),
            taken: 0,
        }
    }

    /// Whether the memory is empty or made for a vector of length `dimension`.
    pub(crate) fn fits(&self, dimension: usize) -> bool {
        self.velocity.is_empty() || self.velocity.len() == dimension
    }

    /// Moves `theta` against `gradient`; returns the step size used.
    pub(crate) fn step(&mut self, theta: &mut [f64], gradient: &[f64], planned: usize) -> f64 {
        self.velocity.resize(theta.len(), 0.0);
        let rate = self.learning_rate * self.schedule.factor(self.taken, planned);
        self.taken += 1;
        let rule = Rule::Sgd { momentum: self.momentum, nesterov: self.nesterov, weight_decay: 0.0 };
        rule.step(theta, gradient, &mut self.velocity, &mut [], rate, self.taken);
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_steps_by_hand() {
        let mut theta = [0.0];
        let mut plain = Sgd::new(0.1, 0.5, false);
        plain.step(&mut theta, &[1.0], 2);
        plain.step(&mut theta, &[1.0], 2);
        assert!((theta[0] - (-0.1 - 0.15)).abs() < 1e-15);
        let mut theta = [0.0];
        Sgd::new(0.1, 0.5, true).step(&mut theta, &[1.0], 1);
        assert!((theta[0] + 0.15).abs() < 1e-15);
    }
}
