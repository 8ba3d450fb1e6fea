//! How wide the 95 % intervals are: a model that knows where it is ignorant has narrow and wide ones.

use super::histogram::{Histogram, bin_count};
use crate::{
    figure::{Figure, SIZE},
    points::Points,
    svg::{Anchor, Axis, Frame, Range, Surface},
    text::{number, with_unit},
};

/// The figure. `baseline` is the mean width of the baseline's intervals, drawn for comparison.
pub(crate) fn widths(points: &Points, unit: Option<&str>, baseline: Option<f64>) -> Figure {
    let mut widths: Vec<f64> = points.rows.iter().map(|p| p.interval[1] - p.interval[0]).collect();
    widths.sort_unstable_by(f64::total_cmp);
    let mut s = Surface::new(SIZE.0, SIZE.1, "Histogram of the widths of the 95 % intervals");
    let data = Range::of(widths.iter().copied());
    // A far baseline would squeeze the histogram; then the caption alone tells of it.
    let drawn_baseline =
        baseline.filter(|b| b.is_finite() && *b < data.high + 2.0 * data.span().max(0.5 * data.high));
    let shown = Range::of([data.low, data.high, drawn_baseline.unwrap_or(data.high)]).padded(0.04);
    let histogram = Histogram::new(&widths, data, bin_count(&widths, data));
    let frame = Frame::draw(
        &mut s,
        Axis::new(&with_unit("width of the 95 % interval", unit), shown),
        Axis::new("rows", Range::new(0.0, 1.08 * histogram.highest().max(1) as f64)),
    );
    for (left, right, count) in histogram.bins() {
        let (x, y) = frame.at(left, count as f64);
        let (x2, floor) = frame.at(right, 0.0);
        s.rect("column", x + 0.5, y, x2 - x - 1.0, floor - y);
    }
    let median = widths.get(widths.len() / 2).copied();
    for (value, class, label) in [(median, "mark", "median"), (drawn_baseline, "mark plain", "baseline")] {
        let Some(value) = value else { continue };
        let x = frame.x.map(value);
        s.line(class, x, frame.y.to, x, frame.y.from);
        let anchor = if x > 0.75 * SIZE.0 { Anchor::End } else { Anchor::Start };
        let shift = if x > 0.75 * SIZE.0 { -6.0 } else { 6.0 };
        let level = if label == "median" { 12.0 } else { 30.0 };
        s.text("note", x + shift, frame.y.to + level, anchor, label);
    }
    let mut caption =
        "Narrow intervals are useful if they also hold; a spread of widths shows that the model knows \
                       some rows better than others."
            .to_owned();
    if let Some(median) = median {
        caption += &format!(" Half of the intervals are narrower than {}", quantity(median, unit));
        caption += &match baseline {
            Some(b) if b.is_finite() => format!("; those of the baseline are {} wide.", quantity(b, unit)),
            _ => ".".to_owned(),
        };
    }
    caption += &points.remark(false);
    Figure {
        title: "Interval widths".into(),
        svg: s.finish("plot"),
        caption,
        legend: Vec::new(),
        wide: false,
    }
}

fn quantity(value: f64, unit: Option<&str>) -> String {
    format!("{} {}", number(value, 3), unit.unwrap_or("")).trim_end().to_owned()
}
