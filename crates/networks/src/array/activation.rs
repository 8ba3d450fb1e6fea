//! Activation functions with two derivatives.

use super::elementwise::{map, zip_repeated};
use super::{Array, Precision};
use posterior_linalg::Real;
use serde::{Deserialize, Serialize};

/// A function of one number, applied to every value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// `x`.
    Identity,
    /// `max(x, 0)`; derivative 0 at 0.
    Relu,
    /// `x` where positive, else `slope x`.
    LeakyRelu {
        /// Slope on the negative side.
        slope: f64,
    },
    /// Hyperbolic tangent.
    Tanh,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `x (1 + erf(x / sqrt 2)) / 2`.
    Gelu,
    /// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`.
    GeluTanh,
    /// `x sigmoid(x)`, also called swish.
    Silu,
    /// `ln(1 + exp(x))`.
    Softplus,
    /// `x` where positive, else `alpha (exp(x) - 1)`.
    Elu {
        /// Size of the negative side.
        alpha: f64,
    },
    /// The error function.
    Erf,
}

impl Activation {
    /// Name as in an architecture file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Relu => "relu",
            Self::LeakyRelu { .. } => "leaky_relu",
            Self::Tanh => "tanh",
            Self::Sigmoid => "sigmoid",
            Self::Gelu => "gelu",
            Self::GeluTanh => "gelu_tanh",
            Self::Silu => "silu",
            Self::Softplus => "softplus",
            Self::Elu { .. } => "elu",
            Self::Erf => "erf",
        }
    }

    /// The activation with the given name and its usual constants (slope 0.01, alpha 1).
    pub fn named(name: &str) -> Option<Self> {
        [
            Self::Identity,
            Self::Relu,
            Self::LeakyRelu { slope: 0.01 },
            Self::Tanh,
            Self::Sigmoid,
            Self::Gelu,
            Self::GeluTanh,
            Self::Silu,
            Self::Softplus,
            Self::Elu { alpha: 1.0 },
            Self::Erf,
        ]
        .into_iter()
        .find(|a| a.name() == name)
    }

    /// Whether the second derivative is zero wherever it exists.
    pub(crate) fn piecewise_linear(self) -> bool {
        matches!(self, Self::Identity | Self::Relu | Self::LeakyRelu { .. })
    }

    /// The value and its first two derivatives at `x`.
    #[inline(always)]
    fn derivatives<T: Precision>(self, x: T) -> (T, T, T) {
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

/// `$body` for each activation, with `$form!()` standing for it. Written out, not bound to a variable: a closure that captures the activation
/// looks at it for every value, and a loop over that closure does not become vector code.
macro_rules! for_each_activation {
    ($kind:expr, $form:ident => $body:expr) => {
        match $kind {
            Activation::Identity => {
                macro_rules! $form {
                    () => {
                        Activation::Identity
                    };
                }
                $body
            }
            Activation::Relu => {
                macro_rules! $form {
                    () => {
                        Activation::Relu
                    };
                }
                $body
            }
            Activation::LeakyRelu { slope } => {
                macro_rules! $form {
                    () => {
                        Activation::LeakyRelu { slope }
                    };
                }
                $body
            }
            Activation::Tanh => {
                macro_rules! $form {
                    () => {
                        Activation::Tanh
                    };
                }
                $body
            }
            Activation::Sigmoid => {
                macro_rules! $form {
                    () => {
                        Activation::Sigmoid
                    };
                }
                $body
            }
            Activation::Gelu => {
                macro_rules! $form {
                    () => {
                        Activation::Gelu
                    };
                }
                $body
            }
            Activation::GeluTanh => {
                macro_rules! $form {
                    () => {
                        Activation::GeluTanh
                    };
                }
                $body
            }
            Activation::Silu => {
                macro_rules! $form {
                    () => {
                        Activation::Silu
                    };
                }
                $body
            }
            Activation::Softplus => {
                macro_rules! $form {
                    () => {
                        Activation::Softplus
                    };
                }
                $body
            }
            Activation::Elu { alpha } => {
                macro_rules! $form {
                    () => {
                        Activation::Elu { alpha }
                    };
                }
                $body
            }
            Activation::Erf => {
                macro_rules! $form {
                    () => {
                        Activation::Erf
                    };
                }
                $body
            }
        }
    };
}

/// `f(x)`.
pub(crate) fn activate<T: Precision>(kind: Activation, x: &Array<T>) -> Array<T> {
    for_each_activation!(kind, form => map(x, #[inline(always)] move |v| form!().derivatives(v).0))
}

/// `t f'(x)`, with the rows of `x` repeated.
pub(crate) fn activate_tangent<T: Precision>(kind: Activation, mut t: Array<T>, x: &Array<T>) -> Array<T> {
    for_each_activation!(
        kind,
        form => zip_repeated(&mut t, x, #[inline(always)] move |t, x| t * form!().derivatives(x).1)
    );
    t
}

/// `t f''(x)`, with the rows of `x` repeated.
pub(crate) fn activate_second<T: Precision>(kind: Activation, mut t: Array<T>, x: &Array<T>) -> Array<T> {
    for_each_activation!(
        kind,
        form => zip_repeated(&mut t, x, #[inline(always)] move |t, x| t * form!().derivatives(x).2)
    );
    t
}
