//! The same functions to about 30 digits, for the tests: numbers as unevaluated sums of two doubles (Dekker, 1971).
//!
//! Independent of the formulas under test: Taylor series in double-double arithmetic throughout, no fitted coefficients.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// `high + low`, with `low` at most half a unit in the last place of `high`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wide {
    pub(super) high: f64,
    pub(super) low: f64,
}

const LN2: Wide = Wide { high: std::f64::consts::LN_2, low: 2.319_046_813_846_299_6e-17 };
const TWO_OVER_ROOT_PI: Wide =
    Wide { high: std::f64::consts::FRAC_2_SQRT_PI, low: 1.533_545_961_316_588e-17 };

impl From<f64> for Wide {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

/// `a + b` exactly (Knuth).
fn two_sum(a: f64, b: f64) -> Wide {
    let high = a + b;
    let b_part = high - a;
    Wide { high, low: (a - (high - b_part)) + (b - b_part) }
}

impl Add for Wide {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (sum, tail) = (two_sum(self.high, other.high), two_sum(self.low, other.low));
        let first = two_sum(sum.high, sum.low + tail.high);
        two_sum(first.high, first.low + tail.low)
    }
}

impl Neg for Wide {
    type Output = Self;
    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl Sub for Wide {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Wide {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let high = self.high * other.high;
        let low = self.high.mul_add(other.high, -high) + (self.high * other.low + self.low * other.high);
        two_sum(high, low)
    }
}

impl Div for Wide {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let first = Self::from(self.high / other.high);
        let rest = self - first * other;
        let second = Self::from(rest.high / other.high);
        let rest = rest - second * other;
        first + second + Self::from(rest.high / other.high)
    }
}

/// `exp(x) - 1` for |x| < 1, by its series.
fn series_of_exp_minus_one(x: Wide) -> Wide {
    (1..=34).rev().fold(Wide::from(0.0), |sum, k| (sum + 1.0.into()) * x / f64::from(k).into())
}

/// `exp(x) = m · 2ⁿ` as `(m, n)`.
pub(super) fn exp(x: Wide) -> (Wide, i32) {
    let n = (x.high / std::f64::consts::LN_2).round();
    (series_of_exp_minus_one(x - LN2 * n.into()) + 1.0.into(), n as i32)
}

/// `m · 2ⁿ` in two steps, neither of which leaves the range on its own.
pub(super) fn scale(m: f64, n: i32) -> f64 {
    m * 2f64.powi(n / 2) * 2f64.powi(n - n / 2)
}

/// `ln(x)` for positive finite x: its series next to 1, elsewhere one Newton step, whose error is the cube of a double's.
pub(super) fn ln(x: f64) -> Wide {
    let f = Wide::from(x - 1.0);
    if f.high.abs() < 1e-3 {
        let horner = |sum: Wide, k: u32| Wide::from(1.0) / f64::from(k).into() - sum * f;
        return (1..=12).rev().fold(Wide::from(0.0), horner) * f;
    }
    let guess = Wide::from(x.ln());
    let (m, n) = exp(-guess);
    // x is brought near 1 first, so that neither end of the range overflows.
    let ratio = Wide::from(scale(x, n)) * m - 1.0.into();
    guess + ratio - ratio * ratio * 0.5.into()
}

/// `tanh(x)`.
pub(super) fn tanh(x: f64) -> Wide {
    let double = Wide::from(-2.0 * x.abs());
    let t = if double.high > -0.7 {
        series_of_exp_minus_one(double)
    } else {
        let (m, n) = exp(double);
        let power = 2f64.powi(n.max(-300));
        Wide { high: m.high * power, low: m.low * power } - 1.0.into()
    };
    let value = -t / (t + 2.0.into());
    if x < 0.0 { -value } else { value }
}

/// `erf(x)` for |x| <= 7, by the series `2/√π exp(-x²) Σ 2ᵏ x²ᵏ⁺¹ / (2k+1)!!`, whose terms are all of one sign.
pub(super) fn erf(x: f64) -> Wide {
    let square = Wide::from(x) * x.into();
    let (mut term, mut sum, mut k) = (Wide::from(x), Wide::from(x), 1.0);
    while term.high.abs() > 1e-34 * sum.high.abs() {
        term = term * square * 2.0.into() / Wide::from(2.0 * k + 1.0);
        sum = sum + term;
        k += 1.0;
    }
    let (m, n) = exp(-square);
    let power = 2f64.powi(n);
    TWO_OVER_ROOT_PI * sum * Wide { high: m.high * power, low: m.low * power }
}

#[test]
fn the_reference_knows_published_digits() {
    // Both parts of values known to 60 digits, the argument being the double nearest to the number shown.
    let (e, power) = exp(1.0.into());
    let unscaled = e * 2f64.powi(power).into();
    for (name, value, high, low) in [
        ("exp 1", unscaled, std::f64::consts::E, 1.445_646_891_729_250_2e-16),
        ("ln 10", ln(10.0), std::f64::consts::LN_10, -2.170_756_223_382_249_4e-16),
        ("ln 0.1", ln(0.1), -2.302_585_092_994_045_5, -1.715_024_362_805_798_5e-16),
        ("tanh 1", tanh(1.0), 0.761_594_155_955_764_9, 3.709_021_448_216_492_4e-17),
        ("erf 0.3", erf(0.3), 0.328_626_759_459_127_4, 2.290_825_444_698_277_7e-17),
        ("erf 1", erf(1.0), 0.842_700_792_949_714_9, -2.480_101_178_911_860_2e-17),
        ("erf 2.5", erf(2.5), 0.999_593_047_982_555, 4.692_515_109_704_223_4e-17),
    ] {
        assert_eq!(value.high, high, "{name}");
        assert!((value.low - low).abs() < 1e-30, "{name}: {} against {low}", value.low);
    }
}
