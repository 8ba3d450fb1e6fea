//! Single precision: the forms of double precision with shorter polynomials, in 32-bit lanes throughout.

use std::f32::consts::LOG2_E;

/// 1.5 · 2²³: adding it rounds a float to the nearest integer and leaves that integer in the low bits.
const ROUND: f32 = 12_582_912.0;

#[inline(always)]
fn horner<const N: usize>(x: f32, coefficients: &[f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    for i in (0..N - 1).rev() {
        sum = sum.mul_add(x, coefficients[i]);
    }
    sum
}

/// 2ⁿ for an integral n in the normal range.
#[inline(always)]
fn power_of_two(n: f32) -> f32 {
    let bits = (n + ROUND).to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    f32::from_bits(bits << 23)
}

/// `x = n ln 2 + r`: returns n and `exp(r) - 1`.
#[inline(always)]
fn reduced_exponential(x: f32) -> (f32, f32) {
    /// 1/2!, ..., 1/7!: on |r| <= ½ ln 2 the truncation is below 6e-9 of the result.
    const EXP: [f32; 6] = [1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5_040.0];
    let n = x.mul_add(LOG2_E, ROUND) - ROUND;
    let r = n.mul_add(-1.428_606_8e-6, n.mul_add(-0.693_145_75, x));
    (n, (r * r).mul_add(horner(r, &EXP), r))
}

/// `exp(x)` for f32.
#[inline(always)]
pub fn exp_f32(x: f32) -> f32 {
    let (n, p) = reduced_exponential(x.clamp(-104.0, 89.0));
    // Two factors, because 2ⁿ alone leaves the normal range at both ends.
    let half = n.mul_add(0.5, ROUND) - ROUND;
    let value = (p + 1.0) * power_of_two(half) * power_of_two(n - half);
    if x.is_nan() { x } else { value }
}

/// `ln(x)` for f32.
#[inline(always)]
pub fn ln_f32(x: f32) -> f32 {
    /// `(2 artanh(s)/s - 2)/s²` as a polynomial in s²; error 1.2e-9.
    const G: [f32; 4] = [0.666_666_7, 0.400_001_22, 0.285_507_8, 0.233_316_14];
    /// Bits of √½, below which a mantissa is doubled.
    const SQRT_HALF: u32 = 0x3f35_04f3;
    /// Seventeen bits of ln 2, so that its products with exponents are exact, and the rest.
    const LN2_HIGH: f32 = 0.693_138_1;
    const LN2_LOW: f32 = 9.058_001e-6;
    let subnormal = x < f32::MIN_POSITIVE;
    let scaled = if subnormal { x * 33_554_432.0 } else { x };
    let exponent = (scaled.to_bits().wrapping_sub(SQRT_HALF) as i32) >> 23;
    let mantissa = f32::from_bits(scaled.to_bits().wrapping_sub((exponent as u32) << 23));
    let k = exponent as f32 - if subnormal { 25.0 } else { 0.0 };
    let f = mantissa - 1.0;
    let s = f / (f + 2.0);
    let z = s * s;
    let r = z * horner(z, &G);
    let half_square = 0.5 * f * f;
    let value = k * LN2_HIGH - ((half_square - s.mul_add(half_square + r, k * LN2_LOW)) - f);
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    if x < 0.0 || x.is_nan() { f32::NAN } else { value }
}

/// `tanh(x)` for f32, as `t / (t + 2)` with `t = exp(2|x|) - 1`, which does not cancel.
#[inline(always)]
pub fn tanh_f32(x: f32) -> f32 {
    let (n, p) = reduced_exponential((2.0 * x.abs()).min(20.0));
    let power = power_of_two(n);
    let t = power.mul_add(p, power - 1.0);
    let value = (t / (t + 2.0)).copysign(x);
    if x.is_nan() { x } else { value }
}

/// `erf(x)` for f32: `x P(x²)` up to 1, `1 - exp(-x²) Q(1 / (x + 2))` beyond.
#[inline(always)]
pub fn erf_f32(x: f32) -> f32 {
    /// `erf(√w)/√w - 1` on [0, 1]; error 3.4e-11. Less 1, so that the last rounding is the only large one.
    const SMALL: [f32; 8] = [
        0.128_379_17,
        -0.376_126_38,
        0.112_837_82,
        -0.026_865_43,
        0.005_221_031_8,
        -0.000_848_408_04,
        0.000_112_659_59,
        -9.667_045e-6,
    ];
    /// `exp(x²) erfc(x)` on [1, 4] as a polynomial in `v = 12/(x + 2) - 3`; error 6.8e-9.
    const LARGE: [f32; 7] = [
        0.255_395_68,
        0.142_395_33,
        0.026_850_91,
        0.002_924_752_1,
        4.607_866_4e-5,
        -2.802_938_3e-5,
        -1.149_486_2e-6,
    ];
    // From 3.92 on erf rounds to 1.
    let a = x.abs().min(4.0);
    let small = a.mul_add(horner(a * a, &SMALL), a);
    let b = a.max(1.0);
    let v = 12.0 / (b + 2.0) - 3.0;
    let (n, p) = reduced_exponential(-b * b);
    let large = 1.0 - (p + 1.0) * power_of_two(n) * horner(v, &LARGE);
    let value = (if a < 1.0 { small } else { large }).copysign(x);
    if x.is_nan() { x } else { value }
}
