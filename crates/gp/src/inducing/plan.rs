//! What a fit with inducing points will take, said before it is taken.

use crate::RowSource;
use crate::exact::bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Peak memory and work of an inducing-point method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Training rows.
    pub rows: usize,
    /// Inducing points, m.
    pub inducing: usize,
    /// Latent functions.
    pub latents: usize,
    /// Rows that are looked at together: a mini-batch, or a block of the pass over all rows.
    pub batch: usize,
    /// Bytes of the largest simultaneous allocation, data and optimiser included, without the program itself.
    pub peak_bytes: u64,
    /// Floating-point operations of one step with its gradient.
    pub flops_per_step: f64,
}

/// Kernel tiles and buffers of threads, in bytes.
const WORKING_BYTES: u64 = 16 << 20;

impl Plan {
    /// The plan of a collapsed bound, whose step is a pass over all rows in blocks.
    pub fn collapsed(rows: usize, inputs: usize, targets: usize, inducing: usize) -> Self {
        let batch = block_rows(inducing).min(rows);
        // Factor, Ψ, W with its factor and inverse, Γ, the outer product; L-BFGS with ten pairs of vectors.
        let (m, n) = (inducing as f64, rows as f64);
        let flops = 6.0 * n * m * m + 4.0 * m.powi(3) + kernel_flops(n, m, inputs);
        let optimiser = product(&[inducing, inputs, 24 * 8]);
        Self::new((rows, inputs, targets, inducing, targets), batch, 8, 3, optimiser, flops)
    }

    /// The plan of a stochastic bound with C = `latents` functions; `roots` covariances among them.
    pub fn stochastic(
        rows: usize,
        inputs: usize,
        targets: usize,
        inducing: usize,
        latents: usize,
        roots: usize,
        batch: usize,
    ) -> Self {
        let batch = batch.min(rows);
        let (m, r, c) = (inducing as f64, batch as f64, roots as f64);
        let flops = (2.0 + 3.0 * c) * r * m * m + (3.0 + 5.0 * c) * m.powi(3) + kernel_flops(r, m, inputs);
        // Roots and their gradients, and two moments of Adam for each of their entries.
        let optimiser = product(&[inducing, inducing, roots, 6 * 8]).saturating_add(product(&[rows, 8]));
        Self::new((rows, inputs, targets, inducing, latents), batch, 6, 3 + roots, optimiser, flops)
    }

    /// The same where the rows, of so many inputs and targets, are not in memory.
    pub fn elsewhere(self, inputs: usize, targets: usize) -> Self {
        Self { peak_bytes: self.peak_bytes.saturating_sub(data_bytes(self.rows, inputs, targets)), ..self }
    }

    /// The same with these rows, wherever they are.
    pub(super) fn of_rows(self, data: &dyn RowSource) -> Self {
        let [inputs, targets] = data.widths();
        if data.in_memory() { self } else { self.elsewhere(inputs, targets) }
    }

    fn new(
        (rows, inputs, targets, inducing, latents): (usize, usize, usize, usize, usize),
        batch: usize,
        squares: usize,
        panels: usize,
        optimiser: u64,
        flops_per_step: f64,
    ) -> Self {
        let peak_bytes = [
            data_bytes(rows, inputs, targets),
            product(&[inducing, inducing, squares * 8]),
            product(&[inducing, batch, panels.saturating_mul(8)]),
            optimiser,
        ]
        .into_iter()
        .fold(WORKING_BYTES, u64::saturating_add);
        Self { rows, inducing, latents, batch, peak_bytes, flops_per_step }
    }
}

/// Of the data, which stand with the caller and in the fit.
fn data_bytes(rows: usize, inputs: usize, targets: usize) -> u64 {
    product(&[rows, inputs.saturating_add(targets).saturating_add(1), 16])
}

/// Rows of a block in a pass over all rows: its features take at most 16 MiB unless there are very many inducing points.
pub(super) fn block_rows(inducing: usize) -> usize {
    ((2 << 20) / inducing.max(1)).clamp(256, 4096)
}

/// A kernel matrix with its pullback, and that of the inducing points.
fn kernel_flops(rows: f64, inducing: f64, inputs: usize) -> f64 {
    (rows + 0.5 * inducing) * inducing * (8.0 * inputs as f64 + 60.0)
}

fn product(factors: &[usize]) -> u64 {
    factors.iter().fold(1u64, |p, &f| p.saturating_mul(f as u64))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, m, batch) = (self.rows, self.inducing, self.batch);
        write!(
            f,
            "n = {rows} with {m} inducing points, {batch} rows at a time, needs {}",
            bytes(self.peak_bytes)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_grow_with_what_matters_and_never_overflow() {
        let small = Plan::collapsed(45_730, 9, 1, 512);
        assert!(small.peak_bytes > 8 * 8 * 512 * 512 && small.peak_bytes < 200_000_000, "{small}");
        // Memory is linear in rows with the data's own slope.
        let twice = Plan::collapsed(91_460, 9, 1, 512);
        assert_eq!(twice.peak_bytes - small.peak_bytes, 45_730 * 11 * 16);
        assert!(Plan::stochastic(usize::MAX, 9, 1, usize::MAX, 1, 1, 1024).peak_bytes == u64::MAX);
        // From a file the rows cost their order only.
        let [few, many] =
            [1_000, 1_000_000].map(|rows| Plan::stochastic(rows, 8, 1, 512, 1, 1, 256).elsewhere(8, 1));
        assert_eq!(many.peak_bytes - few.peak_bytes, 999_000 * 8);
        let text = Plan::stochastic(1_000_000, 8, 1, 512, 1, 1, 1024).to_string();
        assert!(
            text.starts_with("n = 1000000 with 512 inducing points, 1024 rows at a time, needs"),
            "{text}"
        );
    }
}
