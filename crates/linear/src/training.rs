//! **Training that rows held back judge**: steps of Adam or of another rule, looks at those rows now and then, and a smaller step size, from the best parameters so far, where looks no longer get better.
//!
//! What is maximised is the caller's ([`crate::low_rank::fit_low_rank`], or an exact process behind a network): here are the vector of parameters with its memory and the rule by which it ends.

use crate::LinearError;
use posterior_optim::{Adaptive, Rule};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What the step size is multiplied by where patience is at its end.
const DROP: f64 = 0.2;

/// The last share of a run over which the step size falls to nothing, so that its end is not one of the places between which steps of full size wander: of few steps the constant size is the better first half, the fall the better second
/// (Hägele et al., *Scaling laws and compute-optimal training beyond fixed training durations*, 2024, who find a fifth and more to be enough).
const SETTLING: f64 = 0.35;

/// What the step size is multiplied by where so much of a run is over.
fn settling(share: f64) -> f64 {
    ((1.0 - share) / SETTLING).clamp(0.0, 1.0)
}

/// A look at the rows held back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationScore {
    /// Steps before it.
    pub step: usize,
    /// Mean of `-log p(y)` of the rows, nats; the largest number where a density was none (states are saved as text, which has no infinity).
    pub nll: f64,
}

/// When to look, and when to go back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// What a step computes.
    pub rule: Rule,
    /// Its step size at the beginning.
    pub learning_rate: f64,
    /// Steps between looks at the rows held back.
    pub check_every: usize,
    /// Steps without a better look after which training goes back to the best parameters with a smaller step size, or ends.
    pub patience: usize,
    /// How often the step size is divided by five before it ends.
    pub rate_drops: usize,
    /// Whether the step size falls to nothing at the end of what the run may take. Runs that others go on from do without.
    pub settles: bool,
}

impl Patience {
    /// Refuses numbers without a meaning.
    ///
    /// # Errors
    /// [`LinearError::Option`]; [`LinearError::Rule`] for constants of the rule.
    pub fn check(&self) -> Result<(), LinearError> {
        let option = |name, value, expected| Err(LinearError::Option { name, value, expected });
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return option("learning rate", self.learning_rate, "above 0");
        }
        if self.check_every == 0 {
            return option("steps between looks", 0.0, "at least 1");
        }
        if let Some(problem) = self.rule.problem() {
            return Err(LinearError::Rule { problem });
        }
        Ok(())
    }
}

/// All that a run needs to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingState {
    /// Steps taken.
    pub step: usize,
    /// Parameters, as numbers without constraints.
    pub theta: Vec<f64>,
    adaptive: Adaptive,
    /// The best look with the parameters then.
    pub best: Option<(ValidationScore, Vec<f64>)>,
    /// All looks.
    pub validation_scores: Vec<ValidationScore>,
    /// Steps at which the step size became smaller.
    pub drops: Vec<usize>,
    /// Largest amount added to a diagonal.
    pub largest_jitter: f64,
    /// How often a matrix was factored by triangles, because its Cholesky factor had lost too many digits.
    pub triangular_solves: usize,
    seconds: f64,
}

impl TrainingState {
    /// The state before the first step, or the saved one of a run with as many parameters and the same rule.
    ///
    /// # Errors
    /// [`LinearError::Foreign`] for a state of something else.
    pub fn begin(saved: Option<Self>, theta: Vec<f64>, patience: &Patience) -> Result<Self, LinearError> {
        let length = theta.len();
        match saved {
            Some(state)
                if state.theta.len() == length
                    && state.adaptive.rule == patience.rule
                    && state.adaptive.check(length, state.step).is_ok() =>
            {
                Ok(state)
            }
            Some(_) => Err(LinearError::Foreign { what: "training" }),
            None => Ok(Self {
                step: 0,
                theta,
                adaptive: Adaptive::new(patience.rule, patience.learning_rate),
                best: None,
                validation_scores: Vec::new(),
                drops: Vec::new(),
                largest_jitter: 0.0,
                triangular_solves: 0,
                seconds: 0.0,
            }),
        }
    }

    /// Whether rows held back are looked at before this step.
    pub fn is_due(&self, patience: &Patience) -> bool {
        self.step.is_multiple_of(patience.check_every)
    }

    /// Whether patience is at its end, at the present step size.
    pub fn is_exhausted(&self, patience: &Patience) -> bool {
        let Some((best, _)) = &self.best else { return false };
        let since = self.drops.last().map_or(best.step, |drop| best.step.max(*drop));
        self.step >= since + patience.patience
    }

    /// Whether it is at the end at every step size.
    pub fn is_over(&self, patience: &Patience) -> bool {
        self.is_exhausted(patience) && self.drops.len() >= patience.rate_drops
    }

    /// Goes on from the best parameters with a smaller step size and no memory of the steps before.
    pub fn go_back(&mut self, patience: &Patience) {
        if let Some((_, theta)) = &self.best {
            self.theta.clone_from(theta);
        }
        self.drops.push(self.step);
        let learning_rate = patience.learning_rate * DROP.powi(self.drops.len() as i32);
        self.adaptive = Adaptive::new(patience.rule, learning_rate);
    }

    /// Keeps a look, and the parameters where it is the best.
    pub fn note(&mut self, nll: f64) {
        let nll = if nll.is_finite() { nll } else { f64::MAX };
        let look = ValidationScore { step: self.step, nll };
        self.validation_scores.push(look);
        if self.best.as_ref().is_none_or(|(best, _)| nll < best.nll) {
            self.best = Some((look, self.theta.clone()));
        }
    }

    /// Whether the parameters of now have been looked at.
    pub fn is_looked_at(&self) -> bool {
        self.validation_scores.last().is_some_and(|look| look.step >= self.step)
    }

    /// A step has been taken, so long after the beginning.
    pub fn took(&mut self, elapsed: Duration) {
        self.step += 1;
        self.seconds = elapsed.as_secs_f64();
    }

    /// Seconds so far.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Moves the parameters against a gradient of what is to be small, after so large a share of what the run may take ([`posterior_optim::Run::share`]).
    ///
    /// # Errors
    /// [`LinearError::NotFinite`] for a gradient that is no number.
    pub fn descend(&mut self, gradient: &[f64], patience: &Patience, share: f64) -> Result<(), LinearError> {
        if let Some(index) = gradient.iter().position(|g| !g.is_finite()) {
            let value = gradient[index];
            return Err(LinearError::NotFinite { what: "the gradient's number", index, value });
        }
        let factor = if patience.settles { settling(share) } else { 1.0 };
        self.adaptive.step_times(&mut self.theta, gradient, factor);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience() -> Patience {
        Patience {
            rule: Rule::adam(),
            learning_rate: 0.5,
            check_every: 2,
            patience: 4,
            rate_drops: 1,
            settles: false,
        }
    }

    #[test]
    fn steps_come_to_rest_at_the_end_of_a_run() {
        let settles = Patience { settles: true, ..patience() };
        let length = |share: f64| {
            let mut state = TrainingState::begin(None, vec![0.0], &settles).unwrap();
            state.descend(&[1.0], &settles, share).unwrap();
            -state.theta[0]
        };
        // Adam's first step is as long as the step size.
        for (share, expected) in [(0.0, 0.5), (1.0 - SETTLING, 0.5), (1.0 - 0.5 * SETTLING, 0.25), (1.0, 0.0)]
        {
            assert!((length(share) - expected).abs() < 1e-7, "{share}");
        }
        let mut wanders = TrainingState::begin(None, vec![0.0], &patience()).unwrap();
        wanders.descend(&[1.0], &patience(), 1.0).unwrap();
        assert!((wanders.theta[0] + 0.5).abs() < 1e-7);
    }

    #[test]
    fn patience_goes_back_to_the_best_with_a_smaller_step_and_then_ends() {
        let mut state = TrainingState::begin(None, vec![3.0], &patience()).unwrap();
        let validation_scores = [5.0, 1.0, 2.0, 3.0, 0.5, 0.7, 0.9, 0.8];
        let mut looked = 0;
        while !state.is_over(&patience()) {
            if state.is_exhausted(&patience()) {
                state.go_back(&patience());
            }
            if state.is_due(&patience()) {
                state.note(validation_scores[looked]);
                looked += 1;
            }
            state.descend(&[1.0], &patience(), 0.0).unwrap();
            state.took(Duration::from_secs(1));
        }
        // The best look was at 2, so it went back at 6; that at 8 was better, and 4 steps later it was over.
        assert_eq!((state.drops.clone(), state.step), (vec![6], 12));
        let (best, theta) = state.best.clone().unwrap();
        assert_eq!((best.step, best.nll), (8, 0.5));
        // Adam's step along a constant slope is the rate: two steps to the first best, then two of a fifth.
        assert!((theta[0] - (3.0 - 2.0 * 0.5 - 2.0 * 0.1)).abs() < 1e-6, "{theta:?}");
        assert!(state.descend(&[f64::NAN], &patience(), 0.0).is_err());
        let begin = |count| TrainingState::begin(Some(state.clone()), vec![0.0; count], &patience());
        assert!(begin(1).unwrap() == state);
        assert!(begin(2).unwrap_err().to_string().contains("training"));
        for wrong in [
            Patience { learning_rate: 0.0, ..patience() },
            Patience { learning_rate: f64::NAN, ..patience() },
            Patience { check_every: 0, ..patience() },
        ] {
            assert!(wrong.check().is_err());
        }
        let wrong = Patience { rule: Rule::adam().with_weight_decay(-1.0), ..patience() };
        assert!(wrong.check().unwrap_err().to_string().contains("weight decay must be zero or positive"));
    }

    #[test]
    fn any_rule_moves_the_parameters_and_begins_anew_where_training_goes_back() {
        // The first steps of AdaBelief and RMSProp are 1 / 0.9 and 1 / √0.1 times as long as the rate.
        for (rule, first) in [(Rule::adabelief(), 0.5 / 0.9), (Rule::rmsprop(), 0.5 / 0.1f64.sqrt())] {
            let options = Patience { rule, ..patience() };
            options.check().unwrap();
            let mut state = TrainingState::begin(None, vec![0.0], &options).unwrap();
            state.note(1.0);
            state.descend(&[2.0], &options, 0.0).unwrap();
            assert!((state.theta[0] + first).abs() < 1e-7, "{rule:?} {:?}", state.theta);
            state.took(Duration::from_secs(1));
            state.go_back(&options);
            state.descend(&[2.0], &options, 0.0).unwrap();
            assert!((state.theta[0] + DROP * first).abs() < 1e-7, "{rule:?} {:?}", state.theta);
            // A saved run is one of its rule.
            assert!(TrainingState::begin(Some(state.clone()), vec![0.0], &options).unwrap() == state);
            let error = TrainingState::begin(Some(state), vec![0.0], &patience()).unwrap_err();
            assert!(matches!(error, LinearError::Foreign { .. }));
        }
    }
}
