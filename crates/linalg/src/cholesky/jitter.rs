//! What is done, and said, when a matrix that should be positive definite is not quite.

use serde::{Deserialize, Serialize};

/// How much to add to the diagonal when a factorisation fails, and when to give up.
///
/// The amounts are relative to the mean of the diagonal. A first attempt is always made with nothing added.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JitterPolicy {
    /// First amount tried after a failure, relative to the mean diagonal entry.
    pub initial: f64,
    /// Factor from one amount to the next; above 1.
    pub growth: f64,
    /// Largest relative amount; the attempt after it is an error.
    pub largest: f64,
}

impl Default for JitterPolicy {
    /// `1e-10`, growing tenfold up to `1e-4`.
    fn default() -> Self {
        Self { initial: 1e-10, growth: 10.0, largest: 1e-4 }
    }
}

impl JitterPolicy {
    /// Nothing is ever added: the first failure is the error.
    pub const NONE: Self = Self { initial: f64::INFINITY, growth: 2.0, largest: 0.0 };

    /// The relative amounts in the order they are tried, the first being zero.
    pub(super) fn amounts(self) -> impl Iterator<Item = f64> {
        let growing = std::iter::successors(Some(self.initial), move |a| Some(a * self.growth))
            .take_while(move |&a| a <= self.largest * (1.0 + 1e-12));
        std::iter::once(0.0).chain(growing)
    }
}

/// What happened inside a successful factorisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CholeskyInfo {
    /// What was added to every diagonal entry, in the units of the matrix; 0 when nothing was needed.
    pub jitter: f64,
    /// Factorisations tried, the successful one included.
    pub attempts: usize,
}

/// Why a matrix could not be factored.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CholeskyError {
    /// The matrix is not positive definite, and no permitted amount of jitter made it so.
    #[error(
        "the {dimension} x {dimension} matrix is not positive definite: the pivot of row {pivot} is not positive even \
         with {jitter:.1e} added to the diagonal ({attempts} attempts). Likely causes: duplicate or nearly \
         duplicate rows with too little noise, or a lengthscale far larger than the data. Raise the noise, or remove duplicates"
    )]
    NotPositiveDefinite {
        /// Rows of the matrix.
        dimension: usize,
        /// First row whose pivot failed in the last attempt, counted from 0.
        pivot: usize,
        /// Largest amount that was added, in the units of the matrix.
        jitter: f64,
        /// Factorisations tried.
        attempts: usize,
    },
    /// An entry of the matrix is NaN or infinite, so no jitter can help.
    #[error(
        "the {dimension} x {dimension} matrix has a diagonal entry that is {value} at row {row}: check the data and the parameters for non-finite values"
    )]
    NotFinite {
        /// Rows of the matrix.
        dimension: usize,
        /// Row of the entry, counted from 0.
        row: usize,
        /// The entry.
        value: f64,
    },
    /// The new rows make the extended matrix indefinite.
    #[error(
        "appending {added} rows makes the matrix indefinite (pivot {pivot} of the new block): a new row repeats an old one without noise"
    )]
    AppendNotPositiveDefinite {
        /// Rows that were to be appended.
        added: usize,
        /// Failing pivot within them, counted from 0.
        pivot: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_grow_to_the_largest_and_stop() {
        let amounts: Vec<f64> = JitterPolicy::default().amounts().collect();
        assert_eq!(amounts.len(), 8);
        assert_eq!(amounts[0], 0.0);
        assert!((amounts[7] - 1e-4).abs() < 1e-15);
        assert_eq!(JitterPolicy::NONE.amounts().count(), 1);
    }
}
