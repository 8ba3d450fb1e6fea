//! What a fit or a prediction will take, said before it is taken.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Peak memory and work of an exact Gaussian process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Training rows.
    pub rows: usize,
    /// Input dimension.
    pub inputs: usize,
    /// Targets.
    pub targets: usize,
    /// Bytes of the largest simultaneous allocation, without the program itself.
    pub peak_bytes: u64,
    /// Floating-point operations of one evaluation of the objective with its gradient.
    pub flops_per_evaluation: f64,
}

/// Fixed working memory: kernel tiles, panels of the inverse, blocks of predictions, in bytes.
const WORKING_BYTES: u64 = 32 << 20;

impl Plan {
    /// The plan for the evidence (one n x n matrix).
    pub fn evidence(rows: usize, inputs: usize, targets: usize) -> Self {
        Self::new(rows, inputs, targets, 1, 1.0)
    }

    /// The plan for the leave-one-out score (three n x n matrices, `5n³/3 + ...` flops).
    pub fn leave_one_out(rows: usize, inputs: usize, targets: usize) -> Self {
        Self::new(rows, inputs, targets, 3, 3.0)
    }

    /// The plan for the Laplace approximation of so many latent functions: kernel matrix, adjoint, a factor and a whitened matrix for each function, two more in turn. For classes, whose functions are `coupled`, the factor of their
    /// sum besides; a mode of seven steps with the gradient at it.
    pub fn laplace(rows: usize, inputs: usize, functions: usize, coupled: bool) -> Self {
        let c = functions as u64;
        let (matrices, cubes) = if coupled { (2 * c + 6, 14.0) } else { (c + 5, 5.0) };
        Self::new(rows, inputs, functions, matrices, cubes * functions as f64)
    }

    /// The plan for the bound whose posterior is that of regression on pseudo-targets, of so many functions: kernel matrix, adjoint and two more in turn, and an inverse for each function.
    pub fn gaussianised(rows: usize, inputs: usize, functions: usize) -> Self {
        let c = functions as u64;
        Self::new(rows, inputs, functions, c + 4, 2.0 * functions as f64)
    }

    /// The plan for the evidence of several functions, of so many different noises (kernel matrix, factor and adjoint).
    pub fn several(rows: usize, inputs: usize, functions: usize, noises: usize) -> Self {
        Self::new(rows, inputs, functions, 3, noises as f64)
    }

    fn new(rows: usize, inputs: usize, targets: usize, matrices: u64, cubes: f64) -> Self {
        let n = rows as u64;
        let square = n.saturating_mul(n).saturating_mul(8);
        // Inputs and targets stand in the caller, in the fit and in the posterior; weights, residuals, means once each.
        let columns = 2 * inputs as u64 + 6 * targets as u64 + 4;
        let peak_bytes = square
            .saturating_mul(matrices)
            .saturating_add(n.saturating_mul(columns).saturating_mul(8))
            .saturating_add(WORKING_BYTES.min(square.saturating_mul(4)));
        let n = rows as f64;
        let kernel = n * n * (4.0 * inputs as f64 + 40.0);
        Self { rows, inputs, targets, peak_bytes, flops_per_evaluation: cubes * n.powi(3) + kernel }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n = {} needs {}", grouped(self.rows), bytes(self.peak_bytes))
    }
}

/// Bytes for people: `16.7 GB` (powers of ten).
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

/// `45730 -> 45,730`
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_speak_plainly_and_never_overflow() {
        assert_eq!(Plan::evidence(45_730, 9, 1).to_string(), "n = 45,730 needs 16.8 GB");
        assert!(Plan::evidence(usize::MAX / 2, 9, 1).peak_bytes == u64::MAX);
        assert!(Plan::evidence(100, 2, 1).peak_bytes < 1_000_000);
        assert_eq!(grouped(999), "999");
        assert_eq!(bytes(2_500_000), "2.5 MB");
    }
}
