//! Histograms of several sets of values over a common axis, as shares.

use super::{
    histogram::{Histogram, bin_count},
    hues::{self, MOST_LINES},
};
use crate::{
    figure::{Figure, SIZE},
    input::Distributions,
    svg::{Anchor, Axis, Frame, Range, Surface},
};

/// The figure.
pub(crate) fn distributions(input: &Distributions) -> Figure {
    let series: Vec<Vec<f64>> = input
        .series
        .iter()
        .take(MOST_LINES)
        .map(|d| d.values.iter().copied().filter(|v| v.is_finite()).collect())
        .collect();
    let given: usize = input.series.iter().take(MOST_LINES).map(|d| d.values.len()).sum();
    let mut all: Vec<f64> = series.iter().flatten().copied().collect();
    all.sort_unstable_by(f64::total_cmp);
    let range = match input.range {
        Some((low, high)) if low.is_finite() && high.is_finite() && low < high => Range::new(low, high),
        _ => Range::of(all.iter().copied()),
    };
    let bins = bin_count(&all, range);
    let shares: Vec<Vec<(f64, f64, f64)>> = series
        .iter()
        .map(|values| {
            let total = values.len().max(1) as f64;
            let histogram = Histogram::new(values, range, bins);
            histogram.bins().map(|(left, right, n)| (left, right, n as f64 / total)).collect()
        })
        .collect();
    let highest = shares.iter().flatten().map(|b| b.2).fold(0.0, f64::max);
    let top = if highest > 0.0 { 1.08 * highest } else { 1.0 };
    let mut s = Surface::new(SIZE.0, SIZE.1, format!("Histograms of {}", input.x));
    let frame = Frame::draw(
        &mut s,
        Axis::new(&input.x, range),
        Axis::new("share of rows", Range::new(0.0, top)).percent(),
    );
    for (i, bins) in shares.iter().enumerate().filter(|(i, _)| !series[*i].is_empty()) {
        // Each bin twice, at its left and its right border, makes the steps.
        let steps: Vec<(f64, f64)> =
            bins.iter().flat_map(|(left, right, share)| [(*left, *share), (*right, *share)]).collect();
        let floor = frame.y.map(0.0);
        let area: Vec<_> = steps.iter().map(|(x, y)| (frame.x.map(*x), floor, frame.y.map(*y))).collect();
        s.band(&hues::class("haze", i), &area);
        s.curve(&hues::class("outline", i), steps.iter().map(|(x, y)| frame.at(*x, *y)));
    }
    if all.is_empty() {
        s.text("empty", 0.5 * SIZE.0, 0.5 * SIZE.1, Anchor::Middle, "nothing to draw");
    }
    let caption = input.caption.clone() + &hues::remark(input.series.len(), given - all.len(), "values");
    Figure {
        title: input.title.clone(),
        svg: s.finish("plot"),
        caption: caption.trim().to_owned(),
        legend: hues::legend(input.series.iter().map(|d| d.name.as_str())),
        wide: false,
    }
}
