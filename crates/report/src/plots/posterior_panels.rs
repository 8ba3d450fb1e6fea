//! Posteriors of functions of one input by several methods, with common axes: where their error bars differ can be seen at once.

use super::Z95;
use crate::{
    figure::Figure,
    input::{PosteriorPanel, PosteriorPanels},
    points::{MOST_POINTS, thin},
    svg::{Axis, Frame, Range, Surface},
    text::{count, with_unit},
};

const SIZE: (f64, f64) = (330.0, 250.0);

/// The figure; `None` without panels.
pub(crate) fn posterior_panels(input: &PosteriorPanels) -> Option<Figure> {
    if input.panels.is_empty() {
        return None;
    }
    let panels = || input.panels.iter().map(|p| &p.posterior);
    let x_range =
        Range::of(panels().flat_map(|p| p.grid.iter().chain(&p.train_input).copied().collect::<Vec<_>>()));
    // Means and data fix the range; bands may stretch it by its span on each side, so that one wild method does not flatten
    // the others.
    let centres =
        Range::of(panels().flat_map(|p| p.mean.iter().chain(&p.train_target).copied().collect::<Vec<_>>()));
    let (least, most) = (centres.low - centres.span(), centres.high + centres.span());
    let edges = panels().flat_map(|p| borders(p, &p.observed_standard_deviation, Z95));
    let edges = edges.chain(panels().flat_map(|p| borders(p, &p.latent_standard_deviation, 2.0)));
    let edges = edges.flat_map(|b| [b.1, b.2]).filter(|v| v.is_finite()).map(|v| v.clamp(least, most));
    let y_range = Range::of(edges.chain([centres.low, centres.high])).padded(0.03);
    let mut svg = String::new();
    let (mut unusable, mut thinned) = (0, 0);
    for panel in &input.panels {
        let train = training(&panel.posterior);
        unusable += panel.posterior.train_input.len().max(panel.posterior.train_target.len()) - train.len();
        thinned = thinned.max(train.len());
        svg += &draw(&panel.title, &input.target, &panel.posterior, &train, x_range, y_range);
    }
    let mut caption = input.caption.clone();
    caption += " All panels have the same axes; what lies beyond them is drawn at their border.";
    if thinned > MOST_POINTS {
        caption += &format!(" Shown: {} of {} training points.", count(MOST_POINTS), count(thinned));
    }
    if unusable > 0 {
        caption += &format!(" Left out: {} training points without usable numbers.", count(unusable));
    }
    let mut legend = vec![("k-line", "mean".to_owned()), ("k-band1", "function, ±2 deviations".to_owned())];
    if panels().any(|p| !p.observed_standard_deviation.is_empty()) {
        legend.push(("k-dotted", "new observation, 95 %".to_owned()));
    }
    if panels().any(|p| !p.true_function.is_empty()) {
        legend.push(("k-ideal", "true function".to_owned()));
    }
    if thinned > 0 {
        legend.push(("k-data", "training points".to_owned()));
    }
    Some(Figure {
        title: input.title.clone(),
        svg: format!("<div class=\"panels\">{svg}</div>"),
        caption: caption.trim().to_owned(),
        legend,
        wide: true,
    })
}

/// Finite training points.
fn training(panel: &PosteriorPanel) -> Vec<(f64, f64)> {
    let pairs = panel.train_input.iter().copied().zip(panel.train_target.iter().copied());
    pairs.filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
}

/// Triples (x, mean - k s, mean + k s) along the grid; NaN where there is no deviation.
fn borders(panel: &PosteriorPanel, deviations: &[f64], k: f64) -> Vec<(f64, f64, f64)> {
    let rows = panel.grid.iter().zip(&panel.mean).enumerate();
    rows.map(|(i, (x, mean))| {
        let half = k * deviations.get(i).copied().filter(|s| *s >= 0.0).unwrap_or(f64::NAN);
        (*x, mean - half, mean + half)
    })
    .collect()
}

fn draw(
    title: &str,
    target: &str,
    panel: &PosteriorPanel,
    train: &[(f64, f64)],
    x_range: Range,
    y_range: Range,
) -> String {
    let mut s =
        Surface::new(SIZE.0, SIZE.1, format!("Posterior of {target} along {} by {title}", panel.input));
    let x_title = with_unit(&panel.input, panel.input_unit.as_deref());
    let y_title = if title.is_empty() { target.to_owned() } else { format!("{target}: {title}") };
    let frame = Frame::draw(
        &mut s,
        Axis::new(&x_title, x_range).with_ticks(4),
        Axis::new(&y_title, y_range).with_ticks(4),
    );
    let place = |band: Vec<(f64, f64, f64)>| -> Vec<(f64, f64, f64)> {
        band.into_iter().map(|(x, a, b)| (frame.x.map(x), frame.y.map(a), frame.y.map(b))).collect()
    };
    s.band("band one", &place(borders(panel, &panel.latent_standard_deviation, 2.0)));
    let observed = place(borders(panel, &panel.observed_standard_deviation, Z95));
    s.curve("dotted", observed.iter().map(|b| (b.0, b.1)));
    s.curve("dotted", observed.iter().map(|b| (b.0, b.2)));
    let along = |values: &[f64]| -> Vec<(f64, f64)> {
        panel.grid.iter().zip(values).map(|(&x, &y)| frame.at(x, y)).collect()
    };
    s.curve("ideal", along(&panel.true_function));
    s.curve("curve", along(&panel.mean));
    for i in thin(train.len()) {
        let (x, y) = frame.at(train[i].0, train[i].1);
        s.circle("data", x, y, if train.len() > 100 { 1.6 } else { 2.4 });
    }
    s.finish("plot")
}
