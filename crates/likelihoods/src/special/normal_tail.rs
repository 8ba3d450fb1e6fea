//! The standard normal distribution function `Φ`, its logarithm, and the inverse Mills ratio `φ/Φ`, to rounding in both tails.
//!
//! Far below zero `Φ` underflows and `φ/Φ + z` cancels. There both follow from Laplace's continued fraction, for `x = -z > 0`
//!
//! `φ(x) / Φ(-x) = x + K(x)`, `K(x) = 1 / (x + 2 / (x + 3 / (x + ...)))`
//!
//! (Abramowitz and Stegun 26.2.14), whose tail `K` is itself the difference that would cancel.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Below this the continued fraction is used; above, `Φ` from the error function loses at most one digit in `φ/Φ + z`.
const TAIL: f64 = -2.0;

/// `Φ(z)`, relatively accurate below zero.
pub(crate) fn distribution(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// `log Φ(z)`.
pub(crate) fn log_distribution(z: f64) -> f64 {
    if z < TAIL {
        log_density(z) - inverse_mills(z).0.ln()
    } else if z > 0.0 {
        (-distribution(-z)).ln_1p()
    } else {
        distribution(z).ln()
    }
}

/// `φ(z)/Φ(z)` and `φ(z)/Φ(z) + z`, the first derivative of `log Φ` and a factor of the second:
/// `-∂² log Φ/∂z² = (φ/Φ)(φ/Φ + z)`, between 0 and 1.
pub(crate) fn inverse_mills(z: f64) -> (f64, f64) {
    if z < TAIL {
        let x = -z;
        // The error after n terms is of the order of exp(-2√2 x √n) for many terms and (n + 1)! / x^(2n + 1) for few; this
        // many put both below rounding.
        let terms = (300.0 / (x * x)).ceil() as u32 + 16;
        let mut tail = x;
        for k in (2..=terms).rev() {
            tail = x + f64::from(k) / tail;
        }
        let difference = 1.0 / tail;
        (x + difference, difference)
    } else {
        let ratio = (log_density(z)).exp() / distribution(z);
        (ratio, ratio + z)
    }
}

/// `log φ(z)`.
pub(crate) fn log_density(z: f64) -> f64 {
    -0.5 * (z * z + (2.0 * PI).ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(z, log Φ, φ/Φ, (φ/Φ)(φ/Φ + z))`, computed with 60 digits. The rounded argument of `Φ` costs `z ε` relative in the tails.
    const REFERENCE: [(f64, f64, f64, f64); 17] = [
        (-20.0, -203.91715537109727, 20.049753068527853, 0.9975367383849478),
        (-12.0, -75.4106730015688, 12.082214175254284, 0.9933292736641541),
        (-5.0, -15.064998393988725, 5.186503967125842, 0.9673035653828878),
        (-4.0, -10.360101486527292, 4.225607144489471, 0.9533271616025774),
        (-2.5, -5.08164827727869, 2.8227447976639075, 0.9110261985788846),
        (-10000.0, -50000010.12927891, 10000.000099999997, 0.9999999900000006),
        (-100.0, -5005.524208694205, 100.00999800099926, 0.9999000599500517),
        (-37.5, -707.6689893175072, 37.526628874883656, 0.9992919051145792),
        (-8.0, -35.01343715991455, 8.121368112236112, 0.9856751165566591),
        (-3.0, -6.607726221510349, 3.2830986549304364, 0.9294408132147319),
        (-2.0009765625, -3.785502349329653, 2.374080522935805, 0.8857788455008557),
        (-1.9990234375, -3.7808671627236814, 2.3723505993160394, 0.8856629160752372),
        (-0.5, -1.1759117615936185, 1.1410777703680646, 0.731519592844121),
        (0.0, -std::f64::consts::LN_2, 0.7978845608028654, std::f64::consts::FRAC_2_PI),
        (0.75, -0.25699426683836524, 0.389382056735927, 0.44365492865984596),
        (3.0, -0.0013508099647481938, 0.004437839042125664, 0.013333211541740806),
        (9.0, -1.1285884059538405e-19, 1.0279773571668915e-18, 9.251796214502023e-18),
    ];

    #[test]
    fn reference_values_in_both_tails_and_across_the_change_of_formula() {
        let close = |a: f64, b: f64| (a - b).abs() <= 2e-14 * b.abs();
        for (z, log, ratio, curvature) in REFERENCE {
            assert!(close(log_distribution(z), log), "log Φ({z}): {} for {log}", log_distribution(z));
            let (found, shifted) = inverse_mills(z);
            assert!(close(found, ratio), "φ/Φ({z}): {found} for {ratio}");
            assert!(close(found * shifted, curvature), "curvature at {z}: {}", found * shifted);
        }
    }

    #[test]
    fn far_tails_are_finite_and_ordered() {
        let mut before = f64::NEG_INFINITY;
        for k in -400..=400 {
            let z = f64::from(k) * 25.0;
            let (ratio, shifted) = inverse_mills(z);
            let log = log_distribution(z);
            assert!(log.is_finite() && log >= before && log <= 0.0, "log Φ({z}) = {log}");
            assert!((0.0..=1.0).contains(&(ratio * shifted)), "curvature at {z}: {}", ratio * shifted);
            before = log;
        }
    }
}
