//! Variances from one Lanczos process for all points.
//!
//! ```text
//! Q = orthonormal basis of the Krylov space of K̃ from the mean column of K,     Qᵀ K̃ Q = T = L Lᵀ,     W = L⁻¹ Qᵀ   (p x n)
//! Var f(x) = k(x, x) - |W k(X, x)|²
//! ```
//!
//! What is explained is the part of `k(X, x)ᵀ K̃⁻¹ k(X, x)` that lies in the span of Q: it grows with p to the whole, so variances fall to the exact ones and are never below them, as far as rounding allows. Source: Pleiss, Gardner, Weinberger and Wilson (2018),
//! *Constant-time predictive distributions for Gaussian processes* (LOVE); spec `deep_kernel_decomposition`, section 7.3.
//!
//! Differs from the published algorithm in: 1. reorthogonalisation against all of Q, twice; 2. where the mean column leads into an invariant subspace (rows that lie symmetrically about a point, of whose odd functions it knows nothing),
//! the process goes on from random signs outside of it; 3. it ends where rounding makes T smaller than the noise allows.

use super::condition::narrow;
use super::posterior::PathwisePosterior;
use super::variance::{SolvedVariances, solvable};
use crate::GpError;
use crate::iterative::solver::Budget;
use faer::{Mat, MatRef};
use posterior_kernels::diagonal;
use posterior_kernels::matrix::KernelMatrix;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::{Lanczos, System};
use posterior_linalg::{PerPrecision, Real, compiled_here};
use rand::RngExt;
use std::sync::Arc;

/// Points whose products with W are computed at a time.
const BLOCK: usize = 2048;

/// Points at which variances are solved for beside, to say how far they are from the exact ones.
const PROBES: usize = 16;

/// How those are solved for.
const PROBE_BUDGET: Budget = Budget { steps: 1000, time: None, tolerance: 1e-4 };

/// Variances from a Lanczos basis, and how exact they are.
#[derive(Clone, Debug, PartialEq)]
pub struct LanczosVariances {
    /// Latent variance at each point (m).
    pub latent_variance: Vec<f64>,
    /// How many were below 0 and raised to it.
    pub clipped: usize,
    /// What there is to know of the basis.
    pub basis: LanczosBasis,
}

/// A Lanczos basis, and how near its variances are to exact ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LanczosBasis {
    /// Vectors of it, p.
    pub rank: usize,
    /// Whether it ended because there was nothing more to be had, rather than at the number that was asked for.
    pub complete: bool,
    /// How often it began anew outside of an invariant subspace.
    pub restarts: usize,
    /// Points at which variances were solved for to compare, among those that were asked about first.
    pub probes: usize,
    /// Mean over these of the ratio of standard deviations to exact ones, less 1; 0 without points.
    pub mean_excess: f64,
    /// The largest of these; 0 without points.
    pub largest_excess: f64,
    /// The largest relative residual of these solves.
    pub residual: f64,
}

/// A basis for as many steps as were asked for, with W; kept with the posterior.
#[derive(Debug)]
pub(super) struct CachedBasis<T> {
    asked: usize,
    /// Wᵀ, n x p.
    factor: Mat<T>,
    basis: LanczosBasis,
}

impl<T: Real> PathwisePosterior<T> {
    /// Latent variances at m points from a Lanczos basis of at most `rank` vectors (512 are customary), which is computed the first time and kept, with solves at 16 of the points to say how exact it is. Only with weights on all rows.
    ///
    /// Cost: once `rank` products with the kernel matrix, `4 n rank²` flops and 16 solves; then `n rank` flops a point. Memory: [`Self::lanczos_variance_bytes`].
    ///
    /// # Errors
    /// As [`Self::exact_variance`]; [`GpError::Shape`] for a rank of 0.
    pub fn lanczos_variance(&self, x: MatRef<'_, f64>, rank: usize) -> Result<LanczosVariances, GpError> {
        compiled_here!(T: Real, PerPrecision; ['a] lanczos_variance, (
            posterior: &'a PathwisePosterior<T> = self,
            x: MatRef<'a, f64> = x,
            rank: usize = rank,
        ) -> Result<LanczosVariances, GpError>)
    }

    /// Most bytes that [`Self::lanczos_variance`] needs besides what is there: the basis beside W, and what solves at 16 points take.
    pub fn lanczos_variance_bytes(&self, rank: usize) -> u64 {
        let n = self.data().rows() as u64;
        let columns = 2 * (rank as u64).min(n) + 4;
        n.saturating_mul(columns * size_of::<T>() as u64).saturating_add(self.exact_variance_bytes())
    }
}

/// See [`PathwisePosterior::lanczos_variance`].
fn lanczos_variance<T: Real>(
    posterior: &PathwisePosterior<T>,
    x: MatRef<'_, f64>,
    rank: usize,
) -> Result<LanczosVariances, GpError> {
    posterior.check(x)?;
    if rank == 0 {
        return Err(GpError::Shape { what: "vectors of a Lanczos basis", expected: 1, actual: 0 });
    }
    let mut guard = posterior.cached_basis.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let kept = match guard.as_ref().filter(|kept| kept.asked == rank) {
        Some(kept) => kept.clone(),
        None => {
            let CachedBasis { asked, factor, basis } = computed(posterior, rank)?;
            let basis = compare(posterior, factor.as_ref(), x, basis)?;
            let kept = Arc::new(CachedBasis { asked, factor, basis });
            *guard = Some(kept.clone());
            kept
        }
    };
    drop(guard);
    let (latent_variance, clipped) = variances(posterior, kept.factor.as_ref(), x);
    Ok(LanczosVariances { latent_variance, clipped, basis: kept.basis })
}

/// The basis and W, without a comparison.
fn computed<T: Real>(posterior: &PathwisePosterior<T>, rank: usize) -> Result<CachedBasis<T>, GpError> {
    let (matrix, noise) = solvable(posterior)?;
    let n = noise.len();
    let least = noise.iter().fold(f64::INFINITY, |least, v| least.min(v.to_f64()));
    let most_noise = noise.iter().fold(0.0, |most: f64, v| most.max(v.to_f64()));
    let rounding = 64.0 * T::EPSILON.to_f64() * (posterior.noiseless_scale() + most_noise);
    let system = System::new(&matrix, noise)?;
    let share = T::from_f64(1.0 / n as f64);
    let mut start = matrix.multiply(Mat::from_fn(n, 1, |_, _| share).as_ref());
    if start.col(0).iter().all(|v| *v == T::ZERO) {
        // A kernel whose columns cancel out: anything else will do.
        start = Mat::from_fn(n, 1, |_, _| T::ONE);
    }
    let mut lanczos = Lanczos::new(&system, start)?;
    let mut rng = Streams::new(posterior.settings().seed).stream("gp/lanczos/restarts");
    let (mut restarts, mut began) = (0, 0);
    let most = rank.min(n);
    let mut complete = most == n;
    for step in 1..=most {
        if lanczos.step() || step == most {
            continue;
        }
        let signs: Vec<T> = (0..n).map(|_| if rng.random::<bool>() { T::ONE } else { -T::ONE }).collect();
        // What begins at random and ends at once says what all is that is left: nothing but noise, or the same variance everywhere, which every further vector explains a part of.
        let last = lanczos.coefficients()[0].diagonal.last().copied().unwrap_or(0.0);
        let only_noise = restarts > 0 && step == began + 1 && last <= most_noise + rounding;
        if only_noise || !lanczos.restart(0, &signs) {
            complete = true;
            break;
        }
        (restarts, began) = (restarts + 1, step);
    }
    let (coefficients, basis) = lanczos.into_parts();
    let tridiagonal = &coefficients[0];
    // L has the pivots' roots on its diagonal; none can be below the least noise but for rounding.
    let mut roots: Vec<(f64, f64)> = Vec::new();
    for (j, diagonal) in tridiagonal.diagonal.iter().enumerate() {
        let beside = roots.last().map_or(0.0, |(root, _)| tridiagonal.off[j - 1] / root);
        let pivot = diagonal - beside * beside;
        if !(pivot.is_finite() && pivot >= 0.5 * least) {
            complete = true;
            break;
        }
        roots.push((pivot.sqrt(), beside));
    }
    let mut factor = Mat::<T>::zeros(n, roots.len());
    // Each vector is given back once its row of W is there.
    for (j, (vector, (root, beside))) in basis.into_iter().zip(&roots).enumerate() {
        for i in 0..n {
            let before = if j > 0 { beside * factor[(i, j - 1)].to_f64() } else { 0.0 };
            factor[(i, j)] = T::from_f64((vector[(i, 0)].to_f64() - before) / root);
        }
    }
    let basis = LanczosBasis {
        rank: roots.len(),
        complete,
        restarts,
        probes: 0,
        mean_excess: 0.0,
        largest_excess: 0.0,
        residual: 0.0,
    };
    Ok(CachedBasis { asked: rank, factor, basis })
}

/// Latent variances, and how many were below 0.
fn variances<T: Real>(
    posterior: &PathwisePosterior<T>,
    factor: MatRef<'_, T>,
    x: MatRef<'_, f64>,
) -> (Vec<f64>, usize) {
    let points = narrow::<T>(x);
    let matrix = KernelMatrix::new(posterior.kernel(), posterior.points());
    let mut out: Vec<f64> =
        diagonal(posterior.kernel(), points.as_ref()).iter().map(|v| v.to_f64()).collect();
    let mut clipped = 0;
    for start in (0..x.nrows()).step_by(BLOCK) {
        let rows = BLOCK.min(x.nrows() - start);
        let product = matrix.cross(points.get(start..start + rows, ..)).multiply(factor);
        for (i, variance) in out[start..start + rows].iter_mut().enumerate() {
            *variance -= product.row(i).iter().map(|v| v.to_f64().powi(2)).sum::<f64>();
            clipped += usize::from(*variance < 0.0);
            *variance = variance.max(0.0);
        }
    }
    (out, clipped)
}

/// Solves for the variances of some of the points.
fn compare<T: Real>(
    posterior: &PathwisePosterior<T>,
    factor: MatRef<'_, T>,
    x: MatRef<'_, f64>,
    basis: LanczosBasis,
) -> Result<LanczosBasis, GpError> {
    let probes = PROBES.min(x.nrows());
    if probes == 0 {
        return Ok(basis);
    }
    let some = Mat::from_fn(probes, x.ncols(), |i, d| x[(i * x.nrows() / probes, d)]);
    let (found, _) = variances(posterior, factor, some.as_ref());
    let SolvedVariances { latent_variance, residual, .. } =
        posterior.exact_variance(some.as_ref(), &PROBE_BUDGET)?;
    // Where rounding is all there is, a ratio says nothing.
    let rounding = T::EPSILON.to_f64() * posterior.noiseless_scale();
    let excess: Vec<f64> = found
        .iter()
        .zip(&latent_variance)
        .map(|(found, exact)| ((found + rounding) / (exact + rounding)).sqrt() - 1.0)
        .collect();
    Ok(LanczosBasis {
        probes,
        mean_excess: excess.iter().sum::<f64>() / probes as f64,
        largest_excess: excess.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        residual,
        ..basis
    })
}

impl<T: Real> PathwisePosterior<T> {
    /// The largest prior variance of a row.
    fn noiseless_scale(&self) -> f64 {
        diagonal(self.kernel(), self.points()).iter().fold(0.0, |largest, v| largest.max(v.to_f64()))
    }
}
