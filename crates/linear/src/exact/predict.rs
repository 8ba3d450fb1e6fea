//! Latent predictions `f(x) = phi(x) w`.

use super::ExactPosterior;
use super::fit::Data;
use crate::dense::column;
use crate::{LinearError, check};
use faer::{Mat, MatRef};
use posterior_linalg::dense::product;

/// Examples predicted at a time: bounds the memory of a prediction.
const BLOCK: usize = 512;

/// The marginal Gaussians of `m` examples.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentPrediction {
    /// Outputs per example, C.
    pub outputs: usize,
    /// Means (mC), outputs of one example adjacent.
    pub mean: Vec<f64>,
    /// One covariance of C x C per example, row by row (m C² numbers).
    pub covariance: Vec<f64>,
    /// Variances that rounding had made negative and that were raised to 0.
    pub clipped: usize,
}

impl LatentPrediction {
    /// The variance of each output (mC).
    pub fn variance(&self) -> Vec<f64> {
        let c = self.outputs;
        (0..self.mean.len()).map(|r| self.covariance[(r / c * c + r % c) * c + r % c]).collect()
    }
}

/// The joint Gaussian of all outputs of several examples.
#[derive(Clone, Debug)]
pub struct LatentJoint {
    /// Means (mC).
    pub mean: Vec<f64>,
    /// Covariance, mC x mC.
    pub covariance: Mat<f64>,
}

impl ExactPosterior {
    /// The latent marginals of the examples with the given features (mC x d). Cost `d²` flops a row, or `nC (nC + d)` in the dual form.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub fn predict(&self, features: MatRef<'_, f64>) -> Result<LatentPrediction, LinearError> {
        self.check_features(features)?;
        let (c, rows) = (self.outputs, features.nrows());
        let mut out = LatentPrediction {
            outputs: c,
            mean: self.predicted_mean(features),
            covariance: vec![],
            clipped: 0,
        };
        out.covariance.reserve(rows * c);
        for start in (0..rows).step_by(BLOCK * c) {
            let (scaled, whitened) = self.whiten(features.subrows(start, (BLOCK * c).min(rows - start)));
            let dual = matches!(self.data, Data::Dual { .. });
            for first in (0..scaled.nrows()).step_by(c) {
                for i in first..first + c {
                    for j in first..first + c {
                        let explained = whitened.col(i).transpose() * whitened.col(j);
                        let prior = if dual { scaled.row(i) * scaled.row(j).transpose() } else { 0.0 };
                        let mut value = if dual { prior - explained } else { explained };
                        if i == j && value < 0.0 {
                            value = 0.0;
                            out.clipped += 1;
                        }
                        out.covariance.push(value);
                    }
                }
            }
        }
        Ok(out)
    }

    /// The joint latent Gaussian of all rows of `features` (mC x d). Cost as [`ExactPosterior::predict`] and `(mC)²` products.
    ///
    /// # Errors
    /// As [`ExactPosterior::predict`]; [`LinearError::TooLarge`].
    pub fn joint(&self, features: MatRef<'_, f64>) -> Result<LatentJoint, LinearError> {
        self.check_features(features)?;
        check::size("the joint covariance", features.nrows(), features.nrows(), check::BUFFER_LIMIT)?;
        let (scaled, whitened) = self.whiten(features);
        let explained = whitened.transpose() * &whitened;
        let covariance = match self.data {
            Data::Primal { .. } => explained,
            Data::Dual { .. } => &scaled * scaled.transpose() - explained,
        };
        Ok(LatentJoint { mean: self.predicted_mean(features), covariance })
    }

    /// `V_ii`, the posterior variance of each weight (d). Cost `d³/3` flops, or `(nC)² d` in the dual form.
    pub fn weight_variances(&self) -> Vec<f64> {
        let unresolved: Vec<f64> = match self.data {
            Data::Primal { .. } => self.cholesky.inverse_diagonal(),
            Data::Dual { .. } => self.parameter_dimensions().iter().map(|g| 1.0 - g).collect(),
        };
        unresolved.iter().zip(&self.precisions).map(|(u, a)| u / a).collect()
    }

    pub(super) fn check_features(&self, features: MatRef<'_, f64>) -> Result<(), LinearError> {
        check::same("columns of the features", self.dimension(), features.ncols())?;
        let whole = features.nrows() / self.outputs * self.outputs;
        check::same("rows of the features, a multiple of the outputs", whole, features.nrows())?;
        check::finite_matrix("feature", features)
    }

    fn predicted_mean(&self, features: MatRef<'_, f64>) -> Vec<f64> {
        crate::dense::to_vec(&product(features, column(&self.mean)))
    }

    /// `P = features A^{-1/2}` and its whitened image: `L^-1 P'` (primal) or `L^-1 Q P'` (dual).
    fn whiten(&self, features: MatRef<'_, f64>) -> (Mat<f64>, Mat<f64>) {
        let scaled =
            Mat::from_fn(features.nrows(), features.ncols(), |i, j| features[(i, j)] * self.deviations[j]);
        let mut whitened = match &self.data {
            Data::Primal { .. } => scaled.transpose().to_owned(),
            Data::Dual { rows, .. } => product(rows.as_ref(), scaled.transpose()),
        };
        self.cholesky.solve_factor_in_place(whitened.as_mut());
        (scaled, whitened)
    }
}
