//! The posterior of a function of one input: mean, bands, sampled functions, and the points it has seen.

use crate::{
    figure::{Figure, SIZE, WIDE_SIZE},
    input::PosteriorPanel,
    points::{MOST_POINTS, thin},
    svg::{Anchor, Axis, Frame, Range, Surface},
    text::{count, with_unit},
};

/// More samples than this make a thicket.
const MOST_SAMPLES: usize = 12;

/// The figure; `target` is the name of the target with its unit.
pub(crate) fn posterior(panel: &PosteriorPanel, target: &str) -> Figure {
    let target = panel.target.as_deref().unwrap_or(target);
    let narrow = (SIZE.0, 380.0);
    let svg = draw(panel, target, WIDE_SIZE, "plot on-wide") + &draw(panel, target, narrow, "plot on-narrow");
    let train = training(panel);
    let mut caption = "Near the training points the model is sure and its bands are narrow; away from them they open. \
                       Each thin line is one function that the model holds possible, and a new observation falls \
                       between the dotted lines 95 % of the time."
        .to_owned();
    if train.len() > MOST_POINTS {
        caption += &format!(" Shown: {} of {} training points.", count(MOST_POINTS), count(train.len()));
    }
    if panel.samples.len() > MOST_SAMPLES {
        caption += &format!(" Shown: {MOST_SAMPLES} of {} samples.", count(panel.samples.len()));
    }
    let unusable = panel.train_input.len().max(panel.train_target.len()) - train.len();
    if unusable > 0 {
        caption += &format!(" Left out: {} training points without usable numbers.", count(unusable));
    }
    let mut legend = vec![
        ("k-line", "mean".to_owned()),
        ("k-band1", "function, ±1 deviation".to_owned()),
        ("k-band2", "±2 deviations".to_owned()),
        ("k-dotted", "new observation, 95 %".to_owned()),
    ];
    if !panel.samples.is_empty() {
        legend.push(("k-sample", "samples".to_owned()));
    }
    if !panel.true_function.is_empty() {
        legend.push(("k-ideal", "true function".to_owned()));
    }
    if !train.is_empty() {
        legend.push(("k-data", "training points".to_owned()));
    }
    Figure { title: "What the model believes".into(), svg, caption, legend, wide: true }
}

/// Finite training points.
fn training(panel: &PosteriorPanel) -> Vec<(f64, f64)> {
    let pairs = panel.train_input.iter().copied().zip(panel.train_target.iter().copied());
    pairs.filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
}

fn draw(panel: &PosteriorPanel, target: &str, size: (f64, f64), class: &str) -> String {
    let train = training(panel);
    let n = panel.grid.len().min(panel.mean.len());
    let deviation =
        |values: &[f64], i: usize| values.get(i).copied().filter(|s| *s >= 0.0).unwrap_or(f64::NAN);
    // Triples (x, mean - k s, mean + k s) along the grid.
    let borders = |values: &[f64], k: f64| -> Vec<(f64, f64, f64)> {
        (0..n)
            .map(|i| (panel.grid[i], panel.mean[i], k * deviation(values, i)))
            .map(|(x, mean, half)| (x, mean - half, mean + half))
            .collect()
    };
    let latent = &panel.latent_standard_deviation;
    let (one, two) = (borders(latent, 1.0), borders(latent, 2.0));
    let observed = borders(&panel.observed_standard_deviation, super::Z95);

    let label =
        format!("Posterior of {target} along {}, with bands, samples and training points", panel.input);
    let mut s = Surface::new(size.0, size.1, label);
    let y_values = two.iter().chain(&observed).flat_map(|b| [b.1, b.2]);
    let y_values = y_values.chain(panel.mean.iter().copied()).chain(train.iter().map(|t| t.1));
    let y_values = y_values.chain(panel.samples.iter().take(MOST_SAMPLES).flatten().copied());
    let y_range = Range::of(y_values.chain(panel.true_function.iter().copied())).padded(0.03);
    let x_range = Range::of(panel.grid.iter().copied().chain(train.iter().map(|t| t.0)));
    let x_title = with_unit(&panel.input, panel.input_unit.as_deref());
    let ticks = if size.0 > 600.0 { 10 } else { 5 };
    let frame =
        Frame::draw(&mut s, Axis::new(&x_title, x_range).with_ticks(ticks), Axis::new(target, y_range));
    let place = |band: &[(f64, f64, f64)]| -> Vec<(f64, f64, f64)> {
        band.iter().map(|&(x, a, b)| (frame.x.map(x), frame.y.map(a), frame.y.map(b))).collect()
    };

    if let Some((from, to)) = gap(&train, x_range) {
        let (left, right) = (frame.x.map(from), frame.x.map(to));
        s.rect("gap", left, frame.y.to, right - left, frame.y.from - frame.y.to);
        s.text("note", 0.5 * (left + right), frame.y.from - 9.0, Anchor::Middle, "no data here");
    }
    s.band("band two", &place(&two));
    s.band("band one", &place(&one));
    for side in [1, 2] {
        s.curve("dotted", place(&observed).into_iter().map(|(x, a, b)| (x, if side == 1 { a } else { b })));
    }
    let along = |values: &[f64]| -> Vec<(f64, f64)> {
        panel.grid.iter().zip(values).map(|(&x, &y)| frame.at(x, y)).collect()
    };
    for sample in panel.samples.iter().take(MOST_SAMPLES) {
        s.curve("sample", along(sample));
    }
    s.curve("ideal", along(&panel.true_function));
    s.curve("curve", along(&panel.mean));
    for i in thin(train.len()) {
        let (x, y) = frame.at(train[i].0, train[i].1);
        s.circle("data", x, y, if train.len() > 200 { 2.0 } else { 3.2 });
    }
    s.finish(class)
}

/// The one clear gap between training inputs: the widest, if it is at least an eighth of the axis and twice as wide
/// as any other.
fn gap(train: &[(f64, f64)], range: Range) -> Option<(f64, f64)> {
    let mut inputs: Vec<f64> = train.iter().map(|t| t.0).collect();
    inputs.sort_unstable_by(f64::total_cmp);
    let mut gaps: Vec<(f64, f64)> = inputs.windows(2).map(|w| (w[0], w[1])).collect();
    gaps.sort_by(|a, b| (b.1 - b.0).total_cmp(&(a.1 - a.0)));
    let (from, to) = *gaps.first()?;
    let next = gaps.get(1).map_or(0.0, |g| g.1 - g.0);
    (gaps.len() >= 4 && to - from >= range.span() / 8.0 && to - from >= 2.0 * next).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_gap_is_marked() {
        let at = |xs: &[f64]| xs.iter().map(|&x| (x, 0.0)).collect::<Vec<_>>();
        let range = Range::new(0.0, 10.0);
        assert_eq!(gap(&at(&[9.0, 0.0, 1.0, 2.0, 3.0, 8.0, 10.0]), range), Some((3.0, 8.0)));
        assert_eq!(gap(&at(&[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]), range), None);
        assert_eq!(gap(&at(&[0.0, 10.0]), range), None);
        assert_eq!(gap(&[], range), None);
    }
}
