//! What a design costs, before it begins.

use super::{DesignMethod, Scanner};
use crate::Projector;
use crate::running::{Plan, projection_flops};
use serde::{Deserialize, Serialize};

/// Memory and work of a [`Designer`](super::Designer) that ends with a number of angles, beside what the root and the projector keep and need for themselves.
///
/// Compare `bytes` with what there is, and refuse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DesignPlan {
    /// The largest amount held at once.
    pub bytes: f64,
    /// Floating-point operations of dense matrices, from the first to the last angle.
    pub flops: f64,
    /// Columns that pass through F or Fᵀ: what a network's sweeps are counted in.
    pub root_columns: f64,
    /// Rows of an angle times images: each is a ray through an image.
    pub rays: f64,
}

impl DesignPlan {
    /// Of a design by this method from `pilot` to `last` angles with a root of `weights` columns.
    ///
    /// R rows of all angles, c of the last ones, n an angle, p pixels, m draws. Exact: `8cR` bytes for the whitened rows and `8nR` for covariances; `c²R + ncR` flops. Sampled: `8pm` bytes for draws, `16c²` for the growing factor
    /// (two of them while it grows), `4096 · 8m` for projections; `4npm` flops a step to condition them, `3nc²` for the factor, and `R n m` for scores.
    pub fn of(
        scanner: &dyn Scanner,
        weights: usize,
        method: DesignMethod,
        pilot: usize,
        last: usize,
    ) -> Self {
        let (p, n) = (scanner.pixels() as f64, scanner.per_angle() as f64);
        let (all, steps) = (scanner.angles() as f64 * n, last.saturating_sub(pilot) as f64);
        let (first, c, block) = (pilot as f64 * n, last as f64 * n, crate::measured::BLOCK as f64);
        let passing = 8.0 * block.max(n) * (2.0 * p + weights as f64);
        match method {
            DesignMethod::Exact => Self {
                bytes: 8.0 * (c * all + n * all) + 16.0 * n * all + passing,
                flops: c * c * all + 2.0 * n * c * all + (steps + 1.0) * all * n * n / 3.0,
                root_columns: 2.0 * (all + c),
                rays: 2.0 * all * block.max(n) + c * all,
            },
            DesignMethod::Sampled { samples } => {
                let m = samples as f64;
                // c grows evenly from the pilot to the last.
                let squares = (c.powi(3) - first.powi(3)) / 3.0;
                Self {
                    bytes: 8.0 * p * m + 16.0 * c * c + 8.0 * m * n.max(2048.0) + passing,
                    flops: first.powi(3) / 3.0
                        + 2.0 * first * first * m
                        + 3.0 * squares
                        + steps * 4.0 * n * p * m
                        + (steps + 1.0) * all * n * m,
                    root_columns: 2.0 * first + 3.0 * m + steps * 4.0 * n,
                    rays: first * (2.0 * m + 2.0 * first)
                        + (c * c - first * first)
                        + steps * n * (m + 2.0 * n)
                        + (steps + 1.0) * all * m,
                }
            }
        }
    }

    /// The same as work of a projector and, where the root is a network's, of passes through it: so many operations each.
    pub fn work(&self, scanner: &Projector, pass_flops: Option<u64>) -> Plan {
        let rays = scanner.geometry().measurements().max(1) as f64;
        // A product with a network's root is about two passes.
        let passes = pass_flops.map_or((0, 0), |each| ((2.0 * self.root_columns) as u64, each));
        let projections = ((self.rays / rays).ceil() as u64, projection_flops(scanner));
        Plan::new(
            vec![("draws, their projections and the factor", self.bytes as u64)],
            passes,
            projections,
            self.flops as u64,
        )
    }
}
