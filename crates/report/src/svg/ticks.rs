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

/// Ticks of a logarithmic axis, whose range is in powers of ten: whole powers if there are at least two, else 1, 2 and 5 times
/// a power, else evenly spaced values.
pub(crate) fn logarithmic_ticks(range: Range, target: usize) -> Vec<(f64, String)> {
    // Powers of doubles lie between -324 and 308.
    let (low, high) = (range.low.clamp(-400.0, 400.0), range.high.clamp(-400.0, 400.0));
    let (first, last) = (low.ceil() as i32, high.floor() as i32);
    let powers = (last - first + 1).max(0) as usize;
    if powers >= 2 {
        let every = powers.div_ceil(target.max(1) + 1);
        return (first..=last)
            .step_by(every)
            .map(|p| (f64::from(p), text::number(10f64.powi(p), 1)))
            .collect();
    }
    let fine: Vec<(f64, String)> = (low.floor() as i32..=last + 1)
        .flat_map(|p| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(p)))
        .filter(|value| *value > 0.0 && range.contains(value.log10()))
        .map(|value| (value.log10(), text::number(value, 1)))
        .collect();
    if fine.len() >= 2 {
        return fine;
    }
    ticks(Range::new(10f64.powf(low), 10f64.powf(high)), target)
        .into_iter()
        .map(|(value, label)| (value.log10(), label))
        .filter(|(value, _)| value.is_finite())
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

    #[test]
    fn logarithmic_ticks_are_powers_or_halves_of_them() {
        let labels = |low: f64, high: f64| -> Vec<String> {
            logarithmic_ticks(Range::new(low.log10(), high.log10()), 5).into_iter().map(|t| t.1).collect()
        };
        assert_eq!(labels(0.005, 200.0), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(1.5, 30.0), ["2", "5", "10", "20"]);
        assert_eq!(labels(1e-9, 1e9).len(), 5);
        assert!((2..=11).contains(&labels(3.1, 3.2).len()));
        let all = logarithmic_ticks(Range::new(-1e300, 1e300), 5);
        assert!((2..=7).contains(&all.len()), "{all:?}");
    }
}
