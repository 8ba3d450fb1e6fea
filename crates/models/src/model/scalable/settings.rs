//! What a user may say, and what became of it.

use crate::model::Hyperparameter;
use posterior_gp::inducing::stochastic::{StochasticOptions, VariationalOptimizer};
use posterior_gp::iterative::{
    BlockFit, Blocks, Budget, ConjugateGradientOptions, DescentOptions, DualDescentOptions,
    InducingDescentOptions, Method as SolveMethod, Neighbourhoods, PathwiseSettings, ProbeKind,
    SearchOptions, StepSize,
};
use posterior_kernels::features::FeatureSettings;
use posterior_kernels::inducing::InducingChoice;
use posterior_linalg::solve::PreconditionerChoice;
use posterior_optim::Reason;
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

/// How the hyperparameters of iterative methods are learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HyperparameterSearch {
    /// One objective over blocks of rows, some uniform, some neighbourhoods ([`posterior_gp::iterative::fit_on_blocks`]), then over larger ones.
    #[default]
    Blocks,
    /// The exact evidence on neighbourhoods, averaged: the thesis' recipe.
    Neighbourhoods,
    /// Stochastic gradients of the evidence of all rows.
    Stochastic(StochasticSearch),
}

/// A search by stochastic gradients: each step solves for the targets and the probes on all rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StochasticSearch {
    /// Steps of Adam.
    pub steps: usize,
    /// Its step size.
    pub learning_rate: f64,
    /// Probes.
    pub probes: usize,
    /// What they are.
    pub kind: ProbeKind,
    /// Most iterations of conjugate gradients of each step's solve, which begins where the last one ended: a few are enough, because hyperparameters move
    /// slowly (Lin et al., arXiv:2405.18457).
    pub iterations: usize,
    /// Whether it begins where blocks lead; at the kernel's own values otherwise.
    pub refined: bool,
}

impl Default for StochasticSearch {
    /// 100 steps of size 0.1, each of 15 iterations for 16 prior functions, from the kernel's own values.
    fn default() -> Self {
        Self {
            steps: 100,
            learning_rate: 0.1,
            probes: 16,
            kind: ProbeKind::Pathwise,
            iterations: 15,
            refined: false,
        }
    }
}

impl StochasticSearch {
    /// The search's options for these settings; hyperpriors and limits are the caller's. Solved by conjugate gradients, whatever solves for the
    /// posterior: searches need moderate accuracy at hyperparameters that no step size is known for.
    ///
    /// The kernel matrix is kept where it takes at most half of `memory`: every step multiplies with the same one many times.
    pub(super) fn options(
        &self,
        settings: &ScalableSettings,
        seed: u64,
        rows: usize,
        memory: u64,
    ) -> SearchOptions {
        let number = if settings.precision == KernelPrecision::Single { 4 } else { 8 };
        let matrix = (rows as u64).saturating_mul(rows as u64).saturating_mul(number);
        let cache_bytes = match usize::try_from(matrix) {
            Ok(matrix_bytes) if matrix <= memory / 2 => settings.cache_bytes.max(matrix_bytes),
            _ => settings.cache_bytes,
        };
        SearchOptions {
            steps: self.steps,
            learning_rate: self.learning_rate,
            method: settings.conjugate_gradients(),
            solves: PathwiseSettings {
                budget: Budget { steps: self.iterations, time: None, tolerance: 1e-2 },
                samples: self.probes,
                features: settings.features,
                samples_per_features: settings.samples_per_features,
                seed,
                cache_bytes,
            },
            probes: self.kind,
            ..SearchOptions::default()
        }
    }
}

/// What a search by stochastic gradients did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceSearchSummary {
    /// Steps taken.
    pub steps: usize,
    /// Iterations of conjugate gradients in all of them.
    pub solver_steps: usize,
    /// Norm of the last gradient, for each target value, in the unconstrained parameters.
    pub gradient_norm: Option<f64>,
    /// The largest relative residual of the last solve.
    pub residual: Option<f64>,
    /// Steps whose solve did not reach its tolerance: out of iterations, or at the limit of the precision.
    pub unsolved: usize,
    /// Why it ended: steps or time.
    pub ended: Reason,
}

/// Settings of the methods for large tables; each method takes those that it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalableSettings {
    /// Posterior samples: variances come from them, with a relative error of `√(2/s)`.
    pub samples: usize,
    /// Random features of the prior functions.
    pub features: FeatureSettings,
    /// Samples that share their features; all where there is no number.
    pub samples_per_features: Option<usize>,
    /// Precision of kernel products and weights; bounds on inducing points are computed in double.
    pub precision: KernelPrecision,
    /// Steps of the solver, or of the stochastic bound. The method's own number where it is absent.
    pub steps: Option<usize>,
    /// Most seconds for the whole fit: searches, solver or bound, fallbacks.
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
    /// What moves the distribution of inducing values in the stochastic bound.
    pub variational: VariationalOptimizer,
    /// How hyperparameters of iterative methods are learned.
    pub search: HyperparameterSearch,
    /// Blocks of the first, joint search for hyperparameters.
    pub blocks: Blocks,
    /// Uniform rows of the block that refines it, beside a neighbourhood of half as many; fewer where time or memory is short, none for 0.
    pub refining_rows: usize,
    /// Neighbourhoods whose exact evidences are averaged, where that is asked for.
    pub neighbourhoods: Neighbourhoods,
    /// Rows that the fit does not see, to judge it by; a twentieth or so, at most 512, where there is no number.
    pub held_back: Option<usize>,
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
            features: FeatureSettings::default(),
            samples_per_features: Some(8),
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
            variational: StochasticOptions::default().variational,
            search: HyperparameterSearch::default(),
            blocks: Blocks::default(),
            // An evaluation takes a second or two on two cores, and the search is nearly done.
            refining_rows: 4000,
            held_back: None,
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
    /// Rows that are held back of `rows`: a twentieth, but 100 (of few rows a tenth) at least and 512 at most. Of 512 rows, 95 ± 2.5 % lie inside their 95 %
    /// intervals by chance; more would tell little more.
    pub(super) fn held_back_of(&self, rows: usize) -> usize {
        let usual = (rows / 20).min(512).max((rows / 10).min(100));
        self.held_back.unwrap_or(usual).min(rows.saturating_sub(1) / 2)
    }

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
    Stochastic {
        /// What moved the distribution of inducing values.
        optimizer: VariationalOptimizer,
    },
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
    /// What each stage of a search on blocks found.
    #[serde(default)]
    pub blocks: Vec<BlockFit>,
    /// The noise variance that the evidence wanted, where it was raised to keep the system solvable (see [`Self::hyperparameter_source`]).
    #[serde(default)]
    pub noise_raised_from: Option<f64>,
    /// Log evidence of each neighbourhood, in the order they were drawn.
    pub neighbourhood_evidences: Vec<f64>,
    /// What a search on all rows did, where there was one.
    pub search: Option<EvidenceSearchSummary>,
    /// Inducing points that are used.
    pub inducing: usize,
    /// The radius (in lengthscales) of a cover, or the threshold (in standard units) of pruning, that left so many.
    pub inducing_radius: Option<f64>,
    /// Whether a bound moved them. Those among counts stay where they were chosen.
    pub inducing_moved: bool,
    /// Steps taken.
    pub steps: usize,
    /// Why the solver ended.
    pub ended: String,
    /// The largest relative residual at the end, as far as the method knows it; of inducing-sgd the relative misfit of the targets, which keeps the noise.
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
