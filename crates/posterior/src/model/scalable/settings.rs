//! What a user may say, and what became of it.

use crate::model::Hyperparameter;
use posterior_gp::iterative::{
    ConjugateGradientOptions, DescentOptions, DualDescentOptions, InducingDescentOptions,
    Method as SolveMethod, Neighbourhoods, PathwiseSettings, StepSize,
};
use posterior_kernels::inducing::InducingChoice;
use posterior_linalg::solve::PreconditionerChoice;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The precision of kernel products and weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelPrecision {
    /// Four bytes a number: twice as fast, and enough unless the noise is tiny.
    #[default]
    Single,
    /// Eight bytes a number.
    Double,
}

/// Settings of the methods for large tables; each method takes those that it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalableSettings {
    /// Posterior samples: variances come from them, with a relative error of `√(2/s)`.
    pub samples: usize,
    /// Random features of the prior functions.
    pub features: usize,
    /// Precision of kernel products and weights; bounds on inducing points are computed in double.
    pub precision: KernelPrecision,
    /// Steps of the solver, or of the stochastic bound. The method's own number where it is absent.
    pub steps: Option<usize>,
    /// Most seconds for the solver.
    pub seconds: Option<f64>,
    /// Rows of a batch.
    pub batch: Option<usize>,
    /// βn, the step size as papers quote it; found automatically where it is absent.
    pub step_size: Option<f64>,
    /// Momentum.
    pub momentum: Option<f64>,
    /// Relative residual at which a solver may stop.
    pub tolerance: Option<f64>,
    /// Conjugate gradients: the preconditioner.
    pub preconditioner: PreconditionerChoice,
    /// Inducing points.
    pub inducing: usize,
    /// How they are chosen.
    pub choice: InducingChoice,
    /// Whether bounds move them.
    pub learn_inducing: bool,
    /// Neighbourhoods whose exact evidence gives the hyperparameters of iterative methods.
    pub neighbourhoods: Neighbourhoods,
    /// Hyperparameters that are given instead of learned.
    pub hyperparameters: Option<Vec<Hyperparameter>>,
    /// Bytes that may be used to keep the kernel matrix.
    pub cache_bytes: usize,
    /// Where an interrupted fit is kept; beside the model where it is absent and the caller names one.
    pub checkpoint: Option<PathBuf>,
    /// Seconds between two checkpoints.
    pub checkpoint_seconds: f64,
}

impl Default for ScalableSettings {
    fn default() -> Self {
        Self {
            samples: 64,
            features: 2000,
            precision: KernelPrecision::Single,
            steps: None,
            seconds: None,
            batch: None,
            step_size: None,
            momentum: None,
            tolerance: None,
            preconditioner: PreconditionerChoice::default(),
            inducing: 512,
            choice: InducingChoice::default(),
            learn_inducing: true,
            // Ten thousand rows each, as published, take hours on two cores; two thousand take a minute or two.
            neighbourhoods: Neighbourhoods { count: 10, size: 2000, seed: 0 },
            hyperparameters: None,
            cache_bytes: 0,
            checkpoint: None,
            checkpoint_seconds: 30.0,
        }
    }
}

impl ScalableSettings {
    /// βn as solvers take it.
    pub(super) fn step(&self) -> StepSize {
        self.step_size.map_or(StepSize::Automatic, StepSize::TimesRows)
    }
}

/// What weights were found with, kept in the model file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solver {
    /// On all rows.
    Rows(SolveMethod),
    /// On inducing inputs.
    Inducing(InducingDescentOptions),
    /// A bound in closed form.
    Collapsed,
    /// A bound on mini-batches.
    Stochastic,
}

impl ScalableSettings {
    pub(super) fn conjugate_gradients(&self) -> SolveMethod {
        SolveMethod::ConjugateGradients(ConjugateGradientOptions {
            preconditioner: self.preconditioner,
            ..Default::default()
        })
    }

    pub(super) fn dual_descent(&self, seed: u64) -> SolveMethod {
        let mut options = DualDescentOptions { step_size: self.step(), seed, ..Default::default() };
        options.batch = self.batch.unwrap_or(options.batch);
        options.momentum = self.momentum.unwrap_or(options.momentum);
        SolveMethod::DualDescent(options)
    }

    pub(super) fn descent(&self, seed: u64) -> SolveMethod {
        let mut options = DescentOptions { step_size: self.step(), seed, ..Default::default() };
        options.batch = self.batch.unwrap_or(options.batch);
        SolveMethod::Descent(options)
    }

    pub(super) fn inducing_descent(&self, seed: u64) -> InducingDescentOptions {
        let mut options = InducingDescentOptions { step_size: self.step(), seed, ..Default::default() };
        options.batch = self.batch.unwrap_or(options.batch);
        options
    }
}

/// How a fit to a large table went; part of the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalableSummary {
    /// What weights were found with.
    pub solver: Solver,
    /// How the posterior was conditioned; absent for bounds.
    pub settings: Option<PathwiseSettings>,
    /// Precision of kernel products and weights.
    pub precision: KernelPrecision,
    /// Where hyperparameters come from, in words.
    pub hyperparameter_source: String,
    /// Log evidence of each neighbourhood, in the order they were drawn.
    pub neighbourhood_evidences: Vec<f64>,
    /// Inducing points that are used.
    pub inducing: usize,
    /// Steps taken.
    pub steps: usize,
    /// Why the solver ended.
    pub ended: String,
    /// The largest relative residual at the end, as far as the method knows it.
    pub residual: Option<f64>,
    /// βn, for methods with a step size.
    pub step_size: Option<f64>,
    /// How often it began anew with a smaller step.
    pub restarts: usize,
    /// The bound on the log evidence, for methods that have one (nats, of standardised targets).
    pub bound: Option<f64>,
    /// Seconds for hyperparameters and for weights.
    pub seconds: [f64; 2],
    /// Steps that an earlier, interrupted run had taken.
    pub resumed_from: usize,
}
