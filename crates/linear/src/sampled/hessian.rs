//! The posterior precision by products.

use super::model::SampledModel;
use crate::LinearError;
use crate::features::FeatureMap;
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::{LinearOperator, check_apply};
use posterior_optim::Signal;
use std::sync::Mutex;

/// `H = s M + A` of a model (scaled features), over all examples or `n / r` times over r of them. A product is one pass over the examples with products from both sides.
///
/// Operators cannot fail; what fails in a product is kept for [`Self::failure`], and the product is NaN.
pub struct Hessian<'a, T: Real, F: FeatureMap<T>> {
    model: &'a SampledModel<'a, T, F>,
    precisions: &'a [f64],
    strength: f64,
    chosen: Option<&'a [usize]>,
    failed: Mutex<Option<LinearError>>,
}

impl<'a, T: Real, F: FeatureMap<T>> Hessian<'a, T, F> {
    /// With prior precisions of each weight (d) and a strength, over all examples or some.
    pub fn new(
        model: &'a SampledModel<'a, T, F>,
        precisions: &'a [f64],
        strength: f64,
        chosen: Option<&'a [usize]>,
    ) -> Self {
        Self { model, precisions, strength, chosen, failed: Mutex::new(None) }
    }

    /// What failed in a product, once.
    ///
    /// # Errors
    /// That.
    pub fn failure(&self) -> Result<(), LinearError> {
        let mut failed = self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        failed.take().map_or(Ok(()), Err)
    }
}

impl<T: Real, F: FeatureMap<T>> LinearOperator<f64> for Hessian<'_, T, F> {
    fn shape(&self) -> (usize, usize) {
        (self.precisions.len(), self.precisions.len())
    }

    fn apply(&self, input: MatRef<'_, f64>, mut output: MatMut<'_, f64>) {
        check_apply(self.shape(), input, &output);
        let mut squares = vec![0.0; input.ncols()];
        let product =
            self.model.curvature_product(input, self.chosen, &mut squares, &mut |_, _| Signal::Continue);
        let share = self.chosen.map_or(1.0, |c| self.model.examples() as f64 / c.len() as f64);
        match product {
            Ok(product) => {
                for j in 0..input.ncols() {
                    for (i, a) in self.precisions.iter().enumerate() {
                        output[(i, j)] = share * self.strength * product[(i, j)] + a * input[(i, j)];
                    }
                }
            }
            Err(error) => {
                output.fill(f64::NAN);
                let mut failed = self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                failed.get_or_insert(error);
            }
        }
    }

    fn apply_transpose(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        self.apply(input, output);
    }
}
