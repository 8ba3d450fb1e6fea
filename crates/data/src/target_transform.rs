//! **Monotone maps of a target**, so that what is skewed becomes about normal, and the way back.
//!
//! | map | of y | where |
//! |---|---|---|
//! | `log` | `ln y` | y > 0 |
//! | Yeo-Johnson with exponent λ in [0, 2] and unit u | `((1 + v)^λ - 1) / λ`, below 0 `-((1 - v)^(2-λ) - 1) / (2 - λ)`, v = y/u | everywhere |
//!
//! At λ = 0 and 2 the powers are logarithms; λ = 1 is the identity. Exponents outside of [0, 2] have images with an end, beyond which a normal distribution would have mass: they are not offered. The power is no map of one unit
//! and of another alike, so that the unit is part of it.
//!
//! Source: Yeo and Johnson, *A new family of power transformations to improve normality or symmetry*, Biometrika 87, 2000.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A strictly increasing map of the target, onto all numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TargetTransform {
    /// The natural logarithm.
    Log,
    /// Yeo and Johnson's power.
    YeoJohnson {
        /// λ, from 0 (as a logarithm above 0) to 2 (as one below).
        exponent: f64,
        /// What the target is divided by, in its units; positive.
        unit: f64,
    },
}

/// `((1 + v)^p - 1) / p` for v >= 0, a logarithm at p = 0.
fn power(v: f64, p: f64) -> f64 {
    if p == 0.0 { v.ln_1p() } else { (p * v.ln_1p()).exp_m1() / p }
}

/// Its inverse.
fn root(z: f64, p: f64) -> f64 {
    if p == 0.0 { z.exp_m1() } else { ((p * z).ln_1p() / p).exp_m1() }
}

impl TargetTransform {
    /// Whether its numbers are such as it can have.
    pub fn is_sound(self) -> bool {
        match self {
            Self::Log => true,
            Self::YeoJohnson { exponent, unit } => {
                (0.0..=2.0).contains(&exponent) && unit.is_finite() && unit > 0.0
            }
        }
    }

    /// Whether a target can be mapped.
    pub fn admits(self, y: f64) -> bool {
        y.is_finite() && (self != Self::Log || y > 0.0)
    }

    /// The map.
    pub fn apply(self, y: f64) -> f64 {
        match self {
            Self::Log => y.ln(),
            Self::YeoJohnson { exponent, unit } => {
                let v = y / unit;
                if v >= 0.0 { power(v, exponent) } else { -power(-v, 2.0 - exponent) }
            }
        }
    }

    /// The way back, from any number.
    pub fn invert(self, z: f64) -> f64 {
        match self {
            Self::Log => z.exp(),
            Self::YeoJohnson { exponent, unit } => {
                unit * if z >= 0.0 { root(z, exponent) } else { -root(-z, 2.0 - exponent) }
            }
        }
    }

    /// The logarithm of the map's slope at y: what a log density of the image gains as one of the target.
    pub fn log_slope(self, y: f64) -> f64 {
        match self {
            Self::Log => -y.ln(),
            Self::YeoJohnson { exponent, unit } => {
                let v = y / unit;
                let steepness = if v >= 0.0 { exponent - 1.0 } else { 1.0 - exponent };
                steepness * v.abs().ln_1p() - unit.ln()
            }
        }
    }

    /// What the image of a column is called.
    pub fn image_of(self, column: &str) -> String {
        match self {
            Self::Log => format!("log {column}"),
            // The identity, under which a target has bounds.
            Self::YeoJohnson { exponent: 1.0, unit: 1.0 } => column.to_string(),
            Self::YeoJohnson { exponent, .. } => format!("{column} by a Yeo-Johnson power of {exponent:.2}"),
        }
    }
}

impl fmt::Display for TargetTransform {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log => out.write_str("log"),
            Self::YeoJohnson { exponent, .. } => write!(out, "yeo-johnson of exponent {exponent:.3}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps() -> Vec<TargetTransform> {
        let powers = [0.0, 1e-9, 0.3, 1.0, 1.7, 2.0 - 1e-9, 2.0];
        powers.into_iter().map(|exponent| TargetTransform::YeoJohnson { exponent, unit: 3.5 }).collect()
    }

    #[test]
    fn maps_go_back_and_have_their_slope() {
        let values = [-40.0, -3.5, -1e-7, 0.0, 1e-9, 0.2, 7.0, 5e4];
        for map in maps() {
            for y in values {
                let z = map.apply(y);
                assert!((map.invert(z) - y).abs() <= 1e-9 * (1.0 + y.abs()), "{map} {y}");
                let h = 1e-5 * (1.0 + y.abs());
                let slope = (map.apply(y + h) - map.apply(y - h)) / (2.0 * h);
                // The second derivative jumps at 0.
                assert!((map.log_slope(y).exp() / slope - 1.0).abs() < 1e-4, "{map} {y}");
            }
            assert!(values.windows(2).all(|pair| map.apply(pair[0]) < map.apply(pair[1])));
        }
        for y in [1e-300, 0.3, 1e200] {
            let map = TargetTransform::Log;
            assert!((map.invert(map.apply(y)) / y - 1.0).abs() < 1e-12);
            assert!((map.log_slope(y) + y.ln()).abs() < 1e-15);
        }
        assert!(!TargetTransform::Log.admits(0.0) && maps()[0].admits(-1.0) && !maps()[0].admits(f64::NAN));
    }

    #[test]
    fn published_forms_come_out() {
        let map = |exponent| TargetTransform::YeoJohnson { exponent, unit: 1.0 };
        // Exponent 1 is the identity, ½ and 3/2 by the published formula.
        for y in [-2.0f64, -0.4, 0.0, 0.7, 9.0] {
            assert!((map(1.0).apply(y) - y).abs() < 1e-14 * (1.0 + y.abs()));
        }
        assert!((map(0.5).apply(8.0) - 4.0).abs() < 1e-14);
        assert!((map(0.5).apply(-3.0) + (8.0 - 1.0) / 1.5).abs() < 1e-13);
        assert!((map(0.0).apply(1.0) - 2f64.ln()).abs() < 1e-15);
        assert!((map(2.0).apply(-1.0) + 2f64.ln()).abs() < 1e-15);
        let text = serde_json::to_string(&map(0.25)).unwrap();
        assert_eq!(serde_json::from_str::<TargetTransform>(&text).unwrap(), map(0.25));
        assert!(!map(2.5).is_sound() && !map(f64::NAN).is_sound() && map(0.0).is_sound());
    }
}
