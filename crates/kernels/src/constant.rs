//! `k = 1`: a function that is one unknown number.

use crate::PreparedBlock;
use crate::features::{FeatureError, FeatureRecipe};
use crate::inputs::lane_sum;
use crate::kernel::{Adjoints, Kernel, Pair, entries};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_optim::{Parameters, Segment};

/// The constant kernel; times a variance it is a prior on an offset.
#[derive(Clone, Copy, Debug, Default)]
pub struct Constant;

impl Parameters for Constant {
    fn segments(&self) -> Vec<Segment> {
        Vec::new()
    }
    fn values(&self) -> Vec<f64> {
        Vec::new()
    }
    fn set_values(&mut self, values: &[f64]) {
        assert!(values.is_empty(), "the constant kernel has no parameters");
    }
}

impl<T: Real> Kernel<T> for Constant {
    fn cross_tile(&self, _pair: Pair<'_, T>, mut out: MatMut<'_, T>) {
        out.fill(T::ONE);
    }

    fn diagonal(&self, _x: MatRef<'_, T>, out: &mut [T]) {
        out.fill(T::ONE);
    }

    fn values_at(&self, _x: PreparedBlock<'_, T>, out: &mut [T]) {
        out.fill(T::ONE);
    }

    /// Nothing: it is 1 whatever the parameters.
    fn pullback_values_at(&self, _x: MatRef<'_, T>, _adjoint: &[T], _parameters: &mut [f64]) {}

    /// Nothing, as well.
    fn pullback_values_to_points(&self, _x: MatRef<'_, T>, _adjoint: &[T], _out: &mut Mat<T>) {}

    fn pullback_tile(&self, _: Pair<'_, T>, adjoint: MatRef<'_, T>, _: &mut Adjoints<T>) -> f64 {
        (0..adjoint.ncols()).map(|j| lane_sum(adjoint.nrows(), |i| entries(adjoint, j)[i])).sum()
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        Ok(FeatureRecipe::Constant)
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(*self)
    }
}
