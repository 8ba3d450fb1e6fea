//! Counting values in equal bins.

use crate::svg::Range;

/// Counts of values in equal bins over a range.
#[derive(Debug)]
pub(crate) struct Histogram {
    pub(crate) range: Range,
    pub(crate) counts: Vec<usize>,
}

impl Histogram {
    /// Counts `values` in `bins` equal bins; values beyond the range are counted in the first and last bin.
    pub(crate) fn new(values: &[f64], range: Range, bins: usize) -> Self {
        let bins = bins.max(1);
        let mut counts = vec![0; bins];
        for &value in values.iter().filter(|v| v.is_finite()) {
            // A float-to-integer cast saturates, so that low values land in bin 0.
            let bin = ((value - range.low) / range.span() * bins as f64) as usize;
            counts[bin.min(bins - 1)] += 1;
        }
        Self { range, counts }
    }

    /// Left border, right border and count of each bin.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (f64, f64, usize)> + '_ {
        let width = self.range.span() / self.counts.len() as f64;
        self.counts.iter().enumerate().map(move |(i, &count)| {
            let left = self.range.low + i as f64 * width;
            (left, left + width, count)
        })
    }

    /// The largest count.
    pub(crate) fn highest(&self) -> usize {
        self.counts.iter().copied().max().unwrap_or(0)
    }
}

/// Number of bins by the rule of Freedman and Diaconis (1981): width `2 IQR n^(-1/3)`; between 8 and 40.
pub(crate) fn bin_count(sorted: &[f64], range: Range) -> usize {
    let n = sorted.len();
    if n < 2 {
        return 8;
    }
    let spread = sorted[3 * (n - 1) / 4] - sorted[(n - 1) / 4];
    let width = 2.0 * spread / (n as f64).cbrt();
    if width > 0.0 { (range.span() / width).round().clamp(8.0, 40.0) as usize } else { 16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_counted_once() {
        let h = Histogram::new(&[-5.0, 0.0, 0.49, 0.5, 1.0, 9.0, f64::NAN], Range::new(0.0, 1.0), 2);
        assert_eq!(h.counts, [3, 3]);
        assert_eq!(h.highest(), 3);
        assert_eq!(h.bins().map(|b| (b.0, b.1)).collect::<Vec<_>>(), [(0.0, 0.5), (0.5, 1.0)]);
    }

    #[test]
    fn bins_are_bounded() {
        let unit = Range::new(0.0, 1.0);
        assert_eq!(bin_count(&[], unit), 8);
        assert_eq!(bin_count(&[0.3; 50], unit), 16);
        let uniform: Vec<f64> = (0..1000).map(|i| f64::from(i) / 999.0).collect();
        assert_eq!(bin_count(&uniform, unit), 10); // IQR 1/2, so that the width is 1/10
    }
}
