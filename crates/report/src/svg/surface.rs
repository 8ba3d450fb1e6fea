//! The drawing surface: SVG elements as text. Elements with a coordinate that is not finite are not drawn, so that
//! no input can break the picture.

use crate::text::escape;
use std::fmt::Write;

/// Where the given point of a text is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture of `width` by `height` units that scales with the page.
#[derive(Debug)]
pub(crate) struct Surface {
    pub(crate) width: f64,
    pub(crate) height: f64,
    label: String,
    body: String,
}

impl Surface {
    /// An empty picture; `label` describes it to those who cannot see it.
    pub(crate) fn new(width: f64, height: f64, label: impl Into<String>) -> Self {
        Self { width, height, label: label.into(), body: String::new() }
    }

    fn element(&mut self, coordinates: &[f64], text: std::fmt::Arguments<'_>) {
        if coordinates.iter().all(|c| c.is_finite()) {
            // Writing to a String cannot fail.
            let _ = self.body.write_fmt(text);
        }
    }

    /// A straight line.
    pub(crate) fn line(&mut self, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
        self.element(
            &[x1, y1, x2, y2],
            format_args!(
                "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
            ),
        );
    }

    /// A rectangle with its upper left corner at (x, y).
    pub(crate) fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        self.element(
            &[x, y, width, height],
            format_args!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                width.max(0.0),
                height.max(0.0)
            ),
        );
    }

    /// A rectangle whose colour is as strong as `share` of its class's, from 0 (unseen) to 1.
    pub(crate) fn cell(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), share: f64) {
        self.element(
            &[x, y, width, height, share],
            format_args!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 fill-opacity=\"{:.3}\"/>",
                width.max(0.0),
                height.max(0.0),
                share.clamp(0.0, 1.0)
            ),
        );
    }

    /// A picture in a box with its upper left corner at (x, y); `address` is a data URI of [`crate::png`], which needs no
    /// escaping. Stretched to the box or kept in shape.
    pub(crate) fn image(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        stretched: bool,
        address: &str,
    ) {
        let shape = if stretched { "none" } else { "xMidYMid meet" };
        self.element(
            &[x, y, width, height],
            format_args!(
                "<image class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 preserveAspectRatio=\"{shape}\" href=\"{address}\"/>",
                width.max(0.0),
                height.max(0.0)
            ),
        );
    }

    /// A dot.
    pub(crate) fn circle(&mut self, class: &str, x: f64, y: f64, radius: f64) {
        self.element(
            &[x, y],
            format_args!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>"),
        );
    }

    /// A diamond: tells apart from a dot without colour.
    pub(crate) fn diamond(&mut self, class: &str, x: f64, y: f64, r: f64) {
        self.element(
            &[x, y],
            format_args!("<path class=\"{class}\" d=\"M{x:.1} {:.1}l{r} {r}l-{r} {r}l-{r} -{r}z\"/>", y - r),
        );
    }

    /// Horizontal or vertical text; escaped here.
    pub(crate) fn text(&mut self, class: &str, x: f64, y: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        self.element(
            &[x, y],
            format_args!(
                "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
            ),
        );
    }

    /// A line through points; points that are not finite interrupt it.
    pub(crate) fn curve(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let mut path = String::new();
        let mut pen_down = false;
        for (x, y) in points {
            if x.is_finite() && y.is_finite() {
                let _ = write!(path, "{}{x:.1} {y:.1}", if pen_down { 'L' } else { 'M' });
                pen_down = true;
            } else {
                pen_down = false;
            }
        }
        self.path(class, &path);
    }

    /// The area between two borders over common abscissae, given as (x, lower, upper); triples that are not finite
    /// are left out.
    pub(crate) fn band(&mut self, class: &str, borders: &[(f64, f64, f64)]) {
        let finite: Vec<_> =
            borders.iter().filter(|(x, a, b)| x.is_finite() && a.is_finite() && b.is_finite()).collect();
        let mut path = String::new();
        let upper = finite.iter().map(|(x, _, b)| (x, b));
        let lower = finite.iter().rev().map(|(x, a, _)| (x, a));
        for (i, (x, y)) in upper.chain(lower).enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
        }
        if !path.is_empty() {
            path.push('Z');
        }
        self.path(class, &path);
    }

    /// Many separate segments (x1, y1, x2, y2) as one element; segments that are not finite are left out.
    pub(crate) fn segments(&mut self, class: &str, segments: impl IntoIterator<Item = (f64, f64, f64, f64)>) {
        let mut path = String::new();
        for (x1, y1, x2, y2) in segments {
            if [x1, y1, x2, y2].iter().all(|c| c.is_finite()) {
                let _ = write!(path, "M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}");
            }
        }
        self.path(class, &path);
    }

    fn path(&mut self, class: &str, path: &str) {
        if !path.is_empty() {
            let _ = write!(self.body, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }

    /// The finished picture; `class` is set on the `svg` element.
    pub(crate) fn finish(self, class: &str) -> String {
        format!(
            "<svg class=\"{class}\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" \
             aria-label=\"{}\">{}</svg>",
            self.width,
            self.height,
            escape(&self.label),
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_is_not_drawn() {
        let mut s = Surface::new(10.0, 10.0, "a < b");
        s.line("l", f64::NAN, 0.0, 1.0, 1.0);
        s.circle("c", 1.0, f64::INFINITY, 2.0);
        s.rect("r", 0.0, 0.0, 1.0, f64::NAN);
        s.band("b", &[(f64::NAN, 0.0, 1.0)]);
        s.segments("s", [(0.0, 0.0, f64::NAN, 1.0)]);
        s.curve("k", [(0.0, 1.0), (f64::NAN, 2.0), (2.0, 3.0)]);
        let svg = s.finish("plot");
        assert!(svg.contains("d=\"M0.0 1.0M2.0 3.0\"") && svg.contains("a &lt; b"));
        for absent in ["NaN", "inf", "<line", "<circle", "<rect", "class=\"b\"", "class=\"s\""] {
            assert!(!svg.contains(absent), "{absent}: {svg}");
        }
    }

    #[test]
    fn a_band_goes_out_along_the_top_and_back_along_the_bottom() {
        let mut s = Surface::new(10.0, 10.0, "");
        s.band("b", &[(0.0, 1.0, 2.0), (5.0, 3.0, 4.0)]);
        assert!(s.finish("").contains("d=\"M0.0 2.0L5.0 4.0L5.0 3.0L0.0 1.0Z\""));
    }
}
