//! Maps over the plane: probabilities, amounts or decision regions in colour, with the data on top.

use super::hues;
use crate::{
    figure::Figure,
    input::{Plane, PlaneKind, PlanePanel},
    png,
    points::{MOST_POINTS, thin},
    svg::{Axis, Frame, Range, Surface},
    text::{count, number},
};

const SIZE: (f64, f64) = (360.0, 330.0);
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
    (even && grid.len() <= png::LONGEST_SIDE).then(|| Range::new(first - 0.5 * step, last + 0.5 * step))
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
    let (mut svg, mut empty_cells, mut unusable, mut marks_lost) = (String::new(), 0, 0, 0);
    for panel in &input.panels {
        let fits =
            panel.values.len() == cells && (panel.strengths.is_empty() || panel.strengths.len() == cells);
        match extents.filter(|_| fits) {
            Some(extents) => {
                empty_cells += panel.values.iter().filter(|v| !v.is_finite()).count();
                let marked = panel.mark.map(|(x, y)| extents.0.contains(x) && extents.1.contains(y));
                marks_lost += usize::from(marked == Some(false));
                svg += &draw(input, panel, extents, &points);
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
    if !points.is_empty() {
        caption += " Dots are of the first class, diamonds of the others, each in its colour.";
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

fn draw(input: &Plane, panel: &PlanePanel, extents: (Range, Range), points: &[(f64, f64, usize)]) -> String {
    let (nx, ny) = (input.grid_x.len(), input.grid_y.len());
    let mut s =
        Surface::new(SIZE.0, SIZE.1, format!("Map of {} over {} and {}", panel.title, input.x, input.y));
    let y_title =
        if panel.title.is_empty() { input.y.clone() } else { format!("{}: {}", input.y, panel.title) };
    let frame = Frame::draw(
        &mut s,
        Axis::new(&input.x, extents.0).with_ticks(4),
        Axis::new(&y_title, extents.1).with_ticks(4),
    );
    let range = Range::of(panel.values.iter().copied());
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
