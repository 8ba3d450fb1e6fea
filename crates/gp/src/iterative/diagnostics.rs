//! How far approximate weights are from the exact ones.

use crate::GpError;
use crate::data::same_width;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::LinearOperator;

/// Distances between two sets of representer weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightErrors {
    /// `‖α - α⋆‖₂`
    pub euclidean: f64,
    /// `‖α - α⋆‖_K`: the error of the mean function in the kernel's Hilbert space; times `√κ` a bound of its error anywhere.
    pub function: f64,
    /// `‖K (α - α⋆)‖₂`: the error of the predictions at the training rows.
    pub predictions: f64,
}

/// The errors of each column of `weights` (n x s). Cost: one product with K. Spec `stochastic_gaussian_processes`, section 8.
///
/// # Errors
/// [`GpError::Shape`] when sizes differ.
pub fn weight_errors<T: Real>(
    matrix: &dyn LinearOperator<T>,
    weights: MatRef<'_, T>,
    exact: MatRef<'_, T>,
) -> Result<Vec<WeightErrors>, GpError> {
    same_width("rows of the exact weights", weights.nrows(), exact.nrows())?;
    same_width("columns of the exact weights", weights.ncols(), exact.ncols())?;
    same_width("rows of the weights", matrix.shape().1, weights.nrows())?;
    let difference = Mat::from_fn(weights.nrows(), weights.ncols(), |i, j| weights[(i, j)] - exact[(i, j)]);
    let product = matrix.multiply(difference.as_ref());
    let sum = |j: usize, a: &Mat<T>, b: &Mat<T>| -> f64 {
        a.col_as_slice(j).iter().zip(b.col_as_slice(j)).map(|(x, y)| x.to_f64() * y.to_f64()).sum()
    };
    let errors = (0..weights.ncols()).map(|j| WeightErrors {
        euclidean: sum(j, &difference, &difference).sqrt(),
        // Rounding may make a form of a semidefinite matrix negative.
        function: sum(j, &difference, &product).max(0.0).sqrt(),
        predictions: sum(j, &product, &product).sqrt(),
    });
    Ok(errors.collect())
}
