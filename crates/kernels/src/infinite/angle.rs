//! Arcs as branch-free formulas, which become vector code inside [`posterior_linalg::vectorised::dispatch`].
//!
//! Everything takes the cosine as its magnitude `m` together with `v = 1 - m`: near 1 only `v` still has digits.
//! Largest errors relative to the result's range: 3 ε, of the polynomials alone 0.2 ε (f32) and 0.3 ε (f64).

use posterior_linalg::Real;
use std::f64::consts::FRAC_PI_2;

/// `(asin(√z)/√z - 1) / z` on [0, 1/4]. All coefficients here interpolate at Chebyshev points (made with 60 digits).
const ARCSINE_SINGLE: [f64; 5] = [
    0.16666672414795305,
    0.07498855072600821,
    0.04500138006991017,
    0.026554542206161328,
    0.038085023561092654,
];
const ARCSINE_DOUBLE: [f64; 12] = [
    0.1666666666666665,
    0.07500000000020764,
    0.044642857103423646,
    0.03038194736709848,
    0.02237204763174451,
    0.017355259955786323,
    0.013929652902326633,
    0.011875494382636922,
    0.0078029494773533175,
    0.01603551434914882,
    -0.010749050339697808,
    0.028169218060881414,
];

/// `(sin t - t cos t) / (π v√v)` with `t = acos(1 - v)`, on [0, 1].
const EXCESS_SINGLE: [f64; 7] = [
    0.3001054421671808,
    0.015004935362840116,
    0.002416836966763157,
    0.0005278484158805288,
    0.00023626932486084994,
    -5.6086314953474845e-05,
    7.463455399667082e-05,
];
const EXCESS_DOUBLE: [f64; 17] = [
    0.3001054387190354,
    0.015005271935946796,
    0.002411561561610428,
    0.0005582318249220994,
    0.00015541717475577531,
    4.841407302919641e-05,
    1.6307253182092548e-05,
    5.597039148010689e-06,
    2.840347225937841e-06,
    -1.1711648904343405e-06,
    4.471610999228698e-06,
    -6.260420548328054e-06,
    7.229972599882493e-06,
    -5.7194460595988465e-06,
    3.122797236559908e-06,
    -1.0320320210270318e-06,
    1.649376186704804e-07,
];

/// Horner's rule for even and for odd powers apart: two chains of half the length, because processors wait for one chain longer than they can look ahead.
#[inline(always)]
fn horner<T: Real, const N: usize>(x: T, coefficients: &[f64; N]) -> T {
    let square = x * x;
    let chain = |last: usize| {
        let mut sum = T::from_f64(coefficients[last]);
        for i in (0..last / 2).rev() {
            sum = sum.mul_add(square, T::from_f64(coefficients[2 * i + last % 2]));
        }
        sum
    };
    let (first, second) = (chain(N - 1), chain(N - 2));
    if N % 2 == 1 { second.mul_add(x, first) } else { first.mul_add(x, second) }
}

/// The polynomial that the precision asks for: a choice that the compiler makes.
#[inline(always)]
fn polynomial<T: Real, const S: usize, const L: usize>(x: T, single: &[f64; S], double: &[f64; L]) -> T {
    if size_of::<T>() == size_of::<f32>() { horner(x, single) } else { horner(x, double) }
}

/// Whether `m` is beyond ½, and the arcsine of `m`, or beyond ½ of `√(v/2)`, which is half of the arccosine.
#[inline(always)]
fn core<T: Real>(m: T, v: T) -> (bool, T) {
    let half = T::from_f64(0.5);
    let near = m > half;
    let z = if near { v * half } else { m * m };
    let root = z.sqrt();
    // The root of a square would lose what is smaller than the smallest square.
    let s = if near { root } else { m };
    (near, (s * z).mul_add(polynomial(z, &ARCSINE_SINGLE, &ARCSINE_DOUBLE), s))
}

/// `asin m` for m of 0 to 1 and `v = 1 - m`.
#[inline(always)]
pub(super) fn arcsine<T: Real>(m: T, v: T) -> T {
    let (near, arc) = core(m, v);
    if near { T::from_f64(FRAC_PI_2) - (arc + arc) } else { arc }
}

/// `acos m` for m of 0 to 1 and `v = 1 - m`.
#[inline(always)]
pub(super) fn arccosine<T: Real>(m: T, v: T) -> T {
    let (near, arc) = core(m, v);
    if near { arc + arc } else { T::from_f64(FRAC_PI_2) - arc }
}

/// `(sin t - t cos t) / π` with `t = acos(1 - v)`, for v of 0 to 1: by how much the arc-cosine kernel of degree 1 (normalised to 1 at x = z) exceeds the larger of
/// its cosine and 0. No digits cancel at either end: it is `v√v` times a polynomial.
#[inline(always)]
pub(super) fn excess<T: Real>(v: T) -> T {
    v * v.sqrt() * polynomial(v, &EXCESS_SINGLE, &EXCESS_DOUBLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    fn grid() -> impl Iterator<Item = f64> {
        let even = (0..=4000).map(|k| f64::from(k) / 4000.0);
        even.chain((1..50).flat_map(|k| [0.5f64.powi(k), 1.0 - 0.5f64.powi(k)]))
    }

    #[test]
    fn arcs_are_those_of_the_standard_library() {
        for m in grid() {
            // Exact: both are multiples of the spacing of numbers below 1 that are at least ½, or m is small and its arc flat.
            let v = 1.0 - m;
            assert!((arcsine(m, v) - m.asin()).abs() <= 3.0 * f64::EPSILON * m.asin(), "{m}");
            assert!((arccosine(m, v) - m.acos()).abs() <= 3.0 * f64::EPSILON, "{m}");
            let (m, v) = (m as f32, 1.0 - m as f32);
            let exact = f64::from(m).asin();
            let error = (f64::from(arcsine(m, v)) - exact).abs();
            assert!(error <= 3.0 * f64::from(f32::EPSILON) * exact, "{m}");
            let error = (f64::from(arccosine(m, v)) - f64::from(m).acos()).abs();
            assert!(error <= 3.0 * f64::from(f32::EPSILON), "{m}");
        }
        assert!(arcsine(f64::NAN, f64::NAN).is_nan() && arccosine(f32::NAN, f32::NAN).is_nan());
    }

    /// Where the definition cancels, against its series `t³/3π (1 - t²/10 + t⁴/280)`.
    #[test]
    fn the_excess_is_its_definition() {
        for v in grid() {
            let t = if v < 0.5 { 2.0 * (0.5 * v).sqrt().asin() } else { (1.0 - v).acos() };
            let exact = if t < 0.01 {
                t.powi(3) / (3.0 * PI) * (1.0 - t * t / 10.0 + t.powi(4) / 280.0)
            } else {
                (t.sin() - t * t.cos()) / PI
            };
            // What the definition itself loses: one rounding of t, divided by what is left.
            let tolerance = 4.0 * f64::EPSILON * (exact + if t < 0.01 { 0.0 } else { t });
            assert!((excess(v) - exact).abs() <= tolerance, "{v}: {} {exact}", excess(v));
            assert!(
                (f64::from(excess(v as f32)) - exact).abs() <= 4.0 * f64::from(f32::EPSILON) * exact + 1e-44,
                "{v}"
            );
        }
        assert!(excess(f64::NAN).is_nan() && excess(0.0) == 0.0 && (excess(1.0) - 1.0 / PI).abs() < 1e-16);
    }
}
