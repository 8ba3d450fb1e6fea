//! The two functions of which log densities of counts consist without cancellation, however large the counts are.
//!
//! Source: Loader (2000), *Fast and accurate computation of binomial probabilities*.

use std::f64::consts::PI;

/// From here on Stirling's series is used: its first term that is left out is below 2e-16.
const ASYMPTOTIC: f64 = 16.0;
/// The coefficients of `1/x`, `1/x³`, ... in that series.
const STIRLING: [f64; 5] = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0];

/// `log Γ(x + 1) - ½ log(2π x) - x log x + x` for `x > 0`, the error of Stirling's formula: about `1/(12x)`.
pub(crate) fn stirling_error(x: f64) -> f64 {
    if x < ASYMPTOTIC {
        return libm::lgamma(x + 1.0) - (x + 0.5) * x.ln() + x - 0.5 * (2.0 * PI).ln();
    }
    let y = 1.0 / (x * x);
    STIRLING.iter().rev().fold(0.0, |rest, c| rest * y + c) / x
}

/// `x log(x/m) - x + m` for positive `x` and `m` whose difference is below a tenth of their sum: a series of positive terms.
pub(crate) fn deviance(x: f64, m: f64) -> f64 {
    let ratio = (x - m) / (x + m);
    let square = ratio * ratio;
    // 2x Σ ratio^(2j+1)/(2j+1), each term at most a hundredth of the one before.
    let series = (1..9).rev().fold(0.0, |rest, j| square * (rest + 1.0 / f64::from(2 * j + 1)));
    (x - m) * ratio + 2.0 * x * ratio * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_stirlings_formula() {
        // With 20 digits.
        for (x, exact) in [
            (1e-3, 2.5422704679670947),
            (1.0, 0.08106146679532726),
            (15.99, 0.005210911892923721),
            (16.0, 0.00520765591960964),
            (1e4, 8.333333330555555e-06),
        ] {
            assert!((stirling_error(x) - exact).abs() < 1e-14, "{x}: {}", stirling_error(x));
        }
    }

    #[test]
    fn deviances_near_and_at_equality() {
        for (x, m, exact) in [
            (3.0, 3.3, 0.014069460587025405),
            (1e6, 0.9e6, 5360.515657826301),
            (7.0, 8.5, 0.14090789891329775),
            (1e13, 1e13 + 64.0, 2.047999999991262e-10),
        ] {
            let found = deviance(x, m);
            assert!((found - exact).abs() < 1e-14 * exact, "{x} {m}: {found} for {exact}");
        }
        assert_eq!(deviance(4.2, 4.2), 0.0);
    }
}
