//! Solves with the factor: `A⁻¹B`, `L⁻¹B`, `L⁻ᵀB`, the product `LB`, and the log-determinant.

use super::Cholesky;
use crate::dense::{parallelism, solve_lower, solve_upper};
use crate::parallel;
use crate::tiles::pieces;
use crate::vectorised::ln;
use faer::linalg::matmul::matmul as matmul_all;
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::prelude::ReborrowMut;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use std::ops::Range;

impl Cholesky {
    /// `B <- A⁻¹ B` for `B` of n x k. Cost `2n²k` flops, no allocation.
    pub fn solve_in_place(&self, mut right: MatMut<'_, f64>) {
        self.solve_factor_in_place(right.rb_mut());
        self.solve_factor_transpose_in_place(right);
    }

    /// `A⁻¹ B` for `B` of n x k.
    pub fn solve(&self, right: MatRef<'_, f64>) -> Mat<f64> {
        let mut out = right.to_owned();
        self.solve_in_place(out.as_mut());
        out
    }

    /// `B <- L⁻¹ B`: whitening. Column norms of the result are the quadratic forms `bᵀA⁻¹b`. Cost `n²k` flops.
    pub fn solve_factor_in_place(&self, right: MatMut<'_, f64>) {
        if !Blocks::pay(self.dimension(), right.ncols()) {
            return solve_lower(self.factor.as_ref(), right);
        }
        let blocks = Blocks::new(self.factor.as_ref());
        parallel::column_chunks(right, WIDTH, |_, piece| blocks.forwards(piece));
    }

    /// `B <- L⁻ᵀ B`. Cost `n²k` flops.
    pub fn solve_factor_transpose_in_place(&self, right: MatMut<'_, f64>) {
        if !Blocks::pay(self.dimension(), right.ncols()) {
            return solve_upper(self.factor.transpose(), right);
        }
        let blocks = Blocks::new(self.factor.as_ref());
        parallel::column_chunks(right, WIDTH, |_, piece| blocks.backwards(piece));
    }

    /// `L B` for `B` of n x k: turns white noise into draws with covariance `A`. Cost `n²k` flops.
    pub fn multiply_factor(&self, right: MatRef<'_, f64>) -> Mat<f64> {
        let mut out = Mat::zeros(self.dimension(), right.ncols());
        matmul(
            out.as_mut(),
            BlockStructure::Rectangular,
            Accum::Replace,
            self.factor.as_ref(),
            BlockStructure::TriangularLower,
            right,
            BlockStructure::Rectangular,
            1.0,
            parallelism(self.dimension(), right.ncols()),
        );
        out
    }

    /// `log det A = 2 Σ log Lᵢᵢ`.
    pub fn log_determinant(&self) -> f64 {
        let diagonal: Vec<f64> = self.factor.diagonal().column_vector().iter().copied().collect();
        let mut logarithms = vec![0.0; diagonal.len()];
        ln(&diagonal, &mut logarithms);
        2.0 * logarithms.iter().sum::<f64>()
    }
}

/// Columns of a solve that one thread takes. The cut does not depend on the number of threads.
const WIDTH: usize = 256;

/// Rows of a block on the diagonal.
const BLOCK: usize = 32;

/// A triangular solve by blocks of rows for many right-hand sides. Everything beside the diagonal is a matrix product, and so are the blocks on the diagonal, with
/// their small inverses. At n = 512 with 1,024 columns this takes four fifths of the time of the recursive solve, whose threads have to wait for one
/// another at every level. Inverses of blocks of 32 lose no more digits than substitution does unless such a block alone is
/// ill-conditioned (Higham 2002, section 14.2.2).
struct Blocks<'a> {
    factor: MatRef<'a, f64>,
    /// The inverses of the blocks, one below the other.
    inverses: Mat<f64>,
}

impl<'a> Blocks<'a> {
    /// Whether there are enough rows and columns.
    fn pay(dimension: usize, columns: usize) -> bool {
        dimension >= 192 && columns >= WIDTH
    }

    fn new(factor: MatRef<'a, f64>) -> Self {
        let mut inverses = Mat::zeros(factor.nrows(), BLOCK.min(factor.nrows()));
        for rows in pieces(factor.nrows(), BLOCK) {
            let (k, length) = (rows.start, rows.len());
            let block = factor.submatrix(k, k, length, length);
            invert_lower_triangular(inverses.as_mut().submatrix_mut(k, 0, length, length), block, Par::Seq);
        }
        Self { factor, inverses }
    }

    fn inverse(&self, rows: &Range<usize>) -> MatRef<'_, f64> {
        self.inverses.as_ref().submatrix(rows.start, 0, rows.len(), rows.len())
    }

    /// `x <- L⁻¹ x`
    fn forwards(&self, mut x: MatMut<'_, f64>) {
        let mut room = Mat::zeros(BLOCK, x.ncols());
        for rows in pieces(self.factor.nrows(), BLOCK) {
            let (done, rest) = x.rb_mut().split_at_row_mut(rows.start);
            let beside = self.factor.submatrix(rows.start, 0, rows.len(), rows.start);
            step(rest.subrows_mut(0, rows.len()), beside, done.as_ref(), self.inverse(&rows), &mut room);
        }
    }

    /// `x <- L⁻ᵀ x`
    fn backwards(&self, mut x: MatMut<'_, f64>) {
        let n = self.factor.nrows();
        let mut room = Mat::zeros(BLOCK, x.ncols());
        for rows in pieces(n, BLOCK).rev() {
            let (rest, done) = x.rb_mut().split_at_row_mut(rows.end);
            let below = self.factor.submatrix(rows.end, rows.start, n - rows.end, rows.len());
            let rest = rest.subrows_mut(rows.start, rows.len());
            step(rest, below.transpose(), done.as_ref(), self.inverse(&rows).transpose(), &mut room);
        }
    }
}

/// `x <- inverse (x - beside done)`
fn step(
    mut x: MatMut<'_, f64>,
    beside: MatRef<'_, f64>,
    done: MatRef<'_, f64>,
    inverse: MatRef<'_, f64>,
    room: &mut Mat<f64>,
) {
    matmul_all(x.rb_mut(), Accum::Add, beside, done, -1.0, Par::Seq);
    let mut solved = room.as_mut().subrows_mut(0, x.nrows());
    matmul_all(solved.rb_mut(), Accum::Replace, inverse, x.as_ref(), 1.0, Par::Seq);
    x.copy_from(solved);
}

#[cfg(test)]
mod tests {
    use super::super::factor::tests::{largest_difference, lower, random_positive_definite};
    use super::super::{Cholesky, JitterPolicy};
    use faer::Mat;

    #[test]
    fn many_right_hand_sides_are_solved_as_few_are() {
        for n in [192, 215, 384] {
            let a = random_positive_definite(n, 5);
            let factored = Cholesky::of(a.as_ref(), JitterPolicy::NONE).unwrap();
            let b = Mat::<f64>::from_fn(n, 300, |i, j| ((i * 7 + j * 3) as f64).sin());
            let together = factored.solve(b.as_ref());
            for j in [0, 127, 128, 255, 256, 299] {
                let alone = factored.solve(b.get(.., j..j + 1));
                let scale = alone.norm_max();
                assert!(largest_difference(alone.as_ref(), together.get(.., j..j + 1)) < 1e-12 * scale);
            }
        }
    }

    /// Residuals of a badly conditioned system are as small as those of substitution.
    #[test]
    fn blocks_are_as_stable_as_substitution() {
        let n = 256;
        let a = Mat::<f64>::from_fn(n, n, |i, j| {
            let distance = 0.02 * i.abs_diff(j) as f64;
            (-distance * distance).exp() + if i == j { 1e-10 } else { 0.0 }
        });
        let factored = Cholesky::of(a.as_ref(), JitterPolicy::NONE).unwrap();
        let l = lower(factored.factor());
        let b = Mat::<f64>::from_fn(n, 256, |i, j| ((i * 5 + j * j) as f64).cos());
        let (mut many, mut few) = (b.clone(), b.clone());
        factored.solve_factor_in_place(many.as_mut());
        for j in 0..256 {
            factored.solve_factor_in_place(few.get_mut(.., j..j + 1));
        }
        let residual = |x: &Mat<f64>| (&l * x - &b).norm_max() / (l.norm_max() * x.norm_max());
        let (many, few) = (residual(&many), residual(&few));
        assert!(many < 10.0 * few.max(f64::EPSILON), "{many:.1e} {few:.1e}");
    }

    #[test]
    fn solves_invert_the_products() {
        for n in [1, 5, 250] {
            let a = random_positive_definite(n, 3);
            let factored = Cholesky::of(a.as_ref(), JitterPolicy::NONE).unwrap();
            let x = Mat::<f64>::from_fn(n, 3, |i, j| ((i * 3 + j) as f64).sin());
            let tolerance = 1e-10;
            assert!(largest_difference(factored.solve((&a * &x).as_ref()).as_ref(), x.as_ref()) < tolerance);
            let l = lower(factored.factor());
            assert!(
                largest_difference(factored.multiply_factor(x.as_ref()).as_ref(), (&l * &x).as_ref())
                    < tolerance
            );
            let mut y = &l * &x;
            factored.solve_factor_in_place(y.as_mut());
            assert!(largest_difference(y.as_ref(), x.as_ref()) < tolerance);
            let mut y = l.transpose() * &x;
            factored.solve_factor_transpose_in_place(y.as_mut());
            assert!(largest_difference(y.as_ref(), x.as_ref()) < tolerance);
        }
    }

    #[test]
    fn the_log_determinant_is_the_sum_of_log_eigenvalues() {
        let a = random_positive_definite(40, 4);
        let eigenvalues = a.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
        let expected: f64 = eigenvalues.iter().map(|e| e.ln()).sum();
        let factored = Cholesky::of(a.as_ref(), JitterPolicy::NONE).unwrap();
        assert!((factored.log_determinant() - expected).abs() < 1e-10 * expected.abs());
    }
}
