//! **Solves without factors**: `(K + D) X = Z` for a symmetric matrix K that is known by its products and its rows, and traces and
//! log-determinants from products with random vectors.
//!
//! | file | idea | cost |
//! |---|---|---|
//! | `system` | [`System`]: `K + diag(noise)` as an operator and by rows | that of K |
//! | `conjugate_gradients` | [`ConjugateGradients`]: all right-hand sides at once, one product a step, checked true residuals | `O(√condition)` products |
//! | `pivoted_cholesky` | [`PivotedCholesky`]: `K ≈ L Lᵀ` by greedy pivots | R columns of K, `nR²` flops |
//! | `nystrom` | the randomised Nyström approximation `K ≈ U Λ Uᵀ` | one product with R vectors, `2nR²` flops |
//! | `preconditioner` | [`Preconditioner`]: low rank plus diagonal, inverted by Woodbury's identity | `4nR` flops a column |
//! | `power` | the largest eigenvalue, of the whole or estimated from a subset of rows | 30 products |
//! | `lanczos` | [`Lanczos`]: an orthonormal basis in which the matrix is tridiagonal | one product a step, `4n` flops for each pair of steps |
//! | `estimate` | Hutchinson's trace, stochastic Lanczos quadrature for `tr f(A)` and log-determinants | probes times steps products |
//!
//! Right-hand sides and solutions are n x k. Everything is generic over the precision of the matrix; sums over rows and
//! everything small run in f64.

mod conjugate_gradients;
mod error;
mod estimate;
mod lanczos;
mod nystrom;
mod pivoted_cholesky;
mod power;
mod preconditioner;
mod system;
mod truncated;
mod vectors;

pub use conjugate_gradients::{ConjugateGradientState, ConjugateGradients};
pub use error::SolveError;
pub use estimate::{Estimate, SpectralMeasure, log_determinant, trace, trace_of_function};
pub use lanczos::{Lanczos, Tridiagonal};
pub use nystrom::Nystrom;
pub use pivoted_cholesky::PivotedCholesky;
pub use power::{largest_eigenvalue, largest_eigenvalue_from_subset};
pub use preconditioner::{
    DrawnPreconditioner, LowRankPlusDiagonal, NoPreconditioner, Preconditioner, PreconditionerChoice,
};
pub use system::System;
pub use truncated::{NewtonStep, truncated_newton_step};

#[cfg(test)]
mod tests;
