//! Approximate inverses that make conjugate gradients converge in fewer steps.

use super::error::{SolveError, same_size};
use super::{Nystrom, PivotedCholesky, System};
use crate::Real;
use crate::cholesky::{Cholesky, JitterPolicy};
use crate::dense::{multiply_into, product};
use crate::operator::LinearOperator;
use crate::random::ChaCha8Rng;
use crate::tiles::pieces;
use faer::{Accum, Mat, MatMut, MatRef};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A symmetric positive-definite P whose inverse is cheap.
pub trait Preconditioner<T: Real>: Send + Sync {
    /// `output <- P⁻¹ input`, both n x k.
    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>);
}

/// A preconditioner of which vectors with covariance P can be drawn, and whose determinant is known: what log-determinants by conjugate gradients need.
pub trait DrawnPreconditioner<T: Real>: Preconditioner<T> {
    /// `log det P`; 0 for the identity.
    fn log_determinant(&self) -> f64;

    /// `count` normal vectors with covariance P (n x count).
    fn draw(&self, rows: usize, count: usize, rng: &mut ChaCha8Rng) -> Mat<T>;
}

/// `P = I`.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPreconditioner;

impl<T: Real> Preconditioner<T> for NoPreconditioner {
    fn apply(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        output.copy_from(input);
    }
}

impl<T: Real> DrawnPreconditioner<T> for NoPreconditioner {
    fn log_determinant(&self) -> f64 {
        0.0
    }

    fn draw(&self, rows: usize, count: usize, rng: &mut ChaCha8Rng) -> Mat<T> {
        Mat::from_fn(rows, count, |_, _| T::from_f64(StandardNormal.sample(rng)))
    }
}

/// `P = L Lᵀ + diag(d)` with L of n x R, inverted as `P⁻¹ = d^-½ (I - Q Qᵀ) d^-½`, where `Q = d^-½ L C⁻ᵀ` and `C Cᵀ = I + Lᵀ d⁻¹ L`.
///
/// Q has columns of length at most 1, so in f32 the difference loses no more than the unit roundoff of the vector. Woodbury's identity with L itself
/// loses `‖L‖/√d` times as much, some hundredfold for small noise. Q is computed in f64.
#[derive(Clone, Debug)]
pub struct LowRankPlusDiagonal<T> {
    basis: Mat<T>,
    /// `d^-½`
    scales: Vec<T>,
    /// C.
    core: Cholesky,
    log_determinant: f64,
}

impl<T: Real> LowRankPlusDiagonal<T> {
    /// From L (n x R) and the positive diagonal (n). Cost `2nR² + R³/3` flops.
    ///
    /// # Errors
    /// [`SolveError::Shape`] when the sizes differ, [`SolveError::Cholesky`] when a number is not finite.
    #[inline(never)]
    pub fn new(factor: Mat<T>, diagonal: &[T]) -> Result<Self, SolveError> {
        /// Rows of the widened copy, which stays small.
        const ROWS: usize = 4096;
        let (n, rank) = factor.shape();
        same_size("entries of the diagonal", n, diagonal.len())?;
        let roots: Vec<f64> = diagonal.iter().map(|&d| 1.0 / d.to_f64().sqrt()).collect();
        // (d^-½ L)ᵀ, some columns of it.
        let scaled = |factor: &Mat<T>, rows: &Range<usize>| {
            Mat::<f64>::from_fn(rank, rows.len(), |j, i| {
                factor[(rows.start + i, j)].to_f64() * roots[rows.start + i]
            })
        };
        let mut core = Mat::<f64>::identity(rank, rank);
        for rows in pieces(n, ROWS) {
            let block = scaled(&factor, &rows);
            multiply_into(core.as_mut(), Accum::Add, block.as_ref(), block.transpose(), 1.0);
        }
        let core = Cholesky::of(core.as_ref(), JitterPolicy::NONE)?;
        let mut basis = factor;
        for rows in pieces(n, ROWS) {
            let mut block = scaled(&basis, &rows);
            core.solve_factor_in_place(block.as_mut());
            for j in 0..rank {
                let column = &mut basis.col_as_slice_mut(j)[rows.clone()];
                column.iter_mut().enumerate().for_each(|(i, q)| *q = T::from_f64(block[(j, i)]));
            }
        }
        let log_determinant = core.log_determinant() - 2.0 * roots.iter().map(|r| r.ln()).sum::<f64>();
        let scales = roots.into_iter().map(T::from_f64).collect();
        Ok(Self { basis, scales, core, log_determinant })
    }

    /// Columns of L.
    pub fn rank(&self) -> usize {
        self.basis.ncols()
    }

    /// Multiplies rows by `d^-½`.
    fn scale(&self, block: &mut MatMut<'_, T>) {
        for j in 0..block.ncols() {
            block.as_mut().col_mut(j).iter_mut().zip(&self.scales).for_each(|(v, s)| *v *= *s);
        }
    }
}

impl<T: Real> Preconditioner<T> for LowRankPlusDiagonal<T> {
    fn apply(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        output.copy_from(input);
        self.scale(&mut output);
        let small = product(self.basis.transpose(), output.as_ref());
        multiply_into(output.as_mut(), Accum::Add, self.basis.as_ref(), small.as_ref(), -T::ONE);
        self.scale(&mut output);
    }
}

impl<T: Real> DrawnPreconditioner<T> for LowRankPlusDiagonal<T> {
    fn log_determinant(&self) -> f64 {
        self.log_determinant
    }

    /// `L e + d^½ e' = d^½ (Q Cᵀ e + e')`.
    fn draw(&self, rows: usize, count: usize, rng: &mut ChaCha8Rng) -> Mat<T> {
        let (rank, factor) = (self.rank(), self.core.factor());
        let white = Mat::<f64>::from_fn(rank, count, |_, _| StandardNormal.sample(rng));
        let through = Mat::from_fn(rank, count, |i, k| {
            T::from_f64((i..rank).map(|j| factor[(j, i)] * white[(j, k)]).sum::<f64>())
        });
        let mut out: Mat<T> = NoPreconditioner.draw(rows, count, rng);
        multiply_into(out.as_mut(), Accum::Add, self.basis.as_ref(), through.as_ref(), T::ONE);
        for k in 0..count {
            out.col_as_slice_mut(k).iter_mut().zip(&self.scales).for_each(|(v, s)| *v /= *s);
        }
        out
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
    pub fn build<T: Real>(
        self,
        system: &System<'_, T>,
    ) -> Result<Box<dyn DrawnPreconditioner<T>>, SolveError> {
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
