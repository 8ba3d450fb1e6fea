//! **Adaptive steps**: a [`Rule`] with its moments, for one vector of doubles.

use crate::{Rule, Schedule};
use serde::{Deserialize, Serialize};

/// Steps by any rule, with what it remembers between them: Adam, AdaBelief, RMSProp, or descent with momentum. Serialised with its moments, so that a saved one goes on bit for bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adaptive {
    /// Base step size.
    pub learning_rate: f64,
    /// How the step size changes.
    pub schedule: Schedule,
    /// What a step computes.
    pub rule: Rule,
    first: Vec<f64>,
    second: Vec<f64>,
    taken: usize,
}

impl Adaptive {
    /// The given rule with the given step size, which stays.
    pub fn new(rule: Rule, learning_rate: f64) -> Self {
        let (schedule, taken) = (Schedule::Constant, 0);
        Self { learning_rate, schedule, rule, first: Vec::new(), second: Vec::new(), taken }
    }

    /// Adam with its published constants ([`Rule::adam`]).
    pub fn adam(learning_rate: f64) -> Self {
        Self::new(Rule::adam(), learning_rate)
    }

    /// The same with another schedule.
    pub fn scheduled(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// The same with decoupled weight decay ([`Rule::with_decoupled_decay`]): Adam becomes AdamW.
    pub fn decayed(mut self, weight_decay: f64) -> Self {
        self.rule = self.rule.with_decoupled_decay(weight_decay);
        self
    }

    /// Whether the memory is empty or made for a vector of length `dimension`.
    pub(crate) fn fits(&self, dimension: usize) -> bool {
        [&self.first, &self.second].iter().all(|m| m.is_empty() || m.len() == dimension)
    }

    /// Whether a saved memory is one of a vector of length `dimension` after at most `steps` steps, and finite.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, dimension: usize, steps: usize) -> Result<(), String> {
        let length = |kept: bool| if kept && self.taken > 0 { dimension } else { 0 };
        if [self.first.len(), self.second.len()] != self.rule.moments().map(length) {
            return Err(format!("the memory of its update rule is not for {dimension} parameters"));
        }
        let sound = self.first.iter().all(|v| v.is_finite())
            && self.second.iter().all(|v| v.is_finite() && *v >= 0.0)
            && self.learning_rate.is_finite()
            && self.rule.problem().is_none();
        if !sound || self.taken > steps {
            return Err("the memory of its update rule cannot come from its steps".into());
        }
        Ok(())
    }

    /// Moves `theta` against `gradient`, a vector of the same length at every step; `planned` is the number of steps that the schedule counts with. Returns the step size used.
    pub fn step(&mut self, theta: &mut [f64], gradient: &[f64], planned: usize) -> f64 {
        self.step_times(theta, gradient, self.schedule.factor(self.taken, planned))
    }

    /// As [`Self::step`], with the step size times a factor that the caller names instead of the schedule.
    pub fn step_times(&mut self, theta: &mut [f64], gradient: &[f64], factor: f64) -> f64 {
        for (moment, kept) in [&mut self.first, &mut self.second].into_iter().zip(self.rule.moments()) {
            moment.resize(if kept { theta.len() } else { 0 }, 0.0);
        }
        let rate = self.learning_rate * factor;
        self.taken += 1;
        self.rule.step(theta, gradient, &mut self.first, &mut self.second, rate, self.taken);
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
        Adaptive::adam(0.1).step(&mut theta, &[3.0, -50.0], 1);
        assert!((theta[0] - 0.9).abs() < 1e-8 && (theta[1] + 1.9).abs() < 1e-8);
    }

    #[test]
    fn decoupled_decay_shrinks_without_gradient() {
        let mut theta = [1.0];
        let mut adam = Adaptive::adam(0.1).decayed(0.5);
        assert_eq!(adam.rule, Rule::adamw(0.5));
        adam.step(&mut theta, &[0.0], 1);
        assert!((theta[0] - 0.95).abs() < 1e-12);
    }

    /// The rules that have a memory, one of each shape.
    fn rules() -> [Rule; 4] {
        [Rule::adam(), Rule::adabelief(), Rule::rmsprop(), Rule::nesterov(0.9, 0.0)]
    }

    /// Twelve steps down a bent valley, each from where the last ended.
    fn descend(method: &mut Adaptive, theta: &mut [f64; 2], steps: usize) {
        for _ in 0..steps {
            let gradient = [theta[0].sinh(), 4.0 * (theta[1] - theta[0].sin())];
            method.step(theta, &gradient, 12);
        }
    }

    #[test]
    fn a_saved_memory_goes_on_bit_for_bit() {
        for rule in rules() {
            let (mut whole, mut theta) = (Adaptive::new(rule, 0.03).scheduled(Schedule::Cosine), [1.3, -0.7]);
            descend(&mut whole, &mut theta, 12);
            let (mut half, mut moved) = (Adaptive::new(rule, 0.03).scheduled(Schedule::Cosine), [1.3, -0.7]);
            descend(&mut half, &mut moved, 5);
            let mut again: Adaptive = serde_json::from_str(&serde_json::to_string(&half).unwrap()).unwrap();
            again.check(2, 5).unwrap();
            descend(&mut again, &mut moved, 7);
            assert_eq!(moved.map(f64::to_bits), theta.map(f64::to_bits), "{rule:?}");
            assert_eq!(again, whole);
        }
    }

    #[test]
    fn memories_of_something_else_are_refused() {
        for rule in rules() {
            let fresh = Adaptive::new(rule, 0.1);
            fresh.check(7, 0).unwrap();
            let mut used = fresh;
            used.step(&mut [0.0, 0.0], &[1.0, -1.0], 1);
            used.check(2, 1).unwrap();
            assert!(used.fits(2) && !used.fits(3));
            assert!(used.check(3, 1).unwrap_err().contains("3 parameters"));
            // More steps than there were, constants that no rule has, numbers that are none.
            assert!(used.check(2, 0).is_err());
            let wrong = [
                Adaptive { rule: rule.with_weight_decay(f64::NAN), ..used.clone() },
                Adaptive { learning_rate: f64::INFINITY, ..used.clone() },
                Adaptive { first: used.first.iter().map(|_| f64::NAN).collect(), ..used.clone() },
                Adaptive { second: used.second.iter().map(|_| -1.0).collect(), ..used.clone() },
            ];
            let refused = wrong.iter().filter(|one| one.check(2, 1).is_err()).count();
            // Of the last two, those of moments that the rule has.
            assert_eq!(refused, 2 + rule.moments().into_iter().filter(|kept| *kept).count(), "{rule:?}");
            // Another rule's memory.
            let other = if rule.moments() == [true; 2] { Rule::rmsprop() } else { Rule::adam() };
            assert!(Adaptive { rule: other, ..used }.check(2, 1).is_err(), "{rule:?}");
        }
    }
}
