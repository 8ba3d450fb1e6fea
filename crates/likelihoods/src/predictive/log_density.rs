//! Log predictive densities in closed form or by quadrature; Monte Carlo stands with the rule.

use super::log_integral::log_integral;
use super::{Covariance, LatentGaussian};
use crate::LikelihoodError;
use crate::special::normal_tail;
use faer::Mat;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use std::f64::consts::PI;

/// Deviations of a Gaussian that are kept: exp(-40) lies beyond.
const REACH: f64 = 9.0;

/// `log N(x; 0, variance)`.
fn normal(x: f64, variance: f64) -> f64 {
    normal_tail::log_density(x / variance.sqrt()) - 0.5 * variance.ln()
}

/// `log N(y; mean, V + noise)`, `noise(i, j)` the noise covariance, diagonal if so said. Cost O(C) when both covariances are
/// diagonal, else O(C³).
pub(crate) fn gaussian(
    y: &[f64],
    latent: LatentGaussian<'_>,
    diagonal_noise: bool,
    noise: impl Fn(usize, usize) -> f64,
) -> Result<f64, LikelihoodError> {
    let n = y.len();
    if diagonal_noise && matches!(latent.covariance, Covariance::Diagonal(_)) {
        return Ok((0..n)
            .map(|i| normal(y[i] - latent.mean[i], latent.covariance.variance(i, n) + noise(i, i)))
            .sum());
    }
    let sum = Mat::from_fn(n, n, |i, j| latent.covariance.entry(i, j, n) + noise(i, j));
    let factor = Cholesky::of(sum.as_ref(), JitterPolicy::NONE)?;
    let mut residual = Mat::from_fn(n, 1, |i, _| y[i] - latent.mean[i]);
    factor.solve_factor_in_place(residual.as_mut());
    let square = residual.squared_norm_l2();
    Ok(-0.5 * (square + factor.log_determinant() + n as f64 * (2.0 * PI).ln()))
}

/// `log E[p(y | f)]` of a count for `f ~ N(mean, variance)`, by quadrature. `log_density` is that of a rate `exp(f)`, falling for y = 0 no
/// faster than a Poisson distribution's.
pub(crate) fn counts(y: f64, mean: f64, variance: f64, log_density: impl Fn(f64) -> f64) -> f64 {
    if variance <= 0.0 {
        return log_density(mean);
    }
    let deviation = variance.sqrt();
    // The peak lies between the mean and log y; for y = 0, where exp(f) = (mean - f)/variance, above mean - max(1, log v + mean).
    let other = if y > 0.0 { y.ln() } else { mean - (variance.ln() + mean).max(1.0) };
    log_integral(mean.min(other) - REACH * deviation, mean.max(other) + REACH * deviation, |f| {
        log_density(f) + normal(f - mean, variance)
    })
}

/// `log E[t(residual - f)]` for `f ~ N(0, variance)` and Student's t density of the given scale and degrees of freedom ν.
///
/// The density is a mixture of normals with variances `scale²/λ`, λ of a gamma distribution with shape and rate ν/2, so the answer is
/// one integral over log λ whose integrand has no narrow peak, however different scale and deviation are.
pub(crate) fn student_t(residual: f64, variance: f64, scale: f64, degrees_of_freedom: f64) -> f64 {
    let half = 0.5 * degrees_of_freedom;
    let variance = if variance < 0.0 { 0.0 } else { variance };
    let constant = half * half.ln() - libm::lgamma(half);
    // Towards small λ the integrand falls at least as λ^(ν/2) once the normal is wider than the residual; large λ end as exp(-νλ/2).
    let widest = -(1.0 + (residual / scale).powi(2) / degrees_of_freedom).ln();
    let (low, high) = (widest - 90.0 / degrees_of_freedom - 5.0, (1.0 + 100.0 / half).ln() + 1.0);
    log_integral(low, high, |log_lambda| {
        let lambda = log_lambda.exp();
        constant + half * (log_lambda - lambda) + normal(residual, variance + scale * scale / lambda)
    })
}

/// `log E[N(y; m, exp(s))]` for Gaussian `(m, s)` with the given means, variances and covariance: exact in m, by quadrature in s.
pub(crate) fn heteroscedastic(y: f64, means: (f64, f64), variances: (f64, f64), covariance: f64) -> f64 {
    let residual = y - means.0;
    let (spread, log_spread) = variances;
    if log_spread <= 0.0 {
        return normal(residual, spread + means.1.exp());
    }
    let deviation = log_spread.sqrt();
    // Given s, the mean of m is a line in s, and its variance is less.
    let slope = covariance / log_spread;
    let left = (spread - slope * covariance).max(0.0);
    let largest_residual = residual.abs() + REACH * (slope * deviation).abs();
    // To the left the density grows at most as exp(-s/2), which moves the peak by v/2; beyond log r² it only falls.
    let low = means.1 - 0.5 * log_spread - REACH * deviation;
    let high = means.1.max(2.0 * largest_residual.ln()) + REACH * deviation;
    log_integral(low, high, |s| {
        normal(residual - slope * (s - means.1), left + s.exp()) + normal(s - means.1, log_spread)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Likelihood, Poisson};

    fn poisson_log_density(y: f64, f: f64) -> f64 {
        Poisson::new(1).unwrap().log_density(&[y], &[f])
    }

    #[test]
    fn counts_against_integrals_with_25_digits() {
        for (y, mean, variance, exact) in [
            (0.0f64, 0.3, 0.2, -1.305111970805884f64),
            (4.0, 1.2, 0.6, -2.2431897761340394),
            (0.0, 5.0, 100.0, -1.2373718753391163),
            (1000.0, 0.0, 4.0, -14.482245873371822),
            (3.0, -2.0, 25.0, -3.8033214652721314),
            (20.0, 8.0, 0.25, -46.809937728915514),
        ] {
            let found = counts(y, mean, variance, |f| poisson_log_density(y, f));
            // The log density of a large count is a difference of numbers of the size of y log y.
            let tolerance = 1e-12 * (1.0f64 + exact.abs()) + 1e-15 * y * (y + 1.0).ln();
            assert!((found - exact).abs() < tolerance, "{y} {mean} {variance}: {found} for {exact}");
        }
        let certain = counts(2.0, 0.4, 0.0, |f| poisson_log_density(2.0, f));
        assert_eq!(certain, poisson_log_density(2.0, 0.4));
    }

    #[test]
    fn heteroscedastic_noise_against_integrals_with_25_digits() {
        for (y, means, variances, covariance, exact) in [
            (0.7, (0.2, -1.0), (0.3, 0.5), 0.0, -0.927227440684886f64),
            (5.0, (0.0, -2.0), (0.01, 1.0), 0.0, -11.160025891173467),
            (0.1, (0.0, -3.0), (0.2, 4.0), 0.5, -0.37761399695891856),
            (0.0, (0.0, 0.0), (0.0, 9.0), 0.0, 0.20606146679532725),
            (30.0, (0.0, 0.0), (0.1, 0.04), -0.05, -122.23990942211314),
        ] {
            let found = heteroscedastic(y, means, variances, covariance);
            assert!((found - exact).abs() < 1e-11 * (1.0f64 + exact.abs()), "{y}: {found} for {exact}");
        }
        let certain = heteroscedastic(1.5, (1.0, -0.5), (0.2, 0.0), 0.0);
        assert!((certain - normal(0.5, 0.2 + (-0.5f64).exp())).abs() < 1e-14);
    }
}
