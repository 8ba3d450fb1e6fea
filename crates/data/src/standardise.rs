//! Means and scales of the training rows, so that models see numbers of order one.

use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

/// `x -> (x - mean) / scale`, column by column, and the same for the target. Scales are population standard deviations, 1
/// where a column is constant. Columns that must stay as they are ([`Self::keeping`]) have mean 0 and scale 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standardisation {
    /// Mean of each feature.
    pub feature_means: Vec<f64>,
    /// Scale of each feature, in its units.
    pub feature_scales: Vec<f64>,
    /// Mean of the target.
    pub target_mean: f64,
    /// Scale of the target, in its units.
    pub target_scale: f64,
}

impl Standardisation {
    /// Learned from training rows: x of n x D and y (n).
    pub fn learn(x: MatRef<'_, f64>, y: &[f64]) -> Self {
        let (feature_means, feature_scales) =
            (0..x.ncols()).map(|j| mean_and_scale(|i| x[(i, j)], x.nrows())).unzip();
        let (target_mean, target_scale) = mean_and_scale(|i| y[i], y.len());
        Self { feature_means, feature_scales, target_mean, target_scale }
    }

    /// The same with some features left in their own units: counts, of which only the original zero means nothing.
    pub fn keeping(mut self, features: &[usize]) -> Self {
        for &j in features {
            (self.feature_means[j], self.feature_scales[j]) = (0.0, 1.0);
        }
        self
    }

    /// Features in standard units.
    ///
    /// # Panics
    /// When the width is another than in training.
    pub fn features(&self, x: MatRef<'_, f64>) -> Mat<f64> {
        assert_eq!(x.ncols(), self.feature_means.len(), "the features of training");
        Mat::from_fn(x.nrows(), x.ncols(), |i, j| {
            (x[(i, j)] - self.feature_means[j]) / self.feature_scales[j]
        })
    }

    /// A target value in standard units.
    pub fn target(&self, y: f64) -> f64 {
        (y - self.target_mean) / self.target_scale
    }

    /// A standardised target value (a predicted mean, say) back in its units.
    pub fn target_back(&self, y: f64) -> f64 {
        self.target_mean + self.target_scale * y
    }

    /// A standardised variance back in squared units of the target.
    pub fn variance_back(&self, variance: f64) -> f64 {
        variance * self.target_scale * self.target_scale
    }
}

/// Mean and population standard deviation in two passes; the scale is 1 for a column that is constant to rounding.
pub(crate) fn mean_and_scale(value: impl Fn(usize) -> f64, count: usize) -> (f64, f64) {
    let n = count.max(1) as f64;
    // Dividing first keeps sums of the largest doubles finite.
    let mean: f64 = (0..count).map(|i| value(i) / n).sum();
    let largest = (0..count).fold(0.0f64, |m, i| m.max((value(i) - mean).abs()));
    if largest <= 1e-12 * mean.abs() || largest == 0.0 {
        // Its own value rather than the rounded mean, so that a constant column becomes exactly 0.
        return (if count > 0 { value(0) } else { 0.0 }, 1.0);
    }
    let variance: f64 = (0..count).map(|i| ((value(i) - mean) / largest).powi(2) / n).sum();
    (mean, largest * variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_columns_have_mean_0_and_deviation_1() {
        let x = Mat::from_fn(50, 3, |i, j| if j == 2 { 7.25 } else { 1e150 * (i as f64).sin() + j as f64 });
        let y: Vec<f64> = (0..50).map(|i| i as f64).collect();
        let s = Standardisation::learn(x.as_ref(), &y);
        let z = s.features(x.as_ref());
        for j in 0..2 {
            let mean: f64 = z.col(j).iter().sum::<f64>() / 50.0;
            let square: f64 = z.col(j).iter().map(|v| v * v).sum::<f64>() / 50.0;
            assert!(mean.abs() < 1e-12 && (square - 1.0).abs() < 1e-12);
        }
        assert_eq!(s.feature_scales[2], 1.0);
        assert_eq!(z[(3, 2)], 0.0);
        assert!((s.target_back(s.target(12.5)) - 12.5).abs() < 1e-12);
        assert!((s.variance_back(1.0).sqrt() - s.target_scale).abs() < 1e-12);
        let kept = s.clone().keeping(&[1]).features(x.as_ref());
        assert!((0..50).all(|i| kept[(i, 1)] == x[(i, 1)] && kept[(i, 0)] == z[(i, 0)]));
    }
}
