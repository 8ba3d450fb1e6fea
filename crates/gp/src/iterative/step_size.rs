//! Step sizes: the largest that is safe, found from the largest eigenvalue.

use super::problem::Problem;
use crate::GpError;
use posterior_linalg::Real;
use posterior_linalg::solve::{SolveError, largest_eigenvalue_from_subset};
use serde::{Deserialize, Serialize};

/// Rows of the sample that the largest eigenvalue is estimated from.
const SUBSET: usize = 500;

/// How long a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepSize {
    /// The rule of spec `stochastic_gaussian_processes`, section 15.4, from a sample of 500 rows.
    #[default]
    Automatic,
    /// βn: the step size on the summed gradient times the number of rows, as papers quote it.
    TimesRows(f64),
}

impl StepSize {
    /// The fixed value, checked.
    pub(super) fn fixed(self) -> Result<Option<f64>, GpError> {
        match self {
            Self::Automatic => Ok(None),
            Self::TimesRows(value) if value > 0.0 && value.is_finite() => Ok(Some(value)),
            Self::TimesRows(value) => {
                Err(SolveError::Setting { what: "the step size", value, needed: "positive and finite" }
                    .into())
            }
        }
    }
}

/// What limits a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curvature {
    /// The largest eigenvalue of K, estimated.
    pub largest_eigenvalue: f64,
    /// The largest entry on the diagonal of K.
    pub largest_diagonal: f64,
    /// The largest noise variance.
    pub largest_noise: f64,
    /// n.
    pub rows: usize,
}

impl Curvature {
    /// Estimates it from 500 rows. Cost: their 250,000 entries of K.
    ///
    /// # Errors
    /// [`GpError::Solve`] when the kernel matrix is not finite.
    pub fn of<T: Real>(problem: &Problem<'_, T>, seed: u64) -> Result<Self, GpError> {
        let system = problem.system;
        let matrix = system.matrix();
        Ok(Self {
            largest_eigenvalue: largest_eigenvalue_from_subset(matrix, SUBSET, seed)?,
            largest_diagonal: matrix.diagonal().iter().fold(0.0, |largest, v| largest.max(v.to_f64())),
            largest_noise: system.largest_noise(),
            rows: system.rows(),
        })
    }

    /// A stable β for dual descent with batches of `batch` rows and Nesterov momentum ρ:
    /// `1 / [λ̃₁ (1 + 2ρ)/(2(1 + ρ)) + n κ̃/(2 r (1 - ρ))]`, with `λ̃₁ = λ₁ + noise` and `κ̃ = κ + noise`: the full-batch limit of the method and
    /// the noise of random coordinates, combined.
    pub fn dual_step(&self, batch: usize, momentum: f64) -> f64 {
        let eigenvalue = self.largest_eigenvalue + self.largest_noise;
        let diagonal = self.largest_diagonal + self.largest_noise;
        1.0 / self.combined(eigenvalue, diagonal, batch, momentum)
    }

    /// The same for the primal objective, whose Hessian is `K K̃`: a batch of rows i has curvature up to `n ‖K_i‖² <= n κ λ₁`.
    pub fn primal_step(&self, batch: usize, momentum: f64) -> f64 {
        let eigenvalue = self.largest_eigenvalue + self.largest_noise;
        1.0 / (self.largest_eigenvalue * self.combined(eigenvalue, self.largest_diagonal, batch, momentum))
    }

    fn combined(&self, eigenvalue: f64, diagonal: f64, batch: usize, momentum: f64) -> f64 {
        // Kept with full batches, too: without it the step would stand exactly at the limit of stability.
        let stochastic = self.rows as f64 * diagonal / (2.0 * batch.min(self.rows) as f64 * (1.0 - momentum));
        eigenvalue * (1.0 + 2.0 * momentum) / (2.0 * (1.0 + momentum)) + stochastic
    }
}
