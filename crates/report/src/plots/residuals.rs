//! Standardised residuals `(truth - prediction) / predicted deviation`: standard normal if the model is right, and
//! without pattern along the predictions.

use super::{Z95, histogram::Histogram};
use crate::{
    figure::{Figure, SIZE},
    points::Points,
    svg::{Axis, Frame, Range, Surface},
    text::count,
};
use posterior_metrics::standard_normal_density;

/// Residuals beyond this many deviations are drawn on the border.
const FARTHEST: f64 = 6.0;

/// Half-width of the axis of residuals: at least 4, at most [`FARTHEST`].
fn reach(points: &Points) -> f64 {
    points.rows.iter().map(|p| p.z().abs()).fold(4.0, f64::max).min(FARTHEST).ceil()
}

/// Says how many residuals lie beyond the axis.
fn beyond(points: &Points) -> String {
    match points.rows.iter().filter(|p| p.z().abs() > FARTHEST).count() {
        0 => String::new(),
        n => format!(" {} beyond ±{FARTHEST} drawn at the border.", count(n)),
    }
}

/// Histogram of the residuals against the standard normal density.
pub(crate) fn distribution(points: &Points) -> Figure {
    let reach = reach(points);
    let z: Vec<f64> = points.rows.iter().map(|p| p.z()).collect();
    let mut s =
        Surface::new(SIZE.0, SIZE.1, "Histogram of standardised residuals with the standard normal density");
    let range = Range::new(-reach, reach);
    // Bins of 1/4, 1/2 or 1: their borders fall on whole deviations.
    let per_unit = if z.len() >= 400 {
        4.0
    } else if z.len() >= 60 {
        2.0
    } else {
        1.0
    };
    let histogram = Histogram::new(&z, range, (2.0 * reach * per_unit) as usize);
    let density = |n: usize| n as f64 * per_unit / z.len().max(1) as f64;
    let top = 1.08 * density(histogram.highest()).max(standard_normal_density(0.0));
    let frame = Frame::draw(
        &mut s,
        Axis::new("standardised residual", range).with_ticks(8),
        Axis::new("share of rows", Range::new(0.0, top)).unlabelled(),
    );
    for (left, right, n) in histogram.bins() {
        let (x, y) = frame.at(left, density(n));
        let (x2, floor) = frame.at(right, 0.0);
        s.rect("column", x + 0.5, y, x2 - x - 1.0, floor - y);
    }
    s.curve(
        "curve ink",
        (0..=160).map(|i| {
            let z = reach * (f64::from(i) / 80.0 - 1.0);
            frame.at(z, standard_normal_density(z))
        }),
    );
    Figure {
        title: "Are the errors as large as predicted?".into(),
        svg: s.finish("plot"),
        caption: format!(
            "Errors divided by their predicted deviation should follow the bell curve: a lower, broader histogram \
             means overconfidence, a higher, narrower one too much caution.{}{}",
            beyond(points),
            points.remark(false)
        ),
        legend: vec![("k-column", "this model".into()), ("k-ink", "standard normal".into())],
        wide: false,
    }
}

/// Residuals along the predictions.
pub(crate) fn against_prediction(points: &Points, target: &str) -> Figure {
    let drawn = points.thinned();
    let reach = reach(points);
    let mut s = Surface::new(SIZE.0, SIZE.1, format!("Standardised residuals against predicted {target}"));
    let frame = Frame::draw(
        &mut s,
        Axis::new(&format!("predicted {target}"), Range::of(drawn.iter().map(|p| p.mean)).padded(0.04)),
        Axis::new("standardised residual", Range::new(-1.04 * reach, 1.04 * reach)).with_ticks(8),
    );
    let (left, right) = (frame.x.from, frame.x.to);
    let (upper, lower) = (frame.y.map(Z95), frame.y.map(-Z95));
    s.rect("band two", left, upper, right - left, lower - upper);
    let zero = frame.y.map(0.0);
    s.line("ideal", left, zero, right, zero);
    for p in &drawn {
        let (x, y) = frame.at(p.mean, p.z().clamp(-reach, reach));
        if p.z().abs() < Z95 {
            s.circle("dot", x, y, 2.4);
        } else {
            s.diamond("dot miss", x, y, 3.6);
        }
    }
    Figure {
        title: "Do errors depend on the prediction?".into(),
        svg: s.finish("plot"),
        caption: format!(
            "A good model leaves a shapeless cloud, 95 % of it within the band; a curve or a funnel is something \
             still to be learned.{}{}",
            beyond(points),
            points.remark(true)
        ),
        legend: vec![
            ("k-dot", "row".into()),
            ("k-miss", "outside its 95 % interval".into()),
            ("k-band2", "95 % band".into()),
        ],
        wide: false,
    }
}
