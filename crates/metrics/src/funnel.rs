//! **Do errors grow with the prediction?** A residual plot that opens like a funnel says that one width of interval does not fit all rows: too narrow where predictions are large, too wide where they are small.

use crate::mid_ranks;
use serde::{Deserialize, Serialize};

/// Rank correlation of predictions with the magnitudes of standardised residuals (Spearman's).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Funnel {
    /// From -1 (errors are larger, in predicted deviations, where predictions are small) to 1; 0 where they have nothing to do with each other.
    pub rank_correlation: f64,
    /// Its standard deviation where they have nothing to do with each other, `1 / √(n - 1)`.
    pub standard_error: f64,
}

/// Standard errors that no chance explains: less than once in ten thousand tables.
const SURE: f64 = 4.0;

/// Correlations below this change no interval by much.
const LEAST: f64 = 0.1;

impl Funnel {
    /// Of predictions and standardised residuals of the same rows; None of fewer than three, or where all of one are alike. Cost `O(n log n)`.
    pub fn of(predictions: &[f64], residuals: &[f64]) -> Option<Self> {
        let n = predictions.len();
        if n < 3 || residuals.len() != n {
            return None;
        }
        let sizes: Vec<f64> = residuals.iter().map(|z| z.abs()).collect();
        let rank_correlation = correlation(&mid_ranks(predictions), &mid_ranks(&sizes))?;
        Some(Self { rank_correlation, standard_error: 1.0 / ((n - 1) as f64).sqrt() })
    }

    /// Whether it is more than chance, and enough to matter.
    pub fn is_sure(self) -> bool {
        self.rank_correlation.abs() > f64::max(LEAST, SURE * self.standard_error)
    }
}

fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(a, b)| f(a - ma, b - mb)).sum::<f64>();
    let (both, own, other) = (sum(&|a, b| a * b), sum(&|a, _| a * a), sum(&|_, b| b * b));
    let out = both / (own * other).sqrt();
    out.is_finite().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_linalg::random::Streams;
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn a_correlation_by_hand() {
        // Differences of ranks 0, 1, -1: 1 - 6 · 2 / (3 · 8).
        let found = Funnel::of(&[1.0, 2.0, 3.0], &[0.1, -0.9, 0.5]).unwrap();
        assert!((found.rank_correlation - 0.5).abs() < 1e-14);
        assert!((found.standard_error - 0.5f64.sqrt()).abs() < 1e-14);
        assert!(
            Funnel::of(&[1.0; 5], &[0.1, 0.2, 0.3, 0.4, 0.5]).is_none() && Funnel::of(&[], &[]).is_none()
        );
    }

    #[test]
    fn chance_makes_no_funnel_and_growing_errors_do() {
        let mut rng = Streams::new(5).stream("metrics/funnel");
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let predictions: Vec<f64> = (0..500).map(|i| 0.01 * f64::from(i)).collect();
        let even: Vec<f64> = predictions.iter().map(|_| normal()).collect();
        let growing: Vec<f64> = predictions.iter().map(|p| (0.3 + p) * normal()).collect();
        assert!(!Funnel::of(&predictions, &even).unwrap().is_sure());
        let found = Funnel::of(&predictions, &growing).unwrap();
        assert!(found.is_sure() && found.rank_correlation > 0.3, "{found:?}");
    }
}
