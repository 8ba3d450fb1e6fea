//! The arrays of a posterior by Laplace's approximation.

use posterior_gp::laplace::{LaplaceGp, LaplaceParts, LaplacePosterior};
use posterior_store::{StoreError, Tensors};

/// Adds them.
pub(super) fn insert(posterior: &LaplacePosterior, tensors: &mut Tensors) {
    let LaplaceParts { inputs, coefficients, roots, each, sum } = posterior.parts();
    tensors.insert_matrix("inputs", inputs.as_ref());
    tensors.insert_matrix("coefficients", coefficients.as_ref());
    tensors.insert_matrix("curvature_roots", roots.as_ref());
    for (k, factor) in each.iter().enumerate() {
        tensors.insert_triangle(format!("factor_{k}"), factor.as_ref());
    }
    if let Some(sum) = sum {
        tensors.insert_triangle("factor_sum", sum.as_ref());
    }
}

/// The posterior of a model (with its hyperparameters) on so many rows of so many inputs.
pub(super) fn take(
    (n, d): (usize, usize),
    model: LaplaceGp,
    tensors: &mut Tensors,
) -> Result<LaplacePosterior, StoreError> {
    let c = model.latents();
    let parts = LaplaceParts {
        inputs: tensors.matrix("inputs", n, d)?,
        coefficients: tensors.matrix("coefficients", n, c)?,
        roots: tensors.matrix("curvature_roots", n, c)?,
        each: (0..c).map(|k| tensors.factor(&format!("factor_{k}"), n)).collect::<Result<_, _>>()?,
        sum: match model.likelihood().is_diagonal() {
            true => None,
            false => Some(tensors.factor("factor_sum", n)?),
        },
    };
    LaplacePosterior::from_parts(model, parts).map_err(|e| tensors.corrupt(e))
}
