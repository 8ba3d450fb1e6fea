//! `L -> A⁻¹ = L⁻ᵀ L⁻¹` without a second matrix.
//!
//! Differs from the textbook routine (invert the triangle into a copy, multiply into a third matrix) in two ways:
//! 1. both steps are recursive on 2 x 2 blocks and work in place, because evidence gradients of large problems
//!    are limited by memory: 8n² bytes in place of 24n²;
//! 2. below [`LEAF`] rows the block is copied to a small square and inverted there, out of cache-cold memory.
//!
//! Nearly all flops run in matrix products and triangular solves with many columns, at their speed.

use super::Cholesky;
use crate::dense::{parallelism, solve_lower};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::prelude::ReborrowMut;
use faer::{Accum, Mat, MatMut, MatRef, Par};

/// Rows at which the recursion ends: a 192 x 192 block (288 KiB) stays in the second-level cache.
const LEAF: usize = 192;

impl Cholesky {
    /// The **inverse** `A⁻¹` in the memory of the factor; only the lower triangle of the result is meaningful.
    ///
    /// Cost `2n³/3` flops and O(192 n) extra memory.
    pub fn into_inverse(self) -> Mat<f64> {
        let mut matrix = self.factor;
        invert_factor(matrix.as_mut());
        square_factor(matrix.as_mut());
        matrix
    }

    /// The diagonal of `A⁻¹` (n), for leave-one-out predictions, when the rest is not wanted.
    ///
    /// The inverse's diagonal is the squared column norms of `L⁻¹`: `n³/3` flops in blocks of columns, O(192 n) memory.
    pub fn inverse_diagonal(&self) -> Vec<f64> {
        let n = self.dimension();
        let mut diagonal = Vec::with_capacity(n);
        for start in (0..n).step_by(LEAF) {
            let width = LEAF.min(n - start);
            // Columns start.. of the identity are zero above `start`, and so is their solution.
            let mut block = Mat::<f64>::from_fn(n - start, width, |i, j| if i == j { 1.0 } else { 0.0 });
            let trailing = self.factor.as_ref().submatrix(start, start, n - start, n - start);
            solve_lower(trailing, block.as_mut());
            diagonal.extend((0..width).map(|j| block.col(j).squared_norm_l2()));
        }
        diagonal
    }
}

/// `L <- L⁻¹`, lower triangle in place.
fn invert_factor(matrix: MatMut<'_, f64>) {
    let n = matrix.nrows();
    if n <= LEAF {
        let copy = lower_copy(matrix.as_ref());
        invert_lower_triangular(matrix, copy.as_ref(), Par::Seq);
        return;
    }
    let half = n / 2;
    let (top, _, mut low, bottom) = matrix.split_at_mut(half, half);
    // The lower left block of the inverse is -L22⁻¹ L21 L11⁻¹.
    let par = parallelism(n, half);
    solve_lower_triangular_in_place(bottom.as_ref(), low.rb_mut(), par);
    solve_upper_triangular_in_place(top.as_ref().transpose(), low.rb_mut().transpose_mut(), par);
    low *= faer::Scale(-1.0);
    invert_factor(top);
    invert_factor(bottom);
}

/// `M <- MᵀM` for lower-triangular `M`, lower triangle in place.
fn square_factor(matrix: MatMut<'_, f64>) {
    use BlockStructure::{Rectangular, TriangularLower, TriangularUpper};
    let n = matrix.nrows();
    if n <= LEAF {
        let copy = lower_copy(matrix.as_ref());
        let m = copy.as_ref();
        matmul(
            matrix,
            TriangularLower,
            Accum::Replace,
            m.transpose(),
            TriangularUpper,
            m,
            TriangularLower,
            1.0,
            Par::Seq,
        );
        return;
    }
    let half = n / 2;
    let (mut top, _, mut low, bottom) = matrix.split_at_mut(half, half);
    square_factor(top.rb_mut());
    matmul(
        top,
        TriangularLower,
        Accum::Add,
        low.as_ref().transpose(),
        Rectangular,
        low.as_ref(),
        Rectangular,
        1.0,
        parallelism(n, n),
    );
    // M21 <- M22ᵀ M21 in panels of columns, each copied first because a product cannot overwrite its input.
    for start in (0..low.ncols()).step_by(LEAF) {
        let width = LEAF.min(low.ncols() - start);
        let panel = low.rb_mut().subcols_mut(start, width);
        let copy = panel.to_owned();
        let m22 = bottom.as_ref().transpose();
        matmul(
            panel,
            Rectangular,
            Accum::Replace,
            m22,
            TriangularUpper,
            copy.as_ref(),
            Rectangular,
            1.0,
            parallelism(n, width),
        );
    }
    square_factor(bottom);
}

/// A small square copy of the lower triangle with zeros above it.
fn lower_copy(matrix: MatRef<'_, f64>) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| if i >= j { matrix[(i, j)] } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::super::factor::tests::{largest_difference, random_positive_definite};
    use super::super::{Cholesky, JitterPolicy};
    use super::*;

    #[test]
    fn the_inverse_in_place_is_the_inverse() {
        // Sizes around the leaf: not reached, exactly, one recursion with odd halves, two recursions.
        for n in [1, 2, 9, LEAF, LEAF + 1, 2 * LEAF + 3, 4 * LEAF + 5] {
            let a = random_positive_definite(n, 5);
            let factored = Cholesky::of(a.as_ref(), JitterPolicy::NONE).unwrap();
            let diagonal = factored.inverse_diagonal();
            let lower = factored.into_inverse();
            let inverse =
                Mat::<f64>::from_fn(n, n, |i, j| if i >= j { lower[(i, j)] } else { lower[(j, i)] });
            assert!(
                largest_difference((&a * &inverse).as_ref(), Mat::<f64>::identity(n, n).as_ref()) < 1e-10,
                "n = {n}"
            );
            for i in 0..n {
                assert!((diagonal[i] - inverse[(i, i)]).abs() < 1e-12 * inverse[(i, i)]);
            }
        }
    }
}
