//! Variances by solves instead of samples.

use super::condition::{Support, narrow};
use super::posterior::PathwisePosterior;
use crate::GpError;
use crate::iterative::solver::Budget;
use faer::MatRef;
use posterior_kernels::diagonal;
use posterior_kernels::matrix::KernelMatrix;
use posterior_linalg::solve::{ConjugateGradients, PreconditionerChoice, System};
use posterior_linalg::{PerPrecision, Real, compiled_here};

/// Points whose variances are solved for at once.
const VARIANCE_BLOCK: usize = 64;

/// Variances by solves, and how exact they are.
#[derive(Clone, Debug, PartialEq)]
pub struct SolvedVariances {
    /// Latent variance at each point (m).
    pub latent_variance: Vec<f64>,
    /// How many were below 0 and raised to it.
    pub clipped: usize,
    /// The largest relative residual that a solve ended with.
    pub residual: f64,
    /// Iterations of all blocks together.
    pub iterations: usize,
}

impl<T: Real> PathwisePosterior<T> {
    /// Latent variances at m points by solving `K̃ v = k(X, x)` for each to the budget's tolerance with conjugate gradients, where samples are
    /// too noisy and points few: m solves in blocks of 64, each of the cost of a sample's. Only with weights on all rows. Memory:
    /// [`Self::exact_variance_bytes`]. A solution that is off makes a variance too large, never too small, as far as rounding allows.
    ///
    /// # Errors
    /// As [`Self::mean`]; [`GpError::Solve`] from the solver; [`GpError::ExactVariance`] on inducing inputs, which have another posterior.
    pub fn exact_variance(&self, x: MatRef<'_, f64>, budget: &Budget) -> Result<SolvedVariances, GpError> {
        compiled_here!(T: Real, PerPrecision; ['a] exact_variance, (
            posterior: &'a PathwisePosterior<T> = self,
            x: MatRef<'a, f64> = x,
            budget: &'a Budget = budget,
        ) -> Result<SolvedVariances, GpError>)
    }

    /// Most bytes that [`Self::exact_variance`] needs besides what is there: a block's right-hand sides, at most nine blocks of the solver, the preconditioner and the
    /// cache.
    pub fn exact_variance_bytes(&self) -> u64 {
        let n = self.data().rows() as u64;
        let number = size_of::<T>() as u64;
        let rank = match PreconditionerChoice::default() {
            PreconditionerChoice::None => 0,
            PreconditionerChoice::PivotedCholesky { rank, .. }
            | PreconditionerChoice::Nystrom { rank, .. } => rank as u64,
        };
        let cache = n.saturating_mul(n).saturating_mul(number).min(self.settings().cache_bytes as u64);
        n.saturating_mul((10 * VARIANCE_BLOCK as u64 + 2 * rank) * number).saturating_add(cache)
    }
}

/// Kernel matrix and noise variances of what the posterior was conditioned on, to solve with again.
pub(super) fn solvable<T: Real>(
    posterior: &PathwisePosterior<T>,
) -> Result<(KernelMatrix<T>, Vec<T>), GpError> {
    if matches!(posterior.support(), Support::Inducing(..)) {
        return Err(GpError::ExactVariance);
    }
    let variances = posterior.model().noise_variances(posterior.data());
    let cache = posterior.settings().cache_bytes;
    let matrix = KernelMatrix::with_budget(posterior.kernel(), posterior.points(), cache);
    Ok((matrix, variances.into_iter().map(T::from_f64).collect()))
}

/// See [`PathwisePosterior::exact_variance`].
fn exact_variance<T: Real>(
    posterior: &PathwisePosterior<T>,
    x: MatRef<'_, f64>,
    budget: &Budget,
) -> Result<SolvedVariances, GpError> {
    posterior.check(x)?;
    let (matrix, noise) = solvable(posterior)?;
    let system = System::new(&matrix, noise)?;
    let preconditioner = PreconditionerChoice::default().build(&system)?;
    let points = narrow::<T>(x);
    let prior = diagonal(posterior.kernel(), points.as_ref());
    let mut out = SolvedVariances {
        latent_variance: Vec::with_capacity(x.nrows()),
        clipped: 0,
        residual: 0.0,
        iterations: 0,
    };
    for start in (0..x.nrows()).step_by(VARIANCE_BLOCK) {
        let rows = VARIANCE_BLOCK.min(x.nrows() - start);
        let block = points.get(start..start + rows, ..);
        let right = posterior_kernels::cross(posterior.kernel(), posterior.points(), block);
        let mut solver =
            ConjugateGradients::new(&system, &*preconditioner, right.as_ref(), None, budget.tolerance, 0.0)?;
        while solver.state().iteration < budget.steps && solver.step()? {}
        out.residual = solver.relative_residuals().into_iter().fold(out.residual, f64::max);
        let state = solver.into_state();
        out.iterations += state.iteration;
        for j in 0..rows {
            let (a, b) = (right.col_as_slice(j), state.solution.col_as_slice(j));
            let explained: f64 = a.iter().zip(b).map(|(a, b)| a.to_f64() * b.to_f64()).sum();
            let variance = prior[start + j].to_f64() - explained;
            out.clipped += usize::from(variance < 0.0);
            out.latent_variance.push(variance.max(0.0));
        }
    }
    Ok(out)
}
