//! Newton's method without matrices.

use super::{Mode, ModeProblem, backtrack};
use crate::dense::{column, to_vec};
use crate::features::FeatureMap;
use crate::gauss_newton::gauss_newton_product;
use crate::noise::Noise;
use crate::{LinearError, check};
use serde::{Deserialize, Serialize};

/// When the matrix-free Newton method stops.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewtonCgOptions {
    /// Most Newton steps.
    pub steps: usize,
    /// Converged once a step promises to lower the objective by less than this, absolutely.
    pub tolerance: f64,
    /// Most conjugate-gradient iterations in one step; each is a pass over the data.
    pub inner_steps: usize,
}

impl Default for NewtonCgOptions {
    /// 50 steps of at most 200 iterations, 1e-8.
    fn default() -> Self {
        Self { steps: 50, tolerance: 1e-8, inner_steps: 200 }
    }
}

/// The mode by truncated Newton steps: `H s = -gradient` by conjugate gradients preconditioned with the prior precision.
///
/// The inner tolerance tightens with the gradient (Eisenstat and Walker 1996, the square root of the relative gradient, at most 1/2), which makes the
/// outer convergence superlinear. Memory: six vectors of d numbers and the C x C curvature of each example.
///
/// # Errors
/// [`LinearError::Diverged`] when the objective is not finite; those of the feature map.
pub fn newton_cg<F: FeatureMap>(
    problem: &ModeProblem<'_, F>,
    precisions: &[f64],
    start: &[f64],
    options: NewtonCgOptions,
) -> Result<Mode, LinearError> {
    problem.check(precisions, start)?;
    let mut weights = start.to_vec();
    let mut gradient = vec![0.0; start.len()];
    let mut value = problem.objective(&weights, precisions, &mut gradient)?;
    let initial = check::squared_norm(&gradient).sqrt().max(f64::MIN_POSITIVE);
    let (mut steps, mut converged) = (0, false);
    while steps < options.steps && !converged {
        if !value.is_finite() {
            return Err(LinearError::Diverged { what: "the objective", step: steps, value });
        }
        let noise = problem.curvature(&weights)?;
        let norm = check::squared_norm(&gradient).sqrt();
        let forcing = (norm / initial).sqrt().min(0.5);
        let direction =
            conjugate_gradients(problem, &noise, precisions, &gradient, forcing, options.inner_steps)?;
        let slope: f64 = direction.iter().zip(&gradient).map(|(s, g)| s * g).sum();
        // An inner solve stopped early promises less than the exact step, by at most the forcing; near the end that is a small part.
        converged = -0.5 * slope <= options.tolerance;
        let mut scratch = vec![0.0; gradient.len()];
        let Some((next, lower)) = backtrack(&weights, &direction, slope, value, |w| {
            problem.objective(w, precisions, &mut scratch)
        })?
        else {
            break;
        };
        // The accepted point is the last one evaluated, so its gradient is at hand.
        (weights, value, gradient) = (next, lower, scratch);
        steps += 1;
    }
    let gradient_norm = check::squared_norm(&gradient).sqrt();
    Ok(Mode { weights, objective: value, gradient_norm, steps, converged })
}

/// An approximate solution of `(M + A) s = -gradient`; any number of iterations gives a direction of descent.
fn conjugate_gradients<F: FeatureMap>(
    problem: &ModeProblem<'_, F>,
    noise: &Noise,
    precisions: &[f64],
    gradient: &[f64],
    forcing: f64,
    steps: usize,
) -> Result<Vec<f64>, LinearError> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let precondition = |r: &[f64]| r.iter().zip(precisions).map(|(r, a)| r / a).collect::<Vec<f64>>();
    let mut solution = vec![0.0; gradient.len()];
    let mut residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut search = precondition(&residual);
    let mut energy = dot(&residual, &search);
    let target = forcing * forcing * energy;
    for _ in 0..steps.max(1) {
        if energy <= target || energy == 0.0 {
            break;
        }
        let curved = gauss_newton_product(
            problem.features(),
            problem.source(),
            noise,
            column(&search),
            problem.chunk(),
        )?;
        let mut image = to_vec(&curved);
        image.iter_mut().zip(&search).zip(precisions).for_each(|((m, s), a)| *m += a * s);
        let length = energy / dot(&search, &image);
        solution.iter_mut().zip(&search).for_each(|(x, s)| *x += length * s);
        residual.iter_mut().zip(&image).for_each(|(r, m)| *r -= length * m);
        let next = precondition(&residual);
        let grown = dot(&residual, &next);
        search.iter_mut().zip(&next).for_each(|(s, z)| *s = z + grown / energy * *s);
        energy = grown;
    }
    Ok(solution)
}
