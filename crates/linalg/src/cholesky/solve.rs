//! Solves with the factor: `A⁻¹B`, `L⁻¹B`, `L⁻ᵀB`, the product `LB`, and the log-determinant.

use super::{Cholesky, parallelism};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::prelude::ReborrowMut;
use faer::{Accum, Mat, MatMut, MatRef};

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
        solve_lower_triangular_in_place(self.factor.as_ref(), right, parallelism(self.dimension()));
    }

    /// `B <- L⁻ᵀ B`. Cost `n²k` flops.
    pub fn solve_factor_transpose_in_place(&self, right: MatMut<'_, f64>) {
        solve_upper_triangular_in_place(self.factor.transpose(), right, parallelism(self.dimension()));
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
            parallelism(self.dimension()),
        );
        out
    }

    /// `log det A = 2 Σ log Lᵢᵢ`.
    pub fn log_determinant(&self) -> f64 {
        2.0 * (0..self.dimension()).map(|i| self.factor[(i, i)].ln()).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::factor::tests::{largest_difference, lower, random_positive_definite};
    use super::super::{Cholesky, JitterPolicy};
    use faer::Mat;

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
