//! Dual maps: what an activation makes of the covariance of two sums, and the derivatives of that.

use super::angle::{arccosine, arcsine, excess};
use posterior_linalg::Real;
use std::f64::consts::PI;

/// What stands between the layers of an [`super::InfiniteNetwork`]. The formulas stand in the guide of [`crate::infinite`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// `max(u, 0)`. Cho and Saul, "Kernel methods for deep learning" (2009), degree 1.
    Relu,
    /// `max(u, 0) + s min(u, 0)`.
    LeakyRelu {
        /// s; any number, usually between 0 (ReLU) and 1 (no activation).
        slope: f64,
    },
    /// The error function. Williams, "Computing with infinite networks" (1997).
    Erf,
    /// `sin u`.
    Sine,
}

impl Activation {
    /// Names of all of them, as the text form has them.
    pub const NAMES: [&'static str; 4] = ["relu", "leaky-relu", "erf", "sine"];

    /// Its name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Self::Relu => Self::NAMES[0],
            Self::LeakyRelu { .. } => Self::NAMES[1],
            Self::Erf => Self::NAMES[2],
            Self::Sine => Self::NAMES[3],
        }
    }

    /// `E[φ(u) φ(v)]` for normal u and v of mean 0, variances `a` and `b` (positive) and covariance `c`; one number of what
    /// [`super::InfiniteNetwork`] computes for whole columns. A correlation above 1 counts as 1.
    pub fn covariance(self, a: f64, c: f64, b: f64) -> f64 {
        fn value<M: DualMap<f64>>(map: M, a: f64, c: f64, b: f64) -> f64 {
            map.value(Side::of(map, a), c, Side::of(map, b))
        }
        match self {
            Self::Relu => value(Rectifier::new(0.0), a, c, b),
            Self::LeakyRelu { slope } => value(Rectifier::new(slope), a, c, b),
            Self::Erf => value(ErrorFunction, a, c, b),
            Self::Sine => value(SineWave, a, c, b),
        }
    }
}

/// The sum before an activation at one point: its variance, and what the dual map always makes of that, made once for each point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<T> {
    pub(super) variance: T,
    pub(super) scale: T,
}

impl<T: Real> Side<T> {
    pub(super) fn of(map: impl DualMap<T>, variance: T) -> Self {
        Self { variance, scale: map.scale(variance) }
    }
}

/// Derivatives of a dual map in the covariance and in either variance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slopes<T> {
    pub(super) covariance: T,
    pub(super) first: T,
    pub(super) second: T,
}

/// `E[φ(u) φ(v)]` as arithmetic without branches. Where `c` equals both variances, the two points coincide as far as this layer sees: then roots
/// of differences are exactly what they are at x = z, not roots of roundings. NaN stays NaN.
pub(super) trait DualMap<T: Real>: Copy {
    /// What [`Self::value`] needs of a variance beside itself.
    fn scale(self, variance: T) -> T;

    /// `E[φ(u) φ(v)]`.
    fn value(self, a: Side<T>, c: T, b: Side<T>) -> T;

    /// Its derivatives.
    fn slopes(self, a: Side<T>, c: T, b: Side<T>) -> Slopes<T>;

    /// The derivative of `E[φ(u)²]` in the variance: all three slopes at x = z.
    fn own_slope(self, variance: T) -> T;

    /// By how much rounding put a correlation above what [`Self::value`] takes it for; 0 or less where it did not.
    fn clipped(self, a: Side<T>, c: T, b: Side<T>) -> T;
}

#[inline(always)]
fn coincide<T: Real>(a: Side<T>, c: T, b: Side<T>) -> bool {
    (c == a.variance) & (c == b.variance)
}

#[inline(always)]
fn magnitude<T: Real>(value: T) -> T {
    if value < T::ZERO { -value } else { value }
}

/// ReLU and leaky ReLU: `s c + (1 - s)² K`, `K = ½ (max(c, 0) + √(ab) excess(1 - |cos θ|))`, which is the guide's formula.
///
/// `∂K/∂c = (π - θ)/2π`, `∂K/∂a = sin θ √(b/a) / 4π`. The scale is `1/√a`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rectifier<T> {
    slope: T,
    /// `(1 - s)²`
    gain: T,
}

impl<T: Real> Rectifier<T> {
    pub(super) fn new(slope: f64) -> Self {
        Self { slope: T::from_f64(slope), gain: T::from_f64((1.0 - slope) * (1.0 - slope)) }
    }

    /// `|cos θ|` and `1 - |cos θ|`, clipped.
    #[inline(always)]
    fn cosine(a: Side<T>, c: T, b: Side<T>) -> (T, T) {
        let cosine = magnitude(c) * (a.scale * b.scale);
        let rest = T::ONE - cosine;
        // In this order NaN stays.
        (cosine, if (rest < T::ZERO) | coincide(a, c, b) { T::ZERO } else { rest })
    }
}

impl<T: Real> DualMap<T> for Rectifier<T> {
    #[inline(always)]
    fn scale(self, variance: T) -> T {
        // No variance is left of weights and biases whose squares underflow.
        if variance == T::ZERO { T::ZERO } else { T::ONE / variance.sqrt() }
    }

    #[inline(always)]
    fn value(self, a: Side<T>, c: T, b: Side<T>) -> T {
        let (_, rest) = Self::cosine(a, c, b);
        let roots = (a.variance * a.scale) * (b.variance * b.scale);
        let positive = if c > T::ZERO { c } else { T::ZERO };
        let rectified = T::from_f64(0.5) * roots.mul_add(excess(rest), positive);
        self.gain.mul_add(rectified, self.slope * c)
    }

    #[inline(always)]
    fn slopes(self, a: Side<T>, c: T, b: Side<T>) -> Slopes<T> {
        let (cosine, rest) = Self::cosine(a, c, b);
        let arc = arccosine(cosine, rest);
        // π - θ
        let opening = if c < T::ZERO { arc } else { T::from_f64(PI) - arc };
        let sine = (rest * (T::from_f64(2.0) - rest)).sqrt();
        let share = self.gain * sine * T::from_f64(0.25 / PI);
        Slopes {
            covariance: (self.gain * T::from_f64(0.5 / PI)).mul_add(opening, self.slope),
            first: share * (b.variance * b.scale) * a.scale,
            second: share * (a.variance * a.scale) * b.scale,
        }
    }

    #[inline(always)]
    fn own_slope(self, _variance: T) -> T {
        T::from_f64(0.5).mul_add(self.gain, self.slope)
    }

    #[inline(always)]
    fn clipped(self, a: Side<T>, c: T, b: Side<T>) -> T {
        if coincide(a, c, b) { T::ZERO } else { magnitude(c) * (a.scale * b.scale) - T::ONE }
    }
}

/// The error function: `(2/π) asin ρ` with `ρ = 2c q_a q_b`; the scale is `q = 1/√(1 + 2a)`.
///
/// `∂/∂c = h = (4/π) q_a q_b / √(1 - ρ²)`, `∂/∂a = -h c q_a²`. By Cauchy's inequality `1 - ρ >= q_a q_b`, with equality at x = z: a
/// correlation above 1 shows there, and derivatives stay bounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorFunction;

impl ErrorFunction {
    /// `|ρ|` and `1 - |ρ|`, clipped.
    #[inline(always)]
    fn cosine<T: Real>(a: Side<T>, c: T, b: Side<T>) -> (T, T) {
        let least = a.scale * b.scale;
        let cosine = T::from_f64(2.0) * magnitude(c) * least;
        let rest = T::ONE - cosine;
        (cosine, if (rest < least) | coincide(a, c, b) { least } else { rest })
    }
}

impl<T: Real> DualMap<T> for ErrorFunction {
    #[inline(always)]
    fn scale(self, variance: T) -> T {
        T::ONE / T::from_f64(2.0).mul_add(variance, T::ONE).sqrt()
    }

    #[inline(always)]
    fn value(self, a: Side<T>, c: T, b: Side<T>) -> T {
        let (cosine, rest) = Self::cosine(a, c, b);
        let value = T::from_f64(2.0 / PI) * arcsine(cosine, rest);
        if c < T::ZERO { -value } else { value }
    }

    #[inline(always)]
    fn slopes(self, a: Side<T>, c: T, b: Side<T>) -> Slopes<T> {
        let (_, rest) = Self::cosine(a, c, b);
        let sine = (rest * (T::from_f64(2.0) - rest)).sqrt();
        let covariance = T::from_f64(4.0 / PI) * (a.scale * b.scale) / sine;
        let pull = -(covariance * c);
        Slopes { covariance, first: pull * a.scale * a.scale, second: pull * b.scale * b.scale }
    }

    #[inline(always)]
    fn own_slope(self, variance: T) -> T {
        // (4/π) / ((1 + 2a) √(1 + 4a))
        let root = T::from_f64(4.0).mul_add(variance, T::ONE).sqrt();
        T::from_f64(4.0 / PI) / (T::from_f64(2.0).mul_add(variance, T::ONE) * root)
    }

    #[inline(always)]
    fn clipped(self, a: Side<T>, c: T, b: Side<T>) -> T {
        let least = a.scale * b.scale;
        let rest = T::ONE - T::from_f64(2.0) * magnitude(c) * least;
        if coincide(a, c, b) { T::ZERO } else { least - rest }
    }
}

/// The sine: `exp(-(a + b)/2) sinh c`, as `sign(c) e t / (1 + t)` with `e = exp(-(a + b - 2|c|)/2)` and `t = tanh |c|`: nothing overflows, and small values keep
/// their digits. `∂/∂c = e / (1 + t)`, `∂/∂a = -½` of the value. No scale is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct SineWave;

impl SineWave {
    /// `e / (1 + t)` and t.
    #[inline(always)]
    fn parts<T: Real>(a: Side<T>, c: T, b: Side<T>) -> (T, T) {
        let size = magnitude(c);
        let apart = (a.variance + b.variance) - (size + size);
        // In this order NaN stays.
        let apart = if apart < T::ZERO { T::ZERO } else { apart };
        let tangent = size.tanh();
        ((T::from_f64(-0.5) * apart).exp() / (T::ONE + tangent), tangent)
    }
}

impl<T: Real> DualMap<T> for SineWave {
    #[inline(always)]
    fn scale(self, _variance: T) -> T {
        T::ZERO
    }

    #[inline(always)]
    fn value(self, a: Side<T>, c: T, b: Side<T>) -> T {
        let (share, tangent) = Self::parts(a, c, b);
        let value = share * tangent;
        if c < T::ZERO { -value } else { value }
    }

    #[inline(always)]
    fn slopes(self, a: Side<T>, c: T, b: Side<T>) -> Slopes<T> {
        let (share, tangent) = Self::parts(a, c, b);
        let pull = T::from_f64(-0.5) * share * tangent;
        let pull = if c < T::ZERO { -pull } else { pull };
        Slopes { covariance: share, first: pull, second: pull }
    }

    #[inline(always)]
    fn own_slope(self, variance: T) -> T {
        (T::from_f64(-2.0) * variance).exp()
    }

    #[inline(always)]
    fn clipped(self, a: Side<T>, c: T, b: Side<T>) -> T {
        let both = a.variance + b.variance;
        if both > T::ZERO { (magnitude(c) + magnitude(c) - both) / both } else { T::ZERO }
    }
}
