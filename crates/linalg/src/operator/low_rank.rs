//! `U C Vᵀ` with thin factors: rank r at most, `(m + n) r` numbers.

use super::{Dense, LinearOperator, OperatorError, Structure, check_apply, check_apply_transpose};
use crate::Real;
use crate::dense::{multiply_into, product};
use faer::{Accum, Mat, MatMut, MatRef};

/// `U C Vᵀ` for `U` of m x r, `C` of r x r, `V` of n x r. A block of k vectors costs `2(m + n)rk` flops, and `2r²k` for C.
#[derive(Clone, Debug)]
pub struct LowRank<T> {
    left: Mat<T>,
    core: Option<Dense<T>>,
    /// Absent when it is the left factor again.
    right: Option<Mat<T>>,
}

impl<T: Real> LowRank<T> {
    /// `U Uᵀ` (n x n): positive semidefinite.
    pub fn gram(left: Mat<T>) -> Self {
        Self { left, core: None, right: None }
    }

    /// `U C Uᵀ` (n x n): symmetric and semidefinite as far as the core's structure says so.
    ///
    /// # Errors
    /// [`OperatorError::Shapes`] when the core is not r x r.
    pub fn congruence(left: Mat<T>, core: Dense<T>) -> Result<Self, OperatorError> {
        Self::check(
            "a congruence U C Uᵀ",
            "a core of r x r",
            left.shape(),
            core.shape(),
            (left.ncols(), left.ncols()),
        )?;
        Ok(Self { left, core: Some(core), right: None })
    }

    /// `U Vᵀ` (m x n).
    ///
    /// # Errors
    /// [`OperatorError::Shapes`] when the factors have different numbers of columns.
    pub fn outer(left: Mat<T>, right: Mat<T>) -> Result<Self, OperatorError> {
        let needed = "factors with as many columns each";
        Self::check("a product U Vᵀ", needed, left.shape(), right.shape(), (right.nrows(), left.ncols()))?;
        Ok(Self { left, core: None, right: Some(right) })
    }

    /// Numbers of columns of the factors: the largest rank there can be.
    pub fn rank_bound(&self) -> usize {
        self.left.ncols()
    }

    fn check(
        composition: &'static str,
        needed: &'static str,
        left: (usize, usize),
        right: (usize, usize),
        expected: (usize, usize),
    ) -> Result<(), OperatorError> {
        if right == expected {
            Ok(())
        } else {
            Err(OperatorError::Shapes { composition, needed, left, right })
        }
    }

    fn right(&self) -> MatRef<'_, T> {
        self.right.as_ref().map_or(self.left.as_ref(), |right| right.as_ref())
    }
}

impl<T: Real> LinearOperator<T> for LowRank<T> {
    fn shape(&self) -> (usize, usize) {
        (self.left.nrows(), self.right().nrows())
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply(self.shape(), input, &output);
        let inner = product(self.right().transpose(), input);
        let inner = self.core.as_ref().map(|core| core.multiply(inner.as_ref())).unwrap_or(inner);
        multiply_into(output, Accum::Replace, self.left.as_ref(), inner.as_ref(), T::ONE);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply_transpose(self.shape(), input, &output);
        let inner = product(self.left.transpose(), input);
        let inner = self.core.as_ref().map(|core| core.multiply_transpose(inner.as_ref())).unwrap_or(inner);
        multiply_into(output, Accum::Replace, self.right(), inner.as_ref(), T::ONE);
    }

    fn structure(&self) -> Structure {
        let (rows, columns) = self.shape();
        let thin = self.rank_bound() < rows.min(columns);
        let mut structure = if thin { Structure::LOW_RANK } else { Structure::GENERAL };
        if self.right.is_none() {
            // C = W Wᵀ gives (U W)(U W)ᵀ; definiteness would need full column rank of Uᵀ, which is not known.
            let core = self.core.as_ref().map_or(Structure::IDENTITY, |core| core.structure());
            for kept in [Structure::SYMMETRIC, Structure::POSITIVE_SEMIDEFINITE] {
                if core.contains(kept) {
                    structure = structure | kept;
                }
            }
        }
        structure
    }
}
