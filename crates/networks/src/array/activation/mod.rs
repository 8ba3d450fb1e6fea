//! Activation functions with two derivatives.
//!
//! A new one is a variant here, with its name and usual constants, and a formula in `formulas`.

mod apply;
mod formulas;

pub(crate) use apply::{activate, activate_second, activate_tangent};
use serde::{Deserialize, Serialize};

/// A function of one number, applied to every value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Exponential.
    Exp,
    /// Natural logarithm; of numbers that are not positive the result is not finite.
    Log,
    /// Square root; NaN of negative numbers, and at 0 no derivative.
    Sqrt,
    /// `1 / x`.
    Reciprocal,
    /// `x^exponent`; NaN of negative numbers unless the exponent is a whole number.
    Power {
        /// The exponent.
        exponent: f64,
    },
    /// Magnitude; derivative 0 at 0.
    Abs,
    /// -1, 0 or 1; derivative 0.
    Sign,
    /// The largest whole number that is not larger; derivative 0.
    Floor,
    /// The nearest whole number, the even one of two; derivative 0.
    Round,
    /// `x` between two limits, else the nearer one; derivative 0 at the limits. A limit that is left out is none.
    Clip {
        /// The lower limit.
        #[serde(default = "lowest", skip_serializing_if = "is_lowest")]
        low: f64,
        /// The upper limit.
        #[serde(default = "highest", skip_serializing_if = "is_highest")]
        high: f64,
    },
    /// `alpha x + beta` between 0 and 1.
    HardSigmoid {
        /// Slope.
        alpha: f64,
        /// Value at 0.
        beta: f64,
    },
    /// `x` times the hard sigmoid with slope 1/6 and 1/2 at 0.
    HardSwish,
    /// `x tanh(softplus(x))`.
    Mish,
    /// `x / (1 + |x|)`.
    Softsign,
    /// `x` where positive, else `alpha (exp(x / alpha) - 1)`.
    Celu {
        /// Size of the negative side.
        alpha: f64,
    },
    /// `x` above a threshold, else 0.
    ThresholdedRelu {
        /// The threshold.
        threshold: f64,
    },
    /// 0 within a threshold of 0, else `x` moved towards 0.
    Shrink {
        /// The threshold.
        threshold: f64,
        /// How far values are moved.
        bias: f64,
    },
}

fn lowest() -> f64 {
    -f64::MAX
}

fn highest() -> f64 {
    f64::MAX
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_lowest(limit: &f64) -> bool {
    *limit <= lowest()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_highest(limit: &f64) -> bool {
    *limit >= highest()
}

impl Activation {
    /// One of each, with its usual constants: slope 0.01, alpha 1, exponent 2, no limits, the hard sigmoid of slope 1/6 and 1/2 at 0, threshold 1 of the
    /// thresholded ReLU, threshold 0.5 and no bias of the shrinkage.
    pub const USUAL: [Self; 30] = [
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
        Self::Sin,
        Self::Cos,
        Self::Exp,
        Self::Log,
        Self::Sqrt,
        Self::Reciprocal,
        Self::Power { exponent: 2.0 },
        Self::Abs,
        Self::Sign,
        Self::Floor,
        Self::Round,
        Self::Clip { low: -f64::MAX, high: f64::MAX },
        Self::HardSigmoid { alpha: 1.0 / 6.0, beta: 0.5 },
        Self::HardSwish,
        Self::Mish,
        Self::Softsign,
        Self::Celu { alpha: 1.0 },
        Self::ThresholdedRelu { threshold: 1.0 },
        Self::Shrink { threshold: 0.5, bias: 0.0 },
    ];

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
            Self::Sin => "sin",
            Self::Cos => "cos",
            Self::Exp => "exp",
            Self::Log => "log",
            Self::Sqrt => "sqrt",
            Self::Reciprocal => "reciprocal",
            Self::Power { .. } => "power",
            Self::Abs => "abs",
            Self::Sign => "sign",
            Self::Floor => "floor",
            Self::Round => "round",
            Self::Clip { .. } => "clip",
            Self::HardSigmoid { .. } => "hard_sigmoid",
            Self::HardSwish => "hard_swish",
            Self::Mish => "mish",
            Self::Softsign => "softsign",
            Self::Celu { .. } => "celu",
            Self::ThresholdedRelu { .. } => "thresholded_relu",
            Self::Shrink { .. } => "shrink",
        }
    }

    /// The activation with the given name and its usual constants ([`Self::USUAL`]).
    pub fn named(name: &str) -> Option<Self> {
        Self::USUAL.into_iter().find(|a| a.name() == name)
    }

    /// What is wrong with its constants, if something is.
    pub(crate) fn wrong_constants(self) -> Option<String> {
        let constants = match self {
            Self::LeakyRelu { slope: a }
            | Self::Elu { alpha: a }
            | Self::Celu { alpha: a }
            | Self::Power { exponent: a }
            | Self::ThresholdedRelu { threshold: a } => [a, 0.0],
            Self::Clip { low: a, high: b }
            | Self::HardSigmoid { alpha: a, beta: b }
            | Self::Shrink { threshold: a, bias: b } => [a, b],
            _ => [0.0; 2],
        };
        if constants.iter().any(|c| !c.is_finite()) {
            return Some(format!("the constant of `{}` must be finite", self.name()));
        }
        match self {
            Self::Celu { alpha: 0.0 } => Some("`alpha` of `celu` must not be 0".into()),
            Self::Clip { low, high } if low > high => {
                Some(format!("the lower limit {low} of `clip` is above the upper one, {high}"))
            }
            Self::Shrink { threshold, .. } if threshold < 0.0 => {
                Some("`threshold` of `shrink` must not be negative".into())
            }
            _ => None,
        }
    }

    /// Whether the second derivative is zero wherever it exists.
    pub(crate) fn piecewise_linear(self) -> bool {
        matches!(
            self,
            Self::Identity
                | Self::Relu
                | Self::LeakyRelu { .. }
                | Self::Abs
                | Self::Sign
                | Self::Floor
                | Self::Round
                | Self::Clip { .. }
                | Self::HardSigmoid { .. }
                | Self::ThresholdedRelu { .. }
                | Self::Shrink { .. }
        )
    }
}
