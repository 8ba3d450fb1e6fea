//! **Are the error bars right?** Of standardised residuals `z = (x - x̃) / std`, a share p should lie within `±Φ⁻¹((1 + p) / 2)`, which is where `erf(|z| / √2) <= p`; and errors should be spread as standard deviations are
//! (Antorán 2024, figures 7.8 to 7.13).

use posterior_linalg::vectorised::erf;
use serde::{Deserialize, Serialize};
use std::f64::consts::FRAC_1_SQRT_2;

/// Why there is no calibration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// Lists of different lengths, or of nothing.
    #[error(
        "{truth} true pixels, {mean} of the mean and {deviation} standard deviations: as many of each, and some, are needed"
    )]
    Shape {
        /// Pixels of the truth.
        truth: usize,
        /// Pixels of the mean.
        mean: usize,
        /// Standard deviations.
        deviation: usize,
    },
    /// A number that cannot be.
    #[error(
        "pixel {pixel}: the error is {error} and the standard deviation {deviation}; numbers must be finite, and deviations positive"
    )]
    Pixel {
        /// Which one.
        pixel: usize,
        /// Its error.
        error: f64,
        /// Its standard deviation.
        deviation: f64,
    },
}

/// Errors with the standard deviations that were predicted for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    errors: Vec<f64>,
    deviations: Vec<f64>,
    /// `erf(|z| / √2)`, ascending: the smallest share whose interval holds the truth.
    levels: Vec<f64>,
}

/// Two histograms on one axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histograms {
    /// Edges of the bins, from 0 to the largest of both (bins + 1).
    pub edges: Vec<f64>,
    /// Absolute errors in each bin.
    pub errors: Vec<usize>,
    /// Standard deviations in each bin.
    pub deviations: Vec<usize>,
}

impl Calibration {
    /// Of an image, its reconstruction and its standard deviations. Cost: a sort.
    ///
    /// # Errors
    /// [`CalibrationError`] when lengths differ, or a number is not finite or a deviation not positive.
    pub fn new(truth: &[f64], mean: &[f64], deviations: &[f64]) -> Result<Self, CalibrationError> {
        let lengths = (truth.len(), mean.len(), deviations.len());
        if truth.is_empty() || lengths.0 != lengths.1 || lengths.0 != lengths.2 {
            let (truth, mean, deviation) = lengths;
            return Err(CalibrationError::Shape { truth, mean, deviation });
        }
        let errors: Vec<f64> = truth.iter().zip(mean).map(|(x, m)| x - m).collect();
        for (pixel, (&error, &deviation)) in errors.iter().zip(deviations).enumerate() {
            if !(error.is_finite() && deviation > 0.0 && deviation.is_finite()) {
                return Err(CalibrationError::Pixel { pixel, error, deviation });
            }
        }
        let scaled: Vec<f64> =
            errors.iter().zip(deviations).map(|(e, d)| (e / d).abs() * FRAC_1_SQRT_2).collect();
        let mut levels = vec![0.0; scaled.len()];
        erf(&scaled, &mut levels);
        levels.sort_by(f64::total_cmp);
        Ok(Self { errors, deviations: deviations.to_vec(), levels })
    }

    /// The share of pixels within their interval of level `p` (0 to 1).
    pub fn coverage(&self, p: f64) -> f64 {
        self.levels.partition_point(|level| *level <= p) as f64 / self.levels.len() as f64
    }

    /// `(p, coverage)` at `steps + 1` levels from 0 to 1; the diagonal is calibrated, above it error bars are too long.
    pub fn curve(&self, steps: usize) -> Vec<(f64, f64)> {
        let level = |i: usize| i as f64 / steps.max(1) as f64;
        (0..=steps.max(1)).map(|i| (level(i), self.coverage(level(i)))).collect()
    }

    /// The mean distance of the curve from the diagonal, over all levels: 0 is calibrated, 1/2 is the worst. Exact, not on a grid.
    pub fn miscalibration(&self) -> f64 {
        // Between two levels coverage is constant, and |coverage - p| is made of straight lines.
        let n = self.levels.len() as f64;
        let area = |from: f64, to: f64, height: f64| {
            let half = |a: f64, b: f64| 0.5 * (b - a) * ((height - a).abs() + (height - b).abs());
            if from < height && height < to { half(from, height) + half(height, to) } else { half(from, to) }
        };
        let (mut sum, mut from) = (0.0, 0.0);
        for (i, &level) in self.levels.iter().chain([&1.0]).enumerate() {
            sum += area(from, level, i as f64 / n);
            from = level;
        }
        sum
    }

    /// How absolute errors and standard deviations are spread, in `bins` bins of one width from 0 to the largest of both.
    pub fn histograms(&self, bins: usize) -> Histograms {
        let bins = bins.max(1);
        let all = self.errors.iter().map(|e| e.abs()).chain(self.deviations.iter().copied());
        let largest = all.fold(0.0, f64::max);
        let bin = |value: f64| ((value / largest * bins as f64) as usize).min(bins - 1);
        let mut out = Histograms {
            edges: (0..=bins).map(|i| largest * i as f64 / bins as f64).collect(),
            errors: vec![0; bins],
            deviations: vec![0; bins],
        };
        self.errors.iter().for_each(|e| out.errors[bin(e.abs())] += 1);
        self.deviations.iter().for_each(|&d| out.deviations[bin(d)] += 1);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_problem::normal;

    /// Truths drawn with their deviations: coverage has a standard error of `√(p (1 - p) / n)`, and the largest distance of the curve exceeds `1.95 / √n` once in a thousand (Kolmogorov).
    #[test]
    fn draws_are_covered_as_often_as_said() {
        let n = 10_000;
        let deviations: Vec<f64> = (0..n).map(|i| 0.1 + (i % 7) as f64).collect();
        let white = normal(n, 1, 3);
        let truth: Vec<f64> = (0..n).map(|i| 1.0 + deviations[i] * white[(i, 0)]).collect();
        let mean = vec![1.0; n];
        let right = Calibration::new(&truth, &mean, &deviations).unwrap();
        let furthest = right.curve(200).iter().fold(0.0f64, |d, (p, c)| d.max((p - c).abs()));
        assert!(furthest < 1.95 / (n as f64).sqrt(), "{furthest}");
        assert!(right.miscalibration() < furthest + 0.0025);
        // Bars of half the length: within one deviation of them is within half of one, 0.3829 of all.
        let short: Vec<f64> = deviations.iter().map(|d| 0.5 * d).collect();
        let short = Calibration::new(&truth, &mean, &short).unwrap();
        let expected: f64 = 0.382_924_922_548_026;
        let error = (expected * (1.0 - expected) / n as f64).sqrt();
        assert!((short.coverage(0.682_689_492_137_086) - expected).abs() < 4.0 * error);
        assert!(short.miscalibration() > 0.1);
    }

    #[test]
    fn coverage_and_its_area_by_hand() {
        // Residuals of 1 and 2 deviations.
        let two = Calibration::new(&[1.0, -4.0], &[0.0, 0.0], &[1.0, 2.0]).unwrap();
        assert_eq!([two.coverage(0.6), two.coverage(0.7), two.coverage(0.96)], [0.0, 0.5, 1.0]);
        let grid = 2_000_000;
        let numeric: f64 = (0..grid)
            .map(|i| (i as f64 + 0.5) / grid as f64)
            .map(|p| (two.coverage(p) - p).abs() / grid as f64)
            .sum();
        assert!((two.miscalibration() - numeric).abs() < 1e-6);
        assert_eq!(two.curve(1), [(0.0, 0.0), (1.0, 1.0)]);
    }

    #[test]
    fn histograms_share_an_axis() {
        let two = Calibration::new(&[1.0, -4.0, 0.0], &[0.0; 3], &[1.0, 2.0, 0.5]).unwrap();
        let found = two.histograms(4);
        assert_eq!(found.edges, [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!((found.errors, found.deviations), (vec![1, 1, 0, 1], vec![1, 1, 1, 0]));
    }

    #[test]
    fn what_cannot_be_is_said() {
        assert!(Calibration::new(&[], &[], &[]).is_err());
        assert!(Calibration::new(&[1.0], &[1.0, 2.0], &[1.0]).is_err());
        let error = Calibration::new(&[1.0, 1.0], &[1.0, 1.0], &[1.0, 0.0]).unwrap_err();
        assert!(matches!(error, CalibrationError::Pixel { pixel: 1, .. }));
    }
}
