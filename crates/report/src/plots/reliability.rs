//! Reliability diagram: predicted probabilities against the share that happened.

use super::hues::{self, MOST_LINES};
use crate::{
    figure::{Figure, SIZE},
    input::{Reliability, ReliabilityForm},
    svg::{Anchor, Axis, Frame, Range, Surface},
};
use posterior_metrics::ReliabilityBin;

/// Whether a bin is a point of the unit square.
fn drawable(bin: &ReliabilityBin) -> bool {
    // Rounding may put a mean confidence a hair above 1.
    (0.0..=1.0 + 1e-4).contains(&bin.confidence) && (0.0..=1.0).contains(&bin.frequency) && bin.count > 0
}

/// The figure.
pub(crate) fn reliability(input: &Reliability) -> Figure {
    let mut s =
        Surface::new(SIZE.0, SIZE.1, "Reliability diagram: predicted probability against what happened");
    let unit = Range { low: 0.0, high: 1.0 };
    let (x, y, form) = match input.form {
        ReliabilityForm::TopClass => (
            "confidence: probability of the predicted class",
            "accuracy: share predicted correctly",
            "Each dot is a group of predictions of similar confidence; the larger, the more.",
        ),
        ReliabilityForm::EveryClass => (
            "predicted probability, all classes",
            "share that came true",
            "Each dot is a group of predicted probabilities, of all classes and rows; the larger, the more.",
        ),
    };
    let frame = Frame::draw(&mut s, Axis::new(x, unit).percent(), Axis::new(y, unit).percent());
    s.curve("ideal", [frame.at(0.0, 0.0), frame.at(1.0, 1.0)]);
    let (at, below) = (frame.at(0.03, 0.92), frame.at(0.97, 0.06));
    s.text("region", at.0, at.1, Anchor::Start, "too cautious");
    s.text("region", below.0, below.1, Anchor::End, "overconfident");
    let mut left_out = 0;
    let mut drawn = 0;
    for (i, series) in input.series.iter().take(MOST_LINES).enumerate() {
        let bins: Vec<&ReliabilityBin> = series.bins.iter().filter(|b| drawable(b)).collect();
        left_out += series.bins.len() - bins.len();
        drawn += bins.len();
        let most = bins.iter().map(|b| b.count).max().unwrap_or(1) as f64;
        s.curve(&hues::class("line", i), bins.iter().map(|b| frame.at(b.confidence, b.frequency)));
        for bin in bins {
            let (x, y) = frame.at(bin.confidence, bin.frequency);
            // The area of a dot grows with its count; the smallest can still be seen.
            let radius = 2.2 + 3.4 * (bin.count as f64 / most).sqrt();
            s.circle(&hues::class("spot", i), x, y, (10.0 * radius).round() / 10.0);
        }
    }
    if drawn == 0 {
        s.text("empty", 0.5 * SIZE.0, 0.4 * SIZE.1, Anchor::Middle, "nothing to draw");
    }
    let caption = format!(
        "{form} On the diagonal, probabilities keep what they promise; below it the model is overconfident.{}",
        hues::remark(input.series.len(), left_out, "groups")
    );
    Figure {
        title: "Reliability".into(),
        svg: s.finish("plot"),
        caption,
        legend: hues::legend(input.series.iter().map(|r| r.name.as_str())),
        wide: false,
    }
}
