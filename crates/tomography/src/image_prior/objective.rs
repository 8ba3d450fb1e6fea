//! What a picture costs: how badly it explains the sinogram, and how rough it is.

use crate::TomographyError;
use crate::total_variation::TotalVariation;
use faer::{Mat, MatRef};
use posterior_linalg::operator::LinearOperator;

/// `1/c |T x - y|² + lambda TV(x)` of pictures `x`, or with the mean of the neighbours' differences in the place of their sum.
///
/// Source: Antorán (2024), equations 7.3 and 7.4, in the form of mean squared error: the published `b |T x - y|² + TV(x)` is c b times it with `lambda = 1 / (b c)`.
pub struct ImageObjective<'a> {
    projector: &'a dyn LinearOperator<f64>,
    sinogram: &'a [f64],
    total_variation: TotalVariation,
    weight: f64,
}

impl<'a> ImageObjective<'a> {
    /// For a sinogram (c) and the weight lambda of total variation over an image of the given shape.
    ///
    /// # Errors
    /// [`TomographyError::Shape`] where sinogram or image do not belong to the projector; [`TomographyError::Option`] for a negative weight.
    pub fn new(
        projector: &'a dyn LinearOperator<f64>,
        sinogram: &'a [f64],
        total_variation: TotalVariation,
        weight: f64,
    ) -> Result<Self, TomographyError> {
        let (c, pixels) = projector.shape();
        crate::error::same_count("measurements", c, sinogram.len())?;
        crate::error::same_count("pixels", pixels, total_variation.pixels())?;
        if !(weight >= 0.0 && weight.is_finite()) {
            return Err(TomographyError::Option {
                name: "total_variation",
                value: weight,
                expected: "a finite weight of at least 0",
            });
        }
        Ok(Self { projector, sinogram, total_variation, weight })
    }

    /// Pixels.
    pub fn pixels(&self) -> usize {
        self.projector.shape().1
    }

    /// The loss of a picture, and its derivative in the pixels. Cost: one projection, one back-projection.
    pub fn value_and_gradient(&self, image: &[f64]) -> (f64, Vec<f64>) {
        let c = self.sinogram.len() as f64;
        let mut residual: Mat<f64> =
            self.projector.multiply(MatRef::from_column_major_slice(image, image.len(), 1));
        residual.col_as_slice_mut(0).iter_mut().zip(self.sinogram).for_each(|(r, y)| *r -= y);
        let squares: f64 = residual.col_as_slice(0).iter().map(|r| r * r).sum();
        let mut gradient = self.projector.multiply_transpose(residual.as_ref()).col_as_slice(0).to_vec();
        gradient.iter_mut().for_each(|g| *g *= 2.0 / c);
        let mut value = squares / c;
        if self.weight > 0.0 {
            value += self.weight * self.total_variation.value(image);
            let mut rough = vec![0.0; image.len()];
            self.total_variation.subgradient(image, &mut rough);
            gradient.iter_mut().zip(rough).for_each(|(g, r)| *g += self.weight * r);
        }
        (value, gradient)
    }
}
