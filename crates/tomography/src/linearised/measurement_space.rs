//! Samples and modes by conjugate gradients over the measurements: c numbers for each, where the weights are many times as many.

use super::filters::WeightPrior;
use super::measured::MeasuredTangent;
use super::tangent::PriorRoot;
use crate::measured::ObservedPrior;
use faer::{Mat, MatRef, Scale};
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::solve::{ConjugateGradientState, ConjugateGradients, Preconditioner, SolveError};
use posterior_linear::LinearError;
use posterior_linear::sampled::{
    ConjugateOptions, Drawn, FoundMode, SampledError, Sampler, WatchSolver, observed_normals,
};
use posterior_networks::Precision;
use posterior_optim::{Clock, Iteration, Limits, Progress, Reason, Run, Step, drive};
use std::f64::consts::TAU;
use std::ops::Range;

/// What makes the preconditioner of `K / a + noise I` for a precision a and a noise variance.
pub type MakePreconditioner<'a> =
    dyn Fn(f64, f64) -> Result<Box<dyn Preconditioner<f64>>, SolveError> + Sync + 'a;

/// Samples of a g-prior's posterior by `zeta = a^-1/2 (w - F' T' C^-1 (E + T F w))` with the root F of the prior over pictures: those of [`posterior_linear::sampled::WeightSpace`] on the same noise.
///
/// Source: Antorán (2024), algorithm 6; spec `tomography`, section 7.2.
pub struct MeasurementSpace<'a, T: Precision> {
    /// The model.
    pub measured: &'a MeasuredTangent<'a, T>,
    /// Scales of the weights (d).
    pub scales: &'a [f64],
    /// `y~` (c).
    pub targets: &'a [f64],
    /// Variance of the likelihood's noise, in units of which strengths are.
    pub unit_noise: f64,
    /// Numbers of the samples.
    pub samples: Range<usize>,
    /// Their seed.
    pub seed: u64,
    /// Standard normals of their weights (d x K), of which [`weight_normals`](posterior_linear::sampled::weight_normals) are the same as those of other samplers.
    pub white: &'a Mat<f64>,
    /// What solves are preconditioned with.
    pub preconditioner: &'a MakePreconditioner<'a>,
    /// How far they are pursued.
    pub options: &'a ConjugateOptions,
}

/// A solve as what is driven.
struct Solving<'a> {
    solver: ConjugateGradients<'a, f64>,
    residual: f64,
    tolerance: f64,
}

impl Iteration for Solving<'_> {
    type Error = SampledError;

    fn progress(&self) -> Progress {
        let step = self.solver.state().iteration;
        Progress { step, residual: Some(self.residual), evaluations: step, ..Progress::default() }
    }

    fn step(&mut self, _: &mut Run<'_, Self>) -> Result<Step, SampledError> {
        if self.solver.step()? {
            self.residual = self.solver.relative_residuals().into_iter().fold(0.0, f64::max);
            return Ok(Step::Taken);
        }
        let within = self.residual <= self.tolerance;
        Ok(Step::Ended(if within { Reason::Tolerance } else { Reason::Precision }))
    }
}

/// The prior behind the projector, whose sizes and noise are known to be right.
fn observed<'a>(
    root: &'a dyn LinearOperator<f64>,
    projector: &'a dyn LinearOperator<f64>,
    noise_variance: f64,
) -> Result<ObservedPrior<'a>, SampledError> {
    let found = ObservedPrior::new(root, projector, noise_variance);
    found.map_err(|e| LinearError::Features(Box::new(e)).into())
}

/// Solves `C U = R` (c x k) from zero or a saved state.
pub(crate) fn solve(
    matrix: &dyn LinearOperator<f64>,
    preconditioner: &dyn Preconditioner<f64>,
    right: MatRef<'_, f64>,
    saved: Option<ConjugateGradientState<f64>>,
    options: &ConjugateOptions,
    watch: &mut WatchSolver<'_, ConjugateGradientState<f64>>,
) -> Result<(Mat<f64>, usize, Reason), SampledError> {
    let tolerance = options.tolerance;
    let solver = match saved {
        Some(state) => ConjugateGradients::resume(matrix, preconditioner, right, state, tolerance, 0.0),
        None => ConjugateGradients::new(matrix, preconditioner, right, None, tolerance, 0.0),
    }?;
    let residual = solver.relative_residuals().into_iter().fold(0.0, f64::max);
    let mut solving = Solving { solver, residual, tolerance };
    let limits = Limits { steps: options.steps, time: None };
    let mut tell = |progress: &Progress, own: &Solving<'_>| watch(progress, &|| own.solver.state().clone());
    let (reason, progress) = drive(&mut solving, limits, Clock::start(), &mut tell)?;
    Ok((solving.solver.into_state().solution, progress.step, reason))
}

impl<T: Precision> MeasurementSpace<'_, T> {
    /// The one precision, and what belongs to it.
    fn root(&self, precisions: &[f64]) -> Result<(f64, PriorRoot<'_, T>), SampledError> {
        let Some(&a) = precisions.first().filter(|a| precisions.iter().all(|p| p == *a)) else {
            let expected = "samples over the measurements know one prior precision";
            let value = precisions.last().copied().unwrap_or(f64::NAN);
            return Err(LinearError::Option { name: "prior precision", value, expected }.into());
        };
        let deviations = self.scales.iter().map(|s| s / a.sqrt()).collect();
        let root = PriorRoot::new(self.measured.tangent(), WeightPrior::Independent(deviations));
        Ok((a, root.map_err(|e| LinearError::Features(Box::new(e)))?))
    }
}

impl<T: Precision> Sampler for MeasurementSpace<'_, T> {
    type State = ConjugateGradientState<f64>;

    fn samples(
        &mut self,
        precisions: &[f64],
        strength: f64,
        _: Option<&Mat<f64>>,
        saved: Option<Self::State>,
        watch: &mut WatchSolver<'_, Self::State>,
    ) -> Result<Drawn, SampledError> {
        let (a, root) = self.root(precisions)?;
        let (c, noise_variance) = (self.measured.measurements(), self.unit_noise / strength);
        let projector = self.measured.projector();
        let normals = observed_normals(c, 1, &self.samples, self.seed);
        let noise = Scale(noise_variance.sqrt()) * normals;
        let prior = projector.multiply(root.multiply(self.white.as_ref()).as_ref());
        let right = &prior + &noise;
        let matrix = observed(&root, projector, noise_variance)?;
        let preconditioner = (self.preconditioner)(a, noise_variance)?;
        let (dual, steps, reason) =
            solve(&matrix, &*preconditioner, right.as_ref(), saved, self.options, watch)?;
        let pulled = root.multiply_transpose(projector.multiply_transpose(dual.as_ref()).as_ref());
        let samples = Scale(a.sqrt().recip()) * (self.white - pulled);
        // T F (..) without another product: what the noise leaves of the solve.
        let outputs = Scale(noise_variance) * &dual - &noise;
        let squared_outputs = outputs.col_iter().map(|o| o.squared_norm_l2() / noise_variance).collect();
        Ok(Drawn { samples, squared_outputs: Some(squared_outputs), steps, reason })
    }

    fn mode(
        &mut self,
        precisions: &[f64],
        strength: f64,
        watch: &mut WatchSolver<'_, Self::State>,
    ) -> Result<Option<FoundMode>, SampledError> {
        let (a, root) = self.root(precisions)?;
        let (c, noise_variance) = (self.measured.measurements(), self.unit_noise / strength);
        let projector = self.measured.projector();
        let matrix = observed(&root, projector, noise_variance)?;
        let preconditioner = (self.preconditioner)(a, noise_variance)?;
        let right = MatRef::from_column_major_slice(self.targets, c, 1);
        let (dual, steps, reason) = solve(&matrix, &*preconditioner, right, None, self.options, watch)?;
        if reason == Reason::Interrupted {
            return Err(LinearError::Interrupted.into());
        }
        let pulled = root.multiply_transpose(projector.multiply_transpose(dual.as_ref()).as_ref());
        let weights = pulled.col_as_slice(0).iter().map(|w| w / a.sqrt()).collect();
        let residual = noise_variance.powi(2) * dual.col(0).squared_norm_l2();
        let log_likelihood = -0.5 * (residual / self.unit_noise + c as f64 * (TAU * self.unit_noise).ln());
        let converged = Some(reason == Reason::Tolerance);
        Ok(Some(FoundMode { weights, log_likelihood, steps, converged }))
    }
}
