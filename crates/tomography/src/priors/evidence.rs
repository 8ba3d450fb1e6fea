//! **Lengthscale, variance and noise of a Matérn prior from a pilot scan**, by the evidence (Antorán 2024, equation 2.43, section 7.5):
//!
//! ```text
//! log p(y) = -½ (yᵀ C⁻¹ y + log det C + c log 2π),   C = σ² T R(ℓ) Tᵀ + noise I,   R = exp(-‖p - p'‖ / ℓ)
//! ```
//!
//! C is stored (c up to about 5,000). Parameters are logarithms, exponentiated once, here. Designs depend on the ratio of the noise to the prior variance (fix F10: only scaling both leaves them
//! unchanged), so the [noise is a choice that has to be made](NoiseModel).

use super::PriorError;
use super::error::positive;
use super::matern::{Matern, MaternProduct};
use faer::Mat;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::symmetric::mirror_lower;
use posterior_linalg::tiles::pieces;
use posterior_optim::{
    Lbfgs, LoopOptions, Objective, ObjectiveError, Optimiser, Outcome, Progress, Reason, Signal, minimise,
};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// What is known of the noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseModel {
    /// Its variance, in the units of the measurements.
    Given(f64),
    /// Its variance relative to that of a pixel.
    Ratio(f64),
    /// Nothing: it is fitted too.
    Fitted,
}

/// The evidence of pilot measurements `y` (c) through `operator` (c x p) of an image of `height x width`, as an [`Objective`]: the negative log evidence as a function of `log ℓ`, `log σ²` and, where it is
/// fitted, the logarithm of the noise variance.
///
/// Cost of a value with its gradient: two filters of c images (`20 n log₂ n` flops an image), `c³` flops, `40c²` bytes.
pub struct PilotEvidence<'a> {
    operator: &'a dyn LinearOperator<f64>,
    measurements: &'a [f64],
    height: usize,
    width: usize,
    noise: NoiseModel,
}

/// What the evidence chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MaternFit {
    /// Lengthscale and variance of the prior.
    pub prior: Matern,
    /// The noise variance that belongs to it.
    pub noise_variance: f64,
    /// The log evidence there.
    pub log_evidence: f64,
    /// Why the search ended.
    pub reason: Reason,
    /// Its steps.
    pub steps: usize,
}

impl<'a> PilotEvidence<'a> {
    /// Of a pilot scan.
    ///
    /// # Errors
    /// [`PriorError::Shape`] when sizes do not fit, [`PriorError::Setting`] for a noise that is not positive.
    pub fn new(
        operator: &'a dyn LinearOperator<f64>,
        measurements: &'a [f64],
        (height, width): (usize, usize),
        noise: NoiseModel,
    ) -> Result<Self, PriorError> {
        let (c, pixels) = operator.shape();
        for (what, expected, actual) in
            [("pixels of the image", pixels, height * width), ("measurements", c, measurements.len())]
        {
            if expected != actual {
                return Err(PriorError::Shape { what, expected, actual });
            }
        }
        match noise {
            NoiseModel::Given(value) => positive("the noise variance", value)?,
            NoiseModel::Ratio(value) => positive("the ratio of the noise to the prior variance", value)?,
            NoiseModel::Fitted => {}
        }
        Ok(Self { operator, measurements, height, width, noise })
    }

    /// Bytes of a search over so many measurements.
    pub fn bytes(measurements: usize) -> u64 {
        (measurements as u64).saturating_pow(2).saturating_mul(40)
    }

    /// Where a search begins: the published lengthscale, a variance under which a ray through the image measures what the mean square of the measurements says, and a noise of this share of that.
    pub fn usual_start(&self, noise_share: f64) -> (f64, f64, f64) {
        let c = self.measurements.len().max(1) as f64;
        let mean = self.measurements.iter().map(|y| y * y).sum::<f64>() / c;
        let mean = mean.max(f64::MIN_POSITIVE);
        let variance = mean / (self.height.max(self.width) as f64).powi(2);
        (2f64.exp(), variance.max(f64::MIN_POSITIVE), (noise_share * mean).max(f64::MIN_POSITIVE))
    }

    /// Maximises the evidence from a prior and, where it is fitted, a noise variance; a search that the observer stops ends with [`Reason::Interrupted`]. The published runs began with `log ℓ = 2`.
    ///
    /// # Errors
    /// [`PriorError::Setting`] for a start that is not positive; [`PriorError::Fit`] when the evidence does not exist at the start.
    pub fn fit(
        mut self,
        (lengthscale, variance, noise_variance): (f64, f64, f64),
        options: &LoopOptions,
        observer: &mut dyn FnMut(&Progress) -> Signal,
    ) -> Result<MaternFit, PriorError> {
        for (what, value) in [
            ("the initial lengthscale", lengthscale),
            ("the initial variance", variance),
            ("the initial noise variance", noise_variance),
        ] {
            positive(what, value)?;
        }
        let start = [lengthscale.ln(), variance.ln(), noise_variance.ln()];
        let start = &start[..self.dimension()];
        let mut lbfgs = Lbfgs::default();
        // A lengthscale e³ times as long as the last would be a constant image.
        lbfgs.longest_move = 1.0;
        let Outcome { theta, value, reason, steps, .. } =
            minimise(&mut self, start, Optimiser::Lbfgs(lbfgs), options, &mut |progress, _| {
                observer(progress)
            })?;
        let (prior, noise_variance) = self.natural(&theta);
        Ok(MaternFit { prior, noise_variance, log_evidence: -value, reason, steps })
    }

    /// The prior and the noise variance that the optimiser's numbers stand for: each exponentiated once.
    fn natural(&self, theta: &[f64]) -> (Matern, f64) {
        let (lengthscale, variance) = (theta[0].exp(), theta[1].exp());
        let noise = match self.noise {
            NoiseModel::Given(value) => value,
            NoiseModel::Ratio(ratio) => ratio * variance,
            NoiseModel::Fitted => theta[2].exp(),
        };
        (Matern { height: self.height, width: self.width, lengthscale, variance }, noise)
    }

    /// `T M Tᵀ`, c x c.
    fn between(&self, covariance: &MaternProduct) -> Mat<f64> {
        let c = self.measurements.len();
        let mut out = Mat::zeros(c, c);
        for columns in pieces(c, crate::measured::BLOCK) {
            let unit = Mat::from_fn(c, columns.len(), |i, j| if i == columns.start + j { 1.0 } else { 0.0 });
            let image = covariance.multiply(self.operator.multiply_transpose(unit.as_ref()).as_ref());
            self.operator.apply(image.as_ref(), out.as_mut().subcols_mut(columns.start, columns.len()));
        }
        mirror_lower(out.as_mut());
        out
    }
}

impl Objective for PilotEvidence<'_> {
    fn dimension(&self) -> usize {
        if self.noise == NoiseModel::Fitted { 3 } else { 2 }
    }

    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        let failed = |error: &dyn std::fmt::Display| ObjectiveError(error.to_string());
        let (prior, noise) = self.natural(theta);
        let side = (self.height.max(self.width)) as f64;
        // Beyond these, K is a constant image or white noise to rounding.
        if !(1e-3..1e4 * side).contains(&prior.lengthscale) {
            return Err(ObjectiveError(format!("the lengthscale is {:.1e} pixels", prior.lengthscale)));
        }
        let signal = self.between(&prior.product().map_err(|e| failed(&e))?);
        let slope = self.between(&prior.slope().map_err(|e| failed(&e))?);
        let c = self.measurements.len();
        let mut matrix = signal.clone();
        (0..c).for_each(|i| matrix[(i, i)] += noise);
        let factor = Cholesky::of(matrix.as_ref(), JitterPolicy::NONE).map_err(|e| failed(&e))?;
        let targets = Mat::from_fn(c, 1, |i, _| self.measurements[i]);
        let solved = factor.solve(targets.as_ref());
        let fit: f64 = (0..c).map(|i| targets[(i, 0)] * solved[(i, 0)]).sum();
        let value = 0.5 * (fit + factor.log_determinant() + c as f64 * TAU.ln());
        // ½ Σ (C⁻¹ - a aᵀ) ⊙ ∂C with a = C⁻¹ y; of the inverse the lower triangle is there.
        let inverse = factor.into_inverse();
        let along = |change: &Mat<f64>| -> f64 {
            let column = |j: usize| -> f64 {
                let adjoint = |i: usize| inverse[(i, j)] - solved[(i, 0)] * solved[(j, 0)];
                let below: f64 = (j + 1..c).map(|i| adjoint(i) * change[(i, j)]).sum();
                below + 0.5 * adjoint(j) * change[(j, j)]
            };
            (0..c).map(column).sum()
        };
        let white: f64 = (0..c).map(|i| 0.5 * (inverse[(i, i)] - solved[(i, 0)].powi(2))).sum();
        gradient[0] = along(&slope);
        gradient[1] = along(&signal);
        match self.noise {
            NoiseModel::Given(_) => {}
            NoiseModel::Ratio(_) => gradient[1] += noise * white,
            NoiseModel::Fitted => gradient[2] = noise * white,
        }
        Ok(value)
    }

    fn parameter_names(&self) -> Vec<String> {
        ["log lengthscale", "log variance", "log noise"].map(String::from).to_vec()
    }
}
