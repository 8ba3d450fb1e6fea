//! The derivative of the logarithm of the gamma function.

/// `ψ(x) = d log Γ / dx` for `x > 0`: the recurrence up to 10, then the asymptotic series (Abramowitz and Stegun 6.3.5 and 6.3.18);
/// NaN for other arguments. Error about 1e-14.
pub(crate) fn digamma(mut x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let mut below = 0.0;
    while x < 10.0 {
        below += 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    // Bernoulli numbers B₂ₖ / 2k with alternating signs.
    let coefficients = [1.0 / 12.0, 1.0 / 120.0, 1.0 / 252.0, 1.0 / 240.0, 1.0 / 132.0, 691.0 / 32_760.0];
    let series = coefficients.iter().rev().fold(0.0, |rest, c| y * (c - rest));
    x.ln() - 0.5 / x - series - below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_values() {
        for x in [0.1, 0.5, 1.0, 2.5, 9.99, 10.0, 123.4] {
            let expected = statrs::function::gamma::digamma(x);
            assert!((digamma(x) - expected).abs() < 1e-12 * expected.abs().max(1.0), "{x}");
        }
        assert!((digamma(1.0) + 0.577_215_664_901_532_9).abs() < 1e-14);
        assert!(digamma(0.0).is_nan() && digamma(f64::NAN).is_nan());
    }
}
