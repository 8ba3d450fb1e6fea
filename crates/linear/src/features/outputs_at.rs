//! Another map's features with the outputs of the linear model at other weights.

use super::{FeatureMap, Linearised};
use crate::curvature::{BlockSum, FisherEstimate, Form, OutputCurvature, Roots, Segment};
use crate::latent::{Posteriors, Wanted};
use crate::{LinearError, check};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use std::ops::Range;

/// The model of a map expanded at other weights `w`: the features are the same, the outputs are `g(x) + phi(x) (w - v)`.
///
/// A curvature that is summed over it is that of the linear model at `w` (at its mode, say) in place of the expansion point's: the same rows, another curvature of the likelihood in the middle.
///
/// Source: spec `linearised_laplace`, sections 3 and 4 (the curvature's point; figure 5.7 of the thesis).
#[derive(Debug)]
pub struct OutputsAt<'a, T, F> {
    map: &'a F,
    weights: &'a [f64],
    moved: Mat<T>,
}

impl<'a, T: Real, F: FeatureMap<T>> OutputsAt<'a, T, F> {
    /// Of a map and weights (d).
    ///
    /// # Errors
    /// [`LinearError::Shape`] when the weights are of another number.
    pub fn new(map: &'a F, weights: &'a [f64]) -> Result<Self, LinearError> {
        check::same("weights", map.dimension(), weights.len())?;
        let from = |i: usize| map.expansion_point().map_or(0.0, |v| v[i]);
        let moved = Mat::from_fn(weights.len(), 1, |i, _| T::from_f64(weights[i] - from(i)));
        Ok(Self { map, weights, moved })
    }
}

impl<T: Real, F: FeatureMap<T>> FeatureMap<T> for OutputsAt<'_, T, F> {
    type Inputs = F::Inputs;

    fn dimension(&self) -> usize {
        self.map.dimension()
    }

    fn outputs(&self) -> usize {
        self.map.outputs()
    }

    fn expansion_point(&self) -> Option<&[f64]> {
        Some(self.weights)
    }

    fn examples_at_once(&self, vectors: usize) -> usize {
        self.map.examples_at_once(vectors)
    }

    fn examples_through_at_once(&self, vectors: usize) -> usize {
        self.map.examples_through_at_once(vectors)
    }

    fn segments(&self) -> Vec<Segment> {
        self.map.segments()
    }

    fn examples_for_curvature(&self, estimate: FisherEstimate, width: usize) -> usize {
        self.map.examples_for_curvature(estimate, width)
    }

    /// Cost one product of the map with one vector more.
    fn at<'a>(&'a self, inputs: F::Inputs) -> Result<Box<dyn Linearised<T> + 'a>, LinearError> {
        let features = self.map.at(inputs)?;
        let step = features.apply(self.moved.as_ref())?;
        let outputs = features.outputs().into_iter().zip(step.col(0).iter()).map(|(g, s)| g + s.to_f64());
        Ok(Box::new(Moved { outputs: outputs.collect(), features }))
    }
}

/// The features of one batch.
struct Moved<'a, T: Real> {
    features: Box<dyn Linearised<T> + 'a>,
    outputs: Vec<f64>,
}

impl<T: Real> Linearised<T> for Moved<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.features.shape()
    }

    fn outputs(&self) -> Vec<f64> {
        self.outputs.clone()
    }

    fn apply(&self, weights: MatRef<'_, T>) -> Result<Mat<T>, LinearError> {
        self.features.apply(weights)
    }

    fn apply_transpose(&self, u: MatRef<'_, T>) -> Result<Mat<T>, LinearError> {
        self.features.apply_transpose(u)
    }

    fn apply_through(
        &self,
        weights: MatRef<'_, T>,
        map: &mut dyn FnMut(Range<usize>, &mut Mat<T>),
    ) -> Result<Mat<T>, LinearError> {
        self.features.apply_through(weights, map)
    }

    fn rows(
        &self,
        along: Option<&Roots<T>>,
        weights: Range<usize>,
        visit: &mut dyn FnMut(Range<usize>, MatRef<'_, T>),
    ) -> Result<(), LinearError> {
        self.features.rows(along, weights, visit)
    }

    fn add_curvature(
        &self,
        form: Form,
        observed: &OutputCurvature<'_>,
        sums: &mut [BlockSum],
    ) -> Result<(), LinearError> {
        self.features.add_curvature(form, observed, sums)
    }

    fn add_covariances(
        &self,
        posteriors: &Posteriors<T>,
        wanted: Wanted,
        out: &mut [Vec<f64>],
    ) -> Result<(), LinearError> {
        self.features.add_covariances(posteriors, wanted, out)
    }
}
