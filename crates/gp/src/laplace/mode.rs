//! The mode, by Newton's method with steps that are halved until they gain what they promise.

use super::curvature::{Factors, is_coupled, slopes, times_kernel};
use super::model::LaplaceGp;
use crate::{GpError, Observations};
use faer::{Mat, MatRef};

/// Newton steps at most: a handful is usual, a dozen is much.
pub(super) const STEPS: usize = 100;

/// Share of the loss below which what a step promises is nothing, and below which it may stay at the last step, or where rounding hides what steps gain.
const TOLERANCE: f64 = 1e-12;
const HIDDEN: f64 = 1e-7;

/// Where the posterior is highest.
#[derive(Clone, Debug)]
pub struct Mode {
    /// `A = K⁻¹ (F - m)`, n x C.
    pub coefficients: Mat<f64>,
    /// `F`, n x C.
    pub latent: Mat<f64>,
    /// Log-likelihood there, rows weighted.
    pub log_likelihood: f64,
    /// Newton steps taken.
    pub newton_steps: usize,
}

/// A mode with what was factored there.
pub(super) struct Found {
    pub(super) mode: Mode,
    pub(super) factors: Factors,
    pub(super) mean: Mat<f64>,
}

fn inner(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    let column = |k: usize| a.col_as_slice(k).iter().zip(b.col_as_slice(k)).map(|(a, b)| a * b).sum::<f64>();
    (0..a.ncols()).map(column).sum()
}

/// The mode from the prior mean or, where that is better, from the coefficients of another; [`GpError::NoMode`] where steps lead nowhere.
pub(super) fn find(
    model: &LaplaceGp,
    data: &Observations,
    kernel: MatRef<'_, f64>,
    start: Option<&Mat<f64>>,
) -> Result<Found, GpError> {
    let likelihood = model.likelihood();
    let coupled = is_coupled(likelihood);
    let mean = model.mean().evaluate(data.inputs());
    let loss = |a: &Mat<f64>, f: &Mat<f64>, own: f64| 0.5 * inner(a, &(f - &mean)) - own;
    let at = |a: &Mat<f64>| -> Mat<f64> { times_kernel(kernel, a) + &mean };
    let mut a = Mat::zeros(data.rows(), model.latents());
    let mut f = mean.clone();
    let mut here = slopes(likelihood, data, &f);
    let mut value = loss(&a, &f, here.log_likelihood);
    if let Some(start) = start {
        let other = at(start);
        let there = slopes(likelihood, data, &other);
        let known = loss(start, &other, there.log_likelihood);
        if known < value {
            (a, f, here, value) = (start.clone(), other, there, known);
        }
    }
    let (mut steps, mut converged) = (0, false);
    let factors = loop {
        if converged {
            break Factors::new(kernel, &here.diagonal, coupled, model.jitter)?;
        }
        let factors =
            Factors::new(kernel, here.of_steps.as_ref().unwrap_or(&here.diagonal), coupled, model.jitter)?;
        let b = factors.times_curvature(&(&f - &mean)) + &here.gradient;
        let next = &b - factors.times_inverse(&times_kernel(kernel, &b));
        let step = &next - &a;
        let moved = times_kernel(kernel, &step);
        // Half the slope along the step: what the quadratic promises.
        let promised = 0.5 * inner(&(&here.gradient - &a), &moved);
        let no_mode = || Err(GpError::NoMode { steps, promised, likelihood: likelihood.name() });
        // Where a density is far from log-concave the last steps are many, and gain nothing.
        let enough = if steps < STEPS { TOLERANCE } else { HIDDEN };
        if promised.is_nan() || steps >= STEPS && promised > enough * (1.0 + value.abs()) {
            return no_mode();
        }
        if promised <= enough * (1.0 + value.abs()) {
            // Of what is left the last step leaves the square: determinants and differences of evidences feel the first order.
            (a, f) = (next, &f + &moved);
            here = slopes(likelihood, data, &f);
            converged = true;
            continue;
        }
        let mut length = 1.0;
        let found = loop {
            let (a, f) = (&a + length * &step, &f + length * &moved);
            let there = slopes(likelihood, data, &f);
            let reached = loss(&a, &f, there.log_likelihood);
            if reached <= value - 0.1 * length * promised {
                break Some((a, f, there, reached));
            }
            length *= 0.5;
            if length < 1e-8 {
                break None;
            }
        };
        match found {
            Some(found) => (a, f, here, value) = found,
            // No step lowers what rounding hides.
            None if promised <= HIDDEN * (1.0 + value.abs()) => converged = true,
            None => return no_mode(),
        }
        steps += 1;
    };
    let log_likelihood = here.log_likelihood;
    let mode = Mode { coefficients: a, latent: f, log_likelihood, newton_steps: steps };
    Ok(Found { mode, factors, mean })
}
