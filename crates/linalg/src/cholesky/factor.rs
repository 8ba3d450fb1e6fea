//! `A -> L` with `A + jitter I = L Lᵀ`.

use super::{CholeskyError, CholeskyInfo, JitterPolicy};
use crate::dense::parallelism;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::prelude::ReborrowMut;
use faer::{Mat, MatMut, MatRef};

/// A factored symmetric positive-definite matrix.
///
/// Holds one n x n buffer whose lower triangle is `L`; what stands above the diagonal is unspecified.
///
/// ```
/// use faer::mat;
/// use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
/// let a = mat![[4.0, 2.0], [2.0, 3.0]];
/// let factored = Cholesky::of(a.as_ref(), JitterPolicy::default()).unwrap();
/// assert!((factored.log_determinant() - 8f64.ln()).abs() < 1e-14);
/// assert_eq!(factored.info().jitter, 0.0);
/// ```
#[derive(Clone, Debug)]
pub struct Cholesky {
    pub(super) factor: Mat<f64>,
    pub(super) info: CholeskyInfo,
}

impl Cholesky {
    /// Factors a copy of `matrix` (n x n, only the lower triangle is read).
    ///
    /// # Errors
    /// [`CholeskyError`] when the matrix is not positive definite after all permitted jitter, or not finite.
    ///
    /// # Panics
    /// When `matrix` is not square.
    pub fn of(matrix: MatRef<'_, f64>, policy: JitterPolicy) -> Result<Self, CholeskyError> {
        assert_eq!(matrix.nrows(), matrix.ncols(), "only a square matrix has a Cholesky factor");
        Self::factor_with(Mat::zeros(matrix.nrows(), matrix.nrows()), policy, |mut out| {
            for j in 0..matrix.ncols() {
                out.rb_mut()
                    .col_mut(j)
                    .subrows_mut(j, matrix.nrows() - j)
                    .copy_from(matrix.col(j).subrows(j, matrix.nrows() - j));
            }
        })
    }

    /// Factors in place the matrix that `fill` writes into the lower triangle of `buffer`.
    ///
    /// The factorisation destroys the matrix, so `fill` is called again before each attempt with more
    /// jitter; this costs one refill in the rare failure instead of a second n x n buffer always.
    /// The buffer of an earlier factor may be handed back ([`Cholesky::into_buffer`]) to avoid allocation.
    ///
    /// # Errors
    /// As [`Cholesky::of`].
    pub fn factor_with(
        buffer: Mat<f64>,
        policy: JitterPolicy,
        mut fill: impl FnMut(MatMut<'_, f64>),
    ) -> Result<Self, CholeskyError> {
        Self::factored(buffer, policy, &mut fill)
    }

    fn factored(
        mut buffer: Mat<f64>,
        policy: JitterPolicy,
        fill: &mut dyn FnMut(MatMut<'_, f64>),
    ) -> Result<Self, CholeskyError> {
        let dimension = buffer.nrows();
        let par = parallelism(dimension, dimension);
        let mut memory = MemBuffer::new(cholesky_in_place_scratch::<f64>(dimension, par, Default::default()));
        let mut failure = None;
        for (attempt, relative) in policy.amounts().enumerate() {
            fill(buffer.as_mut());
            let mean_diagonal = mean_absolute_diagonal(buffer.as_ref())?;
            let jitter = relative * mean_diagonal;
            if jitter != 0.0 {
                for i in 0..dimension {
                    buffer[(i, i)] += jitter;
                }
            }
            let stack = MemStack::new(&mut memory);
            let info = CholeskyInfo { jitter, attempts: attempt + 1 };
            match cholesky_in_place(buffer.as_mut(), Default::default(), par, stack, Default::default()) {
                // A NaN off the diagonal passes every comparison inside the factorisation but ends on its diagonal.
                Ok(_) if (0..dimension).all(|i| buffer[(i, i)].is_finite()) => {
                    return Ok(Self { factor: buffer, info });
                }
                Ok(_) => {
                    let row = (0..dimension).find(|&i| !buffer[(i, i)].is_finite()).unwrap_or(0);
                    return Err(CholeskyError::NotFinite { dimension, row, value: buffer[(row, row)] });
                }
                Err(LltError::NonPositivePivot { index }) => failure = Some((index, info)),
            }
        }
        let (pivot, info) = failure.unwrap_or_default();
        Err(CholeskyError::NotPositiveDefinite {
            dimension,
            pivot,
            jitter: info.jitter,
            attempts: info.attempts,
        })
    }

    /// Wraps a lower-triangular factor that is already known (from a file, say); nothing is computed.
    ///
    /// # Panics
    /// When `factor` is not square or a diagonal entry is not positive and finite.
    pub fn from_factor(factor: Mat<f64>, info: CholeskyInfo) -> Self {
        assert_eq!(factor.nrows(), factor.ncols(), "a Cholesky factor is square");
        assert!(
            (0..factor.nrows()).all(|i| factor[(i, i)] > 0.0 && factor[(i, i)].is_finite()),
            "the diagonal of a Cholesky factor is positive"
        );
        Self { factor, info }
    }

    /// Rows of the matrix.
    pub fn dimension(&self) -> usize {
        self.factor.nrows()
    }

    /// What happened during the factorisation.
    pub fn info(&self) -> CholeskyInfo {
        self.info
    }

    /// The factor `L` (n x n). Only its lower triangle is meaningful.
    pub fn factor(&self) -> MatRef<'_, f64> {
        self.factor.as_ref()
    }

    /// Gives the n x n buffer back for the next factorisation.
    pub fn into_buffer(self) -> Mat<f64> {
        self.factor
    }
}

/// The mean magnitude of the diagonal, or the error that names its first non-finite entry.
fn mean_absolute_diagonal(matrix: MatRef<'_, f64>) -> Result<f64, CholeskyError> {
    let dimension = matrix.nrows();
    let mut sum = 0.0;
    for row in 0..dimension {
        let value = matrix[(row, row)];
        if !value.is_finite() {
            return Err(CholeskyError::NotFinite { dimension, row, value });
        }
        sum += value.abs();
    }
    Ok(sum / dimension.max(1) as f64)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::random::Streams;
    use rand_distr::{Distribution, StandardNormal};

    /// A well-conditioned random positive-definite matrix.
    pub(crate) fn random_positive_definite(n: usize, seed: u64) -> Mat<f64> {
        let mut rng = Streams::new(seed).stream("test");
        let root = Mat::<f64>::from_fn(n, n, |_, _| StandardNormal.sample(&mut rng));
        let mut a = &root * root.transpose();
        for i in 0..n {
            a[(i, i)] += n as f64 * 0.1;
        }
        a
    }

    pub(crate) fn lower(matrix: MatRef<'_, f64>) -> Mat<f64> {
        Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| if i >= j { matrix[(i, j)] } else { 0.0 })
    }

    pub(crate) fn largest_difference(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> f64 {
        assert_eq!((a.nrows(), a.ncols()), (b.nrows(), b.ncols()));
        (a - b).norm_max()
    }

    #[test]
    fn the_factor_reproduces_the_matrix() {
        for n in [1, 2, 7, 64, 300] {
            let a = random_positive_definite(n, n as u64);
            let l = lower(Cholesky::of(a.as_ref(), JitterPolicy::NONE).unwrap().factor());
            let scale = a.norm_max();
            assert!(
                largest_difference((&l * l.transpose()).as_ref(), a.as_ref())
                    < 8.0 * n as f64 * f64::EPSILON * scale
            );
        }
    }

    #[test]
    fn jitter_is_added_only_when_needed_and_reported() {
        // Rank one: positive semi-definite, so only jitter makes it factorable.
        let a = Mat::<f64>::from_fn(20, 20, |_, _| 2.0);
        let factored = Cholesky::of(a.as_ref(), JitterPolicy::default()).unwrap();
        let info = factored.info();
        assert!(info.jitter >= 2e-10 && info.attempts >= 2, "{info:?}");
        let l = lower(factored.factor());
        assert!(((&l * l.transpose())[(3, 3)] - (2.0 + info.jitter)).abs() < 1e-13);
        assert_eq!(
            Cholesky::of(random_positive_definite(5, 0).as_ref(), JitterPolicy::default())
                .unwrap()
                .info()
                .jitter,
            0.0
        );
    }

    #[test]
    fn it_gives_up_with_the_pivot_and_the_jitter_tried() {
        let mut a = random_positive_definite(6, 1);
        a[(4, 4)] = -1e9;
        match Cholesky::of(a.as_ref(), JitterPolicy { largest: 1e-6, ..Default::default() }) {
            Err(CholeskyError::NotPositiveDefinite { dimension: 6, pivot: 4, attempts: 6, .. }) => {}
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn non_finite_entries_are_named_and_never_jittered() {
        let mut a = random_positive_definite(6, 2);
        a[(3, 3)] = f64::NAN;
        assert!(matches!(
            Cholesky::of(a.as_ref(), JitterPolicy::default()),
            Err(CholeskyError::NotFinite { row: 3, .. })
        ));
        let mut a = random_positive_definite(6, 2);
        a[(5, 1)] = f64::NAN;
        assert!(Cholesky::of(a.as_ref(), JitterPolicy::default()).is_err());
    }
}
