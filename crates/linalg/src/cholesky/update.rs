//! Changing the matrix without refactoring it: appended rows, deleted rows, rank-one terms.

use super::{Cholesky, CholeskyError, CholeskyInfo, JitterPolicy};
use crate::dense::{parallelism, solve_lower};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, Mat, MatRef};

impl Cholesky {
    /// Extends `A` to `[[A, Cᵀ], [C, D]]` with `C` of k x n (`cross`) and `D` of k x k (`corner`, lower triangle read).
    ///
    /// The new rows of the factor are `C L⁻ᵀ` and the factor of the Schur complement `D - C A⁻¹ Cᵀ`.
    /// Cost `n²k + nk² + k³/3` flops plus one copy of the factor into a larger buffer. The jitter that the old rows
    /// received is added to the new ones too, so that the matrix remains of one kind. On error nothing has changed.
    ///
    /// # Errors
    /// [`CholeskyError::AppendNotPositiveDefinite`] when the Schur complement is not positive definite.
    ///
    /// # Panics
    /// When the shapes do not fit together.
    pub fn append(&mut self, cross: MatRef<'_, f64>, corner: MatRef<'_, f64>) -> Result<(), CholeskyError> {
        let (n, k) = (self.dimension(), corner.nrows());
        assert_eq!((cross.nrows(), cross.ncols()), (k, n), "the cross block of {k} new rows is {k} x {n}");
        assert_eq!(corner.ncols(), k, "the corner block is square");
        let mut rows = cross.to_owned();
        solve_lower(self.factor.as_ref(), rows.as_mut().transpose_mut());
        let mut schur = corner.to_owned();
        for i in 0..k {
            schur[(i, i)] += self.info.jitter;
        }
        let lower = BlockStructure::TriangularLower;
        let full = BlockStructure::Rectangular;
        matmul(
            schur.as_mut(),
            lower,
            Accum::Add,
            rows.as_ref(),
            full,
            rows.transpose(),
            full,
            -1.0,
            parallelism(k, k),
        );
        let small = Cholesky::of(schur.as_ref(), JitterPolicy::NONE).map_err(|error| {
            let pivot = match error {
                CholeskyError::NotPositiveDefinite { pivot, .. } => pivot,
                CholeskyError::NotFinite { row, .. } => row,
                CholeskyError::AppendNotPositiveDefinite { pivot, .. } => pivot,
            };
            CholeskyError::AppendNotPositiveDefinite { added: k, pivot }
        })?;
        let mut grown = Mat::zeros(n + k, n + k);
        grown.as_mut().submatrix_mut(0, 0, n, n).copy_from(self.factor.as_ref());
        grown.as_mut().submatrix_mut(n, 0, k, n).copy_from(rows.as_ref());
        grown.as_mut().submatrix_mut(n, n, k, k).copy_from(small.factor());
        self.factor = grown;
        Ok(())
    }

    /// Deletes row and column `index` of `A`.
    ///
    /// The rows below lose one column of the factor, which returns as a rank-one update of the
    /// trailing block. Cost `2(n - index)²` flops plus one copy of the factor.
    ///
    /// # Panics
    /// When `index` is not a row.
    pub fn remove(&mut self, index: usize) {
        let n = self.dimension();
        assert!(index < n, "row {index} of a matrix with {n} rows");
        let mut lost: Vec<f64> = (index + 1..n).map(|i| self.factor[(i, index)]).collect();
        let skip = |i: usize| if i < index { i } else { i + 1 };
        let mut shrunk =
            Mat::from_fn(n - 1, n - 1, |i, j| if i >= j { self.factor[(skip(i), skip(j))] } else { 0.0 });
        add_rank_one(&mut shrunk, index, &mut lost);
        self.factor = shrunk;
    }

    /// `A <- A + v vᵀ` for `v` of length n. Cost `2n²` flops, in place.
    ///
    /// # Panics
    /// When `v` has another length.
    pub fn add_rank_one(&mut self, v: &[f64]) {
        assert_eq!(v.len(), self.dimension(), "a rank-one term has one entry a row");
        add_rank_one(&mut self.factor, 0, &mut v.to_vec());
    }

    /// A factor of the empty matrix, to start appending from.
    pub fn empty() -> Self {
        Self { factor: Mat::zeros(0, 0), info: CholeskyInfo { jitter: 0.0, attempts: 1 } }
    }
}

/// Rank-one update of the trailing block of `factor` from row `first` by Givens rotations; `v` is used up.
fn add_rank_one(factor: &mut Mat<f64>, first: usize, v: &mut [f64]) {
    for step in 0..v.len() {
        let j = first + step;
        let (diagonal, entry) = (factor[(j, j)], v[step]);
        let radius = diagonal.hypot(entry);
        let (cosine, sine) = (diagonal / radius, entry / radius);
        factor[(j, j)] = radius;
        let column = factor.as_mut().col_mut(j);
        let column = column.try_as_col_major_mut().expect("an owned matrix is column-major").as_slice_mut();
        for (l, w) in column[j + 1..].iter_mut().zip(&mut v[step + 1..]) {
            (*l, *w) = (cosine * *l + sine * *w, cosine * *w - sine * *l);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::factor::tests::{largest_difference, lower, random_positive_definite};
    use super::*;

    fn assert_factors(updated: &Cholesky, expected: &Mat<f64>) {
        let l = lower(updated.factor());
        let error = largest_difference((&l * l.transpose()).as_ref(), expected.as_ref());
        assert!(error < 1e-11 * expected.norm_max(), "error {error}");
    }

    #[test]
    fn appending_equals_factoring_the_whole() {
        let a = random_positive_definite(30, 7);
        for k in [1, 4] {
            let n = 30 - k;
            let mut factored = Cholesky::of(a.as_ref().submatrix(0, 0, n, n), JitterPolicy::NONE).unwrap();
            factored.append(a.as_ref().submatrix(n, 0, k, n), a.as_ref().submatrix(n, n, k, k)).unwrap();
            assert_factors(&factored, &a);
        }
        let mut from_nothing = Cholesky::empty();
        from_nothing.append(Mat::zeros(30, 0).as_ref(), a.as_ref()).unwrap();
        assert_factors(&from_nothing, &a);
    }

    #[test]
    fn a_failed_append_changes_nothing() {
        let a = random_positive_definite(8, 8);
        let mut factored = Cholesky::of(a.as_ref(), JitterPolicy::NONE).unwrap();
        let repeated = a.as_ref().submatrix(2, 0, 1, 8);
        let corner = Mat::from_fn(1, 1, |_, _| a[(2, 2)] - 1.0);
        assert!(matches!(
            factored.append(repeated, corner.as_ref()),
            Err(CholeskyError::AppendNotPositiveDefinite { added: 1, pivot: 0 })
        ));
        assert_factors(&factored, &a);
    }

    #[test]
    fn removing_any_row_equals_factoring_without_it() {
        let a = random_positive_definite(12, 9);
        for index in [0, 5, 11] {
            let mut factored = Cholesky::of(a.as_ref(), JitterPolicy::NONE).unwrap();
            factored.remove(index);
            let keep = |i: usize| if i < index { i } else { i + 1 };
            assert_factors(&factored, &Mat::from_fn(11, 11, |i, j| a[(keep(i), keep(j))]));
        }
    }

    #[test]
    fn a_rank_one_term_is_added() {
        let a = random_positive_definite(15, 10);
        let v: Vec<f64> = (0..15).map(|i| (i as f64).sin()).collect();
        let mut factored = Cholesky::of(a.as_ref(), JitterPolicy::NONE).unwrap();
        factored.add_rank_one(&v);
        assert_factors(&factored, &Mat::from_fn(15, 15, |i, j| a[(i, j)] + v[i] * v[j]));
    }
}
