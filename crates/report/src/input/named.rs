//! Named numbers with their intervals.

use serde::{Deserialize, Serialize};

/// Named numbers one below the other: what columns are worth, what categories do. At most thirty are drawn; those without a finite value are left out and counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedValues {
    /// Heading.
    pub title: String,
    /// Name of the axis, with its unit.
    pub x: String,
    /// Bars that begin at 0, for shares and amounts; dots on an axis that shows where they are otherwise.
    pub bars: bool,
    /// The numbers, from top to bottom.
    pub rows: Vec<NamedValue>,
    /// How to read it; may be empty.
    pub caption: String,
}

/// A named number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedValue {
    /// Its name.
    pub name: String,
    /// The number.
    pub value: f64,
    /// The ends of its interval; none is drawn unless both are finite.
    pub interval: [f64; 2],
}
