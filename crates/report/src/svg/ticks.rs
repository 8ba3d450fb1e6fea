//! Round tick values: steps of 1, 2 or 5 times a power of ten, and labels with just the digits that they need.

use super::Range;
use crate::text;

/// Tick values inside a range with their labels; about `target` of them, at most twice as many.
pub(crate) fn ticks(range: Range, target: usize) -> Vec<(f64, String)> {
    let step = round_step(range.span() / target.max(1) as f64);
    let first = (range.low / step).ceil();
    let last = (range.high / step).floor();
    let number = (last - first).clamp(0.0, 2.0 * target as f64) as usize;
    (0..=number)
        .map(|k| {
            let value = (first + k as f64) * step;
            (value, label(value, step, range))
        })
        .filter(|&(value, _)| value.is_finite() && range.contains(value))
        .collect()
}

/// The smallest of 1, 2, 5, 10 times a power of ten that is at least `raw` (up to rounding).
fn round_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    let share = raw / power;
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| share <= f * (1.0 + 1e-9)).unwrap_or(10.0);
    factor * power
}

/// A tick's label, as precise as the step needs.
fn label(value: f64, step: f64, range: Range) -> String {
    let step_exponent = (step.log10() + 1e-9).floor() as i32;
    let largest = range.low.abs().max(range.high.abs());
    let top_exponent = largest.log10().floor() as i32;
    if value.abs() < 1e-6 * step {
        return "0".to_owned();
    }
    if top_exponent >= 6 || step_exponent < -5 {
        let value_exponent = value.abs().log10().floor() as i32;
        let decimals = (value_exponent - step_exponent).clamp(0, 9) as usize;
        return text::scientific(value, decimals);
    }
    text::fixed(value, (-step_exponent).max(0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64) -> Vec<String> {
        ticks(Range { low, high }, 5).into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn round_values_with_fitting_labels() {
        assert_eq!(
            labels(0.0, 1.0),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"].map(|s| s.replace("0.0", "0"))
        );
        assert_eq!(labels(-1.3, 3.2), ["\u{2212}1", "0", "1", "2", "3"]);
        assert_eq!(labels(98.0, 142.0), ["100", "110", "120", "130", "140"]);
        assert_eq!(labels(0.0, 23_000.0), ["0", "5,000", "10,000", "15,000", "20,000"]);
        assert_eq!(labels(0.0, 4e7), ["0", "1×10⁷", "2×10⁷", "3×10⁷", "4×10⁷"]);
        assert_eq!(labels(0.0, 4.4e-7)[1], "1×10⁻⁷");
    }

    #[test]
    fn hard_ranges_give_few_distinct_ticks_inside() {
        for (low, high) in [
            (-1e300, 1e300),
            (1e15, 1e15 + 1e7),
            (-1e-249, 1e-249),
            (0.0, 5e-200),
            (-3.0, -2.999_999),
            (7.0, 7.1),
        ] {
            let ticks = ticks(Range::new(low, high), 5);
            assert!((2..=11).contains(&ticks.len()), "{low} {high} {ticks:?}");
            assert!(ticks.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 != w[1].1), "{ticks:?}");
        }
    }
}
