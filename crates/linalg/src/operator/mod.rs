//! **Linear operators**: a matrix is what it does to a block of vectors.
//!
//! An operator of shape m x n maps a block `X` (n x k) to `A X` (m x k), and a block of outputs back through `Aᵀ`; nothing else is
//! asked of it, so that a matrix too large to be stored (a kernel's, a network's Jacobian, a Kronecker product) is used like any
//! other. Operators compose, and what is known of their [`Structure`] is carried along, for solvers to check before work starts.
//!
//! | file | operator | a block of k vectors costs |
//! |---|---|---|
//! | `dense` | [`Dense`]: a stored m x n matrix | `2mnk` flops |
//! | `diagonal` | [`Diagonal`]: `diag(d)` | `nk` |
//! | `identity` | [`ScaledIdentity`]: `c I` | `nk` |
//! | `scaled` | [`Scaled`]: `c A` | that of A |
//! | `sum` | [`Sum`]: `A + B` | A and B, one more block of memory |
//! | `product` | [`Product`]: `A B` | A and B, one more block of memory |
//! | `transposed` | [`Transposed`]: `Aᵀ` | that of A |
//! | `low_rank` | [`LowRank`]: `U C Vᵀ` of rank r | `2(m + n)rk` |
//! | `kronecker` | [`Kronecker`]: `A ⊗ B` | A and B on tall blocks |
//! | `block_diagonal` | [`BlockDiagonal`]: `diag(A₁, A₂, ...)` | the sum of the blocks |
//!
//! `rows` holds [`RowAccess`], for matrices of which single rows can be had without the others.
//!
//! A block costs less than its vectors one by one, so callers gather right-hand sides. References, boxes and `Arc`s of operators are
//! operators, so compositions own or share their parts as they like.
//!
//! ```
//! use faer::mat;
//! use posterior_linalg::operator::{Dense, Diagonal, LinearOperator, LowRank, Structure, Sum};
//! // U Uᵀ + diag(d): positive definite by its structure, without storing n x n numbers.
//! let u = mat![[1.0], [2.0], [3.0]];
//! let a = Sum::new(LowRank::gram(u), Diagonal::new(vec![1.0, 1.0, 2.0])).unwrap();
//! assert!(a.structure().contains(Structure::POSITIVE_DEFINITE));
//! assert_eq!(a.multiply(mat![[1.0], [0.0], [1.0]].as_ref()), mat![[5.0], [8.0], [14.0]]);
//! ```

mod block_diagonal;
mod dense;
mod diagonal;
mod error;
mod identity;
mod kronecker;
mod low_rank;
mod product;
mod rows;
mod scaled;
mod structure;
mod sum;
mod transposed;

#[cfg(test)]
mod tests;

pub use block_diagonal::BlockDiagonal;
pub use dense::Dense;
pub use diagonal::Diagonal;
pub use error::OperatorError;
pub use identity::ScaledIdentity;
pub use kronecker::Kronecker;
pub use low_rank::LowRank;
pub use product::Product;
pub use rows::RowAccess;
pub use scaled::Scaled;
pub use structure::Structure;
pub use sum::Sum;
pub use transposed::Transposed;

use crate::Real;
use faer::{Mat, MatMut, MatRef};

/// A linear map from n numbers to m, known by its products.
///
/// Implementations check the shapes of their blocks with [`check_apply`] and [`check_apply_transpose`], which
/// panic: a wrong shape here is a mistake of the program, never of its input. Both products must be exact transposes
/// of one another, `<A x, u> = <x, Aᵀ u>`, because iterative solvers rely on it.
pub trait LinearOperator<T: Real>: Send + Sync {
    /// `(m, n)`: rows, columns.
    fn shape(&self) -> (usize, usize);

    /// `output <- A input` for `input` of n x k and `output` of m x k, whose old content is ignored.
    ///
    /// # Panics
    /// When the shapes do not fit.
    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>);

    /// `output <- Aᵀ input` for `input` of m x k and `output` of n x k, whose old content is ignored.
    ///
    /// # Panics
    /// When the shapes do not fit.
    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>);

    /// What is known of the matrix; nothing unless an implementation says so.
    fn structure(&self) -> Structure {
        Structure::GENERAL
    }

    /// `A input` (m x k) in new memory.
    fn multiply(&self, input: MatRef<'_, T>) -> Mat<T> {
        let mut output = Mat::zeros(self.shape().0, input.ncols());
        self.apply(input, output.as_mut());
        output
    }

    /// `Aᵀ input` (n x k) in new memory.
    fn multiply_transpose(&self, input: MatRef<'_, T>) -> Mat<T> {
        let mut output = Mat::zeros(self.shape().1, input.ncols());
        self.apply_transpose(input, output.as_mut());
        output
    }

    /// The matrix itself, m x n numbers, by applying the operator to the identity. For small operators and tests.
    fn to_dense(&self) -> Mat<T> {
        self.multiply(Mat::identity(self.shape().1, self.shape().1).as_ref())
    }
}

/// Everything that owns or borrows an operator is one.
macro_rules! forward {
    ($($holder:ty),*) => {$(
        impl<T: Real, A: LinearOperator<T> + ?Sized> LinearOperator<T> for $holder {
            fn shape(&self) -> (usize, usize) {
                (**self).shape()
            }
            fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
                (**self).apply(input, output);
            }
            fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
                (**self).apply_transpose(input, output);
            }
            fn structure(&self) -> Structure {
                (**self).structure()
            }
            fn to_dense(&self) -> Mat<T> {
                (**self).to_dense()
            }
        }
    )*};
}
forward!(&A, Box<A>, std::sync::Arc<A>);

/// Checks the blocks of [`LinearOperator::apply`] for an operator of `shape`.
///
/// # Panics
/// When they do not fit, saying what was expected.
#[track_caller]
pub fn check_apply<T>(shape: (usize, usize), input: MatRef<'_, T>, output: &MatMut<'_, T>) {
    let (rows, columns) = shape;
    let (inputs, outputs) = ((input.nrows(), input.ncols()), (output.nrows(), output.ncols()));
    assert!(
        inputs.0 == columns && outputs == (rows, inputs.1),
        "an operator of {rows} x {columns} maps {columns} x k to {rows} x k, but the input is {} x {} and the output {} x {}",
        inputs.0,
        inputs.1,
        outputs.0,
        outputs.1
    );
}

/// Checks the blocks of [`LinearOperator::apply_transpose`] for an operator of `shape`.
///
/// # Panics
/// When they do not fit, saying what was expected.
#[track_caller]
pub fn check_apply_transpose<T>(shape: (usize, usize), input: MatRef<'_, T>, output: &MatMut<'_, T>) {
    check_apply((shape.1, shape.0), input, output);
}

/// `output <- output + block`, the accumulation that sums need.
fn add_into<T: Real>(mut output: MatMut<'_, T>, block: MatRef<'_, T>) {
    output += block;
}
