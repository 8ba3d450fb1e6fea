//! Maps from the unconstrained number that an optimiser moves to the natural value that a model uses.

use serde::{Deserialize, Serialize};

/// How one named block of parameters is constrained. `natural = forward(unconstrained)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transform {
    /// Any real number.
    Identity,
    /// Positive: `exp(u)`.
    Log,
    /// Above a floor: `lower + exp(u)`, and never the floor itself even where the sum rounds to it. For noise variances,
    /// which must not run to zero.
    LogAbove {
        /// The floor.
        lower: f64,
    },
    /// Positive: `ln(1 + exp(u))`; linear for large values.
    Softplus,
    /// Between two bounds: `lower + (upper - lower) / (1 + exp(-u))`.
    Bounded {
        /// Lower bound.
        lower: f64,
        /// Upper bound.
        upper: f64,
    },
    /// Positive, between two positive bounds: `lower (upper / lower)^(1 / (1 + exp(-u)))`, evenly on a logarithmic scale.
    LogBounded {
        /// Lower bound.
        lower: f64,
        /// Upper bound.
        upper: f64,
    },
    /// A packed lower triangle (rows after one another) with a positive diagonal: softplus there, identity elsewhere.
    Triangular,
    /// Not trained: absent from the unconstrained vector.
    Fixed,
}

impl Transform {
    /// Natural value of the entry at `position` of its block.
    pub fn forward(self, position: usize, u: f64) -> f64 {
        match self {
            Self::Identity | Self::Fixed => u,
            Self::Log => u.exp(),
            Self::LogAbove { lower } => at_least(lower + u.exp(), lower.next_up()),
            Self::Softplus => u.max(0.0) + (-u.abs()).exp().ln_1p(),
            Self::Bounded { lower, upper } => lower + (upper - lower) * logistic(u),
            Self::LogBounded { lower, upper } => {
                (lower.ln() + (upper / lower).ln() * logistic(u)).exp().clamp(lower, upper)
            }
            Self::Triangular if is_diagonal(position) => Self::Softplus.forward(position, u),
            Self::Triangular => u,
        }
    }

    /// Whether a number is a natural value of the entry at `position` of its block: finite, and within the range.
    pub fn admits(self, position: usize, value: f64) -> bool {
        value.is_finite()
            && match self {
                Self::Identity | Self::Fixed => true,
                Self::Log | Self::Softplus => value > 0.0,
                Self::LogAbove { lower } => value > lower,
                Self::Bounded { lower, upper } | Self::LogBounded { lower, upper } => {
                    (lower..=upper).contains(&value)
                }
                Self::Triangular => !is_diagonal(position) || value > 0.0,
            }
    }

    /// Unconstrained number of a natural value: the inverse of [`Transform::forward`]. A value at or beyond a bound maps to
    /// the nearest number that an optimiser can still move away from. NaN stays NaN, so that it is noticed.
    pub fn inverse(self, position: usize, value: f64) -> f64 {
        const FAR: f64 = 700.0;
        match self {
            Self::Identity | Self::Fixed => value,
            Self::Log => at_least(value, 0.0).ln().clamp(-FAR, FAR),
            Self::LogAbove { lower } => at_least(value - lower, lower.abs() * 1e-6).ln().clamp(-FAR, FAR),
            // ln(exp(v) - 1) = v + ln(1 - exp(-v))
            Self::Softplus => {
                let value = at_least(value, 0.0);
                at_least(value + (-(-value).exp_m1()).ln(), -FAR)
            }
            Self::Bounded { lower, upper } => logit((value - lower) / (upper - lower)),
            Self::LogBounded { lower, upper } => {
                logit((at_least(value, f64::MIN_POSITIVE) / lower).ln() / (upper / lower).ln())
            }
            Self::Triangular if is_diagonal(position) => Self::Softplus.inverse(position, value),
            Self::Triangular => value,
        }
    }

    /// `d natural / d unconstrained` at the unconstrained number `u`.
    pub fn derivative(self, position: usize, u: f64) -> f64 {
        match self {
            Self::Identity => 1.0,
            Self::Fixed => 0.0,
            Self::Log | Self::LogAbove { .. } => u.exp(),
            Self::Softplus => logistic(u),
            Self::Bounded { lower, upper } => (upper - lower) * logistic(u) * logistic(-u),
            Self::LogBounded { lower, upper } => {
                self.forward(position, u) * (upper / lower).ln() * logistic(u) * logistic(-u)
            }
            Self::Triangular if is_diagonal(position) => logistic(u),
            Self::Triangular => 1.0,
        }
    }
}

/// The larger of the two, but NaN where `value` is NaN: `f64::max` would turn it into a number.
fn at_least(value: f64, least: f64) -> f64 {
    if value < least { least } else { value }
}

/// `1 / (1 + exp(-u))` without overflow.
fn logistic(u: f64) -> f64 {
    let e = (-u.abs()).exp();
    if u >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

/// The inverse of [`logistic`]; shares at or beyond 0 and 1 map to the nearest number that an optimiser can still move away from.
fn logit(share: f64) -> f64 {
    let p = share.clamp(0.0, 1.0);
    (p.ln() - (-p).ln_1p()).clamp(-36.0, 36.0)
}

/// Whether entry `position` of a packed lower triangle stands on the diagonal: 0, 2, 5, 9, ...
fn is_diagonal(position: usize) -> bool {
    let row = ((8.0 * position as f64 + 1.0).sqrt() as usize - 1) / 2;
    position == row * (row + 3) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Transform; 7] = [
        Transform::Identity,
        Transform::Log,
        Transform::LogAbove { lower: 1e-6 },
        Transform::Softplus,
        Transform::Bounded { lower: -2.0, upper: 3.0 },
        Transform::LogBounded { lower: 1e-3, upper: 20.0 },
        Transform::Triangular,
    ];

    #[test]
    fn diagonal_positions() {
        let diagonal: Vec<usize> = (0..20).filter(|&p| is_diagonal(p)).collect();
        assert_eq!(diagonal, [0, 2, 5, 9, 14]);
    }

    #[test]
    fn far_arguments_stay_finite() {
        for transform in ALL {
            for u in [-700.0, 700.0] {
                assert!(
                    transform.forward(0, u).is_finite() && transform.derivative(0, u).is_finite(),
                    "{transform:?} {u}"
                );
            }
        }
    }

    #[test]
    fn values_at_and_beyond_a_bound_have_an_inverse_and_nan_is_kept() {
        for transform in ALL {
            for value in [-1e300, -5.0, 0.0, 1e-6, 3.0, 1e300] {
                let u = transform.inverse(0, value);
                assert!(u.is_finite(), "{transform:?} of {value} is {u}");
                assert!(transform.derivative(0, u) > 0.0, "{transform:?} cannot move away from {value}");
            }
            assert!(transform.inverse(0, f64::NAN).is_nan(), "{transform:?} hides NaN");
            assert!(transform.forward(0, f64::NAN).is_nan(), "{transform:?} hides NaN");
        }
    }

    #[test]
    fn ranges_admit_what_is_in_them() {
        let admits = |transform: Transform, value: f64| transform.admits(0, value);
        for (transform, inside, outside) in [
            (Transform::Identity, -3.0, f64::NAN),
            (Transform::Fixed, 0.0, f64::INFINITY),
            (Transform::Log, 1e-300, 0.0),
            (Transform::LogAbove { lower: 0.1 }, 0.2, 0.1),
            (Transform::Softplus, 0.5, -0.5),
            (Transform::Bounded { lower: -1.0, upper: 1.0 }, -1.0, 1.5),
            (Transform::LogBounded { lower: 0.5, upper: 2.0 }, 2.0, 0.4),
            (Transform::Triangular, 1.0, -1.0),
        ] {
            assert!(admits(transform, inside) && !admits(transform, outside), "{transform:?}");
        }
        // Below the diagonal of a factor any number will do.
        assert!(Transform::Triangular.admits(1, -1.0) && !Transform::Triangular.admits(2, -1.0));
    }

    #[test]
    fn a_floor_is_never_reached() {
        for lower in [0.0, 1e-6, 1.0, -2.0] {
            for u in [-700.0, -60.0, -1.0] {
                assert!(Transform::LogAbove { lower }.forward(0, u) > lower, "{lower} at {u}");
            }
        }
    }

    proptest! {
        #[test]
        fn inverse_undoes_forward(u in -20.0..20.0f64, position in 0usize..6) {
            for transform in ALL {
                let natural = transform.forward(position, u);
                let back = transform.inverse(position, natural);
                // Near a bound the natural value holds fewer digits of u: the error is that of its rounding.
                let slope = transform.derivative(position, u);
                // An exponential turns the rounding of its argument, at most 17 in magnitude here, into as many units of its value.
                let units = if matches!(transform, Transform::LogBounded { .. }) { 20.0 } else { 4.0 };
                let tolerance = 1e-12 * (1.0 + u.abs()) + units * f64::EPSILON * (natural.abs() + 3.0) / slope.max(1e-300);
                prop_assert!((back - u).abs() <= tolerance, "{:?}: {} -> {} -> {}", transform, u, natural, back);
            }
        }

        #[test]
        fn derivatives_match_differences(u in -10.0..10.0f64, position in 0usize..6) {
            for transform in ALL {
                let h = 1e-5;
                let numeric = (transform.forward(position, u + h) - transform.forward(position, u - h)) / (2.0 * h);
                let exact = transform.derivative(position, u);
                prop_assert!((numeric - exact).abs() <= 1e-8 * (1.0 + exact.abs()) , "{:?} at {}", transform, u);
            }
        }
    }
}
