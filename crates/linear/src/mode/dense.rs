//! Newton's method with factorisations.

use super::{Mode, ModeProblem, backtrack};
use crate::dense::{column, to_vec};
use crate::exact::{ExactOptions, ExactPosterior};
use crate::features::{FeatureMap, chunks};
use crate::{LinearError, check};
use faer::Mat;
use serde::{Deserialize, Serialize};

/// When Newton's method stops.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewtonOptions {
    /// Most steps.
    pub steps: usize,
    /// Converged once a step promises to lower the objective by less than this, absolutely (half the squared Newton decrement).
    /// The step is still taken, so that the error left is about the square of this.
    pub tolerance: f64,
    /// Most bytes of the feature matrix, and of the matrix that is factored.
    pub memory_limit: u64,
}

impl Default for NewtonOptions {
    /// 100 steps, 1e-10, 16 GiB.
    fn default() -> Self {
        Self { steps: 100, tolerance: 1e-10, memory_limit: check::BUFFER_LIMIT }
    }
}

/// The mode by Newton steps `w <- w - H(w)^-1 gradient` with backtracking, the curvature renewed at each step.
///
/// The feature matrix is assembled once (`8 nC d` bytes); each step costs one factorisation of `min(nC, d)` rows.
///
/// # Errors
/// [`LinearError::NoMatrix`], [`LinearError::TooLarge`], [`LinearError::Diverged`] when the objective is not finite; those of the
/// feature map.
pub fn newton<F: FeatureMap>(
    problem: &ModeProblem<'_, F>,
    precisions: &[f64],
    start: &[f64],
    options: NewtonOptions,
) -> Result<Mode, LinearError> {
    problem.check(precisions, start)?;
    let matrix = assemble(problem, options.memory_limit)?;
    let mut gradient = vec![0.0; start.len()];
    let mut weights = start.to_vec();
    let mut steps = 0;
    let mut converged = false;
    let mut value = problem.objective(&weights, precisions, &mut gradient)?;
    while steps < options.steps && !converged {
        if !value.is_finite() {
            return Err(LinearError::Diverged { what: "the objective", step: steps, value });
        }
        let noise = problem.curvature(&weights)?;
        let exact = ExactOptions { memory_limit: options.memory_limit, ..Default::default() };
        let posterior = ExactPosterior::around_mode(matrix.as_ref(), &weights, &noise, precisions, exact)?;
        let direction: Vec<f64> = to_vec(&posterior.solve(column(&gradient))?).iter().map(|s| -s).collect();
        let slope: f64 = direction.iter().zip(&gradient).map(|(s, g)| s * g).sum();
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

/// The whole feature matrix, nC x d.
pub(crate) fn assemble<F: FeatureMap>(
    problem: &ModeProblem<'_, F>,
    memory_limit: u64,
) -> Result<Mat<f64>, LinearError> {
    let (rows, dimension, outputs) = (problem.rows(), problem.dimension(), problem.features().outputs());
    check::size("the feature matrix", rows, dimension, memory_limit)?;
    let mut matrix = Mat::zeros(rows, dimension);
    for indices in chunks(problem.source().examples(), problem.chunk()) {
        problem.source().with_batch(&indices, &mut |batch| {
            let Some(part) = problem.features().matrix(batch)? else {
                return Err(LinearError::NoMatrix { what: "Newton's method with factorisations" });
            };
            matrix.as_mut().subrows_mut(indices[0] * outputs, part.nrows()).copy_from(&part);
            Ok(())
        })?;
    }
    Ok(matrix)
}
