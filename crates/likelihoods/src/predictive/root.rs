//! A matrix `L` with `L Lᵀ = V` for a covariance that may be singular, as one of a rank below C is.

use super::Clipping;
use crate::LikelihoodError;
use faer::Mat;
use posterior_linalg::cholesky::{Cholesky, CholeskyError, JitterPolicy};
use posterior_linalg::dense::{Eigen, eigen};

/// Replaces `root` (whose memory is reused) by `L` of the covariance `entries` (n x n, row-major, finite, its lower triangle is read):
/// the Cholesky factor where there is one (`n³/3` flops), else the symmetric root `U max(Λ, 0)^½ Uᵀ` (about `20 n³`). Jitter would
/// add variance that the model does not have.
///
/// # Errors
/// When an eigenvalue is more negative than rounding explains.
pub(crate) fn root(entries: &[f64], n: usize, root: &mut Mat<f64>) -> Result<Clipping, LikelihoodError> {
    let mut buffer = std::mem::replace(root, Mat::new());
    if buffer.nrows() != n || buffer.ncols() != n {
        buffer = Mat::zeros(n, n);
    }
    let factored = Cholesky::factor_with(buffer, JitterPolicy::NONE, |mut out| {
        for j in 0..n {
            for i in j..n {
                out[(i, j)] = entries[i * n + j];
            }
        }
    });
    match factored {
        Ok(factor) => {
            *root = factor.into_buffer();
            for j in 0..n {
                for i in 0..j {
                    root[(i, j)] = 0.0;
                }
            }
            Ok(Clipping::default())
        }
        Err(CholeskyError::NotPositiveDefinite { .. }) => symmetric_root(entries, n, root),
        Err(other) => Err(other.into()),
    }
}

fn symmetric_root(entries: &[f64], n: usize, root: &mut Mat<f64>) -> Result<Clipping, LikelihoodError> {
    let matrix = Mat::from_fn(n, n, |i, j| entries[i.max(j) * n + i.min(j)]);
    let Eigen { values, vectors } =
        eigen(matrix.as_ref()).map_err(|_| LikelihoodError::Eigenvalues { outputs: n })?;
    let (mut clipping, mut largest) = (Clipping::default(), 0.0f64);
    let mut scaled = vectors.clone();
    for (j, &value) in values.iter().enumerate() {
        clipping.record(value);
        largest = largest.max(value);
        let factor = value.max(0.0).sqrt();
        for i in 0..n {
            scaled[(i, j)] *= factor;
        }
    }
    *root = &scaled * vectors.transpose();
    clipping.checked(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(root: &Mat<f64>) -> Vec<f64> {
        let n = root.nrows();
        let square = root * root.transpose();
        (0..n * n).map(|k| square[(k / n, k % n)]).collect()
    }

    #[test]
    fn the_root_of_definite_singular_and_zero_covariances() {
        let definite = [2.0, 0.5, -0.3, 0.5, 1.0, 0.2, -0.3, 0.2, 0.7];
        let a = [1.0, -2.0, 0.5];
        let rank_one: Vec<f64> = (0..9).map(|k| a[k / 3] * a[k % 3]).collect();
        let mut buffer = Mat::new();
        for covariance in [&definite[..], &rank_one, &[0.0; 9]] {
            let clipping = root(covariance, 3, &mut buffer).unwrap();
            assert!(clipping.least > -1e-14);
            posterior_optim::check::assert_close(&product(&buffer), covariance, 1e-13, 1e-14);
        }
    }

    #[test]
    fn small_negative_eigenvalues_are_reported_and_large_ones_refused() {
        let mut buffer = Mat::new();
        // Eigenvalues 2 + 1e-6 and -1e-6.
        let slightly = [1.0, 1.0 + 1e-6, 1.0 + 1e-6, 1.0];
        let clipping = root(&slightly, 2, &mut buffer).unwrap();
        assert_eq!(clipping.count, 1);
        assert!((clipping.least + 1e-6).abs() < 1e-12);
        // What is left is the part of the other eigenvalue.
        let kept = 1.0 + 0.5e-6;
        posterior_optim::check::assert_close(&product(&buffer), &[kept; 4], 1e-13, 0.0);
        let clearly = [1.0, 1.5, 1.5, 1.0];
        assert!(matches!(
            root(&clearly, 2, &mut buffer),
            Err(LikelihoodError::NotPositiveSemidefinite { least, .. }) if (least + 0.5).abs() < 1e-12
        ));
    }
}
