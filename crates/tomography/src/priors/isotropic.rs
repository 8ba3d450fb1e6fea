//! `K = σ² I`: pixels that know nothing of one another.

use super::PriorError;
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
