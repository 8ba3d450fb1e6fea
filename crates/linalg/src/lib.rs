//! Matrices only: operators, factorisations, vectorised mathematics, seeded randomness.

pub mod cholesky;
pub mod random;
