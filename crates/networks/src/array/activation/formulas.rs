//! The value of every activation and its first two derivatives.

use super::Activation;
use crate::array::Precision;
use posterior_linalg::Real;

impl Activation {
    /// The value and its first two derivatives at `x`.
    #[inline(always)]
    pub(super) fn derivatives<T: Precision>(self, x: T) -> (T, T, T) {
        let c = |v: f64| T::from_f64(v);
        let select = |test: bool, a: T, b: T| if test { a } else { b };
        match self {
            Self::Identity => (x, T::ONE, T::ZERO),
            Self::Relu => (
                select(x > T::ZERO || x.to_f64().is_nan(), x, T::ZERO),
                select(x > T::ZERO, T::ONE, T::ZERO),
                T::ZERO,
            ),
            Self::LeakyRelu { slope } => {
                (select(x > T::ZERO, x, c(slope) * x), select(x > T::ZERO, T::ONE, c(slope)), T::ZERO)
            }
            Self::Tanh => {
                let t = Real::tanh(x);
                let d = T::ONE - t * t;
                (t, d, c(-2.0) * t * d)
            }
            Self::Sigmoid => {
                let (s, d) = sigmoid(x);
                (s, d, d * (T::ONE - s - s))
            }
            Self::Gelu => {
                let cumulative = c(0.5) * (T::ONE + Real::erf(x * c(std::f64::consts::FRAC_1_SQRT_2)));
                let density = c(0.398_942_280_401_432_7) * Real::exp(c(-0.5) * x * x);
                (x * cumulative, cumulative + x * density, density * (c(2.0) - x * x))
            }
            Self::GeluTanh => {
                let (k, a) = (c(0.797_884_560_802_865_4), c(0.044_715));
                let t = Real::tanh(k * (x + a * x * x * x));
                let (u, v) = (k * (T::ONE + c(3.0) * a * x * x), k * c(6.0) * a * x);
                let d = T::ONE - t * t;
                let half = c(0.5);
                (
                    half * x * (T::ONE + t),
                    half * (T::ONE + t) + half * x * d * u,
                    d * u + half * x * (d * v - c(2.0) * t * d * u * u),
                )
            }
            Self::Silu => {
                let (s, d) = sigmoid(x);
                (x * s, s + x * d, d * (c(2.0) + x * (T::ONE - s - s)))
            }
            Self::Softplus => {
                let (s, d) = sigmoid(x);
                // max(x, 0) + ln(1 + u), u = exp(-|x|). The rounding of 1 + u is undone by the quotient (Kahan).
                let u = Real::exp(-Real::abs(x));
                let rounded = T::ONE + u;
                let tail = select(rounded == T::ONE, u, Real::ln(rounded) * u / (rounded - T::ONE));
                (select(x > T::ZERO, x, T::ZERO) + tail, s, d)
            }
            Self::Elu { alpha } => {
                let e = c(alpha) * Real::exp(select(x > T::ZERO, T::ZERO, x));
                let p = x > T::ZERO;
                (select(p, x, e - c(alpha)), select(p, T::ONE, e), select(p, T::ZERO, e))
            }
            Self::Erf => {
                let d = c(std::f64::consts::FRAC_2_SQRT_PI) * Real::exp(-x * x);
                (Real::erf(x), d, c(-2.0) * x * d)
            }
            Self::Sin => {
                let s = Real::sin(x);
                (s, Real::cos(x), -s)
            }
            Self::Cos => {
                let v = Real::cos(x);
                (v, -Real::sin(x), -v)
            }
            Self::Exp => {
                let e = Real::exp(x);
                (e, e, e)
            }
            Self::Log => (Real::ln(x), T::ONE / x, -T::ONE / (x * x)),
            Self::Sqrt => {
                let s = Real::sqrt(x);
                (s, c(0.5) / s, c(-0.25) / (s * x))
            }
            Self::Reciprocal => {
                let r = T::ONE / x;
                (r, -r * r, c(2.0) * r * r * r)
            }
            Self::Power { exponent: p } => {
                // A factor of 0 stays 0 where the power is not finite: at 0, with an exponent of 0 or 1.
                let term =
                    |factor: f64, p: f64| if factor == 0.0 { 0.0 } else { factor * x.to_f64().powf(p) };
                (c(term(1.0, p)), c(term(p, p - 1.0)), c(term(p * (p - 1.0), p - 2.0)))
            }
            Self::Abs => (Real::abs(x), sign(x), T::ZERO),
            Self::Sign => (sign(x), T::ZERO, T::ZERO),
            Self::Floor => (c(x.to_f64().floor()), T::ZERO, T::ZERO),
            Self::Round => (c(x.to_f64().round_ties_even()), T::ZERO, T::ZERO),
            Self::Clip { low, high } => {
                let (low, high) = (c(low), c(high));
                (
                    select(x < low, low, select(x > high, high, x)),
                    select(x > low && x < high, T::ONE, T::ZERO),
                    T::ZERO,
                )
            }
            Self::HardSigmoid { alpha, beta } => {
                let u = c(alpha) * x + c(beta);
                (unit(u), select(u > T::ZERO && u < T::ONE, c(alpha), T::ZERO), T::ZERO)
            }
            Self::HardSwish => {
                let u = x / c(6.0) + c(0.5);
                let inside = u > T::ZERO && u < T::ONE;
                let third = c(1.0 / 3.0);
                (x * unit(u), select(inside, third * x + c(0.5), unit(u)), select(inside, third, T::ZERO))
            }
            Self::Mish => {
                // With e = exp(-|x|): tanh(softplus(x)) and one minus its square, without overflow on either side.
                let e = Real::exp(-Real::abs(x));
                let (two, s) = (c(2.0), sigmoid(x));
                let positive = x > T::ZERO;
                let below = select(positive, T::ONE + two * e + two * e * e, e * e + two * e + two);
                let t = select(positive, T::ONE + two * e, e * e + two * e) / below;
                let root = two * (T::ONE + e) / below;
                let d = select(positive, e * e, T::ONE) * root * root;
                let (t1, t2) = (d * s.0, d * (s.1 - two * t * s.0 * s.0));
                (x * t, t + x * t1, two * t1 + x * t2)
            }
            Self::Softsign => {
                let r = T::ONE / (T::ONE + Real::abs(x));
                (x * r, r * r, c(-2.0) * sign(x) * r * r * r)
            }
            Self::Celu { alpha } => {
                let (e, p) = (Real::exp(select(x > T::ZERO, T::ZERO, x) / c(alpha)), x > T::ZERO);
                (
                    select(p, x, c(alpha) * (e - T::ONE)),
                    select(p, T::ONE, e),
                    select(p, T::ZERO, e / c(alpha)),
                )
            }
            Self::ThresholdedRelu { threshold } => {
                (select(x <= c(threshold), T::ZERO, x), select(x > c(threshold), T::ONE, T::ZERO), T::ZERO)
            }
            Self::Shrink { threshold, bias } => {
                let inside = Real::abs(x) <= c(threshold);
                let moved = select(x < T::ZERO, x + c(bias), x - c(bias));
                (select(inside, T::ZERO, moved), select(inside, T::ZERO, T::ONE), T::ZERO)
            }
        }
    }
}

/// The logistic function and its derivative, without overflow on either side (`exp(-|x|)` is at most 1) and with all digits of
/// the derivative where the function is near 1.
#[inline(always)]
fn sigmoid<T: Precision>(x: T) -> (T, T) {
    let e = Real::exp(-Real::abs(x));
    let small = e / (T::ONE + e);
    let large = T::ONE - small;
    (if x > T::ZERO { large } else { small }, small * large)
}

/// -1, 0 or 1; NaN of NaN.
#[inline(always)]
fn sign<T: Precision>(x: T) -> T {
    if x > T::ZERO {
        T::ONE
    } else if x < T::ZERO {
        -T::ONE
    } else {
        x
    }
}

/// The nearest number from 0 to 1; NaN of NaN.
#[inline(always)]
fn unit<T: Precision>(x: T) -> T {
    if x < T::ZERO {
        T::ZERO
    } else if x > T::ONE {
        T::ONE
    } else {
        x
    }
}
