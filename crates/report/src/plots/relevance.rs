//! Automatic relevance determination: one bar per feature, as long as the inverse of its lengthscale.

use crate::{
    figure::{Figure, SIZE},
    input::FeatureLengthscale,
    svg::{Anchor, Range, Scale, Surface},
    text::{count, number, shorten},
};

/// More features than this are counted in the caption only.
const MOST_BARS: usize = 30;
/// Longer names are cut.
const LONGEST_NAME: usize = 24;

/// The figure; `None` without a usable lengthscale.
pub(crate) fn relevance(lengthscales: &[FeatureLengthscale]) -> Option<Figure> {
    // 1 / infinity is an honest zero; a lengthscale of zero or NaN is nonsense.
    let mut bars: Vec<(&str, f64, f64)> = lengthscales
        .iter()
        .map(|l| (l.feature.as_str(), l.lengthscale, 1.0 / l.lengthscale))
        .filter(|(_, lengthscale, inverse)| *lengthscale > 0.0 && inverse.is_finite())
        .collect();
    if bars.is_empty() {
        return None;
    }
    let unusable = lengthscales.len() - bars.len();
    bars.sort_by(|a, b| b.2.total_cmp(&a.2));
    let hidden = bars.len().saturating_sub(MOST_BARS);
    bars.truncate(MOST_BARS);
    let step = if bars.len() <= 10 { 27.0 } else { 20.0 };
    let height = (34.0 + step * bars.len() as f64).max(90.0);
    let mut s = Surface::new(SIZE.0, height, "Relevance of each feature, the inverse of its lengthscale");
    let longest = bars.iter().map(|b| b.0.chars().count().min(LONGEST_NAME)).max().unwrap_or(0) as f64;
    let left = (7.6 * longest + 14.0).clamp(40.0, 210.0);
    let high = if bars[0].2 > 0.0 { bars[0].2 } else { 1.0 };
    let scale = Scale { range: Range::new(0.0, high), from: left, to: SIZE.0 - 74.0 };
    s.text("title", left, 16.0, Anchor::Start, "relevance →");
    s.text("title", SIZE.0 - 4.0, 16.0, Anchor::End, "lengthscale");
    for (i, (name, lengthscale, inverse)) in bars.iter().enumerate() {
        let y = 30.0 + step * i as f64;
        let end = scale.map(*inverse);
        s.text("tick", left - 8.0, y + 0.5 * step, Anchor::End, &shorten(name, LONGEST_NAME));
        s.rect("rail", left, y + 0.5 * step - 9.0, scale.to - left, 10.0);
        s.rect("column strong", left, y + 0.5 * step - 9.0, (end - left).max(1.0), 10.0);
        let value = if lengthscale.is_finite() { number(*lengthscale, 3) } else { "∞".to_owned() };
        s.text("tick", SIZE.0 - 4.0, y + 0.5 * step, Anchor::End, &value);
    }
    s.line("axis", left, 26.0, left, height - 4.0);
    let mut caption =
        "The longer the bar, the faster the prediction changes with that feature; a feature without a \
                       bar is ignored. Lengthscales are in standard deviations of the feature."
            .to_owned();
    if hidden > 0 {
        caption += &format!(" {} less relevant features are not shown.", count(hidden));
    }
    if unusable > 0 {
        caption += &format!(" Left out: {} lengthscales that are not positive numbers.", count(unusable));
    }
    Some(Figure {
        title: "Which features matter".into(),
        svg: s.finish("plot"),
        caption,
        legend: Vec::new(),
        wide: false,
    })
}
