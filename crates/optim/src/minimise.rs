//! Minimising an [`Objective`]: tolerances, patience, the best point so far, and a state that can be saved.

use crate::OptimError;
use crate::driver::{Clock, Iteration, Limits, Observer, Progress, Reason, Run, Step, drive};
use crate::lbfgs::Point;
use crate::objective::{Counted, Objective, ObjectiveError, Optimiser};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopOptions {
    /// Most steps.
    pub steps: usize,
    /// Most wall-clock time.
    pub time: Option<Duration>,
    /// Stop when no entry of the gradient exceeds this.
    pub gradient_tolerance: f64,
    /// Stop when the value has improved by less than this, relative to `max(1, |value|)`, in each of `patience` steps in a row.
    pub value_tolerance: f64,
    /// Steps in a row without improvement that end the run; 0 counts as 1.
    ///
    /// The default of 3 is for L-BFGS, whose value never rises. Adam and momentum swing past minima and need 20 or more: with 3
    /// they can stop far too early with [`Reason::Value`].
    pub patience: usize,
}

impl Default for LoopOptions {
    fn default() -> Self {
        Self { steps: 200, time: None, gradient_tolerance: 1e-5, value_tolerance: 1e-8, patience: 3 }
    }
}

/// Where a run stands; serialise it after any step and [`resume`] continues bit for bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Steps taken.
    pub step: usize,
    /// Evaluations so far.
    pub evaluations: usize,
    /// The method with its memory.
    pub optimiser: Optimiser,
    current: Point,
    best: (Vec<f64>, f64),
    stalled: usize,
    /// Seconds so far, which a limit of time counts.
    seconds: f64,
}

impl State {
    /// The value after the last step.
    pub fn value(&self) -> f64 {
        self.current.value
    }

    /// Vectors of other lengths would be cut short in silence, and an empty gradient would pass for convergence.
    fn check(&self, dimension: usize) -> Result<(), OptimError> {
        let vectors = [
            ("point", &self.current.theta),
            ("gradient", &self.current.gradient),
            ("best point", &self.best.0),
        ];
        for (name, vector) in vectors {
            if vector.len() != dimension {
                let found = vector.len();
                return Err(OptimError::State(format!("its {name} has {found} entries, not {dimension}")));
            }
            if vector.iter().any(|v| !v.is_finite()) {
                return Err(OptimError::State(format!("its {name} is not finite")));
            }
        }
        if !(self.current.value.is_finite() && self.best.1.is_finite()) {
            return Err(OptimError::State("its value is not finite".into()));
        }
        if !(self.seconds >= 0.0 && self.seconds < 1e12) {
            return Err(OptimError::State(format!("{} seconds are no time", self.seconds)));
        }
        if !self.optimiser.fits(dimension) {
            return Err(OptimError::State(format!("its method's memory is not for {dimension} parameters")));
        }
        Ok(())
    }
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The best parameters seen.
    pub theta: Vec<f64>,
    /// Their value.
    pub value: f64,
    /// Why the loop ended.
    pub reason: Reason,
    /// Steps taken.
    pub steps: usize,
    /// Evaluations of the objective.
    pub evaluations: usize,
    /// The value after each step of this run.
    pub trace: Vec<f64>,
}

/// Minimises from `theta`. The observer sees every step and the state that could be saved there; of its progress, `gradient_norm` is the largest magnitude in the gradient.
///
/// # Errors
/// [`OptimError::Dimension`], [`OptimError::Initial`] or [`OptimError::Step`]. L-BFGS shortens steps that lead nowhere and fails only where even the shortest has no value.
pub fn minimise(
    objective: &mut dyn Objective,
    theta: &[f64],
    optimiser: Optimiser,
    options: &LoopOptions,
    observer: &mut Observer<'_, State>,
) -> Result<Outcome, OptimError> {
    let (expected, found) = (objective.dimension(), theta.len());
    if expected != found {
        return Err(OptimError::Dimension { expected, found });
    }
    objective.begin_step(0);
    let mut counted = Counted { objective, evaluations: 0 };
    if let Some(i) = theta.iter().position(|t| !t.is_finite()) {
        let message = format!("parameter {} is {}", counted.name(i), theta[i]);
        return Err(OptimError::Initial(ObjectiveError(message)));
    }
    let (value, gradient) = counted.at(theta).map_err(OptimError::Initial)?;
    let evaluations = counted.evaluations;
    let current = Point { theta: theta.to_vec(), value, gradient };
    let state = State {
        step: 0,
        evaluations,
        optimiser,
        best: (theta.to_vec(), value),
        current,
        stalled: 0,
        seconds: 0.0,
    };
    resume(objective, state, options, observer)
}

/// Continues from a saved state.
///
/// # Errors
/// [`OptimError::State`] where the state does not fit the objective, [`OptimError::Step`] as for [`minimise`].
pub fn resume(
    objective: &mut dyn Objective,
    state: State,
    options: &LoopOptions,
    observer: &mut Observer<'_, State>,
) -> Result<Outcome, OptimError> {
    state.check(objective.dimension())?;
    let clock = Clock::after(state.seconds);
    let counted = Counted { objective, evaluations: state.evaluations };
    let mut minimisation =
        Minimisation { objective: counted, state, options, step_size: None, trace: Vec::new() };
    let limits = Limits { steps: options.steps, time: options.time };
    let (reason, _) =
        drive(&mut minimisation, limits, clock, &mut |progress, own| observer(progress, &own.state))?;
    let Minimisation { objective: Counted { evaluations, .. }, state, trace, .. } = minimisation;
    let (theta, value) = state.best;
    Ok(Outcome { theta, value, reason, steps: state.step, evaluations, trace })
}

/// A minimisation under way.
struct Minimisation<'a> {
    objective: Counted<'a>,
    state: State,
    options: &'a LoopOptions,
    /// That of the last step.
    step_size: Option<f64>,
    trace: Vec<f64>,
}

impl Iteration for Minimisation<'_> {
    type Error = OptimError;

    fn progress(&self) -> Progress {
        let State { step, evaluations, current, .. } = &self.state;
        Progress {
            step: *step,
            value: Some(current.value),
            gradient_norm: Some(largest(&current.gradient)),
            step_size: self.step_size,
            evaluations: *evaluations,
            ..Progress::default()
        }
    }

    fn converged(&self) -> Option<Reason> {
        if largest(&self.state.current.gradient) <= self.options.gradient_tolerance {
            return Some(Reason::Gradient);
        }
        (self.state.stalled >= self.options.patience.max(1)).then_some(Reason::Value)
    }

    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, OptimError> {
        let Self { objective, state, .. } = self;
        state.step += 1;
        objective.objective.begin_step(state.step);
        let Some(step_size) = step_of_method(state, objective, run.steps_planned())? else {
            return Ok(Step::Ended(Reason::Value));
        };
        state.evaluations = objective.evaluations;
        let improvement = state.best.1 - state.current.value;
        let enough = improvement > self.options.value_tolerance * state.best.1.abs().max(1.0);
        state.stalled = if enough { 0 } else { state.stalled + 1 };
        if improvement > 0.0 {
            state.best = (state.current.theta.clone(), state.current.value);
        }
        state.seconds = run.elapsed().as_secs_f64();
        self.trace.push(state.current.value);
        self.step_size = Some(step_size);
        Ok(Step::Taken)
    }
}

/// One step of the method; the step size, or `None` when it cannot improve any more.
fn step_of_method(
    state: &mut State,
    objective: &mut Counted<'_>,
    planned: usize,
) -> Result<Option<f64>, OptimError> {
    let step = state.step;
    let failed = |error| OptimError::Step { step, error };
    let mut theta = state.current.theta.clone();
    let rate = match &mut state.optimiser {
        Optimiser::Lbfgs(lbfgs) => {
            let Some((point, length)) = lbfgs.step(&state.current, objective).map_err(failed)? else {
                return Ok(None);
            };
            state.current = point;
            return Ok(Some(length));
        }
        Optimiser::Adaptive(adaptive) => adaptive.step(&mut theta, &state.current.gradient, planned),
        Optimiser::Sgd(sgd) => sgd.step(&mut theta, &state.current.gradient, planned),
    };
    let (value, gradient) = objective.at(&theta).map_err(failed)?;
    state.current = Point { theta, value, gradient };
    Ok(Some(rate))
}

fn largest(gradient: &[f64]) -> f64 {
    gradient.iter().fold(0.0, |m, g| m.max(g.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Adaptive, Lbfgs, Rule, Sgd, Signal, check};

    /// The Rosenbrock function in pairs of coordinates; fails where the first coordinate exceeds `wall`.
    struct Rosenbrock {
        dimension: usize,
        wall: f64,
        seen: Vec<Vec<f64>>,
    }

    impl Rosenbrock {
        fn new(dimension: usize) -> Self {
            Self { dimension, wall: f64::INFINITY, seen: Vec::new() }
        }
    }

    impl Objective for Rosenbrock {
        fn dimension(&self) -> usize {
            self.dimension
        }
        fn value_and_gradient(&mut self, t: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
            self.seen.push(t.to_vec());
            if t[0] > self.wall {
                return Err(ObjectiveError("behind the wall".into()));
            }
            let mut value = 0.0;
            for i in (0..t.len()).step_by(2) {
                let (a, b) = (1.0 - t[i], t[i + 1] - t[i] * t[i]);
                value += a * a + 100.0 * b * b;
                gradient[i] = -2.0 * a - 400.0 * t[i] * b;
                gradient[i + 1] = 200.0 * b;
            }
            Ok(value)
        }
    }

    fn go(objective: &mut Rosenbrock, optimiser: Optimiser, options: &LoopOptions) -> Outcome {
        let start: Vec<f64> = (0..objective.dimension).map(|i| if i % 2 == 0 { -1.2 } else { 1.0 }).collect();
        minimise(objective, &start, optimiser, options, &mut |_, _| Signal::Continue).unwrap()
    }

    #[test]
    fn the_test_function_is_right() {
        let mut objective = Rosenbrock::new(4);
        let theta = [0.3, -0.4, 1.1, 2.0];
        let mut exact = [0.0; 4];
        objective.value_and_gradient(&theta, &mut exact).unwrap();
        let numeric = check::gradient(|t| objective.value_and_gradient(t, &mut [0.0; 4]).unwrap(), &theta);
        check::assert_close(&exact, &numeric, 1e-8, 1e-8);
    }

    #[test]
    fn lbfgs_finds_the_minimum_and_evaluates_no_point_twice() {
        for dimension in [2, 10, 50] {
            let mut objective = Rosenbrock::new(dimension);
            let options = LoopOptions { value_tolerance: 0.0, ..Default::default() };
            let outcome = go(&mut objective, Optimiser::Lbfgs(Lbfgs::default()), &options);
            assert_eq!(outcome.reason, Reason::Gradient);
            assert!(outcome.theta.iter().all(|t| (t - 1.0).abs() < 1e-5), "{outcome:?}");
            assert!(outcome.evaluations < 100, "{} evaluations", outcome.evaluations);
            assert_eq!(outcome.evaluations, objective.seen.len());
            let mut sorted = objective.seen.clone();
            sorted.sort_by(|a, b| a.partial_cmp(b).unwrap());
            assert!(sorted.windows(2).all(|w| w[0] != w[1]), "a point was evaluated twice");
        }
    }

    #[test]
    fn failures_shorten_the_step_of_lbfgs_and_end_adam() {
        let mut objective = Rosenbrock { wall: 1.0 + 1e-7, ..Rosenbrock::new(2) };
        let outcome = go(&mut objective, Optimiser::Lbfgs(Lbfgs::default()), &LoopOptions::default());
        assert!((outcome.theta[0] - 1.0).abs() < 1e-3, "{outcome:?}");
        let mut objective = Rosenbrock { wall: -1.15, ..Rosenbrock::new(2) };
        let adam = Optimiser::Adaptive(Adaptive::adam(0.1));
        let result = minimise(&mut objective, &[-1.2, 1.0], adam, &LoopOptions::default(), &mut |_, _| {
            Signal::Continue
        });
        assert!(matches!(result, Err(OptimError::Step { step: 1, .. })), "{result:?}");
        let mut objective = Rosenbrock { wall: -2.0, ..Rosenbrock::new(2) };
        let lbfgs = Optimiser::Lbfgs(Lbfgs::default());
        let result = minimise(&mut objective, &[-1.2, 1.0], lbfgs, &LoopOptions::default(), &mut |_, _| {
            Signal::Continue
        });
        assert!(matches!(result, Err(OptimError::Initial(_))));
    }

    #[test]
    fn first_order_methods_reach_the_minimum_of_a_quadratic() {
        struct Quadratic;
        impl Objective for Quadratic {
            fn dimension(&self) -> usize {
                2
            }
            fn value_and_gradient(&mut self, t: &[f64], g: &mut [f64]) -> Result<f64, ObjectiveError> {
                g[0] = t[0] - 3.0;
                g[1] = 10.0 * (t[1] + 1.0);
                Ok(0.5 * (t[0] - 3.0).powi(2) + 5.0 * (t[1] + 1.0).powi(2))
            }
        }
        let options =
            LoopOptions { steps: 3_000, value_tolerance: 0.0, patience: usize::MAX, ..Default::default() };
        for optimiser in [
            Optimiser::Adaptive(Adaptive::adam(0.05).scheduled(crate::Schedule::Cosine)),
            Optimiser::Adaptive(Adaptive::new(Rule::adabelief(), 0.05).scheduled(crate::Schedule::Cosine)),
            Optimiser::Adaptive(Adaptive::new(Rule::rmsprop(), 0.05).scheduled(crate::Schedule::Cosine)),
            Optimiser::Sgd(Sgd::new(0.05, 0.9, true)),
            Optimiser::Sgd(Sgd::new(0.1, 0.0, false)),
            Optimiser::Lbfgs(Lbfgs::default()),
        ] {
            let outcome =
                minimise(&mut Quadratic, &[0.0, 0.0], optimiser, &options, &mut |_, _| Signal::Continue)
                    .unwrap();
            check::assert_close(&outcome.theta, &[3.0, -1.0], 1e-4, 1e-4);
        }
    }

    #[test]
    fn a_resumed_run_ends_in_the_same_bits() {
        for optimiser in [
            Optimiser::Lbfgs(Lbfgs::default()),
            Optimiser::Adaptive(Adaptive::adam(0.02)),
            Optimiser::Adaptive(Adaptive::new(Rule::adabelief(), 0.02)),
            Optimiser::Adaptive(Adaptive::new(Rule::rmsprop(), 0.02)),
            Optimiser::Sgd(Sgd::new(1e-4, 0.9, true)),
        ] {
            let options = LoopOptions { steps: 25, patience: 25, ..Default::default() };
            let whole = go(&mut Rosenbrock::new(4), optimiser.clone(), &options);
            let mut saved = None;
            let start = [-1.2, 1.0, -1.2, 1.0];
            let stopped =
                minimise(&mut Rosenbrock::new(4), &start, optimiser, &options, &mut |event, state| {
                    saved = Some(serde_json::to_string(state).unwrap());
                    if event.step == 9 { Signal::Stop } else { Signal::Continue }
                })
                .unwrap();
            assert_eq!(stopped.reason, Reason::Interrupted);
            let state: State = serde_json::from_str(&saved.unwrap()).unwrap();
            let resumed =
                resume(&mut Rosenbrock::new(4), state, &options, &mut |_, _| Signal::Continue).unwrap();
            assert_eq!(resumed.theta, whole.theta);
            assert_eq!(resumed.value.to_bits(), whole.value.to_bits());
            assert_eq!((resumed.steps, resumed.evaluations), (whole.steps, whole.evaluations));
        }
    }
}
