//! `K = σ² I`: pixels that know nothing of one another.

use super::PriorError;
use crate::{Projector, TomographyError};
use faer::{MatMut, MatRef};
use posterior_linalg::operator::{LinearOperator, check_apply};

/// `F = σ I`, p x p.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Isotropic {
    pixels: usize,
    deviation: f64,
}

impl Isotropic {
    /// Of that many pixels, each of this variance.
    ///
    /// # Errors
    /// [`PriorError::Setting`] unless the variance is positive and finite.
    pub fn new(pixels: usize, variance: f64) -> Result<Self, PriorError> {
        super::error::positive("the variance of a pixel", variance)?;
        Ok(Self { pixels, deviation: variance.sqrt() })
    }

    /// Of a variance with which measurements are as large as they are beside their noise: a ray of length L through pixels of variance v has the variance of at most v L.
    ///
    /// # Errors
    /// Those of [`Self::new`] and of the projection.
    pub fn of_measurements(
        projector: &Projector,
        sinogram: &[f64],
        noise_variance: f64,
    ) -> Result<Self, TomographyError> {
        let pixels = projector.geometry().pixels();
        let lengths: f64 = projector.project(&vec![1.0; pixels])?.iter().sum();
        let signal: f64 = sinogram.iter().map(|y| y * y - noise_variance).sum();
        let variance = signal.max(noise_variance) / lengths.max(f64::MIN_POSITIVE);
        Ok(Self::new(pixels, variance)?)
    }

    /// The variance of a pixel.
    pub fn variance(&self) -> f64 {
        self.deviation * self.deviation
    }
}

impl LinearOperator<f64> for Isotropic {
    fn shape(&self) -> (usize, usize) {
        (self.pixels, self.pixels)
    }

    fn apply(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        check_apply(self.shape(), input, &output);
        for (to, from) in output.col_iter_mut().zip(input.col_iter()) {
            to.iter_mut().zip(from.iter()).for_each(|(to, from)| *to = self.deviation * from);
        }
    }

    fn apply_transpose(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        self.apply(input, output);
    }
}
