//! Double precision.

use std::f64::consts::LOG2_E;

/// 1.5 · 2⁵²: adding it rounds a double to the nearest integer and leaves that integer in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 1/2!, 1/3!, ..., 1/13!: on |r| <= ½ ln 2 the truncation is below 1e-17 of the result.
const EXP: [f64; 12] = [
    1.0 / 2.0,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5_040.0,
    1.0 / 40_320.0,
    1.0 / 362_880.0,
    1.0 / 3_628_800.0,
    1.0 / 39_916_800.0,
    1.0 / 479_001_600.0,
    1.0 / 6_227_020_800.0,
];

#[inline(always)]
fn horner<const N: usize>(x: f64, coefficients: &[f64; N]) -> f64 {
    let mut sum = coefficients[N - 1];
    for i in (0..N - 1).rev() {
        sum = sum.mul_add(x, coefficients[i]);
    }
    sum
}

/// 2ⁿ for an integral n in the normal range.
#[inline(always)]
fn power_of_two(n: f64) -> f64 {
    let bits = (n + ROUND).to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(1023);
    f64::from_bits(bits << 52)
}

/// `x = n ln 2 + r`: returns n and `exp(r) - 1`.
#[inline(always)]
fn reduced_exponential(x: f64) -> (f64, f64) {
    let n = x.mul_add(LOG2_E, ROUND) - ROUND;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    (n, (r * r).mul_add(horner(r, &EXP), r))
}

/// `exp(x)` for f64.
#[inline(always)]
pub fn exp_f64(x: f64) -> f64 {
    let (n, p) = reduced_exponential(x.clamp(-746.0, 710.0));
    // Two factors, because 2ⁿ alone leaves the normal range at both ends.
    let half = n.mul_add(0.5, ROUND) - ROUND;
    let value = (p + 1.0) * power_of_two(half) * power_of_two(n - half);
    if x.is_nan() { x } else { value }
}

/// `ln(x)` for f64.
#[inline(always)]
pub fn ln_f64(x: f64) -> f64 {
    const G: [f64; 7] = [
        6.666_666_666_666_735e-1,
        3.999_999_999_940_942e-1,
        2.857_142_874_366_239e-1,
        2.222_219_843_214_978_4e-1,
        1.818_357_216_161_805e-1,
        1.531_383_769_920_937_3e-1,
        1.479_819_860_511_658_6e-1,
    ];
    /// Bits of √½, below which a mantissa is doubled.
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let subnormal = x < f64::MIN_POSITIVE;
    let scaled = if subnormal { x * 18_014_398_509_481_984.0 } else { x };
    let bits = scaled.to_bits().wrapping_sub(SQRT_HALF);
    let exponent = (bits as i64) >> 52;
    let mantissa = f64::from_bits(scaled.to_bits().wrapping_sub((exponent as u64) << 52));
    let k = exponent as f64 - if subnormal { 54.0 } else { 0.0 };
    let f = mantissa - 1.0;
    let s = f / (f + 2.0);
    let z = s * s;
    let r = z * horner(z, &G);
    let half_square = 0.5 * f * f;
    let value = k * LN2_HIGH - ((half_square - s.mul_add(half_square + r, k * LN2_LOW)) - f);
    let value = if x == f64::INFINITY { x } else { value };
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    if x < 0.0 || x.is_nan() { f64::NAN } else { value }
}

/// `tanh(x)` for f64, as `t / (t + 2)` with `t = exp(2|x|) - 1`, which does not cancel.
#[inline(always)]
pub fn tanh_f64(x: f64) -> f64 {
    let (n, p) = reduced_exponential((2.0 * x.abs()).min(45.0));
    let power = power_of_two(n);
    let t = power.mul_add(p, power - 1.0);
    let value = (t / (t + 2.0)).copysign(x);
    if x.is_nan() { x } else { value }
}

/// `erf(x)` for f64: `x P(x²)` up to ¾, `1 - exp(-x²) Q(1 / (x + 2))` beyond.
#[inline(always)]
pub fn erf_f64(x: f64) -> f64 {
    /// `erf(√w)/√w - 1` on [0, 9/16]; less 1, so that the last rounding is the only large one.
    const SMALL: [f64; 13] = [
        0.128_379_167_095_512_57,
        -0.37612638903183754,
        0.11283791670955125,
        -0.026866170645131044,
        0.00522397762543796,
        -0.0008548327022938597,
        0.00012055332941926721,
        -1.4925648277963885e-05,
        1.6462039947573494e-06,
        -1.636401288305236e-07,
        1.4776618764400006e-08,
        -1.1958368091524506e-09,
        7.272605667746851e-11,
    ];
    /// `exp(x²) erfc(x)` on [3/4, 6.5] as a polynomial in a linear map of `1/(x + 2)` to [-1, 1].
    const LARGE: [f64; 18] = [
        0.23973924881758718,
        0.20142831404772718,
        0.05635340103078258,
        0.009326645731042896,
        0.0002942700466666479,
        -0.00019537220987496766,
        -1.5625906279036927e-05,
        6.6971079554481075e-06,
        3.5619539573060355e-07,
        -3.079603627790585e-07,
        1.2382481046498582e-08,
        1.374355452422266e-08,
        -2.56936023892328e-09,
        -3.497466412611276e-10,
        2.1094386153813966e-10,
        -1.868101993022423e-11,
        -9.19807645214026e-12,
        2.5104524232229005e-12,
    ];
    let a = x.abs().min(6.5);
    let small = a.mul_add(horner(a * a, &SMALL), a);
    let b = a.max(0.75);
    let u = (1.0 / (b + 2.0)).mul_add(8.130_434_782_608_695, -1.956_521_739_130_434_8);
    let large = 1.0 - exp_f64(-b * b) * horner(u, &LARGE);
    let value = (if a < 0.75 { small } else { large }).copysign(x);
    if x.is_nan() { x } else { value }
}
