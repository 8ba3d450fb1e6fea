//! **Decompositions of matrices that are not symmetric**: singular values, and eigenvalues with vectors from both sides, with bits that do not depend on the number of threads.
//!
//! `faer` cuts the sums of both reductions (to two diagonals, to almost a triangle) by threads, so they run as for four threads, whatever there are.

use super::PARTS;
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, evd_real, evd_scratch};
use faer::linalg::solvers::EvdError;
use faer::linalg::svd::{ComputeSvdVectors, SvdError, svd as decompose, svd_scratch};
use faer::{Mat, MatRef, Par};

/// `A = U diag(values) Vᵀ`.
#[derive(Clone, Debug)]
pub struct SingularValues {
    /// Left singular vectors, one a column (m x min(m, n)), orthonormal.
    pub left: Mat<f64>,
    /// The singular values, descending (min(m, n)).
    pub values: Vec<f64>,
    /// Right singular vectors, one a column (n x min(m, n)), orthonormal.
    pub right: Mat<f64>,
}

/// The thin singular value decomposition of an m x n matrix. Cost about `20n³` flops for square ones, half of them limited by memory.
///
/// # Errors
/// When the iteration does not converge: an entry is not finite.
pub fn svd(matrix: MatRef<'_, f64>) -> Result<SingularValues, SvdError> {
    let ((rows, columns), par) = (matrix.shape(), Par::rayon(PARTS));
    let size = rows.min(columns);
    let (mut left, mut right) = (Mat::zeros(rows, size), Mat::zeros(columns, size));
    let mut values = vec![0.0; size];
    if size > 0 {
        let thin = ComputeSvdVectors::Thin;
        let scratch = svd_scratch::<f64>(rows, columns, thin, thin, par, Default::default());
        let mut memory = MemBuffer::new(scratch);
        decompose(
            matrix,
            DiagMut::from_slice_mut(&mut values),
            Some(left.as_mut()),
            Some(right.as_mut()),
            par,
            MemStack::new(&mut memory),
            Default::default(),
        )?;
    }
    Ok(SingularValues { left, values, right })
}

/// Eigenvalues of a real matrix with eigenvectors from both sides: `A v = λ v` and `wᴴ A = λ wᴴ`.
///
/// Complex eigenvalues come in pairs next to one another, of which the first has the positive imaginary part; columns j and j + 1 of the vectors are then real and imaginary part of the
/// vector of the first, and the second has its conjugate. The scale of vectors is arbitrary.
#[derive(Clone, Debug)]
pub struct UnsymmetricEigen {
    /// Real parts (n).
    pub real: Vec<f64>,
    /// Imaginary parts (n), 0 where an eigenvalue is real.
    pub imaginary: Vec<f64>,
    /// The vectors w (n x n).
    pub left: Mat<f64>,
    /// The vectors v (n x n).
    pub right: Mat<f64>,
}

/// The eigendecomposition of a matrix that need not be symmetric (n x n). Cost about `30n³` flops, more than half of them limited by memory.
///
/// # Errors
/// When the iteration does not converge: an entry is not finite.
///
/// # Panics
/// When the matrix is not square.
pub fn eigen_unsymmetric(matrix: MatRef<'_, f64>) -> Result<UnsymmetricEigen, EvdError> {
    let (n, par) = (matrix.nrows(), Par::rayon(PARTS));
    assert_eq!(n, matrix.ncols(), "only a square matrix has eigenvalues");
    let (mut left, mut right) = (Mat::zeros(n, n), Mat::zeros(n, n));
    let (mut real, mut imaginary) = (vec![0.0; n], vec![0.0; n]);
    if n > 0 {
        let yes = ComputeEigenvectors::Yes;
        let mut memory = MemBuffer::new(evd_scratch::<f64>(n, yes, yes, par, Default::default()));
        evd_real(
            matrix,
            DiagMut::from_slice_mut(&mut real),
            DiagMut::from_slice_mut(&mut imaginary),
            Some(left.as_mut()),
            Some(right.as_mut()),
            par,
            MemStack::new(&mut memory),
            Default::default(),
        )?;
    }
    Ok(UnsymmetricEigen { real, imaginary, left, right })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{close, normal, on_any_threads, plain};
    use super::*;

    #[test]
    fn singular_values_are_right_on_any_number_of_threads() {
        for (rows, columns) in [(0, 3), (1, 1), (5, 5), (40, 3), (3, 7), (100, 100), (250, 250), (300, 170)] {
            let matrix = normal(rows, columns);
            let size = rows.min(columns);
            let name = format!("the singular values of {rows} x {columns}");
            let left = on_any_threads(&name, || svd(matrix.as_ref()).unwrap().left);
            let right = on_any_threads(&name, || svd(matrix.as_ref()).unwrap().right);
            let values = on_any_threads(&name, || {
                let values = svd(matrix.as_ref()).unwrap().values;
                Mat::from_fn(size, 1, |i, _| values[i])
            });
            assert!((1..size).all(|i| values[(i, 0)] <= values[(i - 1, 0)] && values[(i, 0)] >= 0.0));
            close(&name, &plain(left.transpose(), left.as_ref()), &Mat::identity(size, size), 1e-12);
            close(&name, &plain(right.transpose(), right.as_ref()), &Mat::identity(size, size), 1e-12);
            let scaled = Mat::from_fn(rows, size, |i, j| left[(i, j)] * values[(j, 0)]);
            close(&name, &plain(scaled.as_ref(), right.transpose()), &matrix, 1e-12);
        }
        assert!(svd(Mat::from_fn(3, 3, |_, _| f64::NAN).as_ref()).is_err());
    }

    /// `A v - λ v` in real numbers: with `v = a + ib` and `λ = r + is`, `A a - (r a - s b)` and `A b - (s a + r b)`.
    fn residual(
        matrix: MatRef<'_, f64>,
        (real, imaginary): (&[f64], &[f64]),
        vectors: &Mat<f64>,
    ) -> Mat<f64> {
        let n = matrix.nrows();
        let mut expected = Mat::zeros(n, n);
        for j in 0..n {
            for i in 0..n {
                expected[(i, j)] = match imaginary[j] {
                    0.0 => real[j] * vectors[(i, j)],
                    s if s > 0.0 => real[j] * vectors[(i, j)] - s * vectors[(i, j + 1)],
                    // The second of a pair holds the imaginary part of the first.
                    s => -s * vectors[(i, j - 1)] + real[j] * vectors[(i, j)],
                };
            }
        }
        plain(matrix, vectors.as_ref()) - expected
    }

    #[test]
    fn eigenvalues_of_any_matrix_are_right_on_any_number_of_threads() {
        for n in [0, 1, 2, 3, 7, 30, 100, 180] {
            let matrix = normal(n, n);
            let name = format!("the eigenvalues of {n} rows");
            let left = on_any_threads(&name, || eigen_unsymmetric(matrix.as_ref()).unwrap().left);
            let right = on_any_threads(&name, || eigen_unsymmetric(matrix.as_ref()).unwrap().right);
            let found = eigen_unsymmetric(matrix.as_ref()).unwrap();
            assert!((0..n).all(|j| found.imaginary[j] <= 0.0
                || (found.imaginary[j + 1], found.real[j + 1]) == (-found.imaginary[j], found.real[j])));
            let size = matrix.norm_l2();
            let right = residual(matrix.as_ref(), (&found.real, &found.imaginary), &right).norm_max();
            assert!(right <= 1e-13 * size, "{name}, from the right: {right:e}");
            // wᴴ A = λ wᴴ says that Aᵀ has the conjugate of w to the same λ.
            let conjugate =
                Mat::from_fn(n, n, |i, j| left[(i, j)] * if found.imaginary[j] < 0.0 { -1.0 } else { 1.0 });
            let left = residual(matrix.transpose(), (&found.real, &found.imaginary), &conjugate).norm_max();
            assert!(left <= 1e-13 * size, "{name}, from the left: {left:e}");
        }
        // A rotation by 90° about an axis: ±i and 1.
        let turn = faer::mat![[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
        let found = eigen_unsymmetric(turn.as_ref()).unwrap();
        let mut sorted: Vec<(f64, f64)> = found.real.into_iter().zip(found.imaginary).collect();
        sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
        for (found, expected) in sorted.iter().zip([(0.0, -1.0), (1.0, 0.0), (0.0, 1.0)]) {
            assert!((found.0 - expected.0).abs() < 1e-15 && (found.1 - expected.1).abs() < 1e-15);
        }
        assert!(eigen_unsymmetric(Mat::from_fn(3, 3, |_, _| f64::NAN).as_ref()).is_err());
    }
}
