//! **Linear operators**: a matrix is what it does to a block of vectors.
//!
//! An operator of shape m x n maps a block `X` (n x k) to `A X` (m x k), and a block of outputs back through `Aᵀ`; nothing else is
//! asked of it, so that a matrix too large to be stored (a kernel's, a network's Jacobian, a Kronecker product) is used like any
//! other.
//!
//! | file | operator | a block of k vectors costs |
//! |---|---|---|
//! | `dense` | [`Dense`]: a stored m x n matrix | `2mnk` flops |
//! | `sum` | [`Sum`]: `A + B` | A and B, one more block of memory |
//! | `product` | [`Product`]: `A B` | A and B, one more block of memory |
//! | `transposed` | [`Transposed`]: `Aᵀ` | that of A |
//!
//! `rows` holds [`RowAccess`], for matrices of which single rows can be had without the others.
//!
//! A block costs less than its vectors one by one, so callers gather right-hand sides. References, boxes and `Arc`s of operators are
//! operators, so compositions own or share their parts as they like.
//!
//! ```
//! use faer::mat;
//! use posterior_linalg::operator::{Dense, LinearOperator, Product, Transposed};
//! // U Uᵀ of rank one, without storing n x n numbers.
//! let u = Dense::new(mat![[1.0], [2.0], [3.0]]);
//! let a = Product::new(&u, Transposed::new(&u)).unwrap();
//! assert_eq!(a.multiply(mat![[1.0], [0.0], [1.0]].as_ref()), mat![[4.0], [8.0], [12.0]]);
//! ```

mod dense;
mod error;
mod product;
mod rows;
mod sum;
mod transposed;

#[cfg(test)]
mod tests;

pub use dense::Dense;
pub use error::OperatorError;
pub use product::Product;
pub use rows::{RowAccess, check_principal};
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
