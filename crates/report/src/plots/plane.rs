//! Maps over the plane: probabilities, amounts or decision regions in colour, with the data on top.

use super::hues;
use crate::{
    figure::Figure,
    input::{Image, Plane, PlaneKind, PlanePanel},
    png,
    points::{MOST_POINTS, thin},
    svg::{Anchor, Axis, Frame, Range, Surface},
    text::{count, number},
};

const SIZE: (f64, f64) = (360.0, 330.0);
/// Room for the bar of colours beside a map, with its numbers.
const BAR: f64 = 66.0;
/// Colours of a bar.
const BAR_STEPS: usize = 64;
/// Colours that can be seen on light and dark paper; how strong is their opacity.
const FIRST: [u8; 3] = [0, 124, 196];
const SECOND: [u8; 3] = [214, 92, 20];
const AMOUNT: [u8; 3] = [122, 92, 192];
/// Those of classes, between what their points have on light and on dark paper.
const CLASSES: [[u8; 3]; hues::MOST_LINES] = [
    FIRST,
    SECOND,
    [16, 158, 120],
    [196, 106, 158],
    [196, 152, 36],
    [92, 178, 226],
    [122, 130, 142],
    [150, 124, 212],
];

/// The ascending, equally spaced grid as a range that includes half a step on both sides; `None` if it is not one.
fn extent(grid: &[f64]) -> Option<Range> {
    let (first, last) = (*grid.first()?, *grid.last()?);
    let step = (last - first) / (grid.len() as f64 - 1.0);
    let even = grid.len() >= 2
        && step > 0.0
        && step.is_finite()
        && grid.iter().enumerate().all(|(i, v)| (v - first - i as f64 * step).abs() <= 1e-3 * step);
    (even && grid.len() <= Image::LONGEST_SIDE).then(|| Range::new(first - 0.5 * step, last + 0.5 * step))
}

/// The figure; `None` without panels.
pub(crate) fn plane(input: &Plane) -> Option<Figure> {
    if input.panels.is_empty() {
        return None;
    }
    let mut caption = input.caption.clone();
    let extents = extent(&input.grid_x).zip(extent(&input.grid_y));
    let cells = input.grid_x.len() * input.grid_y.len();
    let points = points(input, extents);
    // All panels have the same width, so that their words have the same size.
    let room = if input.panels.iter().any(|p| p.kind.has_bar()) { BAR } else { 0.0 };
    let (mut svg, mut empty_cells, mut unusable, mut marks_lost) = (String::new(), 0, 0, 0);
    for panel in &input.panels {
        let fits =
            panel.values.len() == cells && (panel.strengths.is_empty() || panel.strengths.len() == cells);
        match extents.filter(|_| fits) {
            Some(extents) => {
                empty_cells += panel.values.iter().filter(|v| !v.is_finite()).count();
                let marked = panel.mark.map(|(x, y)| extents.0.contains(x) && extents.1.contains(y));
                marks_lost += usize::from(marked == Some(false));
                svg += &draw(input, panel, (extents, room), &points);
            }
            None => unusable += 1,
        }
    }
    if let Some(range) = amounts(&input.panels) {
        caption += &format!(
            " Where amounts are shown, the strongest colour of each panel is its largest, up to {}.",
            number(range.high, 3)
        );
    }
    if points.iter().any(|p| p.2 > 0) {
        caption += " Dots are of the first class, diamonds of the others, each in its colour.";
    } else if !points.is_empty() {
        caption += " Dots are rows of the data.";
    }
    if input.panels.iter().any(|p| p.mark.is_some()) {
        caption += " Large diamonds mark places.";
    }
    let given = input.points_x.len().max(input.points_y.len()).max(input.points_class.len());
    if points.len() > MOST_POINTS {
        caption += &format!(" Shown: {} of {} points.", count(MOST_POINTS), count(points.len()));
    }
    for (n, what) in [
        (unusable, "maps whose values do not fit an even grid of at most 512 by 512"),
        (empty_cells, "cells without a finite value"),
        (given - points.len(), "points that are incomplete or off the map"),
        (marks_lost, "marks off the map"),
    ] {
        if n > 0 {
            caption += &format!(" Left out: {} {what}.", count(n));
        }
    }
    Some(Figure {
        title: input.title.clone(),
        svg: format!("<div class=\"panels\">{svg}</div>"),
        caption: caption.trim().to_owned(),
        legend: Vec::new(),
        wide: true,
    })
}

/// The range of all finite values of maps of amounts.
fn amounts(panels: &[PlanePanel]) -> Option<Range> {
    let mut values = panels
        .iter()
        .filter(|p| p.kind == PlaneKind::Amount)
        .flat_map(|p| p.values.iter().copied())
        .filter(|v| v.is_finite())
        .peekable();
    values.peek()?;
    Some(Range::of(values))
}

/// Complete points on the map.
fn points(input: &Plane, extents: Option<(Range, Range)>) -> Vec<(f64, f64, usize)> {
    let Some((x, y)) = extents else { return Vec::new() };
    let rows = input.points_x.iter().zip(&input.points_y).zip(&input.points_class);
    rows.map(|((x, y), class)| (*x, *y, *class)).filter(|p| x.contains(p.0) && y.contains(p.1)).collect()
}

fn draw(
    input: &Plane,
    panel: &PlanePanel,
    (extents, room): ((Range, Range), f64),
    points: &[(f64, f64, usize)],
) -> String {
    let (nx, ny) = (input.grid_x.len(), input.grid_y.len());
    let range = panel.kind.range(&panel.values);
    let mut label = format!("Map of {} over {} and {}", panel.title, input.x, input.y);
    if panel.kind.has_bar() {
        label += &format!(", from {} to {}", number(range.low, 2), number(range.high, 2));
    }
    let mut s = Surface::new(SIZE.0, SIZE.1, label);
    let y_title =
        if panel.title.is_empty() { input.y.clone() } else { format!("{}: {}", input.y, panel.title) };
    let frame = Frame::draw(
        &mut s,
        Axis::new(&input.x, extents.0).with_ticks(4),
        Axis::new(&y_title, extents.1).with_ticks(4),
    );
    s.width += room;
    if panel.kind.has_bar() {
        bar(&mut s, &frame, panel.kind, range);
    }
    // Pictures are written from the top, the grid ascends.
    let pixels: Vec<[u8; 4]> = (0..ny)
        .rev()
        .flat_map(|row| {
            let cell = move |i: usize| {
                let strength = panel.strengths.get(i).copied().unwrap_or(1.0);
                colour(panel.values[i], strength, panel.kind, range)
            };
            (row * nx..(row + 1) * nx).map(cell)
        })
        .collect();
    if let Some(address) = png::transparent_data_uri(nx, ny, &pixels) {
        let (left, top) = (frame.x.from, frame.y.to);
        s.image("map", (left, top), (frame.x.to - left, frame.y.from - top), true, &address);
    }
    for i in thin(points.len()) {
        let (x, y) = frame.at(points[i].0, points[i].1);
        match points[i].2 {
            0 => s.circle(&hues::class("spot", 0), x, y, 2.6),
            class => s.diamond(&hues::class("spot", class), x, y, 3.4),
        }
    }
    if let Some((x, y)) = panel.mark.filter(|m| extents.0.contains(m.0) && extents.1.contains(m.1)) {
        let (x, y) = frame.at(x, y);
        s.diamond(&hues::class("best", 6), x, y, 6.0);
    }
    s.finish("plot")
}

impl PlaneKind {
    /// Whether a bar says which colour is which value.
    fn has_bar(self) -> bool {
        matches!(self, Self::Amount | Self::Signed)
    }

    /// The values that colours stand for: of signed ones also 0.
    fn range(self, values: &[f64]) -> Range {
        let zero = (self == Self::Signed).then_some(0.0);
        Range::of(values.iter().copied().chain(zero))
    }
}

/// The bar of colours to the right of a map, with its lowest and highest value, and 0 between them.
fn bar(s: &mut Surface, frame: &Frame, kind: PlaneKind, range: Range) {
    let (top, bottom) = (frame.y.to, frame.y.from);
    let (left, width) = (SIZE.0 - 14.0, 12.0);
    let value = |step: usize| range.low + range.span() * (step as f64 + 0.5) / BAR_STEPS as f64;
    let pixels: Vec<[u8; 4]> = (0..BAR_STEPS).rev().map(|i| colour(value(i), 1.0, kind, range)).collect();
    if let Some(address) = png::transparent_data_uri(1, BAR_STEPS, &pixels) {
        s.image("map shades", (left, top), (width, bottom - top), true, &address);
    }
    s.line("axis", left, bottom, left + width, bottom);
    s.line("axis", left, top, left + width, top);
    let mut label = |value: f64, y: f64| {
        s.text("tick", left + width + 5.0, y, Anchor::Start, &number(value, 2));
    };
    label(range.high, top + 9.0);
    label(range.low, bottom);
    let zero = bottom - (bottom - top) * (0.0 - range.low) / range.span();
    if kind == PlaneKind::Signed && zero > top + 26.0 && zero < bottom - 16.0 {
        label(0.0, zero + 4.5);
    }
}

/// Colour and opacity of a value; unseen if it is not finite. Decision regions are seen wherever there is one, so that their borders are.
fn colour(value: f64, strength: f64, kind: PlaneKind, range: Range) -> [u8; 4] {
    let (rgb, strength) = match kind {
        _ if !value.is_finite() => return [0; 4],
        PlaneKind::Probability => {
            let sign = (2.0 * value - 1.0).clamp(-1.0, 1.0);
            (if sign < 0.0 { FIRST } else { SECOND }, sign.abs())
        }
        PlaneKind::Amount => {
            let held = value.clamp(range.low, range.high);
            (AMOUNT, (held - range.low) / range.span())
        }
        PlaneKind::Signed => {
            let most = range.low.abs().max(range.high.abs());
            (if value < 0.0 { FIRST } else { SECOND }, (value.abs() / most).min(1.0))
        }
        PlaneKind::Class => {
            // A float-to-integer cast saturates.
            let class = value.max(0.0) as usize % CLASSES.len();
            (CLASSES[class], if strength.is_finite() { 0.15 + 0.85 * strength.clamp(0.0, 1.0) } else { 0.0 })
        }
    };
    // A float-to-integer cast saturates.
    [rgb[0], rgb[1], rgb[2], (215.0 * strength).round() as u8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_the_values() {
        let colour = |value, kind| colour(value, 1.0, kind, Range::new(0.0, 2.0));
        assert_eq!(colour(0.5, PlaneKind::Probability)[3], 0);
        assert_eq!(colour(0.0, PlaneKind::Probability), [FIRST[0], FIRST[1], FIRST[2], 215]);
        assert_eq!(colour(1.0, PlaneKind::Probability)[..3], SECOND);
        assert_eq!(colour(1.0, PlaneKind::Amount)[3], 108);
        assert_eq!(colour(f64::NAN, PlaneKind::Amount), [0; 4]);
        for class in 0..CLASSES.len() {
            assert_eq!(colour(class as f64, PlaneKind::Class)[..3], CLASSES[class]);
        }
        assert_eq!(colour(9.0, PlaneKind::Class), colour(1.0, PlaneKind::Class));
        assert_eq!(colour(-1.0, PlaneKind::Class), colour(0.0, PlaneKind::Class));
    }

    #[test]
    fn signs_have_colours_of_their_own_and_zero_has_none() {
        let range = PlaneKind::Signed.range(&[-1.0, f64::NAN, 4.0]);
        assert_eq!(range, Range::new(-1.0, 4.0));
        // A covariance that is nowhere negative still begins at 0.
        assert_eq!(PlaneKind::Signed.range(&[2.0, 4.0]), Range::new(0.0, 4.0));
        assert_eq!(PlaneKind::Amount.range(&[2.0, 4.0]), Range::new(2.0, 4.0));
        let colour = |value| colour(value, 1.0, PlaneKind::Signed, range);
        assert_eq!(colour(0.0)[3], 0);
        assert_eq!(colour(4.0), [SECOND[0], SECOND[1], SECOND[2], 215]);
        // A quarter of 215, since both signs share one scale.
        assert_eq!(colour(-1.0), [FIRST[0], FIRST[1], FIRST[2], 54]);
        assert_eq!(colour(f64::NAN), [0; 4]);
    }

    #[test]
    fn bars_say_what_colours_mean() {
        let grid = vec![0.0, 1.0];
        let of = |kind, values: Vec<f64>| Plane {
            grid_x: grid.clone(),
            grid_y: grid.clone(),
            points_x: vec![0.5],
            points_y: vec![0.5],
            points_class: vec![0],
            panels: vec![PlanePanel::new("k", kind, values)],
            ..Plane::default()
        };
        let drawn = |kind, values| plane(&of(kind, values)).unwrap();
        let signed = drawn(PlaneKind::Signed, vec![-2.0, 0.0, 1.0, 2.0]);
        // The map and its bar; the least, 0 and the largest.
        let shades = |figure: &Figure| {
            ["map", "map shades"].map(|class| figure.svg.matches(&format!("class=\"{class}\"")).count())
        };
        assert_eq!(shades(&signed), [1, 1]);
        for text in [">\u{2212}2.0<", ">0<", ">2.0<"] {
            assert!(signed.svg.contains(text), "{text} {}", signed.svg);
        }
        assert!(
            signed.svg.contains("from \u{2212}2.0 to 2.0") && signed.caption.contains("rows of the data")
        );
        assert_eq!(shades(&drawn(PlaneKind::Amount, vec![1.0, 2.0, 3.0, 4.0])), [1, 1]);
        assert_eq!(shades(&drawn(PlaneKind::Probability, vec![0.0; 4])), [1, 0]);
    }

    #[test]
    fn decisions_are_as_strong_as_they_are_sure() {
        let panel =
            PlanePanel::decisions("m", &[0.1, 0.2, 0.7, 0.4, 0.3, 0.3, 1.0, 0.0, 0.0, f64::NAN, 0.0, 0.0], 3);
        assert_eq!(panel.values[..3], [2.0, 0.0, 0.0]);
        assert!(panel.values[3].is_nan());
        let shown =
            |i: usize| colour(panel.values[i], panel.strengths[i], PlaneKind::Class, Range::new(0.0, 2.0))[3];
        assert!(shown(2) == 215 && shown(0) > shown(1) && shown(1) > 30 && shown(3) == 0);
        assert!(PlanePanel::decisions("", &[], 0).values.is_empty());
    }

    #[test]
    fn grids_must_be_even() {
        assert_eq!(extent(&[0.0, 1.0, 2.0]), Some(Range::new(-0.5, 2.5)));
        for bad in [&[][..], &[1.0], &[0.0, 1.0, 3.0], &[1.0, 0.0], &[0.0, f64::NAN], &[f64::MIN, f64::MAX]] {
            assert_eq!(extent(bad), None, "{bad:?}");
        }
    }
}
