//! `log ∫ exp(g(x)) dx` by the trapezoid rule, whose error falls exponentially for analytic integrands that vanish at both ends.
//!
//! Source: Trefethen and Weideman (2014), *The exponentially convergent trapezoidal rule*.

/// What lies so many nats below the peak is left out.
const DEPTH: f64 = 45.0;
/// Intervals of a search for the region that matters, and the least number of the final rule.
const INTERVALS: usize = 512;
/// The largest step of the final rule: integrands here are analytic up to π/2 beside the real line, so that the error is of
/// the order of exp(-π²/0.2).
const STEP: f64 = 0.2;
/// The most intervals of the final rule, reached only for latent deviations of hundreds of nats.
const MOST: f64 = 65_536.0;

/// The part of `[low, high]` where g is within 45 nats of its peak, found by rounds of so many intervals, each of which narrows what the one before left; g should have one
/// peak. `Err` is the peak where there is nothing to integrate: minus infinity, or not a number.
pub(crate) fn significant(
    mut low: f64,
    mut high: f64,
    intervals: usize,
    g: impl Fn(f64) -> f64,
) -> Result<(f64, f64), f64> {
    let at = |low: f64, high: f64, i: usize| low + (high - low) * (i as f64 / intervals as f64);
    let mut values = vec![0.0; intervals + 1];
    // Each round narrows by up to half the intervals, so rounding of the interval itself ends this long before the limit.
    for _ in 0..40 {
        for (i, value) in values.iter_mut().enumerate() {
            *value = g(at(low, high, i));
        }
        let peak = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let matters = |value: &f64| *value >= peak - DEPTH;
        let (Some(first), Some(last)) = (values.iter().position(matters), values.iter().rposition(matters))
        else {
            return Err(peak);
        };
        let narrowed = (at(low, high, first.saturating_sub(1)), at(low, high, (last + 1).min(intervals)));
        let enough = last - first >= intervals / 8 || narrowed == (low, high);
        (low, high) = narrowed;
        if enough {
            break;
        }
    }
    Ok((low, high))
}

/// `log ∫ exp(g)` over `[low, high]`, outside which `g` must be negligible; `g` should have one peak. The interval may be far too
/// wide: it is narrowed to the part within 45 nats of the peak. About 1,500 evaluations. Relative accuracy of the integral near
/// rounding (tests: 1e-12).
pub(super) fn log_integral(low: f64, high: f64, g: impl Fn(f64) -> f64) -> f64 {
    let (low, high) = match significant(low, high, INTERVALS, &g) {
        Ok(range) => range,
        Err(peak) => return peak,
    };
    let at = |low: f64, high: f64, i: usize, n: usize| low + (high - low) * (i as f64 / n as f64);
    let n = ((high - low) / STEP).clamp(INTERVALS as f64, MOST) as usize;
    // Streaming log-sum-exp: the rule may have more nodes than a buffer should.
    let (mut peak, mut sum) = (f64::NEG_INFINITY, 0.0);
    for i in 0..=n {
        let value = g(at(low, high, i, n));
        if value > peak {
            sum = sum * (peak - value).exp() + 1.0;
            peak = value;
        } else if value > f64::NEG_INFINITY {
            sum += (value - peak).exp();
        }
    }
    peak + (sum * (high - low) / n as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn gaussians_of_any_width_in_an_interval_that_is_far_too_wide() {
        for (centre, deviation) in [(0.0, 1.0f64), (3.7, 1e-6), (-20.0, 0.03), (11.0, 40.0)] {
            let found = log_integral(-500.0, 1000.0, |x| -0.5 * ((x - centre) / deviation).powi(2));
            let exact = 0.5 * (2.0 * PI).ln() + deviation.ln();
            assert!((found - exact).abs() < 1e-12, "{centre} {deviation}: {found} for {exact}");
        }
    }

    #[test]
    fn a_peak_with_one_cliff() {
        // ∫ exp(a x - e^x) dx = Γ(a)
        for a in [0.01f64, 0.5, 3.0, 500.0] {
            let found = log_integral(-45.0 / a - 50.0, 50.0, |x| a * x - x.exp());
            assert!((found - libm::lgamma(a)).abs() < 1e-12 * (1.0 + libm::lgamma(a).abs()), "{a}: {found}");
        }
    }

    #[test]
    fn nothing_and_not_a_number() {
        assert_eq!(log_integral(0.0, 1.0, |_| f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert!(!log_integral(0.0, 1.0, |_| f64::NAN).is_finite());
    }
}
