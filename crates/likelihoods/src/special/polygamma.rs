//! The derivatives of the logarithm of the gamma function: digamma `ψ`, trigamma `ψ₁` and tetragamma `ψ₂`.
//!
//! Each by its recurrence up to 12, `ψ(x) = ψ(x+1) - 1/x`, `ψ₁(x) = ψ₁(x+1) + 1/x²`, `ψ₂(x) = ψ₂(x+1) - 2/x³`, then by the derivatives
//! of one asymptotic series (Abramowitz and Stegun 6.3.5, 6.3.18, 6.4.6 and 6.4.11):
//!
//! `ψ(x) ~ log x - 1/(2x) - Σ B₂ₖ / (2k x²ᵏ)`.
//!
//! For `x > 0`, NaN for other arguments. The errors of `ψ₁` and `ψ₂` are below 1e-13 of the value; that of `ψ`, which has a root,
//! below 1e-13 of the larger of the value and 1.

/// The Bernoulli numbers `B₂`, `B₄`, ..., `B₁₄`.
const BERNOULLI: [f64; 7] =
    [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0, 7.0 / 6.0];
/// From here on the series is used: its first term that is left out is below 1e-16 of the result.
const ASYMPTOTIC: f64 = 12.0;

/// `ψ(x) = d log Γ / dx`.
pub(crate) fn digamma(x: f64) -> f64 {
    let (x, below) = raised(x, |x| 1.0 / x);
    x.ln() - 0.5 / x - series(x, |k| 0.5 / k) - below
}

/// `ψ(x) - log x`, about `-1/(2x)`, without the cancellation for large `x`.
pub(crate) fn digamma_less_log(x: f64) -> f64 {
    if x >= ASYMPTOTIC { -0.5 / x - series(x, |k| 0.5 / k) } else { digamma(x) - x.ln() }
}

/// `ψ₁(x) = d² log Γ / dx²`.
pub(crate) fn trigamma(x: f64) -> f64 {
    let (x, below) = raised(x, |x| 1.0 / (x * x));
    let inverse = 1.0 / x;
    below + inverse * (1.0 + 0.5 * inverse + series(x, |_| 1.0))
}

/// `ψ₂(x) = d³ log Γ / dx³`, which is negative.
pub(crate) fn tetragamma(x: f64) -> f64 {
    let (x, below) = raised(x, |x| 2.0 / (x * x * x));
    let inverse = 1.0 / x;
    -below - inverse * inverse * (1.0 + inverse + series(x, |k| 2.0 * k + 1.0))
}

/// The first of `x`, `x + 1`, ... in the range of the series, and the sum of `term` over those before it; NaN unless `x > 0`.
fn raised(x: f64, term: impl Fn(f64) -> f64) -> (f64, f64) {
    let (mut x, mut sum) = (if x > 0.0 { x } else { f64::NAN }, 0.0);
    while x < ASYMPTOTIC {
        sum += term(x);
        x += 1.0;
    }
    (x, sum)
}

/// `Σ B₂ₖ factor(k) / x²ᵏ` over k = 1, 2, ...
fn series(x: f64, factor: impl Fn(f64) -> f64) -> f64 {
    let y = 1.0 / (x * x);
    BERNOULLI.iter().enumerate().rev().fold(0.0, |rest, (k, b)| y * (b * factor(k as f64 + 1.0) + rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_optim::check::assert_close;
    use std::f64::consts::{LN_2, PI};

    /// `(x, ψ, ψ₁, ψ₂)`, computed with 30 digits.
    const REFERENCE: [(f64, f64, f64, f64); 14] = [
        (0.001, -1000.5755719318103, 1000001.6425331958, -2000000002.3976321),
        (0.1, -10.423754940411076, 101.43329915079275, -2001.8614573783436),
        (0.5, -1.9635100260214235, 4.934802200544679, -16.82879664423432),
        (1.0, -0.5772156649015329, 1.6449340668482264, -2.4041138063191885),
        (1.5, 0.03648997397857652, 0.9348022005446793, -0.82879664423432),
        (2.5, 0.7031566406452432, 0.49035775610023485, -0.2362040516417274),
        (7.999, 2.015508332090348, 0.1331547166131586, -0.01770426937012624),
        (9.99, 2.250700372831201, 0.10527695014824179, -0.011073070531461051),
        (10.0, 2.251752589066721, 0.10516633568168575, -0.011049834970802067),
        (11.99, 2.441792283668335, 0.08697741048698757, -0.0075603233665348935),
        (12.0, 2.442661679975812, 0.08690187287176838, -0.007547205368998912),
        (123.4, 4.8113737751162775, 0.008136651610865263, -6.620473419231093e-05),
        (1e6, 13.815510057964191, 1.0000005000001667e-06, -1.0000010000005e-12),
        (1e12, 27.63102111592805, 1.0000000000005e-12, -1.000000000001e-24),
    ];

    #[test]
    fn reference_values_below_and_above_the_change_of_formula() {
        for (x, first, second, third) in REFERENCE {
            assert_close(&[digamma(x)], &[first], 1e-14, 2e-14);
            assert_close(&[trigamma(x), tetragamma(x)], &[second, third], 1e-14, 0.0);
            let library = statrs::function::gamma::digamma(x);
            assert_close(&[digamma(x)], &[library], 1e-12, 1e-12);
            assert_close(&[digamma_less_log(x)], &[first - x.ln()], 1e-14, 1e-14);
        }
        // To the last digit that is printed in the literature on Dirichlet labels.
        assert!((digamma(0.1) + 10.423_754_940_411).abs() < 5e-13);
        assert!((trigamma(0.1) - 101.433_299_150_793).abs() < 5e-13);
        assert!((digamma(1.0) + 0.577_215_664_902).abs() < 5e-13);
        assert!((trigamma(1.0) - 1.644_934_066_848).abs() < 5e-13);
    }

    #[test]
    fn recurrence_reflection_and_duplication() {
        for k in 1..400 {
            let x = 0.037 * f64::from(k);
            assert_close(&[trigamma(x) - trigamma(x + 1.0)], &[1.0 / (x * x)], 1e-13, 1e-15);
            assert_close(&[tetragamma(x + 1.0) - tetragamma(x)], &[2.0 / (x * x * x)], 1e-13, 1e-15);
            // ψ₁(2x) = (ψ₁(x) + ψ₁(x + ½)) / 4, and its derivative.
            assert_close(&[trigamma(2.0 * x)], &[(trigamma(x) + trigamma(x + 0.5)) / 4.0], 1e-13, 0.0);
            let pair = (tetragamma(x) + tetragamma(x + 0.5)) / 8.0;
            assert_close(&[tetragamma(2.0 * x)], &[pair], 1e-13, 0.0);
            let doubled = (digamma(x) + digamma(x + 0.5)) / 2.0 + LN_2;
            assert_close(&[digamma(2.0 * x)], &[doubled], 1e-13, 1e-13);
            if x < 1.0 {
                // ψ₁(x) + ψ₁(1 - x) = π² / sin²(πx), and its derivative.
                let (sine, cosine) = (PI * x).sin_cos();
                let sum = trigamma(x) + trigamma(1.0 - x);
                assert_close(&[sum], &[(PI / sine).powi(2)], 1e-13, 0.0);
                let difference = tetragamma(x) - tetragamma(1.0 - x);
                assert_close(&[difference], &[-2.0 * cosine * (PI / sine).powi(3)], 1e-12, 1e-12);
            }
        }
    }

    #[test]
    fn each_is_the_derivative_of_the_one_before() {
        use posterior_optim::check::gradient;
        for x in [0.3, 1.7, 11.9, 12.5, 80.0] {
            assert_close(&[digamma(x)], &gradient(|x| libm::lgamma(x[0]), &[x]), 1e-8, 1e-8);
            assert_close(&[trigamma(x)], &gradient(|x| digamma(x[0]), &[x]), 1e-8, 1e-9);
            assert_close(&[tetragamma(x)], &gradient(|x| trigamma(x[0]), &[x]), 1e-8, 1e-9);
        }
    }

    #[test]
    fn arguments_that_are_not_positive_are_not_a_number_and_extremes_end() {
        for x in [0.0, -0.5, -3.0, f64::NEG_INFINITY, f64::NAN] {
            assert!(digamma(x).is_nan() && trigamma(x).is_nan() && tetragamma(x).is_nan(), "{x}");
        }
        assert_eq!((digamma(f64::INFINITY), trigamma(f64::INFINITY)), (f64::INFINITY, 0.0));
        assert_eq!(trigamma(1e-200), f64::INFINITY);
    }
}
