//! Several initial points, because evidences have several maxima.

use crate::{
    LoopOptions, Objective, ObjectiveError, Observer, OptimError, Optimiser, Outcome, Progress, Signal,
    State, minimise,
};
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What became of one initial point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its final value, if it has one.
    pub value: Option<f64>,
    /// Why it ended, or what failed.
    pub ended: String,
    /// Evaluations used, those of a failed attempt included.
    pub evaluations: usize,
}

/// The best outcome and the fate of every attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restarted {
    /// The outcome with the smallest value.
    pub best: Outcome,
    /// All attempts in order.
    pub attempts: Vec<Attempt>,
    /// Whether the observer ended the series: the best is then that of the attempts made so far, whichever it came from.
    pub interrupted: bool,
}

/// Steps of a later attempt before it may be called behind.
const SETTLED: usize = 8;

/// An attempt is behind when it would take so many times what its last [`RECENT`] steps gained to reach the best value known: 40 steps at a
/// pace that only falls as a quasi-Newton search settles.
const FAR_BEHIND: f64 = 10.0;

/// Steps whose gain is looked at.
const RECENT: usize = 4;

/// Whether a run with these values after each step will hardly reach `best`. One that has been there already (a rule of steps that jumps about) is not behind.
fn is_behind(values: &[f64], best: f64) -> bool {
    let [.., last] = values else { return false };
    if values.iter().any(|value| *value <= best) {
        return false;
    }
    let Some(earlier) = values.len().checked_sub(1 + RECENT).map(|i| values[i]) else { return false };
    values.len() >= SETTLED && last - best > FAR_BEHIND * (earlier - last).max(0.0) && *last > best
}

/// An initial point near `theta`: independent normal noise of standard deviation `deviation` on every unconstrained entry.
/// It depends on nothing but its arguments; give each restart its own [`Streams::child`].
pub fn perturbed(theta: &[f64], deviation: f64, streams: Streams) -> Vec<f64> {
    let mut rng = streams.stream("start");
    let mut draw = || <StandardNormal as Distribution<f64>>::sample(&StandardNormal, &mut rng);
    theta.iter().map(|&t| t + deviation * draw()).collect()
}

/// Minimises from each of `points` in turn; a failed attempt is recorded and the rest go on. An interruption ends the
/// series with the best so far. A later attempt that is far above the best value known, and gains too little to reach it, ends as `behind`.
/// The limit of time is for all attempts together. The parts of an observer's progress are the attempts.
///
/// # Errors
/// [`OptimError::AllRestarts`] when none succeeded.
pub fn restarts(
    objective: &mut dyn Objective,
    points: &[Vec<f64>],
    optimiser: &Optimiser,
    options: &LoopOptions,
    observer: &mut Observer<'_, State>,
) -> Result<Restarted, OptimError> {
    let started = Instant::now();
    let mut attempts = Vec::new();
    let mut best: Option<Outcome> = None;
    let mut interrupted = false;
    for (index, point) in points.iter().enumerate() {
        let mut own = options.clone();
        own.time = options.time.map(|limit| limit.saturating_sub(started.elapsed()));
        if best.is_some() && own.time.is_some_and(|left| left.is_zero()) {
            attempts.push(Attempt { value: None, ended: "no time was left".into(), evaluations: 0 });
            continue;
        }
        let known = best.as_ref().map(|b| b.value);
        let (mut values, mut behind) = (Vec::new(), false);
        let mut watch = |progress: &Progress, state: &State| {
            values.push(state.value());
            let progress = Progress { part: index, parts: points.len(), ..*progress };
            if observer(&progress, state) == Signal::Stop {
                interrupted = true;
                return Signal::Stop;
            }
            behind = known.is_some_and(|best| is_behind(&values, best));
            if behind { Signal::Stop } else { Signal::Continue }
        };
        let mut tallied = Tallied { objective, evaluations: 0 };
        let ended = minimise(&mut tallied, point, optimiser.clone(), &own, &mut watch);
        let used = tallied.evaluations;
        match ended {
            Ok(mut outcome) => {
                if behind && outcome.reason == crate::Reason::Interrupted {
                    // It was ended here, by nobody else, and its first point may have been the best of all.
                    outcome.reason = crate::Reason::Value;
                }
                let ended = if behind { "behind".into() } else { outcome.reason.to_string() };
                attempts.push(Attempt {
                    value: Some(outcome.value),
                    ended,
                    evaluations: outcome.evaluations,
                });
                if best.as_ref().is_none_or(|b| outcome.value < b.value) {
                    best = Some(outcome);
                }
                if interrupted {
                    break;
                }
            }
            // A single attempt keeps its own error; in a series it is a row of the table.
            Err(error) if points.len() == 1 => return Err(error),
            Err(error) => {
                attempts.push(Attempt { value: None, ended: error.to_string(), evaluations: used });
            }
        }
    }
    match best {
        Some(best) => Ok(Restarted { best, attempts, interrupted }),
        None => Err(OptimError::AllRestarts {
            count: attempts.len(),
            first: attempts.first().map(|a| a.ended.clone()).unwrap_or_default(),
        }),
    }
}

/// Counts evaluations where a failure would take the count with it.
struct Tallied<'a> {
    objective: &'a mut dyn Objective,
    evaluations: usize,
}

impl Objective for Tallied<'_> {
    fn dimension(&self) -> usize {
        self.objective.dimension()
    }
    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        self.evaluations += 1;
        self.objective.value_and_gradient(theta, gradient)
    }
    fn begin_step(&mut self, step: usize) {
        self.objective.begin_step(step);
    }
    fn parameter_names(&self) -> Vec<String> {
        self.objective.parameter_names()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lbfgs, Reason, Sgd};

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
            restarts(&mut Wells, points, &optimiser, &LoopOptions::default(), &mut |_, _| Signal::Continue)
        };
        let result = run(&[vec![-1.3], vec![11.0], vec![0.8]]).unwrap();
        assert!((result.best.theta[0] - 1.0123).abs() < 1e-3);
        assert_eq!(result.attempts.len(), 3);
        assert!(result.attempts[1].value.is_none() && result.attempts[1].ended.contains("too far"));
        assert_eq!(result.attempts[1].evaluations, 1);
        assert!(matches!(run(&[vec![11.0], vec![12.0]]), Err(OptimError::AllRestarts { count: 2, .. })));
    }

    #[test]
    fn an_attempt_that_was_ahead_is_not_behind() {
        let falling: Vec<f64> = (0..20).map(|i| 10.0 + 1.0 / f64::from(i + 1)).collect();
        assert!(is_behind(&falling, 1.0));
        // A jump below the best, and back.
        let mut jumping = falling;
        jumping[3] = 0.5;
        assert!(!is_behind(&jumping, 1.0));
    }

    #[test]
    fn evaluations_of_a_failed_attempt_are_counted() {
        /// Downhill to a wall.
        struct Cliff(usize);
        impl Objective for Cliff {
            fn dimension(&self) -> usize {
                1
            }
            fn value_and_gradient(&mut self, t: &[f64], g: &mut [f64]) -> Result<f64, ObjectiveError> {
                self.0 += 1;
                g[0] = -1.0;
                if t[0] > 2.0 { Err(ObjectiveError("over the cliff".into())) } else { Ok(-t[0]) }
            }
        }
        let mut cliff = Cliff(0);
        let options = LoopOptions { steps: 5, ..Default::default() };
        let descent = Optimiser::Sgd(Sgd::new(1.0, 0.0, false));
        let points = [vec![-1.0], vec![-9.0]];
        let result = restarts(&mut cliff, &points, &descent, &options, &mut |_, _| Signal::Continue).unwrap();
        let counts: Vec<usize> = result.attempts.iter().map(|a| a.evaluations).collect();
        assert_eq!(counts, [5, 6]);
        assert_eq!(counts.iter().sum::<usize>(), cliff.0);
    }

    #[test]
    fn an_interruption_ends_the_series_with_the_best_so_far() {
        let optimiser = Optimiser::Lbfgs(Lbfgs::default());
        let points = [vec![0.8], vec![-1.3], vec![0.5]];
        let mut seen = Vec::new();
        let result =
            restarts(&mut Wells, &points, &optimiser, &LoopOptions::default(), &mut |progress, _| {
                seen.push(progress.part);
                if progress.part == 1 { Signal::Stop } else { Signal::Continue }
            })
            .unwrap();
        assert_eq!(result.attempts.len(), 2);
        assert_eq!(result.attempts[1].ended, "interrupted");
        // The best came from a start that had ended by itself; the series was interrupted all the same.
        assert!(result.interrupted && result.best.reason != Reason::Interrupted);
        assert!((result.best.theta[0] - 1.0123).abs() < 1e-3);
        assert!(!seen.contains(&2));
    }

    #[test]
    fn a_start_that_is_behind_is_left() {
        /// A well at 0, and a long gentle slope towards it from the right.
        struct Slope;
        impl Objective for Slope {
            fn dimension(&self) -> usize {
                1
            }
            fn value_and_gradient(&mut self, t: &[f64], g: &mut [f64]) -> Result<f64, ObjectiveError> {
                let x = t[0];
                let (value, slope) =
                    if x < 1.0 { (0.5 * x * x, x) } else { (0.5 + 1e-4 * (x - 1.0) + 50.0, 1e-4) };
                g[0] = slope;
                Ok(value)
            }
        }
        let options = LoopOptions { steps: 500, patience: 1000, ..Default::default() };
        let descent = Optimiser::Sgd(Sgd::new(0.5, 0.0, false));
        let run = |points: &[Vec<f64>]| {
            restarts(&mut Slope, points, &descent, &options, &mut |_, _| Signal::Continue).unwrap()
        };
        let result = run(&[vec![0.9], vec![500.0]]);
        assert_eq!(result.attempts[1].ended, "behind");
        assert!(result.attempts[1].evaluations <= SETTLED + 2, "{:?}", result.attempts);
        assert!(!result.interrupted && result.best.value < 1e-6);
        // The first start has nothing to be behind of, and one that gains is left to go on.
        assert_eq!(run(&[vec![500.0]]).attempts[0].ended, "steps");
        assert!(is_behind(&[9.0; 20], 1.0) && !is_behind(&[9.0; 5], 1.0) && !is_behind(&[0.5; 20], 1.0));
        let gaining: Vec<f64> = (0..20).map(|i| 30.0 - f64::from(i)).collect();
        assert!(!is_behind(&gaining, 1.0));
    }

    #[test]
    fn the_limit_of_time_is_for_all_starts_together() {
        let optimiser = Optimiser::Lbfgs(Lbfgs::default());
        let options = LoopOptions { time: Some(std::time::Duration::ZERO), ..Default::default() };
        let points = [vec![0.8], vec![-1.3]];
        let result =
            restarts(&mut Wells, &points, &optimiser, &options, &mut |_, _| Signal::Continue).unwrap();
        let ended: Vec<&str> = result.attempts.iter().map(|a| a.ended.as_str()).collect();
        assert_eq!(ended, ["time", "no time was left"]);
        assert_eq!(result.attempts[1].evaluations, 0);
    }

    #[test]
    fn perturbations_repeat_differ_and_have_the_stated_spread() {
        let (count, deviation) = (20_000, 0.5);
        let draw =
            |index| perturbed(&vec![3.0; count], deviation, Streams::new(4).child("optim/test", index));
        let (first, second) = (draw(0), draw(1));
        assert_eq!(first, draw(0));
        assert_ne!(first, second);
        // Five standard errors: σ/√n of the mean, σ²√(2/n) of the variance.
        let n = count as f64;
        let mean = first.iter().sum::<f64>() / n;
        let variance = first.iter().map(|v| (v - 3.0).powi(2)).sum::<f64>() / n;
        assert!((mean - 3.0).abs() < 5.0 * deviation / n.sqrt(), "{mean}");
        assert!((variance - 0.25).abs() < 5.0 * 0.25 * (2.0 / n).sqrt(), "{variance}");
    }
}
