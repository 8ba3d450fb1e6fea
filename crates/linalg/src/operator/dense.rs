//! `A`, stored: m x n numbers, column-major.

use super::{LinearOperator, OperatorError, Structure, check_apply, check_apply_transpose};
use crate::Real;
use crate::dense::multiply_into;
use faer::{Accum, Mat, MatMut, MatRef};

/// A stored matrix of m x n. A block of k vectors costs `2mnk` flops.
#[derive(Clone, Debug)]
pub struct Dense<T> {
    matrix: Mat<T>,
    structure: Structure,
}

impl<T: Real> Dense<T> {
    /// A matrix of which nothing is known.
    pub fn new(matrix: Mat<T>) -> Self {
        Self { matrix, structure: Structure::GENERAL }
    }

    /// A matrix that is declared to have `structure`.
    ///
    /// Symmetry (to the square root of the precision, relative to the largest entry), zeros and ones are verified in one
    /// pass over the entries; definiteness and low rank, which would cost a factorisation, are taken on trust.
    ///
    /// # Errors
    /// [`OperatorError::NotSquare`], or [`OperatorError::Contradicted`] with the entry.
    pub fn with_structure(matrix: Mat<T>, structure: Structure) -> Result<Self, OperatorError> {
        let (rows, columns) = matrix.shape();
        if structure.needs_square() && rows != columns {
            return Err(OperatorError::NotSquare { claimed: structure, rows, columns });
        }
        let largest = (0..columns)
            .flat_map(|j| matrix.col(j).iter())
            .fold(T::ZERO, |largest, &value| Real::max(largest, Real::abs(value)));
        let tolerance = Real::sqrt(T::EPSILON) * largest;
        let lower = structure.contains(Structure::LOWER_TRIANGULAR);
        let upper = structure.contains(Structure::UPPER_TRIANGULAR);
        let identity = structure.contains(Structure::IDENTITY);
        let symmetric = structure.contains(Structure::SYMMETRIC);
        for column in 0..if structure.needs_square() { columns } else { 0 } {
            for row in 0..rows {
                let value = matrix[(row, column)];
                let holds = !((lower && row < column || upper && row > column) && value != T::ZERO)
                    && !(identity && row == column && value != T::ONE)
                    // Written so that NaN contradicts.
                    && (!symmetric || Real::abs(value - matrix[(column, row)]) <= tolerance);
                if !holds {
                    let value = value.to_f64();
                    return Err(OperatorError::Contradicted { claimed: structure, row, column, value });
                }
            }
        }
        Ok(Self { matrix, structure })
    }

    /// The matrix.
    pub fn matrix(&self) -> MatRef<'_, T> {
        self.matrix.as_ref()
    }

    /// The matrix, given back.
    pub fn into_matrix(self) -> Mat<T> {
        self.matrix
    }
}

impl<T: Real> LinearOperator<T> for Dense<T> {
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply(self.shape(), input, &output);
        multiply_into(output, Accum::Replace, self.matrix.as_ref(), input, T::ONE);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply_transpose(self.shape(), input, &output);
        multiply_into(output, Accum::Replace, self.matrix.transpose(), input, T::ONE);
    }

    fn structure(&self) -> Structure {
        self.structure
    }

    fn to_dense(&self) -> Mat<T> {
        self.matrix.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::mat;

    #[test]
    fn false_declarations_are_found() {
        let matrix = mat![[1.0, 2.0], [3.0, 4.0]];
        for structure in
            [Structure::SYMMETRIC, Structure::LOWER_TRIANGULAR, Structure::DIAGONAL, Structure::IDENTITY]
        {
            let error = Dense::with_structure(matrix.clone(), structure).unwrap_err();
            assert!(matches!(error, OperatorError::Contradicted { .. }), "{error}");
        }
        let error = Dense::with_structure(matrix, Structure::UPPER_TRIANGULAR).unwrap_err();
        let expected = OperatorError::Contradicted {
            claimed: Structure::UPPER_TRIANGULAR,
            row: 1,
            column: 0,
            value: 3.0,
        };
        assert_eq!(error, expected);
        let error = Dense::with_structure(Mat::<f64>::zeros(2, 3), Structure::SYMMETRIC).unwrap_err();
        assert!(error.to_string().contains("only a square matrix"), "{error}");
        let nan = mat![[1.0, f64::NAN], [f64::NAN, 1.0]];
        assert!(Dense::with_structure(nan, Structure::SYMMETRIC).is_err());
    }

    #[test]
    fn true_declarations_hold() {
        let nearly = mat![[2.0, 1.0], [1.0 + 1e-15, 3.0]];
        assert!(Dense::with_structure(nearly, Structure::POSITIVE_DEFINITE).is_ok());
        assert!(Dense::with_structure(mat![[1.0f32, 0.0], [3.0, 4.0]], Structure::LOWER_TRIANGULAR).is_ok());
        assert!(Dense::with_structure(mat![[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]], Structure::LOW_RANK).is_ok());
        assert!(Dense::with_structure(Mat::<f64>::identity(3, 3), Structure::IDENTITY).is_ok());
    }
}
