//! Matrices only: operators, factorisations, vectorised mathematics, seeded randomness.
//!
//! ```
//! use faer::Mat;
//! use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
//!
//! let a = Mat::from_fn(3, 3, |i, j| if i == j { 2.0 } else { 0.5 });
//! let factor = Cholesky::of(a.as_ref(), JitterPolicy::default())?;
//! let x = factor.solve(Mat::from_fn(3, 1, |i, _| i as f64).as_ref());
//! assert!((&a * &x - Mat::from_fn(3, 1, |i, _| i as f64)).norm_l2() < 1e-14);
//! // What was added to the diagonal is never hidden: here, nothing.
//! assert_eq!(factor.info().jitter, 0.0);
//! # Ok::<(), posterior_linalg::cholesky::CholeskyError>(())
//! ```
//!
//! Where a matrix fits and has a factor, [`cholesky`]; where only products are to be had, [`operator`] and [`solve`].
//!
//! | module | idea |
//! |---|---|
//! | [`cholesky`] | `A = L Lᵀ` with reported jitter; solves, inverse, updates |
//! | [`dense`] | products, triangular solves, eigenvalues and QR on all threads, with bits that do not depend on their number |
//! | [`parallel`] | loops over all threads that are compiled once |
//! | [`operator`] | matrices as maps: dense, sums, products, transposes; access to single rows |
//! | [`solve`] | conjugate gradients, preconditioners, traces and log-determinants from products alone |
//! | [`tiles`] | matrices cut into cache-sized pieces, visited in parallel with reproducible results |
//! | [`vectorised`] | exp, ln, tanh, erf at the width of the machine |
//! | [`random`] | seeded, named streams |
//! | [`sparse`] | rows of few non-zeros |
//! | [`freed`] | what the C library does with freed memory |
//! | [`symmetric`] | one triangle from the other, in parallel |
//! | [`triangular`] | products and inverses of which one triangle is wanted, and triangles as lists |
//!
//! Dense matrices are [`faer::Mat`], column-major. Factorisations run in f64; elementwise mathematics is generic over [`Real`].

pub mod cholesky;
pub mod dense;
pub mod freed;
pub mod operator;
pub mod parallel;
pub mod random;
mod real;
pub mod solve;
pub mod sparse;
pub mod symmetric;
pub mod tiles;
pub mod triangular;
pub mod vectorised;

pub use real::{PerPrecision, Real};
