//! Iterative solvers.

use super::MethodSettings;
use crate::method::large::{StepSize, refuse_settings};
use crate::method::training::EVIDENCE_PROBES;
use crate::options::{CgOptions, InducingSgdOptions, PreconditionerName, SapOptions, SddOptions, SgdOptions};
use crate::{Method, ModelError};

impl MethodSettings for CgOptions {
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
    fn step(&self, size: &StepSize<'_>) -> (u64, f64) {
        descent(size, size.rows)
    }

    fn products(&self, _: &Method, rows: usize) -> (usize, f64, Option<usize>) {
        products_of_descent(self.batches.solver_batch(), rows)
    }
}

impl MethodSettings for InducingSgdOptions {
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
    fn check(&self, _: usize) -> Result<(), ModelError> {
        let momentum = Some(self.momentum).filter(|v| !(0.0..1.0).contains(v));
        refuse_settings([("the momentum", momentum, "at least 0 and below 1")])
    }
}

impl MethodSettings for SapOptions {
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
