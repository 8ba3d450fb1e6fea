//! Functions drawn from the prior.

use super::map::RandomFeatures;
use super::recipe::FeatureError;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};
use std::sync::Arc;

/// s functions drawn from a Gaussian process prior of mean 0: `f_c(x) = φ(x)·w_c` with standard normal weights, which can be evaluated and
/// differentiated anywhere, at any time. Given the weights they are what they are; over the draws of weights their covariance is
/// `φ(x)·φ(z)`, and over those of the features, too, it is `k(x, z)`.
#[derive(Clone, Debug)]
pub struct PriorDraws<T> {
    features: Arc<RandomFeatures<T>>,
    weights: Mat<T>,
}

impl<T: Real> PriorDraws<T> {
    /// Draws `count` functions. Function c depends on the seed and on c alone (stream `kernels/weights` of child c), so that more can be drawn
    /// later.
    pub fn new(features: Arc<RandomFeatures<T>>, count: usize, streams: Streams) -> Self {
        let mut weights = Mat::zeros(features.count(), count);
        for c in 0..count {
            let mut rng = streams.child("kernels/draw", c as u64).stream("kernels/weights");
            for w in weights.col_as_slice_mut(c) {
                let normal: f64 = StandardNormal.sample(&mut rng);
                *w = T::from_f64(normal);
            }
        }
        Self { features, weights }
    }

    /// s: how many functions.
    pub fn count(&self) -> usize {
        self.weights.ncols()
    }

    /// The features.
    pub fn features(&self) -> &Arc<RandomFeatures<T>> {
        &self.features
    }

    /// All functions at all points, n x s: `n d (2D + 2s)` flops and n d sines.
    pub fn values(&self, x: MatRef<'_, T>) -> Mat<T> {
        self.features.multiply(x, self.weights.as_ref())
    }

    /// At point i the function `which[i]` alone (n): `n d (2D + 2)` flops and n d sines.
    ///
    /// # Panics
    /// When there is not one number for each point, or one of them is s or more.
    pub fn values_of(&self, x: MatRef<'_, T>, which: &[usize]) -> Vec<T> {
        assert_eq!(which.len(), x.nrows(), "one function for each point");
        self.features.dot_rows(x, |i| self.weights.col_as_slice(which[i]))
    }

    /// The gradient at point i of the function `which[i]`, n x D.
    ///
    /// # Errors
    /// [`FeatureError::NotDifferentiable`] for kernels of counts.
    ///
    /// # Panics
    /// As [`Self::values_of`].
    pub fn gradients_of(&self, x: MatRef<'_, T>, which: &[usize]) -> Result<Mat<T>, FeatureError> {
        assert_eq!(which.len(), x.nrows(), "one function for each point");
        self.features.pull(x, |rows, mut out| {
            for l in 0..out.ncols() {
                let column = out.as_mut().col_mut(l);
                column.iter_mut().zip(rows.clone()).for_each(|(o, i)| *o = self.weights[(l, which[i])]);
            }
        })
    }
}
