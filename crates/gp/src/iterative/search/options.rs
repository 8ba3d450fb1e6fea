//! Settings, their ranges, and what they will take.

use crate::exact::Plan;
use crate::iterative::{Budget, ConjugateGradientOptions, Method, PathwiseSettings};
use crate::{Hyperprior, Observations};
use posterior_linalg::Real;
use posterior_linalg::solve::{PreconditionerChoice, SolveError};
use posterior_optim::{Constraint, Schedule};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What the traces are estimated with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// Random signs (Hutchinson): unbiased for every kernel.
    #[default]
    Signs,
    /// Prior functions from random features plus noise: the solutions are those of posterior samples, so the last ones are where the solve for the model begins. Biased by the features, for the kernels that have some.
    Pathwise,
}

/// How to search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchOptions {
    /// Steps of Adam.
    pub steps: usize,
    /// Adam's step size in the unconstrained parameters; its objective is the negative log evidence for each target value.
    pub learning_rate: f64,
    /// How the step size changes over the steps.
    pub schedule: Schedule,
    /// Share of the iterates, in (0, 1], whose mean is the result: of those there are, the last.
    pub averaged: f64,
    /// What solves.
    pub method: Method,
    /// The solves: budget of each, number of probes p (`samples`), their features, their seed, bytes for keeping the kernel matrix.
    pub solves: PathwiseSettings,
    /// What the probes are.
    pub probes: ProbeKind,
    /// Draw other probes at every step: the error of the gradient averages out over steps, but the probes' solves begin at zero.
    pub fresh_probes: bool,
    /// Begin each solve at the solutions of the step before. Direct solves have no use for it.
    pub warm_starts: bool,
    /// Most wall-clock time; looked at between steps.
    pub time: Option<Duration>,
    /// Priors on hyperparameters, added to the log evidence.
    pub hyperpriors: Vec<Hyperprior>,
    /// Parameters that stay where they are, or within bounds.
    pub constraints: Vec<Constraint>,
    /// Most memory that the plan may need, in bytes.
    pub memory_limit: u64,
}

impl Default for SearchOptions {
    /// 100 steps of size 0.1, the last quarter averaged; conjugate gradients to a residual of 1e-2 with 64 random signs, held fixed; 8 GiB.
    fn default() -> Self {
        Self {
            steps: 100,
            learning_rate: 0.1,
            schedule: Schedule::Constant,
            averaged: 0.25,
            method: Method::ConjugateGradients(ConjugateGradientOptions::default()),
            solves: PathwiseSettings {
                budget: Budget { steps: 1000, time: None, tolerance: 1e-2 },
                ..PathwiseSettings::default()
            },
            probes: ProbeKind::default(),
            fresh_probes: false,
            warm_starts: true,
            time: None,
            hyperpriors: Vec::new(),
            constraints: Vec::new(),
            memory_limit: 8 << 30,
        }
    }
}

/// Kernel tiles and buffers of threads, in bytes.
const WORKING_BYTES: u64 = 64 << 20;

/// Parameters of every step are kept, in memory and in saved states.
const MOST_STEPS: usize = 10_000;

impl SearchOptions {
    pub(super) fn check(&self) -> Result<(), SolveError> {
        let range = |what, value, needed, holds: bool| {
            if holds { Ok(()) } else { Err(SolveError::Setting { what, value, needed }) }
        };
        let rate = self.learning_rate;
        range("the learning rate", rate, "positive and finite", rate > 0.0 && rate.is_finite())?;
        let share = self.averaged;
        range("the averaged share", share, "above 0 and at most 1", share > 0.0 && share <= 1.0)?;
        let steps = self.steps;
        range("the number of steps", steps as f64, "at most 10000", steps <= MOST_STEPS)?;
        range("the number of probes", self.solves.samples as f64, "at least 1", self.solves.samples > 0)
    }

    /// [`Self::plan`] for these data.
    pub(super) fn plan_of<T: Real>(&self, data: &Observations) -> Plan {
        self.plan::<T>(data.rows(), data.inputs().ncols(), data.targets().ncols())
    }

    /// Memory at the peak and work of one step, its solve using up its budget, for a kernel in precision T.
    pub fn plan<T: Real>(&self, rows: usize, inputs: usize, targets: usize) -> Plan {
        let number = size_of::<T>() as u64;
        let columns = targets.saturating_add(self.solves.samples);
        let (n, d, s) = (rows as f64, inputs as f64, columns as f64);
        let kernel = 2.0 * d + 30.0;
        let on_batches = |batch: usize, passes: f64| {
            let work = batch.min(rows) as f64 * n * (kernel + passes * s);
            self.solves.budget.steps as f64 * work
        };
        // Columns of n numbers beside those of targets and probes, and the operations of one solve.
        let (extra, dense, flops) = match &self.method {
            Method::Direct => (0, true, n.powi(3) / 3.0 + 2.0 * n * n * s),
            Method::ConjugateGradients(options) => {
                let rank = match options.preconditioner {
                    PreconditionerChoice::None => 0,
                    PreconditionerChoice::PivotedCholesky { rank, .. } => rank.min(rows),
                    // Basis, image and what is orthonormalised, in f64.
                    PreconditionerChoice::Nystrom { rank, .. } => rank.min(rows).saturating_mul(8),
                };
                (rank, false, self.solves.budget.steps as f64 * n * n * (0.5 * kernel + 2.0 * s))
            }
            Method::DualDescent(options) => (0, false, on_batches(options.batch, 2.0)),
            Method::SketchAndProject(options) => {
                let block = options.block_of(rows, columns);
                let own = options.block_bytes(block, size_of::<T>()) as usize / size_of::<T>();
                let share = 1.0 + options.block_share(rows, columns);
                (own.div_ceil(rows.max(1)), false, share * on_batches(block, 2.0))
            }
            Method::Descent(options) => (0, false, on_batches(options.batch, 4.0)),
        };
        // Targets and their noise, as generated and as solved for; at most seven blocks of a solver or of the pullback; the start, and the solutions it is
        // a copy of.
        let blocks = columns.saturating_mul(13);
        let bytes = |counts: [u64; 2], of: u64| counts[0].saturating_mul(counts[1]).saturating_mul(of);
        let n = rows as u64;
        let peak_bytes = [
            bytes([n, inputs as u64], number),
            // The data stand with the caller.
            bytes([n, (inputs + 2 * targets + 2) as u64], 8),
            bytes([n, blocks.saturating_add(extra) as u64], number),
            bytes([n, n], number).min(self.solves.cache_bytes as u64),
            if dense { bytes([n, n], 8) } else { 0 },
            // Frequencies and weights of prior functions.
            match self.probes {
                ProbeKind::Signs => 0,
                ProbeKind::Pathwise => {
                    let each = inputs.saturating_add(self.solves.samples).saturating_mul(2);
                    bytes([self.solves.features.count as u64, each as u64], number)
                }
            },
        ]
        .into_iter()
        .fold(WORKING_BYTES.min(bytes([n, n], 32)), u64::saturating_add);
        let pullback = (rows as f64).powi(2) * (4.0 * d + 40.0 + 2.0 * s);
        Plan { rows, inputs, targets, peak_bytes, flops_per_evaluation: flops + pullback }
    }
}
