//! What may be chosen: a box of named axes.

use crate::DecisionError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How an axis is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Differences count.
    #[default]
    Linear,
    /// Ratios count: both ends are positive.
    Log,
    /// Whole numbers.
    Integer,
}

/// One number to choose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// The least value.
    pub lower: f64,
    /// The largest value.
    pub upper: f64,
    /// How it is measured.
    pub scale: Scale,
}

impl Axis {
    /// Checks the ends.
    ///
    /// # Errors
    /// [`DecisionError::Space`].
    pub fn new(name: impl Into<String>, lower: f64, upper: f64, scale: Scale) -> Result<Self, DecisionError> {
        let axis = Self { name: name.into(), lower, upper, scale };
        axis.check()?;
        Ok(axis)
    }

    pub(crate) fn check(&self) -> Result<(), DecisionError> {
        let Self { name, lower, upper, scale } = self;
        let refuse = |problem: &str| Err(DecisionError::Space(format!("axis `{name}`: {problem}")));
        // Columns of tables have spaces in their names; the other signs separate names from values where points are written as text.
        if name.is_empty()
            || name.trim() != name
            || name.contains(|c: char| c.is_control() || ",:={}".contains(c))
        {
            return refuse("a name has no , : = { } in it, and no space before or behind; rename the column");
        }
        if !(lower.is_finite() && upper.is_finite() && lower < upper) {
            return refuse(&format!("{lower}..{upper} is no range; write the smaller number first"));
        }
        match scale {
            Scale::Log if *lower <= 0.0 => refuse("a log axis begins above 0"),
            Scale::Integer if lower.fract() != 0.0 || upper.fract() != 0.0 => {
                refuse("an integer axis begins and ends with whole numbers")
            }
            _ => Ok(()),
        }
    }

    /// From the axis to [0, 1].
    pub fn to_unit(&self, value: f64) -> f64 {
        let (a, b, v) = match self.scale {
            Scale::Linear => (self.lower, self.upper, value),
            Scale::Log => (self.lower.ln(), self.upper.ln(), value.ln()),
            // Whole numbers stand in the middle of equal cells.
            Scale::Integer => (self.lower - 0.5, self.upper + 0.5, value),
        };
        ((v - a) / (b - a)).clamp(0.0, 1.0)
    }

    /// From [0, 1] to the axis.
    pub fn from_unit(&self, unit: f64) -> f64 {
        let u = unit.clamp(0.0, 1.0);
        let between = |a: f64, b: f64| a + u * (b - a);
        match self.scale {
            Scale::Linear => between(self.lower, self.upper).clamp(self.lower, self.upper),
            Scale::Log => between(self.lower.ln(), self.upper.ln()).exp().clamp(self.lower, self.upper),
            Scale::Integer => {
                between(self.lower - 0.5, self.upper + 0.5).round().clamp(self.lower, self.upper)
            }
        }
    }

    /// Whether a value lies on the axis.
    pub fn contains(&self, value: f64) -> bool {
        (self.lower..=self.upper).contains(&value) && (self.scale != Scale::Integer || value.fract() == 0.0)
    }
}

/// `name:lower..upper`, with `:log` or `:integer` behind it.
impl FromStr for Axis {
    type Err = DecisionError;
    fn from_str(text: &str) -> Result<Self, DecisionError> {
        let problem = || {
            DecisionError::Space(format!(
                "`{text}` is no axis; write name:lower..upper, name:lower..upper:log or name:lower..upper:integer"
            ))
        };
        let mut parts = text.trim().split(':');
        let (Some(name), Some(range)) = (parts.next(), parts.next()) else { return Err(problem()) };
        let scale = match parts.next() {
            None | Some("linear") => Scale::Linear,
            Some("log") => Scale::Log,
            Some("integer") => Scale::Integer,
            Some(_) => return Err(problem()),
        };
        let (Some((lower, upper)), None) = (range.split_once(".."), parts.next()) else {
            return Err(problem());
        };
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| problem());
        Self::new(name.trim(), number(lower)?, number(upper)?, scale)
    }
}

/// A box of axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Space {
    /// The axes.
    pub axes: Vec<Axis>,
}

impl Space {
    /// Checks that there is an axis and that no two share a name.
    ///
    /// # Errors
    /// [`DecisionError::Space`].
    pub fn new(axes: Vec<Axis>) -> Result<Self, DecisionError> {
        let space = Self { axes };
        space.check()?;
        Ok(space)
    }

    pub(crate) fn check(&self) -> Result<(), DecisionError> {
        if self.axes.is_empty() {
            return Err(DecisionError::Space("there is nothing to choose: name at least one axis".into()));
        }
        for (i, axis) in self.axes.iter().enumerate() {
            axis.check()?;
            if self.axes[..i].iter().any(|other| other.name == axis.name) {
                return Err(DecisionError::Space(format!("two axes are called `{}`", axis.name)));
            }
        }
        Ok(())
    }

    /// Number of axes.
    pub fn dimension(&self) -> usize {
        self.axes.len()
    }

    /// A point of the cube on the axes.
    pub fn from_unit(&self, unit: &[f64]) -> Vec<f64> {
        self.axes.iter().zip(unit).map(|(axis, &u)| axis.from_unit(u)).collect()
    }

    /// A point on the axes in the cube.
    pub fn to_unit(&self, point: &[f64]) -> Vec<f64> {
        self.axes.iter().zip(point).map(|(axis, &v)| axis.to_unit(v)).collect()
    }
}

/// Axes with commas between them.
impl FromStr for Space {
    type Err = DecisionError;
    fn from_str(text: &str) -> Result<Self, DecisionError> {
        Self::new(text.split(',').map(str::parse).collect::<Result<_, _>>()?)
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, axis) in self.axes.iter().enumerate() {
            let scale = match axis.scale {
                Scale::Linear => "",
                Scale::Log => ":log",
                Scale::Integer => ":integer",
            };
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{}:{}..{}{scale}", axis.name, axis.lower, axis.upper)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_there_and_back() {
        let space: Space = "x:-2..3,rate:1e-5..0.1:log,layers:1..4:integer".parse().unwrap();
        assert_eq!(space.to_string().parse::<Space>().unwrap(), space);
        let point = [0.5, 1e-3, 3.0];
        let back = space.from_unit(&space.to_unit(&point));
        assert!(point.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-12 * a.abs().max(1.0)), "{back:?}");
        assert_eq!(space.to_unit(&[-2.0, 0.1, 1.0]), [0.0, 1.0, 0.125]);
        assert_eq!(space.from_unit(&[2.0, -1.0, 0.249]), [3.0, 1e-5, 1.0]);
        assert!(space.axes[2].contains(2.0) && !space.axes[2].contains(2.5) && !space.axes[0].contains(4.0));
    }

    #[test]
    fn names_may_have_spaces_within() {
        let space: Space = "max depth:1..4:integer, learning rate :0..1".parse().unwrap();
        assert_eq!(space.axes[0].name, "max depth");
        assert_eq!(space.axes[1].name, "learning rate");
        assert!(Axis::new(" x", 0.0, 1.0, Scale::Linear).is_err());
        assert!(Axis::new("", 0.0, 1.0, Scale::Linear).is_err());
    }

    #[test]
    fn what_is_no_space_is_explained() {
        for (text, expected) in [
            ("", "is no axis"),
            ("x", "is no axis"),
            ("x:1", "is no axis"),
            ("x:a..b", "is no axis"),
            ("x:0..1:cubic", "is no axis"),
            ("x:0..1:log:log", "is no axis"),
            ("x:1..0", "smaller number first"),
            ("x:0..NaN", "is no range"),
            ("x:0..1:log", "begins above 0"),
            ("x:0..1.5:integer", "whole numbers"),
            ("a{b:0..1", "a name has no"),
            ("x:0..1,x:0..2", "two axes"),
        ] {
            let error = text.parse::<Space>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
