//! Evidence and effective dimensions.

use super::ExactPosterior;
use super::fit::Data;
use crate::{LinearError, Prior, check};
use std::f64::consts::TAU;

impl ExactPosterior {
    /// `log det(I + A^-1 M)`: what the volume of the weights shrank by, twice over.
    pub fn log_determinant(&self) -> f64 {
        self.cholesky.log_determinant()
    }

    /// The log evidence `log p(y)` of the Gaussian model, constants included:
    /// `-(nC/2) log 2 pi + 1/2 log det B - 1/2 |y - Phi w|²_B - 1/2 |w|²_A - 1/2 log det(I + A^-1 M)`.
    ///
    /// Source: Antorán (2024), equations 2.43 and 2.44.
    ///
    /// # Errors
    /// [`LinearError::SingularNoise`]; [`LinearError::NoTargets`] around a given mode.
    pub fn log_evidence(&self) -> Result<f64, LinearError> {
        let what = "the exact evidence";
        let fit = self.fit.ok_or(LinearError::NoTargets { what })?;
        let log_det =
            fit.noise_log_determinant.map_err(|example| LinearError::SingularNoise { what, example })?;
        Ok(0.5 * (log_det - self.rows as f64 * TAU.ln() - fit.quadratic - self.log_determinant()))
    }

    /// The Laplace evidence `G_u = log p(y | u) - 1/2 |u|²_A - 1/2 log det(I + A^-1 M)` with the vector `u` (d) in the norm term.
    ///
    /// `u` is the mode of the linear model, or the linearisation point for the naive evidence; `log_likelihood` is `log p(y | u)`, constant
    /// in the prior. With Gaussian noise and `u` the posterior mean this equals [`ExactPosterior::log_evidence`].
    ///
    /// Source: Antorán (2024), equations 5.6 and 5.7.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub fn laplace_evidence(&self, u: &[f64], log_likelihood: f64) -> Result<f64, LinearError> {
        check::same("weights", self.dimension(), u.len())?;
        check::finite("weight", u)?;
        let norm: f64 = u.iter().zip(&self.precisions).map(|(u, a)| a * u * u).sum();
        Ok(log_likelihood - 0.5 * (norm + self.log_determinant()))
    }

    /// `gamma = Tr(H^-1 M)` in [0, min(nC, d)]: how many directions the data decided (MacKay 1992).
    ///
    /// Cost `s³/3` flops for the factored matrix of `s` rows.
    pub fn effective_dimension(&self) -> f64 {
        // In either form the eigenvalues of I - S^-1 are l/(1 + l), and those of the larger matrix only add zeros.
        self.cholesky.inverse_diagonal().iter().map(|v| 1.0 - v).sum::<f64>().max(0.0)
    }

    /// `1 - a_i [H^-1]_ii` for each parameter (d): the share of its prior variance that the data removed. They sum to the effective dimension.
    pub fn parameter_dimensions(&self) -> Vec<f64> {
        match &self.data {
            Data::Primal { .. } => {
                self.cholesky.inverse_diagonal().iter().map(|v| (1.0 - v).max(0.0)).collect()
            }
            Data::Dual { rows, .. } => {
                let mut whitened = rows.clone();
                self.cholesky.solve_factor_in_place(whitened.as_mut());
                (0..rows.ncols()).map(|j| whitened.col(j).squared_norm_l2()).collect()
            }
        }
    }

    /// The effective dimension of each group of `prior`, `d_g - Tr(A_g [H^-1]_gg)`. Only the grouping of `prior` counts: the precisions are those
    /// of this posterior.
    ///
    /// # Errors
    /// [`LinearError::Shape`] when it is for another number of weights.
    pub fn group_dimensions(&self, prior: &Prior) -> Result<Vec<f64>, LinearError> {
        check::same("weights of the prior", self.dimension(), prior.dimension())?;
        // A sum of squares of roots, to use the prior's own way through its groups.
        let roots: Vec<f64> = self.parameter_dimensions().iter().map(|g| g.sqrt()).collect();
        Ok(prior.squared_norms(&roots))
    }
}
