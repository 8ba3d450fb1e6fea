//! Several initial points, because evidences have several maxima.

use crate::{Event, LoopOptions, Objective, OptimError, Optimiser, Outcome, Reason, Signal, State, minimise};
use serde::{Deserialize, Serialize};

/// What became of one initial point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its final value, if it has one.
    pub value: Option<f64>,
    /// Why it ended, or what failed.
    pub ended: String,
    /// Evaluations used.
    pub evaluations: usize,
}

/// The best outcome and the fate of every attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restarted {
    /// The outcome with the smallest value.
    pub best: Outcome,
    /// All attempts in order.
    pub attempts: Vec<Attempt>,
}

/// Minimises from each of `points` in turn; a failed attempt is recorded and the rest go on. An interruption ends the
/// series with the best so far.
///
/// # Errors
/// [`OptimError::AllRestarts`] when none succeeded.
pub fn restarts(
    objective: &mut dyn Objective,
    points: &[Vec<f64>],
    optimiser: &Optimiser,
    options: &LoopOptions,
    observer: &mut dyn FnMut(usize, &Event, &State) -> Signal,
) -> Result<Restarted, OptimError> {
    let mut attempts = Vec::new();
    let mut best: Option<Outcome> = None;
    for (index, point) in points.iter().enumerate() {
        let mut watch = |event: &Event, state: &State| observer(index, event, state);
        match minimise(objective, point, optimiser.clone(), options, &mut watch) {
            Ok(outcome) => {
                let ended = serde_name(outcome.reason);
                attempts.push(Attempt { value: Some(outcome.value), ended, evaluations: outcome.evaluations });
                let interrupted = outcome.reason == Reason::Interrupted;
                if best.as_ref().is_none_or(|b| outcome.value < b.value) {
                    best = Some(outcome);
                }
                if interrupted {
                    break;
                }
            }
            // A single attempt keeps its own error; in a series it is a row of the table.
            Err(error) if points.len() == 1 => return Err(error),
            Err(error) => attempts.push(Attempt { value: None, ended: error.to_string(), evaluations: 0 }),
        }
    }
    match best {
        Some(best) => Ok(Restarted { best, attempts }),
        None => Err(OptimError::AllRestarts {
            count: attempts.len(),
            first: attempts.first().map(|a| a.ended.clone()).unwrap_or_default(),
        }),
    }
}

fn serde_name(reason: Reason) -> String {
    serde_json::to_value(reason).ok().and_then(|v| v.as_str().map(String::from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lbfgs, ObjectiveError};

    /// Two wells, the right one deeper; no value beyond 10.
    struct Wells;

    impl Objective for Wells {
        fn dimension(&self) -> usize {
            1
        }
        fn value_and_gradient(&mut self, t: &[f64], g: &mut [f64]) -> Result<f64, ObjectiveError> {
            let x = t[0];
            if x > 10.0 {
                return Err(ObjectiveError("too far".into()));
            }
            g[0] = 4.0 * x * (x * x - 1.0) - 0.1;
            Ok((x * x - 1.0).powi(2) - 0.1 * x)
        }
    }

    #[test]
    fn the_deeper_well_wins_and_failures_are_recorded() {
        let run = |points: &[Vec<f64>]| {
            let optimiser = Optimiser::Lbfgs(Lbfgs::default());
            restarts(&mut Wells, points, &optimiser, &LoopOptions::default(), &mut |_, _, _| Signal::Continue)
        };
        let result = run(&[vec![-1.3], vec![11.0], vec![0.8]]).unwrap();
        assert!((result.best.theta[0] - 1.0123).abs() < 1e-3);
        assert_eq!(result.attempts.len(), 3);
        assert!(result.attempts[1].value.is_none() && result.attempts[1].ended.contains("too far"));
        assert!(matches!(run(&[vec![11.0], vec![12.0]]), Err(OptimError::AllRestarts { count: 2, .. })));
    }
}
