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
    /// By what share of a new observation's variance the worst of them may still be too large: its fall over the last ten iterations of its block, and what would follow if it went on to slow down as it did.
    pub excess: f64,
}

/// Iterations over which falls of variances are looked at.
const WINDOW: usize = 10;

/// What may be left: half a per cent of a new observation's standard deviation.
const HARDLY: f64 = 0.01;

/// The slowest that falls are taken to slow down from one window to the next: what never ends would have no sum.
const SLOWEST: f64 = 0.98;

/// What is left where a fall follows another, as a geometric series, with that fall itself.
fn left(before: f64, now: f64) -> f64 {
    let ratio = if before > 0.0 { (now / before).min(SLOWEST) } else { SLOWEST };
    now / (1.0 - ratio)
}

impl<T: Real> PathwisePosterior<T> {
    /// Latent variances at m points by solving `K̃ v = k(X, x)` for each with conjugate gradients, where samples are too noisy and points few: m solves in blocks of 64, each of the cost of a sample's. Only with weights on all rows. Memory:
    /// [`Self::exact_variance_bytes`]. A solution that is off makes a variance too large, never too small, as far as rounding allows.
    ///
    /// A block ends when its residuals are within the budget's tolerance and no variance seems to be too large by more than a hundredth of a new observation's: where noise is a millionth of the function's variance, a relative residual of 10⁻⁴ leaves variances that are many times too large.
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
    let system = System::new(&matrix, noise.clone())?;
    let preconditioner = PreconditionerChoice::default().build(&system)?;
    let points = narrow::<T>(x);
    let prior = diagonal(posterior.kernel(), points.as_ref());
    let mut out = SolvedVariances {
        latent_variance: Vec::with_capacity(x.nrows()),
        clipped: 0,
        residual: 0.0,
        iterations: 0,
        excess: 0.0,
    };
    let least_noise = noise.iter().fold(f64::INFINITY, |least, v| least.min(v.to_f64()));
    for start in (0..x.nrows()).step_by(VARIANCE_BLOCK) {
        let rows = VARIANCE_BLOCK.min(x.nrows() - start);
        let block = points.get(start..start + rows, ..);
        let right = posterior_kernels::cross(posterior.kernel(), posterior.points(), block);
        // As far as rounding goes: what ends it is told below.
        let mut solver = ConjugateGradients::new(&system, &*preconditioner, right.as_ref(), None, 0.0, 0.0)?;
        let variances = |solution: MatRef<'_, T>| -> Vec<f64> {
            let of = |j: usize| {
                let pairs = right.col_as_slice(j).iter().zip(solution.col(j).iter());
                prior[start + j].to_f64() - pairs.map(|(a, b)| a.to_f64() * b.to_f64()).sum::<f64>()
            };
            (0..rows).map(of).collect()
        };
        let mut found = variances(solver.state().solution.as_ref());
        let (mut excess, mut seen, mut falls, mut reached) = (1.0, 0, vec![0.0; rows], false);
        while solver.state().iteration < budget.steps {
            match solver.step() {
                Ok(true) => {}
                // Nothing is left to solve.
                Ok(false) => {
                    excess = 0.0;
                    break;
                }
                // Rounding ends what was solved to the tolerance before: what was seen then stays, with what is not known of it.
                Err(_) if reached => {
                    seen = solver.state().iteration;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            if solver.state().iteration % WINDOW != 0 {
                continue;
            }
            let now = variances(solver.state().solution.as_ref());
            let fall = |(a, b): (&f64, &f64)| (a - b).max(0.0) / (b.max(0.0) + least_noise);
            let own: Vec<f64> = found.iter().zip(&now).map(fall).collect();
            excess = falls.iter().zip(&own).map(|(before, now)| left(*before, *now)).fold(0.0, f64::max);
            (found, seen, falls) = (now, solver.state().iteration, own);
            let residual = solver.relative_residuals().into_iter().fold(0.0, f64::max);
            reached |= residual <= budget.tolerance;
            if reached && excess <= HARDLY {
                break;
            }
        }
        out.residual = solver.relative_residuals().into_iter().fold(out.residual, f64::max);
        let state = solver.into_state();
        out.iterations += state.iteration;
        if state.iteration != seen {
            found = variances(state.solution.as_ref());
        }
        out.excess = excess.max(out.excess);
        out.clipped += found.iter().filter(|v| **v < 0.0).count();
        out.latent_variance.extend(found.into_iter().map(|v| v.max(0.0)));
    }
    Ok(out)
}
