//! The curvature of a feature map that knows its rows `R^T Phi`, and nothing faster.

use super::{BlockSum, Form, OutputCurvature, SumMatrix};
use crate::{LinearError, Linearised};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::dense::parallelism;

/// Rows in double precision.
pub(crate) fn wide<T: Real>(rows: MatRef<'_, T>) -> Mat<f64> {
    Mat::from_fn(rows.nrows(), rows.ncols(), |i, j| rows[(i, j)].to_f64())
}

/// Adds the curvature of a batch.
pub(crate) fn add_curvature<T: Real, L: Linearised<T> + ?Sized>(
    features: &L,
    form: Form,
    observed: &OutputCurvature<'_>,
    blocks: &mut [BlockSum],
) -> Result<(), LinearError> {
    if form == Form::Kronecker && blocks.iter().any(|b| matches!(b.matrix, SumMatrix::Kronecker { .. })) {
        return Err(LinearError::Factors);
    }
    let roots = observed.roots::<T>()?;
    for BlockSum { range, matrix, .. } in blocks {
        features.rows(Some(&roots), range.clone(), &mut |_, rows| {
            let rows = wide(rows);
            match matrix {
                SumMatrix::Dense(sum) => add_gram(sum.as_mut(), rows.as_ref()),
                SumMatrix::Diagonal(sum) => {
                    sum.iter_mut().zip(rows.col_iter()).for_each(|(s, g)| *s += g.squared_norm_l2());
                }
                SumMatrix::Kronecker { .. } => {}
            }
        })?;
    }
    Ok(())
}

/// Adds `rows' rows` to the lower triangle of `matrix`. Cost `n d²` flops for `rows` of n x d.
fn add_gram(matrix: MatMut<'_, f64>, rows: MatRef<'_, f64>) {
    let (par, full) = (parallelism(rows.nrows(), rows.ncols()), BlockStructure::Rectangular);
    triangular::matmul(
        matrix,
        BlockStructure::TriangularLower,
        Accum::Add,
        rows.transpose(),
        full,
        rows,
        full,
        1.0,
        par,
    );
}
