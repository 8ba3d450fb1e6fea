//! A primal-dual method that knows how far it is from the optimum.
//!
//! The problem is a saddle point in the image x, a dual p for the data and a dual q for the differences, `|q_a| <= λ w_a`:
//!
//! `max_{p,q} min_x <p, T x - y> - (c/4) ‖p‖² + <q, D x>`, x in a box.
//!
//! Each step moves the duals along `T x̄ - y` and `D x̄`, then x along `-(Tᵀ p + Dᵀ q)`, then `x̄ = 2 x_new - x_old`. For any duals, `-(c/4)‖p‖² - <p, y> + Σ min over the box of x (Tᵀ p + Dᵀ q)` is
//! a lower bound of the objective's minimum in the box; the gap between the best value and the best bound needs no further product.
//!
//! Differs from the textbook in: 1. the two duals have step sizes of their own, since T and D are of different sizes; 2. the box has an upper end, without which the bound is minus infinity at
//! almost all duals. An upper end that the result does not touch changes nothing: the objective is convex.
//!
//! Cost of a step: one product with T, one with its transpose, a dozen passes over the image. Source: Chambolle and Pock, *A first-order primal-dual algorithm for convex problems with applications to imaging*
//! (2011), algorithm 1.

use super::Penalised;
use crate::TomographyError;
use posterior_linalg::operator::{LinearOperator, Product, Transposed};
use posterior_linalg::solve::largest_eigenvalue;
use posterior_optim::{Clock, Iteration, Limits, Observer, Progress, Reason, Run, Step, drive};
use serde::{Deserialize, Serialize};

/// How the method goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrimalDualOptions {
    /// Most steps.
    pub steps: usize,
    /// Ends where the gap is at most this share of the objective.
    pub tolerance: f64,
    /// Whether pixels are 0 or more.
    pub non_negative: bool,
    /// The upper end of pixels (and, negated, the lower end where they may be negative); without it, twice the largest magnitude of the start.
    pub largest: Option<f64>,
    /// The step size of x, in the image's range over the bound of the dual of differences; smaller ones favour the data's dual. Of 0.003 to 1 the best lay between 0.01 and 0.03 on scans of 24, 64 and 128 pixels a side.
    pub balance: f64,
    /// Seed of the power iteration that step sizes come from.
    pub seed: u64,
}

impl Default for PrimalDualOptions {
    fn default() -> Self {
        Self { steps: 5_000, tolerance: 1e-3, non_negative: true, largest: None, balance: 0.02, seed: 0 }
    }
}

/// Where a run stands: plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrimalDualState {
    /// The image x, and `T x`.
    pub position: (Vec<f64>, Vec<f64>),
    /// The extrapolated image, and T times it.
    pub ahead: (Vec<f64>, Vec<f64>),
    /// The data's dual.
    pub data: Vec<f64>,
    /// The differences' dual.
    pub edges: Vec<f64>,
    /// The best image so far.
    pub best: Vec<f64>,
    /// Its objective.
    pub value: f64,
    /// The largest lower bound of the minimum so far.
    pub bound: f64,
    /// The largest pixel allowed.
    pub largest: f64,
    /// Step sizes of x, the data's dual and the differences' dual.
    pub step_sizes: [f64; 3],
    /// Steps taken.
    pub step: usize,
}

impl PrimalDualState {
    /// How far the best image's objective is above the minimum, at most.
    pub fn gap(&self) -> f64 {
        (self.value - self.bound).max(0.0)
    }
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Reconstructed {
    /// The image.
    pub image: Vec<f64>,
    /// Its objective.
    pub value: f64,
    /// How far that is above the minimum at most.
    pub gap: f64,
    /// Why the run ended: [`Reason::Tolerance`] where the gap was small enough.
    pub reason: Reason,
    /// Steps taken.
    pub steps: usize,
    /// Pixels at the upper end: where there are any, it was too low to be no matter.
    pub at_largest: usize,
}

struct PrimalDual<'a> {
    problem: Penalised<'a>,
    options: &'a PrimalDualOptions,
    state: PrimalDualState,
}

/// Minimises from `start` (the filtered back-projection, say), or goes on from a saved state bit for bit. The observer sees every step with the state, which it may save; of its progress, `residual` is the gap relative to
/// the objective.
///
/// # Errors
/// [`TomographyError`]: a start, a state or options that do not fit.
pub fn reconstruct(
    problem: &Penalised<'_>,
    start: &[f64],
    saved: Option<PrimalDualState>,
    options: &PrimalDualOptions,
    observer: &mut Observer<'_, PrimalDualState>,
) -> Result<Reconstructed, TomographyError> {
    problem.check_start(start)?;
    check(options)?;
    let state = match saved {
        Some(state) => fitting(state, problem)?,
        None => begun(problem, start, options)?,
    };
    let mut method = PrimalDual { problem: *problem, options, state };
    let limits = Limits { steps: options.steps, time: None };
    let mut tell = |progress: &Progress, own: &PrimalDual<'_>| observer(progress, &own.state);
    let (reason, progress) = drive(&mut method, limits, Clock::start(), &mut tell)?;
    let state = method.state;
    let at_largest = state.best.iter().filter(|v| v.abs() >= state.largest).count();
    let (value, gap) = (state.value, state.gap());
    Ok(Reconstructed { image: state.best, value, gap, reason, steps: progress.step, at_largest })
}

fn check(options: &PrimalDualOptions) -> Result<(), TomographyError> {
    let refuse = |name, value, expected| Err(TomographyError::Option { name, value, expected });
    if options.tolerance.is_nan() || options.tolerance < 0.0 {
        return refuse(
            "the tolerance",
            options.tolerance,
            "it is 0 or positive: 1e-3 is a thousandth of the objective",
        );
    }
    if !(options.balance > 0.0 && options.balance.is_finite()) {
        return refuse("the balance", options.balance, "it is positive and finite");
    }
    match options.largest {
        Some(value) if !(value > 0.0 && value.is_finite()) => {
            refuse("the largest pixel", value, "it is positive and finite")
        }
        _ => Ok(()),
    }
}

fn fitting(state: PrimalDualState, problem: &Penalised<'_>) -> Result<PrimalDualState, TomographyError> {
    let (rows, pixels) = problem.operator.shape();
    let images = [&state.position.0, &state.ahead.0, &state.best].iter().all(|v| v.len() == pixels);
    let sinograms = [&state.position.1, &state.ahead.1, &state.data].iter().all(|v| v.len() == rows);
    let positive = state.largest > 0.0 && state.step_sizes.iter().all(|s| *s > 0.0);
    if !images || !sinograms || !positive || state.edges.len() != 3 * pixels {
        return Err(TomographyError::State(format!(
            "it is not one of {rows} measurements of {pixels} pixels"
        )));
    }
    Ok(state)
}

fn begun(
    problem: &Penalised<'_>,
    start: &[f64],
    options: &PrimalDualOptions,
) -> Result<PrimalDualState, TomographyError> {
    let magnitude = |values: &[f64]| values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let largest = options.largest.unwrap_or_else(|| {
        let seen = 2.0 * magnitude(start);
        if seen > 0.0 { seen } else { magnitude(problem.measurements).max(1.0) }
    });
    let lowest = if options.non_negative { 0.0 } else { -largest };
    let image: Vec<f64> = start.iter().map(|v| v.clamp(lowest, largest)).collect();
    let normal = Product::new(Transposed::new(problem.operator), problem.operator)
        .map_err(|e| TomographyError::Optimiser(e.to_string()))?;
    // Power iteration comes from below: a twentieth on top keeps steps short enough.
    let squared = largest_eigenvalue(&normal as &dyn LinearOperator<f64>, 30, options.seed)
        .map_err(|e| TomographyError::Optimiser(e.to_string()))?
        .max(f64::MIN_POSITIVE)
        * 1.05;
    // ‖D‖² is at most 4 an axis. Half of what the step sizes may multiply to goes to either dual.
    let differences = 4.0 * problem.variation.axes().max(1) as f64;
    let scale = weights(problem).into_iter().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let x = options.balance * 0.5 * largest / (scale * differences.sqrt());
    let step_sizes = [x, 0.5 / (x * squared), 0.5 / (x * differences)];
    let projected = problem.forward(&image);
    let value = problem.value_at(&image, &projected);
    Ok(PrimalDualState {
        ahead: (image.clone(), projected.clone()),
        data: vec![0.0; projected.len()],
        edges: vec![0.0; 3 * image.len()],
        best: image.clone(),
        position: (image, projected),
        value,
        // Nothing is below 0.
        bound: 0.0,
        largest,
        step_sizes,
        step: 0,
    })
}

/// What each axis's dual is bounded by.
fn weights(problem: &Penalised<'_>) -> [f64; 3] {
    problem.variation.weights().map(|w| problem.weight * w)
}

impl Iteration for PrimalDual<'_> {
    type Error = TomographyError;

    fn progress(&self) -> Progress {
        Progress {
            step: self.state.step,
            value: Some(self.state.value),
            residual: Some(self.state.gap() / self.state.value.max(f64::MIN_POSITIVE)),
            step_size: Some(self.state.step_sizes[0]),
            ..Progress::default()
        }
    }

    fn converged(&self) -> Option<Reason> {
        (self.state.gap() <= self.options.tolerance * self.state.value).then_some(Reason::Tolerance)
    }

    fn step(&mut self, _: &mut Run<'_, Self>) -> Result<Step, TomographyError> {
        let (problem, state) = (&self.problem, &mut self.state);
        let [step, data_step, edge_step] = state.step_sizes;
        let count = problem.measurements.len() as f64;
        let shrink = 1.0 / (1.0 + 0.5 * count * data_step);
        for ((p, t), y) in state.data.iter_mut().zip(&state.ahead.1).zip(problem.measurements) {
            *p = (*p + data_step * (t - y)) * shrink;
        }
        let mut differences = vec![0.0; state.edges.len()];
        problem.variation.differences(&state.ahead.0, &mut differences);
        let pixels = state.best.len();
        for (axis, bound) in weights(problem).into_iter().enumerate() {
            let range = axis * pixels..(axis + 1) * pixels;
            for (q, d) in state.edges[range.clone()].iter_mut().zip(&differences[range]) {
                *q = (*q + edge_step * d).clamp(-bound, bound);
            }
        }
        let mut pull = problem.backward(&state.data);
        problem.variation.add_transpose(&state.edges, &mut pull);
        let lowest = if self.options.non_negative { 0.0 } else { -state.largest };
        let bound = lower_bound(&state.data, problem.measurements, &pull, [lowest, state.largest]);
        state.bound = state.bound.max(bound);
        let moved: Vec<f64> = state
            .position
            .0
            .iter()
            .zip(&pull)
            .map(|(x, r)| (x - step * r).clamp(lowest, state.largest))
            .collect();
        let projected = problem.forward(&moved);
        let further = |new: &[f64], old: &[f64]| new.iter().zip(old).map(|(a, b)| 2.0 * a - b).collect();
        state.ahead = (further(&moved, &state.position.0), further(&projected, &state.position.1));
        let value = problem.value_at(&moved, &projected);
        if !value.is_finite() {
            return Err(TomographyError::Optimiser(format!(
                "the objective is {value} at step {}; check the operator's weights",
                state.step + 1
            )));
        }
        if value < state.value {
            state.value = value;
            state.best.clone_from(&moved);
        }
        state.position = (moved, projected);
        state.step += 1;
        Ok(Step::Taken)
    }
}

/// What the minimum in the box is at least, by any duals with `pull = Tᵀ p + Dᵀ q`.
fn lower_bound(data: &[f64], measurements: &[f64], pull: &[f64], [lowest, largest]: [f64; 2]) -> f64 {
    let quarter = 0.25 * data.len() as f64;
    let of_data: f64 = data.iter().zip(measurements).map(|(p, y)| p * (quarter * p + y)).sum();
    let of_box: f64 = pull.iter().map(|r| (lowest * r).min(largest * r)).sum();
    of_box - of_data
}
