//! Predictions against truth, with 95 % intervals: near the diagonal is accurate, bars that cross it are honest.

use super::Z95;
use crate::ScoredRows;
use crate::{
    figure::{Figure, SIZE},
    points::Points,
    svg::{Anchor, Axis, Frame, Range, Surface},
    text::count,
};

/// The figure; `target` is the name of the target with its unit.
pub(crate) fn predictions(points: &Points, rows: ScoredRows, target: &str) -> Figure {
    let drawn = points.thinned();
    let label = format!("Predictions against observed values of {target}, with 95 % intervals");
    let mut s = Surface::new(SIZE.0, SIZE.1, label);
    // One range for both axes, so that the diagonal is perfection. Bars may stretch it by half at most on each side:
    // one very uncertain row must not flatten all others.
    let centres = Range::of(drawn.iter().flat_map(|p| [p.mean, p.truth]));
    let room = 0.5 * centres.span();
    let ends = drawn.iter().flat_map(|p| p.interval);
    let bars = Range::of(ends.map(|v| v.clamp(centres.low - room, centres.high + room)));
    let y_range = Range::new(centres.low.min(bars.low), centres.high.max(bars.high)).padded(0.03);
    let x_range = Range::of(drawn.iter().map(|p| p.truth)).padded(0.05);
    let frame = Frame::draw(
        &mut s,
        Axis::new(&format!("observed {target}"), x_range),
        Axis::new("predicted", y_range),
    );
    // The diagonal, where both axes have values.
    let (low, high) = (x_range.low.max(y_range.low), x_range.high.min(y_range.high));
    s.curve("ideal", [frame.at(low, low), frame.at(high, high)]);
    let holds = |z: f64| z.abs() < Z95;
    for (class, inside) in [("bar", true), ("bar miss", false)] {
        let chosen = drawn.iter().filter(|p| holds(p.z()) == inside);
        s.segments(
            class,
            chosen.map(|p| {
                let (x, low) = frame.at(p.truth, p.interval[0]);
                (x, low, x, frame.y.map(p.interval[1]))
            }),
        );
    }
    let radius = if drawn.len() > 400 { 2.2 } else { 3.0 };
    for p in drawn.iter().filter(|p| holds(p.z())) {
        let (x, y) = frame.at(p.truth, p.mean);
        s.circle("dot", x, y, radius);
    }
    for p in drawn.iter().filter(|p| !holds(p.z())) {
        let (x, y) = frame.at(p.truth, p.mean);
        s.diamond("dot miss", x, y, radius + 1.4);
    }
    if drawn.is_empty() {
        s.text("empty", 0.5 * SIZE.0, 0.5 * SIZE.1, Anchor::Middle, "nothing to draw");
    }
    let missed = points.rows.iter().filter(|p| !holds(p.z())).count();
    Figure {
        title: "Predictions against truth".into(),
        svg: s.finish("plot"),
        caption: format!(
            "Each mark is {}, its bar the 95 % interval: a bar that reaches the dashed diagonal contains \
             the truth. {} of {} do not; about {} would be expected.{}",
            rows.one(),
            count(missed),
            count(points.rows.len()),
            count((0.05 * points.rows.len() as f64).round() as usize),
            points.remark(true)
        ),
        legend: vec![
            ("k-dot", "prediction".into()),
            ("k-miss", "truth outside the interval".into()),
            ("k-ideal", "perfect".into()),
        ],
        wide: false,
    }
}
