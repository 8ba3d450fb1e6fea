//! Approximate inverses that make conjugate gradients converge in fewer steps.

use super::error::{SolveError, same_size};
use super::{Nystrom, PivotedCholesky, System};
use crate::Real;
use crate::cholesky::{Cholesky, JitterPolicy};
use crate::operator::LinearOperator;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use serde::{Deserialize, Serialize};

/// A symmetric positive-definite P whose inverse is cheap.
pub trait Preconditioner<T: Real>: Send + Sync {
    /// `output <- P⁻¹ input`, both n x k.
    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>);
}

/// `P = I`.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPreconditioner;

impl<T: Real> Preconditioner<T> for NoPreconditioner {
    fn apply(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        output.copy_from(input);
    }
}

/// `P = L Lᵀ + diag(d)` with L of n x R, inverted by Woodbury's identity:
/// `P⁻¹v = d⁻¹(v - L S⁻¹ Lᵀ d⁻¹ v)`, `S = I + Lᵀ d⁻¹ L`. The small matrix S is factored in f64.
#[derive(Clone, Debug)]
pub struct LowRankPlusDiagonal<T> {
    factor: Mat<T>,
    inverse_diagonal: Vec<T>,
    core: Cholesky,
}

impl<T: Real> LowRankPlusDiagonal<T> {
    /// From L (n x R) and the positive diagonal (n). Cost `nR² + R³/3` flops.
    ///
    /// # Errors
    /// [`SolveError::Shape`] when the sizes differ, [`SolveError::Cholesky`] when a number is not finite.
    pub fn new(factor: Mat<T>, diagonal: &[T]) -> Result<Self, SolveError> {
        let (n, rank) = factor.shape();
        same_size("entries of the diagonal", n, diagonal.len())?;
        let inverse_diagonal: Vec<T> = diagonal.iter().map(|&d| T::ONE / d).collect();
        let mut core = Mat::<f64>::identity(rank, rank);
        // In blocks of rows, so that the widened copy stays small.
        for start in (0..n).step_by(4096) {
            let rows = 4096.min(n - start);
            let scaled = Mat::<f64>::from_fn(rows, rank, |i, j| {
                factor[(start + i, j)].to_f64() * inverse_diagonal[start + i].to_f64().sqrt()
            });
            matmul(core.as_mut(), Accum::Add, scaled.transpose(), scaled.as_ref(), 1.0, Par::rayon(0));
        }
        let core = Cholesky::of(core.as_ref(), JitterPolicy::NONE)?;
        Ok(Self { factor, inverse_diagonal, core })
    }

    /// Columns of L.
    pub fn rank(&self) -> usize {
        self.factor.ncols()
    }

    /// `log det P = log det S + Σ log d`.
    pub fn log_determinant(&self) -> f64 {
        self.core.log_determinant() - self.inverse_diagonal.iter().map(|v| v.to_f64().ln()).sum::<f64>()
    }
}

impl<T: Real> Preconditioner<T> for LowRankPlusDiagonal<T> {
    fn apply(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        let (n, columns) = input.shape();
        for j in 0..columns {
            for i in 0..n {
                output[(i, j)] = input[(i, j)] * self.inverse_diagonal[i];
            }
        }
        let par = if n * columns < 1 << 14 { Par::Seq } else { Par::rayon(0) };
        let mut small = Mat::<T>::zeros(self.rank(), columns);
        matmul(small.as_mut(), Accum::Replace, self.factor.transpose(), output.as_ref(), T::ONE, par);
        let mut wide = Mat::<f64>::from_fn(small.nrows(), columns, |i, j| small[(i, j)].to_f64());
        self.core.solve_in_place(wide.as_mut());
        let small = Mat::<T>::from_fn(wide.nrows(), columns, |i, j| T::from_f64(wide[(i, j)]));
        let correction = {
            let mut block = Mat::<T>::zeros(n, columns);
            matmul(block.as_mut(), Accum::Replace, self.factor.as_ref(), small.as_ref(), T::ONE, par);
            block
        };
        for j in 0..columns {
            for i in 0..n {
                output[(i, j)] -= correction[(i, j)] * self.inverse_diagonal[i];
            }
        }
    }
}

/// Which preconditioner to build for a system.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PreconditionerChoice {
    /// None.
    None,
    /// `L Lᵀ + noise` by pivoted Cholesky factorisation.
    PivotedCholesky {
        /// Most pivots; 100 in the thesis.
        rank: usize,
        /// Share of the trace at which fewer suffice; 1e-3 is customary.
        relative_tolerance: f64,
    },
    /// `U (Λ - λ_R) Uᵀ + λ_R + noise` by the randomised Nyström approximation (Frangella, Tropp and Udell 2023, eq. 1.3 times its smallest eigenvalue).
    Nystrom {
        /// Columns.
        rank: usize,
        /// Seed of the random vectors.
        seed: u64,
    },
}

impl Default for PreconditionerChoice {
    /// Pivoted Cholesky of rank 100, down to a thousandth of the trace.
    fn default() -> Self {
        Self::PivotedCholesky { rank: 100, relative_tolerance: 1e-3 }
    }
}

impl PreconditionerChoice {
    /// Builds the preconditioner of `system`.
    ///
    /// # Errors
    /// Those of [`PivotedCholesky::new`], [`Nystrom::new`] and [`LowRankPlusDiagonal::new`].
    pub fn build<T: Real>(self, system: &System<'_, T>) -> Result<Box<dyn Preconditioner<T>>, SolveError> {
        Ok(match self {
            Self::None => Box::new(NoPreconditioner),
            Self::PivotedCholesky { rank, relative_tolerance } => {
                let factor = PivotedCholesky::new(system.matrix(), rank, relative_tolerance)?.into_factor();
                Box::new(LowRankPlusDiagonal::new(factor, system.noise())?)
            }
            Self::Nystrom { rank, seed } => Box::new(nystrom_preconditioner(system, rank, seed)?),
        })
    }
}

/// Products with K only, so that a noise that differs from row to row stays on the diagonal, where it is exact.
fn nystrom_preconditioner<T: Real>(
    system: &System<'_, T>,
    rank: usize,
    seed: u64,
) -> Result<LowRankPlusDiagonal<T>, SolveError> {
    struct Symmetric<'a, T: Real>(&'a System<'a, T>);
    impl<T: Real> LinearOperator<T> for Symmetric<'_, T> {
        fn shape(&self) -> (usize, usize) {
            self.0.shape()
        }
        fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
            self.0.matrix().apply(input, output);
        }
        fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
            self.apply(input, output);
        }
    }
    let approximation = Nystrom::new(&Symmetric(system), rank, seed)?;
    let eigenvalues = approximation.eigenvalues();
    // A basis that spans everything leaves no complement whose eigenvalue the last one could stand for.
    let complete = eigenvalues.len() == system.rows();
    let last = if complete { 0.0 } else { eigenvalues.last().copied().unwrap_or(0.0) };
    let roots: Vec<T> = eigenvalues.iter().map(|e| T::from_f64((e - last).max(0.0).sqrt())).collect();
    let vectors = approximation.vectors();
    let factor = Mat::from_fn(vectors.nrows(), vectors.ncols(), |i, j| vectors[(i, j)] * roots[j]);
    let diagonal: Vec<T> = system.noise().iter().map(|&v| v + T::from_f64(last)).collect();
    LowRankPlusDiagonal::new(factor, &diagonal)
}
