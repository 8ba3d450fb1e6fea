//! Dual descent on the tangent kernel.

use super::options::DualOptions;
use crate::LaplaceError;
use crate::function_space::FunctionSpace;
use crate::problem::{Data, Problem};
use crate::run::Run;
use faer::{Mat, Scale};
use posterior_gp::GpError;
use posterior_gp::iterative::{self, Budget, Iterate, Method, SolverState, Start, solve};
use posterior_linalg::operator::{Dense, RowAccess};
use posterior_linalg::solve::System;
use posterior_linear::LinearError;
use posterior_linear::sampled::{
    Drawn, Noise, ObservedKernel, SampledError, SampledModel, Sampler, WatchSolver, observed_normals, pull,
    push,
};
use posterior_networks::Precision;
use posterior_optim::Progress;
use posterior_tangent::Tangent;

/// The same samples through function space: `zeta = w0 + s^(1/2) A^-1 Phi' R tau` with `(K + (a / s) I) tau = (a / s) (e - s^(1/2) R' Phi w0)`, `K = R' Phi Phi' R` between all observed directions.
///
/// `e - s^(1/2) R' Phi zeta = tau`, by which the effective dimension costs nothing, and by which earlier samples say where to begin. Source: spec `linearised_laplace`, section 5.11.
pub(super) struct Dual<'a, 'f, T: Precision> {
    model: &'a SampledModel<'a, T, Tangent<'f, T>>,
    noise: &'a Noise,
    kernel: &'a Kernel<'a, 'f, T>,
    /// `e`, directions x K.
    normals: Mat<f64>,
    options: &'a DualOptions,
}

/// The kernel between observed directions.
pub(super) enum Kernel<'a, 'f, T: Precision> {
    /// Stored, with cheap rows.
    Stored(Dense<f64>),
    /// By products.
    Products(ObservedKernel<'a, T, Tangent<'f, T>>),
}

impl<'a, 'f, T: Precision> Kernel<'a, 'f, T> {
    /// Stored where it fits `memory` bytes and features are not scaled, else by products.
    pub(super) fn of(
        problem: &Problem<'_, T>,
        model: &'a SampledModel<'a, T, Tangent<'f, T>>,
        run: &mut Run<'_>,
    ) -> Result<Self, LaplaceError> {
        let rows = (model.examples() * model.likelihood().root_width()) as u64;
        // The kernel, and what is copied of it while it is made.
        let bytes = rows.saturating_mul(rows).saturating_mul(16);
        if model.scales().is_some() || bytes > problem.memory {
            return Ok(Self::Products(ObservedKernel::new(model)?));
        }
        let data = Data { likelihood: model.likelihood(), ..problem.data };
        let (points, _) = FunctionSpace::new(&Problem { data, ..*problem }, None, run)?;
        Ok(Self::Stored(Dense::new(points.gram().clone())))
    }

    fn rows(&self) -> &dyn RowAccess<f64> {
        match self {
            Self::Stored(kernel) => kernel,
            Self::Products(kernel) => kernel,
        }
    }

    fn failure(&self) -> Result<(), LinearError> {
        match self {
            Self::Stored(_) => Ok(()),
            Self::Products(kernel) => kernel.failure(),
        }
    }
}

impl<'a, 'f, T: Precision> Dual<'a, 'f, T> {
    /// Of a model, frozen noise and a kernel.
    pub(super) fn new(
        model: &'a SampledModel<'a, T, Tangent<'f, T>>,
        noise: &'a Noise,
        kernel: &'a Kernel<'a, 'f, T>,
        options: &'a DualOptions,
    ) -> Self {
        let width = model.likelihood().root_width();
        let normals = observed_normals(model.examples(), width, &noise.samples, noise.seed);
        Self { model, noise, kernel, normals, options }
    }

    /// `e - s^(1/2) R' Phi z`.
    fn left(&self, z: &Mat<f64>, strength: f64) -> Result<Mat<f64>, LinearError> {
        Ok(&self.normals - push(self.model, None, z.as_ref())? * Scale(strength.sqrt()))
    }
}

fn failed(error: GpError) -> SampledError {
    SampledError::State { what: "dual descent", problem: error.to_string() }
}

impl<T: Precision> Sampler for Dual<'_, '_, T> {
    type State = SolverState<f64>;

    fn samples(
        &mut self,
        precisions: &[f64],
        strength: f64,
        start: Option<&Mat<f64>>,
        saved: Option<SolverState<f64>>,
        watch: &mut WatchSolver<'_, SolverState<f64>>,
    ) -> Result<Drawn, SampledError> {
        let Some(&a) = precisions.first().filter(|a| precisions.iter().all(|p| p == *a)) else {
            let expected = "dual descent knows one prior precision";
            let value = precisions.last().copied().unwrap_or(f64::NAN);
            return Err(LinearError::Option { name: "prior precision", value, expected }.into());
        };
        let ratio = a / strength;
        let prior = self.noise.prior_draws(precisions)?;
        let targets = self.left(&prior, strength)? * Scale(ratio);
        let system = System::uniform(self.kernel.rows(), ratio)?;
        let problem = iterative::Problem::new(&system, targets.as_ref(), None).map_err(failed)?;
        let start = match (saved, start) {
            (Some(state), _) => Start::Resume(state),
            (None, Some(samples)) => Start::Weights(self.left(samples, strength)?),
            (None, None) => Start::Zero,
        };
        let budget = Budget { steps: self.options.steps, time: None, tolerance: self.options.tolerance };
        let method = Method::DualDescent(self.options.descent.clone());
        let solution =
            solve(&method, &problem, start, &budget, &mut |progress: &Progress, own: &dyn Iterate<f64>| {
                watch(progress, &|| own.state(progress))
            });
        self.kernel.failure()?;
        let solution = solution.map_err(failed)?;
        let tau = solution.weights;
        let moved = pull(self.model, None, tau.as_ref())? * Scale(strength.sqrt() / a);
        let squared_outputs =
            (0..tau.ncols()).map(|j| (self.normals.col(j) - tau.col(j)).squared_norm_l2()).collect();
        Ok(Drawn {
            samples: prior + moved,
            squared_outputs: Some(squared_outputs),
            steps: solution.progress.step,
            reason: solution.reason,
        })
    }
}
