//! The **log evidence** without factors, with its standard error: stochastic Lanczos quadrature for the log-determinant.
//!
//! ```text
//! log det K̃ = log det P + tr log(P^-½ K̃ P^-½)             P: the preconditioner
//! tr log(B)  = E[n uᵀ log(B) u]                            u uniform on the sphere: the direction of P^-½ z, z ~ N(0, P)
//! uᵀ log(B) u ≈ e₁ᵀ log(T) e₁                              T: what conjugate gradients on K̃ v = z have seen of B
//! ```
//!
//! Targets and probes are columns of one solve, whose step lengths are T. The better the preconditioner, the nearer B is to the identity and the smaller the error. Source: Gardner, Pleiss, Bindel, Weinberger and Wilson (2018), *GPyTorch*; Ubaru, Chen and Saad (2017);
//! spec `deep_kernel_decomposition`, section 7.3.
//!
//! Differs from the published estimator in: each probe's form is multiplied by n in place of `zᵀ P⁻¹ z`, whose mean that is: of a normal vector length and direction are independent, so that the estimate stays unbiased and loses the variance of the length.

use super::condition::narrow;
use super::posterior::PathwisePosterior;
use super::variance::solvable;
use crate::GpError;
use crate::data::same_width;
use crate::iterative::problem::check_finite;
use crate::iterative::solver::Budget;
use faer::{Mat, MatRef};
use posterior_linalg::random::Streams;
use posterior_linalg::solve::{
    ConjugateGradients, Estimate, PreconditionerChoice, SolveError, System, Tridiagonal,
};
use posterior_linalg::{PerPrecision, Real, compiled_here};
use posterior_optim::{Clock, Progress, Signal};
use serde::{Deserialize, Serialize};

/// Steps whose coefficients are used: the rule of so many nodes is exact to rounding long before, and its eigenvalues cost their cube.
const RULE: usize = 200;

/// An estimate of the log evidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEvidence {
    /// Its value, summed over targets.
    pub value: f64,
    /// The standard error of it, which the probes leave.
    pub standard_error: f64,
    /// The log-determinant of `K̃` alone.
    pub log_determinant: f64,
    /// Random vectors.
    pub probes: usize,
    /// Iterations of the solve.
    pub iterations: usize,
    /// The largest relative residual that a target or a probe ended with.
    pub residual: f64,
}

/// Is told each step of the solve, and may stop it.
pub type EvidenceObserver<'a> = dyn FnMut(&Progress) -> Signal + 'a;

/// Estimates the log evidence of `targets` (n x T, prior mean subtracted) under `system`, the kernel matrix with noise, with so many probes; none where the observer stops it.
///
/// Cost: one solve with T + probes right-hand sides, and eigenvalues of a tridiagonal matrix of at most 200 rows for each probe. The fit's error is quadratic in the residual of the targets' solves; the quadrature converges with the solves of the probes.
///
/// # Errors
/// [`GpError::Empty`] without targets, [`GpError::Shape`] for fewer than two probes (one has no standard error), [`GpError::NotFinite`], those of the solver.
pub fn log_evidence<T: Real>(
    system: &System<'_, T>,
    targets: MatRef<'_, T>,
    preconditioner: PreconditionerChoice,
    (probes, seed): (usize, u64),
    budget: &Budget,
    observer: &mut EvidenceObserver<'_>,
) -> Result<Option<LogEvidence>, GpError> {
    let (n, t) = targets.shape();
    same_width("rows of the targets", system.rows(), n)?;
    if t == 0 || n == 0 {
        return Err(GpError::Empty { what: "the set of targets" });
    }
    if probes < 2 {
        return Err(GpError::Shape { what: "probes of a log-determinant", expected: 2, actual: probes });
    }
    check_finite("target", targets)?;
    let clock = Clock::start();
    let preconditioner = preconditioner.build(system)?;
    let drawn = preconditioner.draw(n, probes, &mut Streams::new(seed).stream("gp/log-evidence/probes"));
    let right = Mat::from_fn(n, t + probes, |i, j| if j < t { targets[(i, j)] } else { drawn[(i, j - t)] });
    let mut solver =
        ConjugateGradients::new(system, &*preconditioner, right.as_ref(), None, budget.tolerance, 0.0)?
            .recording(t..t + probes);
    let in_time = || budget.time.is_none_or(|most| clock.elapsed() < most);
    while solver.state().iteration < budget.steps && in_time() && solver.step()? {
        let progress = Progress {
            step: solver.state().iteration,
            steps_planned: budget.steps,
            elapsed: clock.elapsed(),
            ..Progress::default()
        };
        if observer(&progress) == Signal::Stop {
            return Ok(None);
        }
    }
    let forms = (t..t + probes).map(|j| Ok(n as f64 * log_form(solver.tridiagonal(j))?));
    let forms = Estimate::of(&forms.collect::<Result<Vec<f64>, SolveError>>()?);
    let residual = solver.relative_residuals().into_iter().fold(0.0, f64::max);
    let state = solver.into_state();
    // uᵀ (z + (z - K̃ u)) is zᵀ K̃⁻¹ z up to the square of the residual.
    let product = system.residual(state.solution.get(.., ..t), targets);
    let entry = |i: usize, j: usize| {
        state.solution[(i, j)].to_f64() * (targets[(i, j)].to_f64() + product[(i, j)].to_f64())
    };
    let fit: f64 = (0..t).map(|j| (0..n).map(|i| entry(i, j)).sum::<f64>()).sum();
    let log_determinant = preconditioner.log_determinant() + forms.mean;
    let constant = n as f64 * (2.0 * std::f64::consts::PI).ln();
    Ok(Some(LogEvidence {
        value: -0.5 * (fit + t as f64 * (log_determinant + constant)),
        standard_error: 0.5 * t as f64 * forms.standard_error,
        log_determinant,
        probes,
        iterations: state.iteration,
        residual,
    }))
}

/// `e₁ᵀ log(T) e₁` of at most [`RULE`] steps; 0 of a vector that took none, on which the matrix is the identity.
fn log_form(mut tridiagonal: Tridiagonal) -> Result<f64, SolveError> {
    tridiagonal.diagonal.truncate(RULE);
    // Rounding may leave a node at 0; it is raised to the smallest normal number.
    let log = |node: f64| node.max(f64::MIN_POSITIVE).ln();
    Ok(tridiagonal.gauss_rule()?.into_iter().map(|(node, weight)| weight * log(node)).sum())
}

impl<T: Real> PathwisePosterior<T> {
    /// The log evidence of its data at its hyperparameters, as [`log_evidence`] estimates it. Only with weights on all rows.
    ///
    /// # Errors
    /// As [`log_evidence`]; [`GpError::ExactVariance`] on inducing inputs.
    pub fn log_evidence(
        &self,
        preconditioner: PreconditionerChoice,
        (probes, seed): (usize, u64),
        budget: &Budget,
        observer: &mut EvidenceObserver<'_>,
    ) -> Result<Option<LogEvidence>, GpError> {
        compiled_here!(T: Real, PerPrecision; ['a, 'b: 'a] of_posterior, (
            posterior: &'a PathwisePosterior<T> = self,
            preconditioner: PreconditionerChoice = preconditioner,
            probes: (usize, u64) = (probes, seed),
            budget: &'a Budget = budget,
            observer: &'a mut EvidenceObserver<'b> = observer,
        ) -> Result<Option<LogEvidence>, GpError>)
    }
}

/// See [`PathwisePosterior::log_evidence`].
fn of_posterior<T: Real>(
    posterior: &PathwisePosterior<T>,
    preconditioner: PreconditionerChoice,
    probes: (usize, u64),
    budget: &Budget,
    observer: &mut EvidenceObserver<'_>,
) -> Result<Option<LogEvidence>, GpError> {
    let (matrix, noise) = solvable(posterior)?;
    let system = System::new(&matrix, noise)?;
    let data = posterior.data();
    let residuals: Mat<f64> = data.targets() - posterior.model().mean.evaluate(data.inputs());
    log_evidence(&system, narrow::<T>(residuals.as_ref()).as_ref(), preconditioner, probes, budget, observer)
}
