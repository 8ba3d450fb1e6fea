//! The objective of reconstructions.

use super::TotalVariation;
use crate::TomographyError;
use faer::{MatMut, MatRef};
use posterior_linalg::operator::LinearOperator;

/// `(1/c) ‖T x - y‖² + λ TV(x)` for measurements y, c of them.
#[derive(Clone, Copy)]
pub struct Penalised<'a> {
    pub(super) operator: &'a dyn LinearOperator<f64>,
    pub(super) measurements: &'a [f64],
    pub(super) variation: &'a TotalVariation,
    pub(super) weight: f64,
}

impl<'a> Penalised<'a> {
    /// With `weight` λ.
    ///
    /// # Errors
    /// [`TomographyError`]: measurements or images that are not those of the operator, numbers that are none, a negative weight.
    pub fn new(
        operator: &'a dyn LinearOperator<f64>,
        measurements: &'a [f64],
        variation: &'a TotalVariation,
        weight: f64,
    ) -> Result<Self, TomographyError> {
        let (rows, columns) = operator.shape();
        if measurements.len() != rows || rows == 0 {
            let (found, expected) = (vec![measurements.len()], vec![rows]);
            let axis = "the numbers of measurements".into();
            return Err(TomographyError::SinogramShape { found, expected, axes: "measurements", axis });
        }
        if variation.pixels() != columns {
            let (found, expected) = (vec![variation.pixels()], vec![columns]);
            return Err(TomographyError::ImageShape { found, expected });
        }
        if let Some(detector) = measurements.iter().position(|v| !v.is_finite()) {
            return Err(TomographyError::NotFinite { value: measurements[detector], angle: 0, detector });
        }
        if !(weight >= 0.0 && weight.is_finite()) {
            let expected = "the weight of the total variation is 0 or positive, and finite";
            return Err(TomographyError::Option { name: "lambda", value: weight, expected });
        }
        Ok(Self { operator, measurements, variation, weight })
    }

    /// The objective. Cost: a product with T.
    ///
    /// # Panics
    /// When the image has another number of pixels.
    pub fn value(&self, image: &[f64]) -> f64 {
        self.value_at(image, &self.forward(image))
    }

    /// Pixels of an image.
    pub fn pixels(&self) -> usize {
        self.variation.pixels()
    }

    /// The objective, and a subgradient of it in the pixels. Cost: a product with T and one with its transpose.
    ///
    /// # Panics
    /// When the image has another number of pixels.
    pub fn value_and_gradient(&self, image: &[f64]) -> (f64, Vec<f64>) {
        let projected = self.forward(image);
        let value = self.value_at(image, &projected);
        let scale = 2.0 / projected.len() as f64;
        let residual: Vec<f64> =
            projected.iter().zip(self.measurements).map(|(a, b)| scale * (a - b)).collect();
        let mut gradient = self.backward(&residual);
        self.variation.add_subgradient(image, self.weight, &mut gradient);
        (value, gradient)
    }

    /// The objective where `T x` is known.
    pub(super) fn value_at(&self, image: &[f64], projected: &[f64]) -> f64 {
        let squares: f64 = projected.iter().zip(self.measurements).map(|(a, b)| (a - b) * (a - b)).sum();
        squares / self.measurements.len() as f64 + self.weight * self.variation.value(image)
    }

    /// `T x`.
    pub(super) fn forward(&self, image: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.measurements.len()];
        let rows = out.len();
        self.operator.apply(
            MatRef::from_column_major_slice(image, image.len(), 1),
            MatMut::from_column_major_slice_mut(&mut out, rows, 1),
        );
        out
    }

    /// `Tᵀ p`.
    pub(super) fn backward(&self, dual: &[f64]) -> Vec<f64> {
        let pixels = self.variation.pixels();
        let mut out = vec![0.0; pixels];
        self.operator.apply_transpose(
            MatRef::from_column_major_slice(dual, dual.len(), 1),
            MatMut::from_column_major_slice_mut(&mut out, pixels, 1),
        );
        out
    }

    /// Refuses images that are not the operator's, and what is no number.
    pub(super) fn check_start(&self, start: &[f64]) -> Result<(), TomographyError> {
        let pixels = self.variation.pixels();
        if start.len() != pixels {
            return Err(TomographyError::ImageShape { found: vec![start.len()], expected: vec![pixels] });
        }
        match start.iter().find(|v| !v.is_finite()) {
            Some(&value) => Err(TomographyError::Option {
                name: "a pixel of the start",
                value,
                expected: "pixels are finite",
            }),
            None => Ok(()),
        }
    }
}
