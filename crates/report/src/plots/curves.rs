//! Lines over a common axis, linear or logarithmic, with bands, best points and values from elsewhere.

use super::hues::{self, MOST_LINES};
use crate::{
    figure::{Figure, SIZE},
    input::{Curves, Line},
    points::{MOST_POINTS, thin},
    svg::{Anchor, Axis, Frame, Range, Surface},
    text::count,
};

/// Lines with at most this many points show them.
const MOST_SPOTS: usize = 40;

/// A line in axis coordinates: logarithms where an axis is logarithmic.
struct Drawable {
    /// Abscissa, ordinate, lower and upper border of the band (NaN without one).
    points: Vec<(f64, f64, f64, f64)>,
    reference: Vec<(f64, f64)>,
    optimum: Option<(f64, f64)>,
    left_out: usize,
}

/// The logarithm of a positive value, or the value itself.
fn coordinate(value: f64, logarithmic: bool) -> f64 {
    if !logarithmic {
        value
    } else if value > 0.0 {
        value.log10()
    } else {
        f64::NAN
    }
}

impl Drawable {
    fn new(line: &Line, x_logarithmic: bool, y_logarithmic: bool) -> Self {
        let place = |x: f64, y: f64| (coordinate(x, x_logarithmic), coordinate(y, y_logarithmic));
        let finite = |(x, y): (f64, f64)| x.is_finite() && y.is_finite();
        let points: Vec<_> = line
            .x
            .iter()
            .zip(&line.y)
            .enumerate()
            .filter(|(_, (x, y))| finite(place(**x, **y)))
            .map(|(i, (x, y))| {
                let at = place(*x, *y);
                let [low, high] = line.band.get(i).copied().unwrap_or_else(|| {
                    let error = line.error.get(i).copied().filter(|e| *e >= 0.0).unwrap_or(f64::NAN);
                    [y - error, y + error]
                });
                (at.0, at.1, coordinate(low, y_logarithmic), coordinate(high, y_logarithmic))
            })
            .collect();
        let reference: Vec<_> =
            line.reference.iter().map(|(x, y)| place(*x, *y)).filter(|r| finite(*r)).collect();
        let optimum = line.optimum.and_then(|x| on_line(&points, coordinate(x, x_logarithmic)));
        let missing_optimum = usize::from(line.optimum.is_some() && optimum.is_none());
        let left_out = line.x.len().max(line.y.len()) - points.len() + line.reference.len() - reference.len();
        Self { points, reference, optimum, left_out: left_out + missing_optimum }
    }
}

/// The point of a line at an abscissa, between its neighbours; `None` off the line.
fn on_line(points: &[(f64, f64, f64, f64)], x: f64) -> Option<(f64, f64)> {
    if let Some(p) = points.iter().find(|p| p.0 == x) {
        return Some((x, p.1));
    }
    points.windows(2).find(|w| w[0].0 < x && x < w[1].0).map(|w| {
        let share = (x - w[0].0) / (w[1].0 - w[0].0);
        (x, w[0].1 + share * (w[1].1 - w[0].1))
    })
}

/// The parts of a line whose ordinates lie in a range, with NaN between parts.
fn cut(points: &[(f64, f64)], range: Range) -> Vec<(f64, f64)> {
    const BREAK: (f64, f64) = (f64::NAN, f64::NAN);
    let mut parts: Vec<(f64, f64)> = Vec::new();
    for w in points.windows(2) {
        let (a, b) = (w[0], w[1]);
        let (below, above) = (a.1.min(b.1), a.1.max(b.1));
        if above < range.low || below > range.high {
            parts.push(BREAK);
            continue;
        }
        // A step from a towards b up to the border that is in the way.
        let held = |from: (f64, f64), to: (f64, f64)| {
            let y = from.1.clamp(range.low, range.high);
            if y == from.1 { from } else { (from.0 + (y - from.1) / (to.1 - from.1) * (to.0 - from.0), y) }
        };
        let (start, end) = (held(a, b), held(b, a));
        if parts.last() != Some(&start) {
            parts.push(BREAK);
            parts.push(start);
        }
        parts.push(end);
    }
    parts
}

/// The figure.
pub(crate) fn curves(input: &Curves) -> Figure {
    let lines: Vec<Drawable> = input
        .lines
        .iter()
        .take(MOST_LINES)
        .map(|line| Drawable::new(line, input.x_logarithmic, input.y_logarithmic))
        .collect();
    let x_range = Range::of(lines.iter().flat_map(|l| {
        l.points.iter().map(|p| p.0).chain(l.reference.iter().map(|r| r.0)).collect::<Vec<_>>()
    }));
    let seen = lines.iter().flat_map(|l| {
        let band = l.points.iter().flat_map(|p| [p.1, p.2, p.3]);
        band.chain(l.reference.iter().map(|r| r.1)).collect::<Vec<_>>()
    });
    let wanted = input
        .y_range
        .map(|(low, high)| (coordinate(low, input.y_logarithmic), coordinate(high, input.y_logarithmic)));
    let y_range = match wanted {
        Some((low, high)) if low.is_finite() && high.is_finite() && low < high => Range::new(low, high),
        _ => Range::of(seen).padded(0.04),
    };
    let mut s = Surface::new(SIZE.0, SIZE.1, format!("{} along {}", input.y, input.x));
    let frame = Frame::draw(
        &mut s,
        Axis::new(&input.x, x_range).logarithmic(input.x_logarithmic),
        Axis::new(&input.y, y_range).logarithmic(input.y_logarithmic),
    );
    for (i, line) in lines.iter().enumerate() {
        let kept: Vec<_> = thin(line.points.len()).map(|k| line.points[k]).collect();
        let band: Vec<_> =
            kept.iter().map(|p| (frame.x.map(p.0), frame.y.map(p.2), frame.y.map(p.3))).collect();
        s.band(&hues::class("haze", i), &band);
        let path: Vec<_> = kept.iter().map(|p| (p.0, p.1)).collect();
        s.curve(&hues::class("line", i), cut(&path, y_range).into_iter().map(|(x, y)| frame.at(x, y)));
        let inside = |y: f64| y_range.contains(y);
        if path.len() <= MOST_SPOTS {
            for (x, y) in path.iter().filter(|p| inside(p.1)).map(|p| frame.at(p.0, p.1)) {
                s.circle(&hues::class("spot", i), x, y, 3.2);
            }
        }
        for (x, y) in line.reference.iter().filter(|r| inside(r.1)).map(|r| frame.at(r.0, r.1)) {
            s.circle(&hues::class("ring", i), x, y, 4.6);
        }
        if let Some((x, y)) = line.optimum.filter(|o| inside(o.1)).map(|o| frame.at(o.0, o.1)) {
            s.diamond(&hues::class("best", i), x, y, 6.0);
        }
    }
    if lines.iter().all(|l| l.points.is_empty() && l.reference.is_empty()) {
        s.text("empty", 0.5 * SIZE.0, 0.5 * SIZE.1, Anchor::Middle, "nothing to draw");
    }
    let mut caption = input.caption.clone();
    if lines.iter().any(|l| l.optimum.is_some()) {
        caption += " Diamonds mark the best points.";
    }
    if lines.iter().any(|l| !l.reference.is_empty()) {
        let what = input.rings.as_deref().unwrap_or("values from elsewhere");
        caption += &format!(" Rings are {what}.");
    }
    let longest = lines.iter().map(|l| l.points.len()).max().unwrap_or(0);
    if longest > MOST_POINTS {
        caption += &format!(" Shown: {} of up to {} points per line.", count(MOST_POINTS), count(longest));
    }
    caption += &hues::remark(input.lines.len(), lines.iter().map(|l| l.left_out).sum(), "points");
    Figure {
        title: input.title.clone(),
        svg: s.finish("plot"),
        caption: caption.trim().to_owned(),
        legend: hues::legend(input.lines.iter().map(|l| l.name.as_str())),
        wide: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_the_border_and_continue_behind_it() {
        let range = Range::new(0.0, 1.0);
        let parts = cut(&[(0.0, 0.5), (1.0, 1.5), (2.0, 0.5), (3.0, -5.0), (4.0, -6.0)], range);
        let shown: Vec<_> = parts.iter().filter(|p| p.0.is_finite()).copied().collect();
        assert_eq!(shown[..4], [(0.0, 0.5), (0.5, 1.0), (1.5, 1.0), (2.0, 0.5)]);
        assert!((shown[4].0 - (2.0 + 0.5 / 5.5)).abs() < 1e-12 && shown[4].1 == 0.0 && shown.len() == 5);
        assert!(cut(&[(0.0, 2.0), (1.0, 3.0)], range).iter().all(|p| p.0.is_nan()));
        assert!(cut(&[], range).is_empty());
    }

    #[test]
    fn bands_may_be_higher_on_one_side() {
        let line = Line { error: vec![1.0; 3], ..Line::new("", vec![1.0, 2.0, 3.0], vec![10.0; 3]) };
        let of = |line: &Line| Drawable::new(line, false, true).points;
        assert_eq!(of(&line)[1], (2.0, 1.0, 9f64.log10(), 11f64.log10()));
        let line = Line { band: vec![[1.0, 100.0], [-1.0, 1000.0]], ..line };
        assert_eq!(of(&line)[0], (1.0, 1.0, 0.0, 2.0));
        // Below zero there is no logarithm, and no band; a border that was not given is that of the error.
        assert!(of(&line)[1].2.is_nan() && of(&line)[1].3 == 3.0);
        assert_eq!(of(&line)[2].3, 11f64.log10());
    }

    #[test]
    fn what_cannot_be_drawn_is_counted() {
        let line = Line {
            x: vec![1.0, 0.0, 10.0, f64::NAN, 100.0, 1000.0],
            y: vec![1.0, 2.0, 3.0, 4.0, 5.0],
            optimum: Some(1e9),
            reference: vec![(1.0, f64::INFINITY), (1.0, 2.0)],
            ..Line::default()
        };
        let drawable = Drawable::new(&line, true, false);
        // The zero, the NaN, the ordinate that is missing, the optimum off the line, the infinite reference.
        assert_eq!((drawable.points.len(), drawable.left_out), (3, 5));
        let best =
            Drawable::new(&Line { optimum: Some(10f64.powf(1.5)), ..line }, true, false).optimum.unwrap();
        assert!((best.0 - 1.5).abs() < 1e-12 && (best.1 - 4.0).abs() < 1e-12);
    }
}
