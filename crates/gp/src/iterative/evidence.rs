//! The gradient of the log evidence without factors: solves, and probe vectors for the trace.
//!
//! ```text
//! ∂ log p = Σ_t ½ α_tᵀ (∂K̃) α_t - (T/2) Tr(K̃⁻¹ ∂K̃)
//! Tr(K̃⁻¹ ∂K̃) = E[(K̃⁻¹z)ᵀ (∂K̃) z]       z random signs            (Hutchinson)
//!             = E[uᵀ (∂K̃) u]             u = K̃⁻¹(f(X) + ε)          (pathwise: the sampling solves again)
//! ```
//!
//! One solve with T targets and the probes, one pullback through the kernel: `∂K` is never stored. Source: spec
//! `stochastic_gaussian_processes`, section 9.5.

use super::problem::{FreshFeatures, Problem};
use super::solver::{Budget, Method, Solution, SolveObserver, Start, solve};
use crate::GpError;
use faer::{Mat, MatRef};
use posterior_kernels::{Kernel, Request, pullback_quadratic};
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::System;
use posterior_optim::Signal;
use rand::RngExt;

/// The probes of a trace.
#[derive(Clone, Copy)]
pub enum Probes<'a, T: Real> {
    /// Random signs, the same for the same seed, so that solves of neighbouring hyperparameters start near.
    Hutchinson {
        /// How many.
        count: usize,
        /// Their seed.
        seed: u64,
    },
    /// Prior functions at the rows and noise draws (n x p each). Unbiased as far as the functions have covariance K.
    Pathwise {
        /// `f(X)`.
        function: MatRef<'a, T>,
        /// ε with the system's noise variances.
        noise: MatRef<'a, T>,
    },
}

/// An estimate of the gradient with what it came from.
#[derive(Clone, Debug)]
pub struct EvidenceGradient<T: Real> {
    /// In the kernel's natural parameters, summed over the targets.
    pub kernel: Vec<f64>,
    /// In a noise variance that is added to every row.
    pub noise: f64,
    /// Solutions for targets and then probes, n x (T + p): the start of the next solve, and `K̃⁻¹` of the residuals for the mean's gradient.
    pub solution: Solution<T>,
}

/// Estimates the gradient of the log evidence of `targets` (n x T, prior mean subtracted) at inputs `x` (n x D), `system` being `k(x, x)` with noise.
///
/// Cost: one solve with T + p right-hand sides, one pullback of `n²` entries.
///
/// # Errors
/// Those of [`solve`], and [`GpError::Empty`] without probes.
pub fn evidence_gradient<T: Real>(
    kernel: &dyn Kernel<T>,
    x: MatRef<'_, T>,
    system: &System<'_, T>,
    targets: MatRef<'_, T>,
    probes: Probes<'_, T>,
    method: &Method,
    start: Start<T>,
    budget: &Budget,
) -> Result<EvidenceGradient<T>, GpError> {
    let solved = ProbeSolve::run(system, targets, probes, None, (method, budget), start, &mut |_, _| {
        Signal::Continue
    })?;
    Ok(solved.gradient(kernel, x))
}

/// The solve behind a gradient: what an interrupted search has when no gradient is wanted any more.
pub(super) struct ProbeSolve<T: Real> {
    /// Columns of the solution that belong to targets, T.
    targets: usize,
    /// The random signs (n x p), if the probes are such.
    signs: Option<Mat<T>>,
    /// As in [`EvidenceGradient`].
    pub(super) solution: Solution<T>,
}

impl<T: Real> ProbeSolve<T> {
    /// Solves for targets and probes; `features` are for the methods that want them.
    pub(super) fn run(
        system: &System<'_, T>,
        targets: MatRef<'_, T>,
        probes: Probes<'_, T>,
        features: Option<&dyn FreshFeatures<T>>,
        (method, budget): (&Method, &Budget),
        start: Start<T>,
        observer: &mut SolveObserver<'_, T>,
    ) -> Result<Self, GpError> {
        let (n, t) = targets.shape();
        let (signs, count) = match probes {
            Probes::Hutchinson { count, seed } => {
                let mut rng = Streams::new(seed).stream("gp/evidence/probes");
                let signs =
                    Mat::<T>::from_fn(n, count, |_, _| if rng.random::<bool>() { T::ONE } else { -T::ONE });
                (Some(signs), count)
            }
            Probes::Pathwise { function, noise } => {
                crate::data::same_width("columns of the probes' noise", function.ncols(), noise.ncols())?;
                crate::data::same_width("rows of the probes", n, function.nrows())?;
                crate::data::same_width("rows of the probes' noise", n, noise.nrows())?;
                (None, function.ncols())
            }
        };
        if count == 0 {
            return Err(GpError::Empty { what: "the set of probes" });
        }
        let function = Mat::from_fn(n, t + count, |i, j| match (&signs, probes) {
            _ if j < t => targets[(i, j)],
            (Some(signs), _) => signs[(i, j - t)],
            (None, Probes::Pathwise { function, .. }) => function[(i, j - t)],
            (None, Probes::Hutchinson { .. }) => T::ZERO,
        });
        let noise = match probes {
            Probes::Pathwise { noise, .. } => {
                Some(Mat::from_fn(n, t + count, |i, j| if j < t { T::ZERO } else { noise[(i, j - t)] }))
            }
            Probes::Hutchinson { .. } => None,
        };
        let mut problem = Problem::new(system, function.as_ref(), noise.as_ref().map(Mat::as_ref))?;
        if let Some(features) = features {
            problem = problem.with_features(features);
        }
        let solution = solve(method, &problem, start, budget, observer)?;
        Ok(Self { targets: t, signs, solution })
    }

    /// One pullback of `n²` entries.
    pub(super) fn gradient(self, kernel: &dyn Kernel<T>, x: MatRef<'_, T>) -> EvidenceGradient<T> {
        let Self { targets: t, signs, solution } = self;
        let weights = &solution.weights;
        let (n, columns) = weights.shape();
        let share = T::from_f64(-0.5 * t as f64 / (columns - t) as f64);
        let left = Mat::from_fn(n, columns, |i, j| {
            if j < t { T::from_f64(0.5) * weights[(i, j)] } else { share * weights[(i, j)] }
        });
        let right = Mat::from_fn(n, columns, |i, j| match &signs {
            Some(signs) if j >= t => signs[(i, j - t)],
            _ => weights[(i, j)],
        });
        let kernel =
            pullback_quadratic(kernel, x, (left.as_ref(), right.as_ref()), Request::PARAMETERS).parameters;
        let noise = (0..columns)
            .map(|j| (0..n).map(|i| left[(i, j)].to_f64() * right[(i, j)].to_f64()).sum::<f64>())
            .sum();
        EvidenceGradient { kernel, noise, solution }
    }
}
