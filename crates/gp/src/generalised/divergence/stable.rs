//! **Logarithms and exponentials that keep their digits** near 1 and 0, without branches, so that loops over them become vector code.
//!
//! ```text
//! log(1 + x)        = log(u) + (x - (u - 1))/u,   u = 1 + x rounded
//! p(x) = x - log(1 + x) = s (x - 2 s² (1/3 + s²/5 + s⁴/7 + ..)),   s = x/(2 + x)      of second order at 0
//! 1 - exp(-b)       = 2 t/(1 + t),   t = tanh(b/2)
//! ```
//!
//! Everything that two normals are compared by is made of p: `KL[N(0, Q), N(0, P)] = ½ p(Q/P - 1)`.

use posterior_linalg::Real;

/// `log(1 + x)` for x from -1, to about two units in the last place.
#[inline(always)]
pub(super) fn log_one_plus(x: f64) -> f64 {
    let u = 1.0 + x;
    let lost = (x - (u - 1.0)) / u;
    // At both ends the correction is no number, and nothing.
    Real::ln(u) + if (u > 0.0) & (u < f64::INFINITY) { lost } else { 0.0 }
}

/// `x - log(1 + x)` for x from -1, never negative, to about ten units in the last place. The logarithm is given, as who knows x often knows it better than x can tell: near -1, x has no digits of `1 + x`. It is not
/// looked at where the difference would cancel.
#[inline(always)]
pub(super) fn excess(x: f64, logarithm: f64) -> f64 {
    /// `2/(2k + 3)`; with `|s| <= 0.2` what is left out is below half a unit in the last place.
    const SERIES: [f64; 11] = [
        2.0 / 3.0,
        2.0 / 5.0,
        2.0 / 7.0,
        2.0 / 9.0,
        2.0 / 11.0,
        2.0 / 13.0,
        2.0 / 15.0,
        2.0 / 17.0,
        2.0 / 19.0,
        2.0 / 21.0,
        2.0 / 23.0,
    ];
    let s = x / (2.0 + x);
    let square = s * s;
    let mut sum = SERIES[10];
    for k in (0..10).rev() {
        sum = sum.mul_add(square, SERIES[k]);
    }
    let near = s * (x - square * sum);
    let value = if s.abs() <= 0.2 { near } else { x - logarithm };
    if x == f64::INFINITY { x } else { value }
}

/// `log(1 + γy)/γ - log(1 + y)` for y from -1, `1 + γy > 0`, and γ at most ½ but not 0 (for γ → 0 the limit is [`excess`]); zero and of second order at y = 0. `logarithm` is `log(1 + y)`, finite also where y overflows.
///
/// That is `p(y) - p(γy)/γ`, which does not cancel for such γ but for large y, where logarithms are compared.
#[inline(always)]
pub(super) fn gap(y: f64, logarithm: f64, gamma: f64) -> f64 {
    let mixed = gamma * y;
    let (far, inverse) = ((gamma > 0.0) & (y > 0.5), 1.0 / gamma);
    let of_mixed = log_one_plus(mixed);
    let by_excess = excess(y, logarithm) - excess(mixed, of_mixed) * inverse;
    // What 1 adds to more than 10³⁰⁰ is nothing.
    let of_mixed = if mixed > 1e300 { Real::ln(gamma) + logarithm } else { of_mixed };
    if far { of_mixed * inverse - logarithm } else { by_excess }
}

/// `1 - exp(-b)` for b from 0.
#[inline(always)]
pub(super) fn one_minus_exp(b: f64) -> f64 {
    let t = Real::tanh(0.5 * b);
    2.0 * t / (1.0 + t)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Σ_{k=2} (-x)^k/k`, which converges for |x| < 1; small terms first.
    fn excess_by_series(x: f64) -> f64 {
        (2..400).rev().map(|k| (-x).powi(k) / f64::from(k)).sum()
    }

    #[test]
    fn logarithms_keep_their_digits() {
        for x in [0.0f64, 1e-300, -1e-17, 3e-9, -0.3, 0.7, -1.0 + 1e-10, 5.0, 1e16, 1e300] {
            let expected = x.ln_1p();
            assert!((log_one_plus(x) - expected).abs() <= 4.0 * f64::EPSILON * expected.abs(), "{x:e}");
        }
        assert_eq!(log_one_plus(-1.0), f64::NEG_INFINITY);
        assert_eq!(log_one_plus(f64::INFINITY), f64::INFINITY);
        for b in [0.0f64, 1e-300, 1e-17, 3e-9, 0.3, 2.0, 40.0, 1e4, f64::INFINITY] {
            let expected = -(-b).exp_m1();
            assert!((one_minus_exp(b) - expected).abs() <= 4.0 * f64::EPSILON * expected, "{b:e}");
        }
    }

    #[test]
    fn the_excess_keeps_its_digits() {
        for x in [1e-160, -1e-12, 1e-9, -3e-5, 0.01, -0.1, 0.29, -0.33, 0.35, -0.5, 0.49, 0.51, 0.7] {
            let expected = excess_by_series(x);
            let found = excess(x, log_one_plus(x));
            assert!(
                (found - expected).abs() <= 12.0 * f64::EPSILON * expected,
                "{x:e}: {found:e}, {expected:e}"
            );
        }
        for x in [1.0f64, 3.0, 1e3, 1e17, 1e300] {
            let found = excess(x, log_one_plus(x));
            assert!((found - (x - x.ln_1p())).abs() <= 4.0 * f64::EPSILON * x, "{x:e}");
        }
        assert_eq!((excess(0.0, 0.0), excess(-1.0, f64::NEG_INFINITY)), (0.0, f64::INFINITY));
        assert_eq!(excess(f64::INFINITY, 1e3), f64::INFINITY);
        // All that -1 does not know.
        assert_eq!(excess(-1.0, -1e3), 999.0);
    }

    #[test]
    fn the_gap_keeps_its_digits_for_every_weight() {
        const GAPS: [(f64, f64, f64); 15] = [
            (1e-9, 0.5, 2.4999999975e-19),
            (1e-9, 1e-12, 4.999999996661668e-19),
            (1e-9, -0.4, 6.999999997200001e-19),
            (-3e-5, 0.1, 4.0500891020230236e-10),
            (-3e-5, -1e-12, 4.500090002029549e-10),
            (0.2, 0.5, 0.008298802814695095),
            (0.2, 0.001, 0.017658445872312106),
            (0.2, -0.01, 0.01787871027335311),
            (-0.7, 1e-12, 0.5039728043256909),
            (-0.7, -0.4, 0.5868226094971214),
            (0.6, 0.5, 0.05472489968924655),
            (0.6, 1e-12, 0.12999637075408443),
            (40.0, 0.001, 35.507141086576986),
            (40.0, -0.01, 47.36899030989476),
            (1e12, 0.5, 26.24472675481166),
        ];
        // Computed with 60 digits.
        for (y, gamma, expected) in GAPS {
            let found = gap(y, log_one_plus(y), gamma);
            let error = (found - expected).abs();
            assert!(error <= 24.0 * f64::EPSILON * expected, "{y:e}, {gamma:e}: {found:e}, {expected:e}");
        }
        assert_eq!(gap(0.0, 0.0, 0.3), 0.0);
        // log(1 + y/4) = 1000 - log 4 where log(1 + y) = 1000.
        let found = gap(f64::INFINITY, 1000.0, 0.25);
        assert!((found - (3000.0 - 4.0 * 4f64.ln())).abs() < 1e-12, "{found}");
    }
}
