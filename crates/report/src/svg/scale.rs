//! Ranges of data, and the linear map from data to the page.

/// Beyond this magnitude the span of a range could overflow.
const LARGEST: f64 = 1e300;
/// Below this a span counts as zero.
const SMALLEST: f64 = 1e-250;

/// A finite interval `low < high` of data values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Range {
    /// The range of the finite values; widened if they are all (nearly) equal, and 0 to 1 if there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = values
            .into_iter()
            .filter(|v| v.is_finite())
            .map(|v| v.clamp(-LARGEST, LARGEST))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high { Self { low: 0.0, high: 1.0 } } else { Self::new(low, high) }
    }

    /// The range from `low` to `high`, both finite and at most 1e300 in magnitude, widened if it is (nearly) empty.
    pub(crate) fn new(low: f64, high: f64) -> Self {
        let (low, high) = (low.clamp(-LARGEST, LARGEST), high.clamp(-LARGEST, LARGEST));
        let middle = 0.5 * low + 0.5 * high;
        if high - low > f64::max(1e-9 * middle.abs(), SMALLEST) {
            return Self { low, high };
        }
        let half = if middle.abs() < SMALLEST { 1.0 } else { 0.05 * middle.abs() };
        Self { low: middle - half, high: middle + half }
    }

    /// The range with a fraction of its span added on both sides.
    pub(crate) fn padded(self, fraction: f64) -> Self {
        let pad = fraction * self.span();
        Self::new(self.low - pad, self.high + pad)
    }

    /// `high - low`, positive.
    pub(crate) fn span(self) -> f64 {
        self.high - self.low
    }

    /// Whether the range holds a value.
    pub(crate) fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The linear map from a data range to page coordinates `from` (at the low end) to `to` (at the high end).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) range: Range,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Scale {
    /// Page coordinate of a value, held within the axis; NaN stays NaN and is refused by the surface.
    pub(crate) fn map(&self, value: f64) -> f64 {
        let share = ((value.clamp(-LARGEST, LARGEST) - self.range.low) / self.range.span()).clamp(0.0, 1.0);
        self.from + share * (self.to - self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_hard_inputs_are_proper() {
        for values in [
            vec![],
            vec![f64::NAN],
            vec![3.0],
            vec![0.0, 0.0],
            vec![-1e308, 1e308],
            vec![5e-324, 1e-323],
            vec![1e15, 1e15 + 1.0],
            vec![f64::INFINITY, 2.0],
            vec![1e300; 3],
        ] {
            let range = Range::of(values.iter().copied()).padded(0.05);
            assert!(range.low < range.high && range.span().is_finite(), "{values:?} {range:?}");
            let scale = Scale { range, from: 0.0, to: 100.0 };
            for v in values.into_iter().chain([f64::MAX, f64::NEG_INFINITY]) {
                assert!(v.is_nan() || (0.0..=100.0).contains(&scale.map(v)));
            }
        }
    }

    #[test]
    fn maps_linearly_and_holds_within() {
        let scale = Scale { range: Range::new(0.0, 10.0), from: 200.0, to: 100.0 };
        assert_eq!((scale.map(0.0), scale.map(2.5), scale.map(10.0)), (200.0, 175.0, 100.0));
        assert_eq!(scale.map(1e9), 100.0);
        assert!(scale.map(f64::NAN).is_nan());
    }
}
