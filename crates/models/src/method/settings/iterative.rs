//! Iterative solvers.

use super::{MethodSettings, shares};
use crate::method::large::{StepSize, refuse_settings};
use crate::method::training::EVIDENCE_PROBES;
use crate::options::{
    BatchOptions, CgOptions, InducingOptions, InducingSgdOptions, IterativeOptions, KernelPrecision,
    PreconditionerName, SapOptions, SddOptions, SgdOptions,
};
use crate::{Method, ModelError, Solver};
use posterior_gp::iterative::{
    DescentOptions, DualDescentOptions, InducingDescentOptions, Method as SolveMethod,
    SketchAndProjectOptions,
};

/// Passes over the rows of a solve by sketch-and-project that nobody limits.
const PASSES: usize = 100;

/// Steps of descent on the primal that nobody limits.
const STEPS_OF_SGD: usize = 20_000;

impl MethodSettings for CgOptions {
    shares! {
        iterative, iterative_mut: IterativeOptions = |own| own.iterative;
    }

    fn solver(&self, _: usize, seed: u64) -> Option<Solver> {
        Some(Solver::Rows(self.iterative.system.conjugate_gradients(seed)))
    }

    fn tolerance(&self) -> Option<f64> {
        self.tolerance
    }

    fn ends_by_tolerance(&self) -> bool {
        true
    }

    fn usual_steps(&self, _: usize) -> usize {
        1000
    }

    fn open_precision(&mut self) -> Option<&mut Option<KernelPrecision>> {
        Some(&mut self.iterative.system.precision)
    }

    /// Solution, residual, direction, product, targets.
    fn step(&self, size: &StepSize<'_>) -> (u64, f64) {
        let (n, s, system) = (size.rows as u64, size.columns(), &self.iterative.system);
        let rank = match system.preconditioner {
            PreconditionerName::None => 0,
            PreconditionerName::PivotedCholesky => system.rank(),
            // The basis, its image and what is orthonormalised and decomposed, in f64: so much is measured.
            PreconditionerName::Nystrom => system.rank().saturating_mul(16),
        };
        let rank = rank.min(size.rows.saturating_mul(16)) as u64;
        // The log evidence has a solve of its own, beside the weights.
        let probes = EVIDENCE_PROBES as u64 + 1;
        let blocks = (6 * s).max(s + 7 * probes);
        let bytes = n.saturating_mul(size.number.saturating_mul(blocks + rank));
        (
            bytes.saturating_add(size.checkpoint(n, 3)),
            2.0 * size.kernel((size.rows * size.rows) as f64 / 2.0)
                + (size.rows as f64).powi(2) * (2.0 * s as f64 + 2.0 * probes as f64),
        )
    }

    /// All rows at a time; the log evidence is estimated by a solve of its own.
    fn products(&self, _: &Method, rows: usize) -> (usize, f64, Option<usize>) {
        (512, rows as f64 * rows as f64, Some(EVIDENCE_PROBES))
    }

    fn first_look(&self, _: usize) -> usize {
        6
    }
}

impl MethodSettings for SgdOptions {
    shares! {
        iterative, iterative_mut: IterativeOptions = |own| own.iterative;
        batches: BatchOptions = |own| own.batches;
    }

    fn solver(&self, _: usize, seed: u64) -> Option<Solver> {
        Some(Solver::Rows(SolveMethod::Descent(DescentOptions {
            step_size: self.batches.step_size(),
            batch: self.batches.solver_batch(),
            seed,
            ..DescentOptions::default()
        })))
    }

    fn tolerance(&self) -> Option<f64> {
        self.tolerance
    }

    fn usual_steps(&self, _: usize) -> usize {
        STEPS_OF_SGD
    }

    fn step(&self, size: &StepSize<'_>) -> (u64, f64) {
        descent(size, size.rows)
    }

    fn products(&self, _: &Method, rows: usize) -> (usize, f64, Option<usize>) {
        products_of_descent(self.batches.solver_batch(), rows)
    }
}

impl MethodSettings for InducingSgdOptions {
    shares! {
        iterative, iterative_mut: IterativeOptions = |own| own.iterative;
        inducing: InducingOptions = |own| own.inducing;
        batches: BatchOptions = |own| own.batches;
    }

    fn solver(&self, _: usize, seed: u64) -> Option<Solver> {
        Some(Solver::Inducing(InducingDescentOptions {
            step_size: self.batches.step_size(),
            batch: self.batches.solver_batch(),
            seed,
            ..InducingDescentOptions::default()
        }))
    }

    fn usual_steps(&self, _: usize) -> usize {
        STEPS_OF_SGD
    }

    fn step(&self, size: &StepSize<'_>) -> (u64, f64) {
        descent(size, size.points())
    }

    fn products(&self, _: &Method, rows: usize) -> (usize, f64, Option<usize>) {
        products_of_descent(self.batches.solver_batch(), rows)
    }
}

/// Descent on the primal with so many weights. Iterate, velocity, average, a spare; the point, two gradients, what noise pulls, the regulariser's draws and its features; targets twice.
fn descent(size: &StepSize<'_>, weights: usize) -> (u64, f64) {
    let (m, s) = (weights as u64, size.columns());
    let pairs = size.batch() * weights as f64;
    (
        m.saturating_mul(size.number * (12 * s + 200)).saturating_add(size.checkpoint(m, 4)),
        size.kernel(pairs) + 2.0 * pairs * (2.0 * s as f64),
    )
}

/// Descent on the primal multiplies with rows and columns.
fn products_of_descent(batch: usize, rows: usize) -> (usize, f64, Option<usize>) {
    (batch, 2.0 * (batch.min(rows) as f64 * rows as f64), None)
}

impl MethodSettings for SddOptions {
    shares! {
        iterative, iterative_mut: IterativeOptions = |own| own.iterative;
        batches: BatchOptions = |own| own.batches;
    }

    fn solver(&self, _: usize, seed: u64) -> Option<Solver> {
        Some(Solver::Rows(SolveMethod::DualDescent(DualDescentOptions {
            step_size: self.batches.step_size(),
            batch: self.batches.solver_batch(),
            momentum: self.momentum,
            seed,
            ..DualDescentOptions::default()
        })))
    }

    fn tolerance(&self) -> Option<f64> {
        self.tolerance
    }

    fn check(&self, _: usize) -> Result<(), ModelError> {
        let momentum = Some(self.momentum).filter(|v| !(0.0..1.0).contains(v));
        refuse_settings([("the momentum", momentum, "at least 0 and below 1")])
    }
}

impl MethodSettings for SapOptions {
    shares! {
        iterative, iterative_mut: IterativeOptions = |own| own.iterative;
    }

    fn settle(&mut self) {
        let system = &mut self.iterative.system;
        system.precision = system.precision.or(Self::default().iterative.system.precision);
    }

    /// With the block that it has, so that a result says which.
    fn solver(&self, rows: usize, seed: u64) -> Option<Solver> {
        let block = Some(self.block_of(rows));
        let own = SketchAndProjectOptions { block, ..self.own(seed) };
        Some(Solver::Rows(SolveMethod::SketchAndProject(own)))
    }

    fn tolerance(&self) -> Option<f64> {
        self.tolerance
    }

    fn ends_by_tolerance(&self) -> bool {
        true
    }

    fn usual_steps(&self, rows: usize) -> usize {
        (PASSES * rows).div_ceil(self.block_of(rows).max(1)).max(1)
    }

    fn check(&self, rows: usize) -> Result<(), ModelError> {
        let (what, rank) = ("the rank of a block's sketch", self.iterative.system.rank);
        let none = rank.filter(|rank| *rank == 0).map(|_| 0.0);
        let many = rank.filter(|rank| *rank >= self.block_of(rows)).map(|rank| rank as f64);
        let most = "below the rows of a block (--set block-rows, or as many as are usual), which is factored whole without --set rank";
        refuse_settings([
            (what, none, "at least 1: without --set rank blocks are factored, as is better"),
            (what, many, most),
        ])
    }

    /// Two iterates, targets and the draws they come from; a block, and its gradients and directions.
    fn step(&self, size: &StepSize<'_>) -> (u64, f64) {
        let (n, s, number) = (size.rows as u64, size.columns(), size.number);
        let b = self.block_of(size.rows) as u64;
        let own = self.block_bytes(size.rows).saturating_add(b.saturating_mul(4 * s * (number + 8)));
        let pairs = b as f64 * size.rows as f64;
        (
            n.saturating_mul(number * 5 * s).saturating_add(own).saturating_add(size.checkpoint(n, 2)),
            (size.kernel(pairs) + pairs * (2.0 * s as f64)) * (1.0 + self.block_share(size.rows)),
        )
    }

    fn products(&self, _: &Method, rows: usize) -> (usize, f64, Option<usize>) {
        let batch = self.block_of(rows);
        (batch, batch as f64 * rows as f64 * (1.0 + self.block_share(rows)), None)
    }

    /// Two passes.
    fn first_look(&self, rows: usize) -> usize {
        2 * (rows / self.block_of(rows)).max(1)
    }

    fn solves_blocks(&self) -> bool {
        true
    }
}
