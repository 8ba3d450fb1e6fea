//! The calibration curve: what intervals promise against what they keep.

use crate::{
    figure::{Figure, SIZE},
    points::Points,
    svg::{Anchor, Axis, Frame, Range, Surface},
    text::count,
};
use posterior_metrics::calibration_curve;

/// Number of equal steps between 0 and 100 %.
const STEPS: usize = 20;

/// The figure; `None` if there is no usable row.
pub(crate) fn calibration(points: &Points) -> Option<Figure> {
    let n = points.rows.len();
    if n == 0 {
        return None;
    }
    let z: Vec<f64> = points.rows.iter().map(|p| p.z()).collect();
    let curve = calibration_curve(&z, STEPS);
    let mut s = Surface::new(SIZE.0, SIZE.1, format!("Calibration curve of {} predictions", count(n)));
    let unit = Range { low: 0.0, high: 1.0 };
    let frame = Frame::draw(
        &mut s,
        Axis::new("promised: probability of the interval", unit).percent(),
        Axis::new("kept: share of truths inside it", unit).percent(),
    );
    // At the ends (nothing, everything) there is no uncertainty.
    let band: Vec<_> = curve
        .iter()
        .enumerate()
        .map(|(i, p)| {
            let certain = i == 0 || i == STEPS;
            let (low, high) = if certain { (p.empirical, p.empirical) } else { (p.low, p.high) };
            (frame.x.map(p.nominal), frame.y.map(low), frame.y.map(high))
        })
        .collect();
    s.band("band two", &band);
    s.curve("ideal", [frame.at(0.0, 0.0), frame.at(1.0, 1.0)]);
    s.curve("curve", curve.iter().map(|p| frame.at(p.nominal, p.empirical)));
    for p in &curve[1..STEPS] {
        let (x, y) = frame.at(p.nominal, p.empirical);
        s.circle("dot", x, y, 2.6);
    }
    let (x, y) = frame.at(0.03, 0.92);
    s.text("region", x, y, Anchor::Start, "too cautious");
    let (x, y) = frame.at(0.97, 0.06);
    s.text("region", x, y, Anchor::End, "overconfident");
    Some(Figure {
        title: "Calibration".into(),
        svg: s.finish("plot"),
        caption: format!(
            "On the diagonal, intervals keep what they promise; above it they are wider than needed, below it too \
             narrow. The band is the 95 % uncertainty, level by level, from having only {} rows.{}",
            count(n),
            points.remark(false)
        ),
        legend: vec![
            ("k-line", "this model".into()),
            ("k-band2", "uncertainty".into()),
            ("k-ideal", "perfect".into()),
        ],
        wide: false,
    })
}
