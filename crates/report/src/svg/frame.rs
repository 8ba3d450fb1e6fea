//! The frame of a plot: two scales with grid lines, tick labels and axis titles. The title of the vertical axis
//! stands upright above it, where it can be read without turning the head.

use super::{
    Anchor, Range, Scale, Surface,
    ticks::{logarithmic_ticks, ticks},
};
use crate::text::shorten;

/// One axis: what it shows and over which range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis<'a> {
    pub(crate) title: &'a str,
    pub(crate) range: Range,
    /// About how many ticks.
    pub(crate) ticks: usize,
    /// Values are fractions, shown as percentages.
    pub(crate) percent: bool,
    /// The range is in powers of ten.
    pub(crate) logarithmic: bool,
    /// Ticks are labelled. A density needs no numbers to be read.
    pub(crate) labelled: bool,
}

impl<'a> Axis<'a> {
    /// An axis with about five labelled ticks.
    pub(crate) fn new(title: &'a str, range: Range) -> Self {
        Self { title, range, ticks: 5, percent: false, logarithmic: false, labelled: true }
    }

    /// Values are fractions of 1.
    pub(crate) fn percent(self) -> Self {
        Self { percent: true, ..self }
    }

    /// The range is in powers of ten, if so; labels are not.
    pub(crate) fn logarithmic(self, logarithmic: bool) -> Self {
        Self { logarithmic, ..self }
    }

    /// About so many ticks.
    pub(crate) fn with_ticks(self, ticks: usize) -> Self {
        Self { ticks, ..self }
    }

    /// Without numbers.
    pub(crate) fn unlabelled(self) -> Self {
        Self { labelled: false, ..self }
    }

    fn tick_labels(&self) -> Vec<(f64, String)> {
        if !self.labelled {
            return Vec::new();
        }
        if self.logarithmic {
            return logarithmic_ticks(self.range, self.ticks);
        }
        if !self.percent {
            return ticks(self.range, self.ticks);
        }
        let hundred = Range { low: 100.0 * self.range.low, high: 100.0 * self.range.high };
        ticks(hundred, self.ticks).into_iter().map(|(v, label)| (v / 100.0, format!("{label} %"))).collect()
    }
}

/// The scales of a plot, after its frame has been drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

/// Width of a character of tick labels, in page units (tabular digits at 13 units).
const CHARACTER: f64 = 7.4;

impl Frame {
    /// Draws the frame on the surface and returns its scales.
    pub(crate) fn draw(surface: &mut Surface, x: Axis<'_>, y: Axis<'_>) -> Self {
        let (x_ticks, y_ticks) = (x.tick_labels(), y.tick_labels());
        let longest = y_ticks.iter().map(|t| t.1.chars().count()).max().unwrap_or(0) as f64;
        let left = if y.labelled { (14.0 + CHARACTER * longest).clamp(34.0, 150.0) } else { 12.0 };
        let (top, right, bottom) = (30.0, surface.width - 22.0, surface.height - 44.0);
        let frame = Self {
            x: Scale { range: x.range, from: left, to: right },
            y: Scale { range: y.range, from: bottom, to: top },
        };
        for (value, label) in &y_ticks {
            let at = frame.y.map(*value);
            surface.line("grid", left, at, right, at);
            surface.text("tick", left - 8.0, at + 4.5, Anchor::End, label);
        }
        // Labels that would run into each other are thinned to every second, third, ...
        let widest = x_ticks.iter().map(|t| t.1.chars().count()).max().unwrap_or(1) as f64 * CHARACTER + 12.0;
        let room = (right - left) / x_ticks.len().max(1) as f64;
        let every = (widest / room.max(1.0)).ceil().max(1.0) as usize;
        for (i, (value, label)) in x_ticks.iter().enumerate() {
            let at = frame.x.map(*value);
            surface.line("grid", at, top, at, bottom);
            if i % every == 0 {
                surface.text("tick", at, bottom + 18.0, Anchor::Middle, label);
            }
        }
        surface.line("axis", left, bottom, right, bottom);
        let fitting = (surface.width / CHARACTER) as usize;
        surface.text(
            "title",
            right,
            surface.height - 7.0,
            Anchor::End,
            &shorten(&format!("{} →", x.title), fitting),
        );
        surface.text("title", 2.0, 16.0, Anchor::Start, &shorten(&format!("↑ {}", y.title), fitting));
        frame
    }

    /// Page position of a data point.
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.map(x), self.y.map(y))
    }
}
