//! Functions drawn from the prior, with features of their own for every few of them.

use super::FeatureSettings;
use super::draws::PriorDraws;
use super::map::RandomFeatures;
use super::recipe::FeatureError;
use crate::Kernel;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use std::sync::Arc;

/// Prior functions in groups of equal size (the last may be smaller), each with random features of its own.
///
/// Functions that share features share their error: given the features their covariance is `φ(x)·φ(z)` instead of `k(x, z)`, and no number of
/// them averages that away. Between groups it is independent, so a mean of squares over all functions has the error of the functions plus that of
/// the features over the number of groups.
#[derive(Clone, Debug)]
pub struct PriorDrawGroups<T> {
    groups: Vec<PriorDraws<T>>,
    /// Functions of every group but the last.
    size: usize,
}

impl<T: Real> PriorDrawGroups<T> {
    /// Draws `count` functions of `kernel` in groups of `size`; one group of all where there is no size. The first group is what [`PriorDraws::new`] draws
    /// from the same streams; group g > 0 draws its features from child g (`kernels/feature-group`).
    ///
    /// # Errors
    /// As [`RandomFeatures::new`].
    pub fn new(
        kernel: &dyn Kernel<T>,
        dimension: usize,
        settings: FeatureSettings,
        (count, size): (usize, Option<usize>),
        streams: Streams,
    ) -> Result<Self, FeatureError> {
        let size = size.unwrap_or(count).clamp(1, count.max(1));
        let groups = (0..count.div_ceil(size))
            .map(|g| {
                let own = if g == 0 { streams } else { streams.child("kernels/feature-group", g as u64) };
                let features = RandomFeatures::new(kernel, dimension, settings, own)?;
                Ok(PriorDraws::new(Arc::new(features), size.min(count - g * size), own))
            })
            .collect::<Result<_, FeatureError>>()?;
        Ok(Self { groups, size })
    }

    /// How many functions.
    pub fn count(&self) -> usize {
        self.groups.iter().map(PriorDraws::count).sum()
    }

    /// The functions of each group, as ranges.
    pub fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.groups.iter().enumerate().map(|(g, draws)| g * self.size..g * self.size + draws.count())
    }

    /// All functions at all points, n x s: the cost of [`PriorDraws::values`] for each group.
    pub fn values(&self, x: MatRef<'_, T>) -> Mat<T> {
        let mut out = Mat::zeros(x.nrows(), self.count());
        for (range, draws) in self.ranges().zip(&self.groups) {
            out.subcols_mut(range.start, range.len()).copy_from(draws.values(x));
        }
        out
    }

    /// Points of each group of functions, and the numbers of the functions within it.
    fn split(&self, which: &[usize]) -> impl Iterator<Item = (&PriorDraws<T>, Vec<usize>, Vec<usize>)> {
        self.ranges().zip(&self.groups).filter_map(|(range, draws)| {
            let points: Vec<usize> = (0..which.len()).filter(|&i| range.contains(&which[i])).collect();
            let own = points.iter().map(|&i| which[i] - range.start).collect();
            (!points.is_empty()).then_some((draws, points, own))
        })
    }

    /// At point i the function `which[i]` alone (n).
    ///
    /// # Panics
    /// When there is not one number for each point, or one of them is s or more.
    pub fn values_of(&self, x: MatRef<'_, T>, which: &[usize]) -> Vec<T> {
        self.check(x, which);
        let mut out = vec![T::ZERO; which.len()];
        for (draws, points, own) in self.split(which) {
            let values = draws.values_of(rows(x, &points).as_ref(), &own);
            points.iter().zip(values).for_each(|(&i, v)| out[i] = v);
        }
        out
    }

    /// The gradient at point i of the function `which[i]`, n x D.
    ///
    /// # Errors
    /// [`FeatureError::NotDifferentiable`] for kernels of counts.
    ///
    /// # Panics
    /// As [`Self::values_of`].
    pub fn gradients_of(&self, x: MatRef<'_, T>, which: &[usize]) -> Result<Mat<T>, FeatureError> {
        self.check(x, which);
        let mut out = Mat::zeros(x.nrows(), x.ncols());
        for (draws, points, own) in self.split(which) {
            let gradients = draws.gradients_of(rows(x, &points).as_ref(), &own)?;
            for (a, &i) in points.iter().enumerate() {
                out.row_mut(i).copy_from(gradients.row(a));
            }
        }
        Ok(out)
    }

    fn check(&self, x: MatRef<'_, T>, which: &[usize]) {
        assert_eq!(which.len(), x.nrows(), "one function for each point");
        assert!(which.iter().all(|&c| c < self.count()), "no such function");
    }
}

/// Some rows of a matrix.
fn rows<T: Real>(x: MatRef<'_, T>, which: &[usize]) -> Mat<T> {
    Mat::from_fn(which.len(), x.ncols(), |a, d| x[(which[a], d)])
}
