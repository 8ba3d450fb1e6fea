//! What a caller of the loop relies on: convergence on badly scaled problems, the best point kept, errors that name the
//! parameter, states that resume or are refused, checkpoints and mini-batches that repeat.

use posterior_optim::{
    Adaptive, Lbfgs, LoopOptions, Objective, ObjectiveError, OptimError, Optimiser, Outcome, Reason,
    Schedule, Sgd, Signal, State, minimise, resume,
};
use std::time::Duration;

/// An objective from a closure, with optional names.
struct Function<F> {
    dimension: usize,
    names: Vec<String>,
    f: F,
}

impl<F: FnMut(&[f64], &mut [f64]) -> f64> Objective for Function<F> {
    fn dimension(&self) -> usize {
        self.dimension
    }
    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        Ok((self.f)(theta, gradient))
    }
    fn parameter_names(&self) -> Vec<String> {
        self.names.clone()
    }
}

fn function<F: FnMut(&[f64], &mut [f64]) -> f64>(dimension: usize, f: F) -> Function<F> {
    Function { dimension, names: Vec::new(), f }
}

fn run(
    objective: &mut dyn Objective,
    start: &[f64],
    method: Optimiser,
    options: &LoopOptions,
) -> Result<Outcome, OptimError> {
    minimise(objective, start, method, options, &mut |_, _| Signal::Continue)
}

fn lbfgs() -> Optimiser {
    Optimiser::Lbfgs(Lbfgs::default())
}

/// `½ Σ a_i (t_i - 1)²` with curvatures `a` from 1 to `condition`.
fn quadratic(dimension: usize, condition: f64) -> Function<impl FnMut(&[f64], &mut [f64]) -> f64> {
    function(dimension, move |t: &[f64], g: &mut [f64]| {
        let mut value = 0.0;
        for i in 0..dimension {
            let curvature = condition.powf(i as f64 / (dimension - 1) as f64);
            g[i] = curvature * (t[i] - 1.0);
            value += 0.5 * g[i] * (t[i] - 1.0);
        }
        value
    })
}

#[test]
fn ill_conditioned_quadratics_are_solved_to_the_gradient_tolerance() {
    // The smallest curvature is 1, so a gradient within the tolerance puts every entry within the tolerance of 1.
    let options = LoopOptions { steps: 1_000, value_tolerance: 0.0, ..Default::default() };
    for condition in [1.0, 1e2, 1e4, 1e6] {
        let outcome = run(&mut quadratic(10, condition), &[0.0; 10], lbfgs(), &options).unwrap();
        assert_eq!(outcome.reason, Reason::Gradient, "condition {condition:e}");
        assert!(outcome.theta.iter().all(|t| (t - 1.0).abs() <= options.gradient_tolerance));
    }
}

#[test]
fn an_evidence_of_typical_shape_takes_few_evaluations() {
    // Negative log evidence per point of y ~ N(0, s + v) seen through a variance s exp(-l²): smooth, curved in logarithms.
    let mut evidence = function(2, |t: &[f64], g: &mut [f64]| {
        let (s, v) = (t[0].exp(), t[1].exp());
        let slope = |total: f64, target: f64| 0.5 * (1.0 / total - target / (total * total));
        g[0] = (slope(s + v, 1.3) + slope(0.5 * s + v, 0.8) * 0.5) * s;
        g[1] = (slope(s + v, 1.3) + slope(0.5 * s + v, 0.8)) * v;
        let value = |total: f64, target: f64| 0.5 * (total.ln() + target / total);
        value(s + v, 1.3) + value(0.5 * s + v, 0.8)
    });
    for start in [[0.0, 0.0], [3.0, -6.0], [-5.0, 4.0]] {
        let outcome = run(&mut evidence, &start, lbfgs(), &LoopOptions::default()).unwrap();
        // Both totals meet their targets where s + v = 1.3 and s/2 + v = 0.8: s = 1, v = 0.3.
        assert!((outcome.theta[0].exp() - 1.0).abs() < 1e-3, "{start:?} {outcome:?}");
        assert!((outcome.theta[1].exp() - 0.3).abs() < 1e-3, "{start:?} {outcome:?}");
        assert!(outcome.evaluations <= 60, "{start:?}: {} evaluations", outcome.evaluations);
    }
}

#[test]
fn no_memory_is_steepest_descent_and_stays_within_its_bound() {
    for memory in [0, 1, 3] {
        let mut method = Lbfgs::default();
        method.memory = memory;
        let mut most = 0;
        let outcome = minimise(
            &mut quadratic(3, 10.0),
            &[5.0, -3.0, 2.0],
            Optimiser::Lbfgs(method),
            &LoopOptions { value_tolerance: 0.0, ..Default::default() },
            &mut |_, state| {
                let json = serde_json::to_value(state).unwrap();
                most = most.max(json["optimiser"]["pairs"].as_array().unwrap().len());
                Signal::Continue
            },
        )
        .unwrap();
        assert_eq!((outcome.reason, most), (Reason::Gradient, memory));
    }
}

#[test]
fn gradients_whose_square_overflows_still_lead_downhill() {
    let mut steep = function(1, |t: &[f64], g: &mut [f64]| {
        g[0] = t[0].exp() - 1.0;
        t[0].exp() - t[0]
    });
    let options = LoopOptions { steps: 3_000, ..Default::default() };
    let outcome = run(&mut steep, &[400.0], lbfgs(), &options).unwrap();
    assert_eq!(outcome.reason, Reason::Gradient);
    assert!(outcome.theta[0].abs() < 1e-4, "{outcome:?}");
}

#[test]
fn the_best_point_is_returned_and_not_the_last() {
    // Heavy momentum swings through the minimum (a quarter of a period is about 3 steps) and up the other side.
    let descent = Optimiser::Sgd(Sgd::new(0.3, 0.95, false));
    let options = LoopOptions { steps: 6, gradient_tolerance: 0.0, patience: 100, ..Default::default() };
    let outcome = run(&mut quadratic(2, 1.0), &[4.0, -2.0], descent, &options).unwrap();
    let least = outcome.trace.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(outcome.trace.last().unwrap() > &least, "the test needs a run that ends above its best");
    assert_eq!(outcome.value, least);
    let mut gradient = [0.0; 2];
    let there = quadratic(2, 1.0).value_and_gradient(&outcome.theta, &mut gradient).unwrap();
    assert_eq!(there, outcome.value);
}

#[test]
fn patience_and_time_end_a_run() {
    let mut flat = function(1, |_: &[f64], g: &mut [f64]| {
        g[0] = 1.0;
        5.0
    });
    let adam = || Optimiser::Adaptive(Adaptive::adam(0.1));
    let options = LoopOptions { patience: 4, ..Default::default() };
    let outcome = run(&mut flat, &[0.0], adam(), &options).unwrap();
    assert_eq!((outcome.reason, outcome.steps), (Reason::Value, 4));
    let options = LoopOptions { time: Some(Duration::ZERO), ..Default::default() };
    let outcome = run(&mut flat, &[0.0], adam(), &options).unwrap();
    assert_eq!((outcome.reason, outcome.steps), (Reason::Time, 0));
}

#[test]
fn patience_of_zero_still_takes_a_step() {
    let options = LoopOptions { patience: 0, ..Default::default() };
    let outcome = run(&mut quadratic(3, 5.0), &[0.0; 3], lbfgs(), &options).unwrap();
    assert!(outcome.steps > 1 && outcome.value < 1e-8, "{outcome:?}");
}

#[test]
fn failures_name_the_step_and_the_parameter() {
    let mut objective = function(2, |t: &[f64], g: &mut [f64]| {
        g[0] = 1.0;
        g[1] = if t[0] < 0.85 { f64::NAN } else { 0.0 };
        t[0]
    });
    let adam = || Optimiser::Adaptive(Adaptive::adam(0.1));
    let options = LoopOptions::default();
    let error = run(&mut objective, &[1.0, 0.0], adam(), &options).unwrap_err();
    assert!(error.to_string().starts_with("step 2 failed: the gradient is NaN for parameter 1."), "{error}");
    objective.names = vec!["lengthscale".into(), "noise_variance".into()];
    let error = run(&mut objective, &[1.0, 0.0], adam(), &options).unwrap_err();
    assert!(error.to_string().contains("for parameter `noise_variance`"), "{error}");
    let error = run(&mut objective, &[f64::NAN, 0.0], adam(), &options).unwrap_err();
    assert!(matches!(&error, OptimError::Initial(_)) && error.to_string().contains("`lengthscale` is NaN"));
    for start in [&[1.0][..], &[1.0, 2.0, 3.0]] {
        let error = run(&mut objective, start, adam(), &options).unwrap_err();
        assert!(matches!(error, OptimError::Dimension { expected: 2, .. }), "{error}");
    }
}

#[test]
fn a_value_that_is_not_finite_is_a_failure() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        // A valley at 0 with a cliff behind it: the first long step of L-BFGS falls off and is shortened.
        let mut cliff = function(1, |t: &[f64], g: &mut [f64]| {
            g[0] = 2.0 * t[0];
            if t[0] < -0.1 { bad } else { t[0] * t[0] }
        });
        let outcome = run(&mut cliff, &[0.2], lbfgs(), &LoopOptions::default()).unwrap();
        assert!(outcome.theta[0].abs() < 1e-5, "{bad}: {outcome:?}");
        let descent = Optimiser::Sgd(Sgd::new(2.0, 0.0, false));
        let error = run(&mut cliff, &[0.2], descent, &LoopOptions::default()).unwrap_err();
        assert!(matches!(error, OptimError::Step { step: 1, .. }), "{error}");
    }
}

#[test]
fn damaged_and_foreign_states_are_refused() {
    let options = LoopOptions { steps: 5, ..Default::default() };
    for method in
        [lbfgs(), Optimiser::Adaptive(Adaptive::adam(0.1)), Optimiser::Sgd(Sgd::new(0.01, 0.9, true))]
    {
        let mut saved = None;
        minimise(&mut quadratic(3, 9.0), &[4.0, 3.0, 2.0], method, &options, &mut |event, state| {
            saved = Some(serde_json::to_value(state).unwrap());
            if event.step == 3 { Signal::Stop } else { Signal::Continue }
        })
        .unwrap();
        let saved = saved.unwrap();
        let attempt = |json: serde_json::Value, dimension: usize| {
            let state: State = serde_json::from_value(json).unwrap();
            resume(&mut quadratic(dimension, 9.0), state, &options, &mut |_, _| Signal::Continue)
        };
        assert!(attempt(saved.clone(), 3).is_ok());
        assert!(matches!(attempt(saved.clone(), 2), Err(OptimError::State(_))));
        for (place, damage) in [
            ("/current/gradient", serde_json::json!([])),
            ("/current/theta", serde_json::json!([1.0])),
            ("/best/0", serde_json::json!([1.0, 2.0, 3.0, 4.0])),
            ("/optimiser/pairs/0/0", serde_json::json!([1.0])),
            ("/optimiser/first", serde_json::json!([1.0])),
            ("/optimiser/velocity", serde_json::json!([1.0])),
        ] {
            let mut json = saved.clone();
            let Some(target) = json.pointer_mut(place) else { continue };
            *target = damage;
            let result = attempt(json, 3);
            assert!(matches!(result, Err(OptimError::State(_))), "{place}: {result:?}");
        }
    }
}

/// Least squares on one row a step, drawn from the number of the step.
struct Stochastic {
    row: usize,
}

impl Objective for Stochastic {
    fn dimension(&self) -> usize {
        2
    }
    fn value_and_gradient(&mut self, t: &[f64], g: &mut [f64]) -> Result<f64, ObjectiveError> {
        let x = (self.row * 7 % 11) as f64 / 11.0;
        let residual = t[0] + t[1] * x - (2.0 - x);
        g[0] = residual;
        g[1] = residual * x;
        Ok(0.5 * residual * residual)
    }
    fn begin_step(&mut self, step: usize) {
        self.row = step;
    }
}

#[test]
fn a_stochastic_run_resumes_with_the_batches_and_rates_of_the_whole_run() {
    let options =
        LoopOptions { steps: 60, patience: usize::MAX, gradient_tolerance: 0.0, ..Default::default() };
    for schedule in [Schedule::Constant, Schedule::Cosine, Schedule::OneCycle { warm_up: 0.3 }] {
        let method = Optimiser::Adaptive(Adaptive::adam(0.05).scheduled(schedule).decayed(1e-3));
        let whole = run(&mut Stochastic { row: 0 }, &[0.0, 0.0], method.clone(), &options).unwrap();
        // A checkpoint every eighth step; the run dies at step 30 and goes on from step 24.
        let mut saved = None;
        minimise(&mut Stochastic { row: 0 }, &[0.0, 0.0], method, &options, &mut |event, state| {
            if event.step % 8 == 0 {
                saved = Some(serde_json::to_string(state).unwrap());
            }
            if event.step == 30 { Signal::Stop } else { Signal::Continue }
        })
        .unwrap();
        let state: State = serde_json::from_str(&saved.unwrap()).unwrap();
        assert_eq!(state.step, 24);
        let rest =
            resume(&mut Stochastic { row: 999 }, state, &options, &mut |_, _| Signal::Continue).unwrap();
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&rest.trace), bits(&whole.trace[24..]));
        assert_eq!(bits(&rest.theta), bits(&whole.theta));
        assert_eq!(rest.steps, 60);
    }
}
