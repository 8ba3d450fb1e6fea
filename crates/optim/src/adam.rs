//! **Adam**, with AdamW's decoupled weight decay.

use crate::{Rule, Schedule};
use serde::{Deserialize, Serialize};

/// Adaptive moment estimation (Kingma and Ba 2015, algorithm 1; decay as in Loshchilov and Hutter 2019, algorithm 2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adam {
    /// Base step size.
    pub learning_rate: f64,
    /// How the step size changes.
    pub schedule: Schedule,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Shrinkage of the parameters themselves, times the step size.
    pub weight_decay: f64,
    first: Vec<f64>,
    second: Vec<f64>,
    taken: usize,
}

impl Adam {
    /// The published settings (0.9, 0.999, 1e-8) with the given step size.
    pub fn new(learning_rate: f64) -> Self {
        Self {
            learning_rate,
            schedule: Schedule::Constant,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            first: Vec::new(),
            second: Vec::new(),
            taken: 0,
        }
    }

    /// The same with another schedule.
    pub fn scheduled(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// The same with decoupled weight decay (AdamW).
    pub fn decayed(mut self, weight_decay: f64) -> Self {
        self.weight_decay = weight_decay;
        self
    }

    /// Whether the memory is empty or made for a vector of length `dimension`.
    pub(crate) fn fits(&self, dimension: usize) -> bool {
        [&self.first, &self.second].iter().all(|m| m.is_empty() || m.len() == dimension)
    }

    /// Whether a saved memory is one of a vector of length `dimension` after `steps` steps, and finite.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, dimension: usize, steps: usize) -> Result<(), String> {
        let lengths = [self.first.len(), self.second.len()];
        if !(self.fits(dimension) && lengths[0] == lengths[1]) {
            return Err(format!("the memory of its Adam is not for {dimension} parameters"));
        }
        let sound = self.first.iter().all(|v| v.is_finite())
            && self.second.iter().all(|v| v.is_finite() && *v >= 0.0)
            && [self.learning_rate, self.epsilon].iter().all(|v| v.is_finite());
        if !sound || self.taken > steps {
            return Err("the memory of its Adam cannot come from its steps".into());
        }
        Ok(())
    }

    /// Moves `theta` against `gradient`, a vector of the same length at every step; `planned` is the number of steps that the schedule counts with. Returns the step size used.
    pub fn step(&mut self, theta: &mut [f64], gradient: &[f64], planned: usize) -> f64 {
        self.step_times(theta, gradient, self.schedule.factor(self.taken, planned))
    }

    /// As [`Self::step`], with the step size times a factor that the caller names instead of the schedule.
    pub fn step_times(&mut self, theta: &mut [f64], gradient: &[f64], factor: f64) -> f64 {
        self.first.resize(theta.len(), 0.0);
        self.second.resize(theta.len(), 0.0);
        let rate = self.learning_rate * factor;
        self.taken += 1;
        let Self { beta1, beta2, epsilon, weight_decay, .. } = *self;
        let rule = Rule::Adam { beta1, beta2, epsilon, weight_decay, decoupled: true };
        rule.step(theta, gradient, &mut self.first, &mut self.second, rate, self.taken);
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_has_the_length_of_the_learning_rate() {
        // Both bias corrections cancel the decays in the first step: the direction is the gradient's sign.
        let mut theta = [1.0, -2.0];
        Adam::new(0.1).step(&mut theta, &[3.0, -50.0], 1);
        assert!((theta[0] - 0.9).abs() < 1e-8 && (theta[1] + 1.9).abs() < 1e-8);
    }

    #[test]
    fn decoupled_decay_shrinks_without_gradient() {
        let mut theta = [1.0];
        let mut adam = Adam::new(0.1).decayed(0.5);
        adam.step(&mut theta, &[0.0], 1);
        assert!((theta[0] - 0.95).abs() < 1e-12);
    }
}
