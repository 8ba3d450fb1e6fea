//! A few combinations of another map's features.

use super::dense::combined;
use super::{FeatureMap, Linearised};
use crate::curvature::{FisherEstimate, Roots};
use crate::{LinearError, check};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::dense::product;
use std::ops::Range;

/// `psi(x) = phi(x) V` for a basis `V` (d x K) with orthonormal columns: the model `g(x) + psi(x) u` has K weights `u`, and is the map's own within the span of `V` around the expansion point.
///
/// A prior of precision a on the weights of the map is one of precision a on `u`, and zero variance across the span. Rows of the features cost K products of the map, which need no Jacobian.
///
/// Source: spec `valla`, section 7.2; Deng, Zhou and Zhu (2022).
#[derive(Debug)]
pub struct Projected<'a, T, F> {
    map: &'a F,
    basis: &'a Mat<T>,
}

impl<'a, T: Real, F: FeatureMap<T>> Projected<'a, T, F> {
    /// Of a map and a basis of its weights (d x K).
    ///
    /// # Errors
    /// [`LinearError::Shape`] when the basis is of other weights, [`LinearError::Empty`] without columns.
    pub fn new(map: &'a F, basis: &'a Mat<T>) -> Result<Self, LinearError> {
        check::same("rows of the basis", map.dimension(), basis.nrows())?;
        if basis.ncols() == 0 {
            return Err(LinearError::Empty { what: "columns of the basis" });
        }
        Ok(Self { map, basis })
    }
}

impl<T: Real, F: FeatureMap<T>> FeatureMap<T> for Projected<'_, T, F> {
    type Inputs = F::Inputs;

    fn dimension(&self) -> usize {
        self.basis.ncols()
    }

    fn outputs(&self) -> usize {
        self.map.outputs()
    }

    fn examples_at_once(&self, vectors: usize) -> usize {
        self.map.examples_at_once(vectors)
    }

    /// Rows are products with all K columns.
    fn examples_for_curvature(&self, _estimate: FisherEstimate, _width: usize) -> usize {
        self.map.examples_at_once(self.dimension())
    }

    fn at<'a>(&'a self, inputs: F::Inputs) -> Result<Box<dyn Linearised<T> + 'a>, LinearError> {
        Ok(Box::new(ProjectedAt { features: self.map.at(inputs)?, basis: self.basis }))
    }
}

/// The combinations at one batch.
struct ProjectedAt<'a, T: Real> {
    features: Box<dyn Linearised<T> + 'a>,
    basis: &'a Mat<T>,
}

impl<T: Real> Linearised<T> for ProjectedAt<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.features.shape()
    }

    fn outputs(&self) -> Vec<f64> {
        self.features.outputs()
    }

    /// Cost `2dKk` flops and the map's own product.
    fn apply(&self, weights: MatRef<'_, T>) -> Result<Mat<T>, LinearError> {
        check::same("rows of the weights", self.basis.ncols(), weights.nrows())?;
        self.features.apply(product(self.basis.as_ref(), weights).as_ref())
    }

    /// Cost as [`Self::apply`].
    fn apply_transpose(&self, u: MatRef<'_, T>) -> Result<Mat<T>, LinearError> {
        let own = self.features.apply_transpose(u)?;
        Ok(product(self.basis.transpose(), own.as_ref()))
    }

    fn apply_through(
        &self,
        weights: MatRef<'_, T>,
        map: &mut dyn FnMut(Range<usize>, &mut Mat<T>),
    ) -> Result<Mat<T>, LinearError> {
        check::same("rows of the weights", self.basis.ncols(), weights.nrows())?;
        let own = self.features.apply_through(product(self.basis.as_ref(), weights).as_ref(), map)?;
        Ok(product(self.basis.transpose(), own.as_ref()))
    }

    /// One product of the map with as many vectors as weights are asked for, all examples at once.
    fn rows(
        &self,
        along: Option<&Roots<T>>,
        weights: Range<usize>,
        visit: &mut dyn FnMut(Range<usize>, MatRef<'_, T>),
    ) -> Result<(), LinearError> {
        check::same("weights, at most", self.basis.ncols().max(weights.end), self.basis.ncols())?;
        let own = self.features.apply(self.basis.subcols(weights.start, weights.len()))?;
        let (examples, outputs) = self.shape();
        match along {
            None => visit(0..examples, own.as_ref()),
            Some(along) => visit(0..examples, combined(own.as_ref(), outputs, along)?.as_ref()),
        }
        Ok(())
    }
}
