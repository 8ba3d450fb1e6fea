//! What a step of training takes, for plans.

use super::objective::GeneralisedObjective;
use super::regulariser::Regulariser;
use super::variational::Family;

/// Operations of a transcendental function and what stands around it, at each row and function.
const OF_ROW: f64 = 100.0;

/// Operations of a pair of eigenvalue decompositions and roots, for each number of their matrices times its side.
const OF_ROOTS: f64 = 30.0;

/// Sizes of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepSize {
    /// Rows of a batch, b.
    pub rows: usize,
    /// Inducing points, M.
    pub inducing_points: usize,
    /// Columns that kernels see.
    pub inputs: usize,
    /// Functions, C.
    pub functions: usize,
}

impl StepSize {
    /// Multiplications and additions of a step whose rows' features under the prior are known, a network as mean not among them: `O(C b)` of a projected regulariser and a kernel of its own, `O(C b M)` of a diagonal covariance,
    /// `O(C b M²)` of any covariance, and for regularisers of r rows together `O(C r³)` more.
    pub fn flops(self, family: Family, objective: &GeneralisedObjective) -> f64 {
        let (b, m) = (self.rows as f64, self.inducing_points as f64);
        let together = objective.rows_together.min(self.rows) as f64;
        let kernel = match family {
            Family::Cholesky | Family::Log | Family::FixedSparsePosterior => 4.0 * b * m * m,
            Family::Diagonal => 4.0 * b * m,
            Family::Kernelised => 0.6 * OF_ROW * b,
            Family::SparsePosterior => 4.0 * b * m * m + 3.0 * m.powi(3),
        };
        // Of the prior and of what is trained, by the kernel and by features.
        let covariances = 4.0 * together * together * (m + self.inputs as f64);
        let regulariser = match objective.regulariser {
            Regulariser::Projected(_) | Regulariser::PartialWasserstein => OF_ROW * b,
            Regulariser::Inducing(_) => 2.0 * m.powi(3),
            Regulariser::Wasserstein(_) => OF_ROOTS * together.powi(3) + covariances,
            Regulariser::WassersteinOfTwo => OF_ROOTS * (0.5 * together).powi(3) + covariances,
            Regulariser::SquaredDifference => covariances,
            Regulariser::Multinomial { .. } => 10.0 * OF_ROW * b * self.functions as f64,
        };
        self.functions as f64 * (kernel + regulariser + 2.0 * OF_ROW * b)
    }
}

#[cfg(test)]
mod tests {
    use super::super::risk::{Reduction, Risk};
    use super::*;

    #[test]
    fn steps_grow_as_the_families_and_regularisers_say() {
        let size = StepSize { rows: 10_000, inducing_points: 100, inputs: 5, functions: 2 };
        let of = |size: StepSize, family, regulariser: &str, rows_together| {
            let objective = GeneralisedObjective {
                risk: Risk::Predictive,
                reduction: Reduction::Mean,
                regulariser: regulariser.parse().unwrap(),
                weight: 1.0,
                rows_together,
            };
            size.flops(family, &objective)
        };
        let twice = |rows: usize, points: usize| StepSize {
            rows: size.rows * rows,
            inducing_points: size.inducing_points * points,
            ..size
        };
        let growth = |rows, points, family, name| {
            of(twice(rows, points), family, name, 64) / of(size, family, name, 64)
        };
        assert_eq!(growth(2, 1, Family::Kernelised, "projected-kl"), 2.0);
        assert_eq!(growth(1, 2, Family::Kernelised, "projected-kl"), 1.0);
        assert!(growth(1, 2, Family::Diagonal, "projected-kl") < 2.0);
        assert!((3.9..4.0).contains(&growth(1, 2, Family::Cholesky, "projected-kl")));
        let cubed = |r| of(size, Family::Kernelised, "wasserstein", r);
        assert!((7.5..8.0).contains(&(cubed(2000) / cubed(1000))));
        assert!(of(size, Family::Kernelised, "wasserstein-two-batches", 2000) < 0.3 * cubed(2000));
    }
}
