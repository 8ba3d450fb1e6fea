//! `k = 1` for an observation with itself, 0 otherwise: independent noise that belongs to the function.

use crate::PreparedBlock;
use crate::features::{FeatureError, FeatureRecipe};
use crate::kernel::{Adjoints, Kernel, Pair};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_optim::{Parameters, Segment};

/// The white-noise kernel. Two rows are one observation only within one matrix `k(x, x)`; a new point never is an old one,
/// even with equal coordinates.
#[derive(Clone, Copy, Debug, Default)]
pub struct White;

impl Parameters for White {
    fn segments(&self) -> Vec<Segment> {
        Vec::new()
    }
    fn values(&self) -> Vec<f64> {
        Vec::new()
    }
    fn set_values(&mut self, values: &[f64]) {
        assert!(values.is_empty(), "the white-noise kernel has no parameters");
    }
}

impl<T: Real> Kernel<T> for White {
    fn cross_tile(&self, pair: Pair<'_, T>, mut out: MatMut<'_, T>) {
        out.fill(T::ZERO);
        for (i, j) in pair.identical() {
            out[(i, j)] = T::ONE;
        }
    }

    fn diagonal(&self, _x: MatRef<'_, T>, out: &mut [T]) {
        out.fill(T::ONE);
    }

    /// Two observations at one place have nothing in common.
    fn values_at(&self, _x: PreparedBlock<'_, T>, out: &mut [T]) {
        out.fill(T::ZERO);
    }

    /// Nothing: there is none, whatever the parameters.
    fn pullback_values_at(&self, _x: MatRef<'_, T>, _adjoint: &[T], _parameters: &mut [f64]) {}

    /// Nothing, as well.
    fn pullback_values_to_points(&self, _x: MatRef<'_, T>, _adjoint: &[T], _out: &mut Mat<T>) {}

    fn is_noisy(&self) -> bool {
        true
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, _: &mut Adjoints<T>) -> f64 {
        pair.identical().map(|entry| adjoint[entry].to_f64()).sum()
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        Err(FeatureError::Noise)
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(*self)
    }
}
