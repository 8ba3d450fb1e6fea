//! **L-BFGS** with a strong-Wolfe line search.
//!
//! Nocedal and Wright, *Numerical Optimization* (2006): two-loop recursion (algorithm 7.4), line search by
//! bracketing and zooming (algorithms 3.5 and 3.6) with cubic interpolation (eq. 3.59).
//!
//! Differs from the textbook, and from ready-made solvers, because here one evaluation costs `O(n³)`:
//! 1. value and gradient always come from one evaluation, and no point is evaluated twice;
//! 2. a point without a value (a kernel matrix that cannot be factored) counts as infinitely bad and shortens the step,
//!    where library line searches stop with an error;
//! 3. no single step moves a parameter by more than [`Lbfgs::longest_move`], since unconstrained hyperparameters are logarithms;
//! 4. all of the state is plain data, so that a checkpoint resumes bit for bit.

use crate::objective::{Counted, ObjectiveError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Limited-memory BFGS: what it remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lbfgs {
    /// Pairs of steps and gradient changes remembered; with 0 this is steepest descent.
    pub memory: usize,
    /// Largest change of any one parameter in a step.
    pub longest_move: f64,
    /// `(s, y, 1 / sᵀy)`, oldest first.
    pairs: VecDeque<(Vec<f64>, Vec<f64>, f64)>,
}

impl Default for Lbfgs {
    fn default() -> Self {
        Self { memory: 10, longest_move: 3.0, pairs: VecDeque::new() }
    }
}

/// Sufficient decrease and curvature constants of the Wolfe conditions (Nocedal and Wright, section 3.1).
const DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// Evaluations after which a line search takes the best point that it has.
const MOST_TRIALS: usize = 20;

/// A point with its value and gradient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) theta: Vec<f64>,
    pub(crate) value: f64,
    pub(crate) gradient: Vec<f64>,
}

/// A trial along the line: step, value (infinite where there is none), slope.
struct Trial {
    step: f64,
    value: f64,
    slope: f64,
    point: Option<Point>,
}

impl Lbfgs {
    /// One iteration from `at`. Returns the new point and the length of the step along the direction, or `None` when
    /// no better point could be found (at a minimum, to rounding).
    ///
    /// # Errors
    /// The last failure when no trial point had a value.
    pub(crate) fn step(
        &mut self,
        at: &Point,
        objective: &mut Counted<'_>,
    ) -> Result<Option<(Point, f64)>, ObjectiveError> {
        let mut direction = self.direction(&at.gradient);
        let mut slope = dot(&direction, &at.gradient);
        if slope >= 0.0 || !slope.is_finite() {
            // Rounding or overflow has spoiled the curvature pairs: start over from steepest descent, scaled by the largest
            // entry because the square of a gradient above 1e154 overflows.
            self.pairs.clear();
            let largest = at.gradient.iter().fold(f64::MIN_POSITIVE, |m, g| m.max(g.abs()));
            direction = at.gradient.iter().map(|g| -g / largest).collect();
            slope = dot(&direction, &at.gradient);
        }
        if slope == 0.0 {
            return Ok(None);
        }
        let longest = direction.iter().fold(0.0f64, |m, d| m.max(d.abs()));
        let limit = self.longest_move / longest;
        let first = if self.pairs.is_empty() { (0.3 / longest).min(1.0) } else { 1.0f64.min(limit) };
        let found = line_search(at, &direction, slope, first, limit, objective)?;
        Ok(found.map(|trial| {
            let point = trial.point.expect("an accepted trial has a value");
            self.remember(at, &point);
            (point, trial.step)
        }))
    }

    /// `-H g` by the two-loop recursion.
    fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut alphas = Vec::with_capacity(self.pairs.len());
        for (s, y, rho) in self.pairs.iter().rev() {
            let alpha = rho * dot(s, &q);
            axpy(-alpha, y, &mut q);
            alphas.push(alpha);
        }
        if let Some((_, y, rho)) = self.pairs.back() {
            let scale = 1.0 / (rho * dot(y, y));
            q.iter_mut().for_each(|v| *v *= scale);
        }
        for ((s, y, rho), alpha) in self.pairs.iter().zip(alphas.into_iter().rev()) {
            let beta = rho * dot(y, &q);
            axpy(alpha - beta, s, &mut q);
        }
        q
    }

    /// Whether the memory is empty or made for a vector of length `dimension`.
    pub(crate) fn fits(&self, dimension: usize) -> bool {
        self.pairs.iter().all(|(s, y, _)| s.len() == dimension && y.len() == dimension)
    }

    fn remember(&mut self, from: &Point, to: &Point) {
        if self.memory == 0 {
            return;
        }
        let difference = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(x, y)| x - y).collect() };
        let (s, y) = (difference(&to.theta, &from.theta), difference(&to.gradient, &from.gradient));
        let curvature = dot(&s, &y);
        // A pair without positive curvature would make the inverse Hessian indefinite.
        if curvature > 1e-12 * dot(&y, &y).sqrt() * dot(&s, &s).sqrt() {
            while self.pairs.len() >= self.memory {
                self.pairs.pop_front();
            }
            self.pairs.push_back((s, y, 1.0 / curvature));
        }
    }
}

/// A step that satisfies the strong Wolfe conditions, or the best decrease found within [`MOST_TRIALS`].
fn line_search(
    at: &Point,
    direction: &[f64],
    slope0: f64,
    first: f64,
    limit: f64,
    objective: &mut Counted<'_>,
) -> Result<Option<Trial>, ObjectiveError> {
    let mut failure = None;
    let mut trials = 0;
    let mut evaluate = |step: f64| -> Trial {
        trials += 1;
        let theta: Vec<f64> = at.theta.iter().zip(direction).map(|(t, d)| t + step * d).collect();
        match objective.at(&theta) {
            Ok((value, gradient)) => {
                let slope = dot(direction, &gradient);
                Trial { step, value, slope, point: Some(Point { theta, value, gradient }) }
            }
            Err(error) => {
                failure = Some(error);
                Trial { step, value: f64::INFINITY, slope: f64::NAN, point: None }
            }
        }
    };
    let enough = |t: &Trial| t.value <= at.value + DECREASE * t.step * slope0;
    let flat = |t: &Trial| t.slope.abs() <= -CURVATURE * slope0;

    let mut low = Trial { step: 0.0, value: at.value, slope: slope0, point: None };
    let mut high: Option<Trial> = None;
    let mut step = first.min(limit);
    let mut count = 0;
    let mut accepted = None;
    while count < MOST_TRIALS {
        let trial = evaluate(step);
        count += 1;
        if !enough(&trial) || (low.point.is_some() && trial.value >= low.value) {
            high = Some(trial);
        } else if flat(&trial) || (high.is_none() && step >= limit) {
            accepted = Some(trial);
            break;
        } else {
            // While bracketing, a downhill slope means the minimum lies beyond; while zooming, the sign tells the side.
            let towards_high = high.as_ref().map_or(1.0, |h| h.step - low.step);
            if trial.slope * towards_high >= 0.0 {
                high = Some(std::mem::replace(&mut low, trial));
            } else {
                low = trial;
            }
        }
        step = match &high {
            None => (2.5 * low.step).min(limit),
            Some(high) => {
                let width = (high.step - low.step).abs();
                if width <= 1e-10 * low.step.max(high.step)
                    || width * slope0.abs() < f64::EPSILON * at.value.abs() * 0.1
                {
                    break;
                }
                interpolate(&low, high)
            }
        };
    }
    match accepted.or(low.point.is_some().then_some(low)) {
        Some(trial) => Ok(Some(trial)),
        None => match (high.is_some_and(|h| h.point.is_some()), failure) {
            (false, Some(error)) => Err(error),
            _ => Ok(None),
        },
    }
}

/// The minimiser of the cubic through two trials, kept away from both ends; the tenth point when one has no value.
fn interpolate(low: &Trial, high: &Trial) -> f64 {
    let width = high.step - low.step;
    if !high.value.is_finite() {
        return low.step + 0.1 * width;
    }
    let d1 = low.slope + high.slope - 3.0 * (low.value - high.value) / (low.step - high.step);
    let square = d1 * d1 - low.slope * high.slope;
    let d2 = square.max(0.0).sqrt() * width.signum();
    let fraction = 1.0 - (high.slope + d2 - d1) / (high.slope - low.slope + 2.0 * d2);
    let fraction = if fraction.is_finite() { fraction.clamp(0.1, 0.9) } else { 0.5 };
    low.step + fraction * width
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn axpy(scale: f64, x: &[f64], y: &mut [f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += scale * x);
}
