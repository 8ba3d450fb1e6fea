//! `A ⊗ B`, never formed: `(A ⊗ B) vec(X) = vec(B X Aᵀ)`.
//!
//! **Convention**, for the whole project: `vec` stacks columns. For A of m x n and B of p x q, the entry of `A ⊗ B` in row
//! `i p + k` and column `j q + l` is `A[i, j] B[k, l]`: the index of B runs fastest, and a vector of `n q` numbers is the q x n matrix
//! X, column by column. (Golub and Van Loan, *Matrix Computations*, 4th ed., section 1.3.7.)
//!
//! A block of c vectors costs one product of B with n c vectors and one of A with p c vectors, instead of `2 m n p q c` flops.

use super::{LinearOperator, OperatorError, Structure, check_apply, check_apply_transpose};
use crate::Real;
use faer::{Mat, MatMut, MatRef};

/// The Kronecker product of an operator of m x n and one of p x q: mp x nq.
#[derive(Clone, Copy, Debug)]
pub struct Kronecker<A, B> {
    left: A,
    right: B,
}

impl<A, B> Kronecker<A, B> {
    /// `left ⊗ right`.
    ///
    /// # Errors
    /// [`OperatorError::TooLarge`] when its dimensions overflow.
    pub fn new<T: Real>(left: A, right: B) -> Result<Self, OperatorError>
    where
        A: LinearOperator<T>,
        B: LinearOperator<T>,
    {
        let ((m, n), (p, q)) = (left.shape(), right.shape());
        if m.checked_mul(p).is_none() || n.checked_mul(q).is_none() {
            let composition = "a Kronecker product";
            return Err(OperatorError::TooLarge { composition, left: (m, n), right: (p, q) });
        }
        Ok(Self { left, right })
    }
}

impl<T: Real, A: LinearOperator<T>, B: LinearOperator<T>> LinearOperator<T> for Kronecker<A, B> {
    fn shape(&self) -> (usize, usize) {
        let ((m, n), (p, q)) = (self.left.shape(), self.right.shape());
        (m * p, n * q)
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply(self.shape(), input, &output);
        let ((m, n), (p, q)) = (self.left.shape(), self.right.shape());
        through((m, n, p, q), input, output, |x| self.right.multiply(x), |y| self.left.multiply(y));
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply_transpose(self.shape(), input, &output);
        let ((m, n), (p, q)) = (self.left.shape(), self.right.shape());
        let left = |y: MatRef<'_, T>| self.left.multiply_transpose(y);
        through((n, m, q, p), input, output, |x| self.right.multiply_transpose(x), left);
    }

    fn structure(&self) -> Structure {
        let structure = self.left.structure().blocks(self.right.structure());
        let (rows, columns) = self.shape();
        // Nothing has a rank below that of an empty matrix.
        if rows == 0 || columns == 0 { structure.without_low_rank() } else { structure }
    }
}

/// `vec(B X Aᵀ)` for each of the c columns of `input`, all together: B meets the n c columns of all X side by side, A the p c rows of
/// all `B X`.
fn through<T: Real>(
    (m, n, p, q): (usize, usize, usize, usize),
    input: MatRef<'_, T>,
    mut output: MatMut<'_, T>,
    right: impl Fn(MatRef<'_, T>) -> Mat<T>,
    left: impl Fn(MatRef<'_, T>) -> Mat<T>,
) {
    let count = input.ncols();
    let side_by_side = Mat::from_fn(q, n * count, |l, jc| input[((jc % n) * q + l, jc / n)]);
    let inner = right(side_by_side.as_ref());
    let rows = Mat::from_fn(n, p * count, |j, kc| inner[(kc % p, (kc / p) * n + j)]);
    let outer = left(rows.as_ref());
    for c in 0..count {
        for i in 0..m {
            for k in 0..p {
                output[(i * p + k, c)] = outer[(i, c * p + k)];
            }
        }
    }
}
