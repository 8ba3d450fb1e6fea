//! Does an interval of level a hold a share a of the truths?

use crate::interval::{half_width_factor, standard_normal_cdf};
use serde::{Deserialize, Serialize};

/// One point of a calibration curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationPoint {
    /// Nominal level of the central interval.
    pub nominal: f64,
    /// Share of truths inside it.
    pub empirical: f64,
    /// Lower end of the 95 % Wilson interval for that share.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The level of the smallest central interval that holds a truth, `2Φ(|z|) - 1`, for each standardised residual.
fn levels(z: &[f64]) -> Vec<f64> {
    let mut out: Vec<f64> = z.iter().map(|z| 2.0 * standard_normal_cdf(z.abs()) - 1.0).collect();
    out.sort_by(f64::total_cmp);
    out
}

/// Share of sorted `levels` below `a`: the open interval, so a truth on its edge is outside.
fn share_below(levels: &[f64], a: f64) -> f64 {
    levels.partition_point(|u| *u < a) as f64 / levels.len() as f64
}

/// Empirical against nominal coverage of central intervals at `count + 1` equally spaced levels from 0 to 1.
///
/// # Panics
/// When `count` is 0.
pub fn calibration_curve(z: &[f64], count: usize) -> Vec<CalibrationPoint> {
    assert!(count > 0, "a curve has at least two points");
    let levels = levels(z);
    (0..=count)
        .map(|k| {
            let nominal = k as f64 / count as f64;
            let empirical = if k == count { 1.0 } else { share_below(&levels, nominal) };
            let (low, high) = wilson(empirical, z.len() as f64);
            CalibrationPoint { nominal, empirical, low, high }
        })
        .collect()
}

/// The score interval of a proportion (Wilson 1927) at 95 %.
fn wilson(share: f64, n: f64) -> (f64, f64) {
    let z = half_width_factor(0.95);
    let centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    // At shares of 0 and 1 rounding must not push the share itself outside.
    ((centre - half).max(0.0).min(share), (centre + half).min(1.0).max(share))
}

/// The **centred quantile metric** by the trapezoid rule on 0, 0.1, ..., 1 (spec `valla`, section 8.2). The integrand is 0 at
/// both ends; published values took it as 1 at the upper end and are 0.05 higher.
pub fn centred_quantile_metric(z: &[f64]) -> f64 {
    let levels = levels(z);
    (1..10)
        .map(|k| {
            let a = f64::from(k) / 10.0;
            0.1 * (share_below(&levels, a) - a).abs()
        })
        .sum()
}

/// The centred quantile metric without discretisation: the empirical distribution function is a staircase, so each step is
/// integrated exactly.
pub fn centred_quantile_metric_exact(z: &[f64]) -> f64 {
    let levels = levels(z);
    let n = levels.len() as f64;
    let mut start = 0.0;
    let mut total = 0.0;
    for (i, end) in levels.iter().copied().chain([1.0]).enumerate() {
        total += absolute_gap(i as f64 / n, start, end);
        start = end;
    }
    total
}

/// `∫ |c - a| da` over [from, to].
fn absolute_gap(c: f64, from: f64, to: f64) -> f64 {
    let primitive = |a: f64| 0.5 * (a - c) * (a - c).abs();
    primitive(to) - primitive(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_linalg::random::Streams;
    use rand_distr::{Distribution, StandardNormal};

    fn normals(n: usize, scale: f64) -> Vec<f64> {
        let mut rng = Streams::new(2).stream("metrics/test");
        (0..n)
            .map(|_| scale * <StandardNormal as Distribution<f64>>::sample(&StandardNormal, &mut rng))
            .collect()
    }

    #[test]
    fn calibrated_predictions_lie_on_the_diagonal() {
        let n = 20_000;
        let z = normals(n, 1.0);
        for point in calibration_curve(&z, 20) {
            let error = 5.0 * (point.nominal * (1.0 - point.nominal) / n as f64).sqrt();
            assert!((point.empirical - point.nominal).abs() <= error + 1e-12, "{point:?}");
            assert!(point.low <= point.empirical && point.empirical <= point.high);
        }
        assert!(centred_quantile_metric(&z) < 0.01 && centred_quantile_metric_exact(&z) < 0.01);
    }

    #[test]
    fn the_exact_integral_is_the_limit_of_fine_sums_and_the_trapezoid_comes_close() {
        for scale in [0.3, 1.0, 3.0] {
            let z = normals(57, scale);
            let levels = levels(&z);
            let steps = 200_000;
            let fine: f64 = (0..steps)
                .map(|k| {
                    let a = (k as f64 + 0.5) / steps as f64;
                    (share_below(&levels, a) - a).abs() / steps as f64
                })
                .sum();
            assert!((centred_quantile_metric_exact(&z) - fine).abs() < 1e-5);
            // Within a step of the grid the curve moves by at most 0.1 on the diagonal's side.
            assert!((centred_quantile_metric(&z) - fine).abs() < 0.03, "{scale}");
        }
    }

    #[test]
    fn extremes_are_one_half() {
        // Far too wide: every interval holds everything, ∫ (1 - a) da = ½; far too narrow: ∫ a da = ½.
        assert!((centred_quantile_metric_exact(&[0.0; 10]) - 0.5).abs() < 1e-12);
        assert!((centred_quantile_metric_exact(&[40.0; 10]) - 0.5).abs() < 1e-12);
        assert!((centred_quantile_metric(&[0.0; 10]) - 0.45).abs() < 1e-12);
    }
}
