//! **Inducing points**: a few points that stand for many.
//!
//! | function | choice | cost |
//! |---|---|---|
//! | [`greedy_variance`] | rows, each the one that the rows before predict worst: pivoted Cholesky | `O(n m²)`, `n m` numbers |
//! | [`k_means`] | centres of clusters, not rows | `O(n m D)` a round |
//! | [`random_rows`] | rows | `O(m)` |
//! | [`cover`] | rows no closer than a radius, with every other row within it | one neighbour search for each kept row |
//! | [`prune_neighbours`] | what is left when rows with close neighbours are thinned out | one neighbour search a row |
//!
//! [`Whitening`] says what any choice of them can say about a row: features whose prior covariance is the identity, and the way back from them.
//!
//! Distances are those of the points as they are handed over: [`lengthscales`] reads a kernel's and [`scaled`] divides by them.
//! [`InducingChoice`] is all of this as one setting.
//!
//! Source: spec `stochastic_gaussian_processes`, section 17 (neighbour pruning and covers); D. Burt and others, "Convergence of sparse variational
//! inference in Gaussian processes regression", JMLR 21 (2020), section 4 (greedy variance).

mod choice;
mod cover;
mod greedy;
mod k_means;
mod neighbours;
mod whitening;

pub use choice::{ChosenPoints, InducingChoice, InducingError, lengthscales, random_rows, scaled};
pub use cover::{cover, prune_neighbours, pruning_threshold};
pub use greedy::{Greedy, greedy_variance};
pub use k_means::{KMeansSettings, k_means};
pub use neighbours::NeighbourTree;
pub use whitening::Whitening;

#[cfg(test)]
mod tests;
