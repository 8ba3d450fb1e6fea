//! Single or double precision, on the way to files and back.

use crate::model::{ProcessPosterior, Tensor, TensorValues};
use faer::{Mat, MatRef};
use posterior_gp::iterative::PathwisePosterior;
use posterior_linalg::Real;

/// A precision that weights are kept in.
pub(in crate::model) trait SolverPrecision: Real {
    /// A posterior among the others.
    fn posterior(posterior: PathwisePosterior<Self>) -> ProcessPosterior;
    /// Columns one after the other, `[columns, rows]`.
    fn tensor(matrix: MatRef<'_, Self>) -> Tensor;
    /// The numbers, if they are of this precision.
    fn values(values: TensorValues) -> Option<Vec<Self>>;

    /// The matrix of a tensor's values.
    fn matrix(values: TensorValues, rows: usize, columns: usize) -> Option<Mat<Self>> {
        let values = Self::values(values).filter(|v| v.len() == rows * columns)?;
        Some(MatRef::from_column_major_slice(&values, rows, columns).to_owned())
    }
}

macro_rules! kept {
    ($type:ident, $variant:ident, $values:ident) => {
        impl SolverPrecision for $type {
            fn posterior(posterior: PathwisePosterior<Self>) -> ProcessPosterior {
                ProcessPosterior::$variant(posterior)
            }
            fn tensor(matrix: MatRef<'_, Self>) -> Tensor {
                let values: Vec<$type> = (0..matrix.ncols())
                    .flat_map(|j| matrix.col(j).iter().copied().collect::<Vec<_>>())
                    .collect();
                Tensor::new(vec![matrix.ncols(), matrix.nrows()], values)
            }
            fn values(values: TensorValues) -> Option<Vec<Self>> {
                match values {
                    TensorValues::$values(values) => Some(values),
                    _ => None,
                }
            }
        }
    };
}

kept!(f32, Single, F32);
kept!(f64, Double, F64);
