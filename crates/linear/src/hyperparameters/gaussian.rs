//! The conjugate model.

use super::{EvidenceCurvature, EvidenceModel, RootCurvature};
use crate::dense::{column, to_vec};
use crate::mode::Predictor;
use crate::noise::Noise;
use crate::{LinearError, Prior, check};
use faer::MatRef;
use posterior_linalg::dense::product;
use std::f64::consts::TAU;

/// A linear model with Gaussian noise: modes, likelihoods and evidences are exact.
///
/// The noise precision is `factor B` with a given `B`; the factor is 1, or learned by `factor = (N - gamma) / |y - Phi w|²_B` over the
/// N = nC observations, which for `B = I` is the classical `sigma² = RSS / (N - gamma)`.
#[derive(Clone, Debug)]
pub struct GaussianModel<'a> {
    features: MatRef<'a, f64>,
    noise: &'a Noise,
    curvature: RootCurvature,
    /// `y - f0`, and `Phi' B (y - f0)`.
    affine: (Vec<f64>, Vec<f64>),
    /// The same without the offset.
    linear: (Vec<f64>, Vec<f64>),
    noise_log_determinant: f64,
    factor: f64,
    learn_noise: bool,
}

impl<'a> GaussianModel<'a> {
    /// A model of `targets` (nC) by `features` (nC x d), with an offset `f0` (nC) if there is one.
    ///
    /// # Errors
    /// [`LinearError::SingularNoise`], and as [`RootCurvature::new`].
    pub fn new(
        features: MatRef<'a, f64>,
        targets: &[f64],
        offset: Option<&[f64]>,
        noise: &'a Noise,
    ) -> Result<Self, LinearError> {
        check::same("targets", features.nrows(), targets.len())?;
        check::finite("target", targets)?;
        let curvature = RootCurvature::new(features, noise)?;
        let examples = features.nrows() / noise.outputs();
        let noise_log_determinant = noise.log_determinant(examples)?;
        let indices: Vec<usize> = (0..examples).collect();
        let project =
            |residual: &[f64]| to_vec(&(features.transpose() * noise.apply(&indices, column(residual))));
        let linear = (targets.to_vec(), project(targets));
        let affine = match offset {
            Some(offset) => {
                check::same("numbers in the offset", targets.len(), offset.len())?;
                check::finite("offset", offset)?;
                let shifted: Vec<f64> = targets.iter().zip(offset).map(|(y, f)| y - f).collect();
                let projected = project(&shifted);
                (shifted, projected)
            }
            None => linear.clone(),
        };
        Ok(Self {
            features,
            noise,
            curvature,
            affine,
            linear,
            noise_log_determinant,
            factor: 1.0,
            learn_noise: false,
        })
    }

    /// The same model, with the factor on the noise precision learned.
    pub fn learning_noise(mut self) -> Self {
        self.learn_noise = true;
        self
    }

    fn data(&self, predictor: Predictor) -> &(Vec<f64>, Vec<f64>) {
        match predictor {
            Predictor::Affine => &self.affine,
            Predictor::Linear => &self.linear,
        }
    }

    /// `|y - f0 - Phi w|²_B`.
    fn squared_residual(&self, weights: &[f64], predictor: Predictor) -> Result<f64, LinearError> {
        check::same("weights", self.features.ncols(), weights.len())?;
        let residual = column(&self.data(predictor).0) - product(self.features, column(weights));
        let indices: Vec<usize> = (0..self.features.nrows() / self.noise.outputs()).collect();
        Ok(self.noise.whiten(&indices, residual.as_ref()).col(0).squared_norm_l2())
    }
}

impl EvidenceModel for GaussianModel<'_> {
    fn curvature(&self) -> &dyn EvidenceCurvature {
        &self.curvature
    }

    fn noise_factor(&self) -> f64 {
        self.factor
    }

    /// Exact; `start` plays no part in a linear system that is solved directly.
    fn mode(&mut self, prior: &Prior, _start: &[f64], predictor: Predictor) -> Result<Vec<f64>, LinearError> {
        let projected: Vec<f64> = self.data(predictor).1.iter().map(|v| self.factor * v).collect();
        self.curvature.solve(prior, self.factor, &projected)
    }

    fn log_likelihood(&self, weights: &[f64], predictor: Predictor) -> Result<f64, LinearError> {
        let count = self.features.nrows() as f64;
        let squares = self.factor * self.squared_residual(weights, predictor)?;
        Ok(0.5 * (self.noise_log_determinant + count * (self.factor / TAU).ln() - squares))
    }

    fn best_noise_factor(
        &self,
        weights: &[f64],
        effective_dimension: f64,
        predictor: Predictor,
    ) -> Result<Option<f64>, LinearError> {
        if !self.learn_noise {
            return Ok(None);
        }
        let free = self.features.nrows() as f64 - effective_dimension;
        Ok(Some(free / self.squared_residual(weights, predictor)?))
    }

    fn set_noise_factor(&mut self, factor: f64) {
        self.factor = factor;
    }
}
