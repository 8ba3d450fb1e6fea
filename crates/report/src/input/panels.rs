//! Several small pictures of one thing side by side.

use super::PosteriorPanel;
use serde::{Deserialize, Serialize};

/// Posteriors of functions of one input by several methods, with common axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PosteriorPanels {
    /// Heading.
    pub title: String,
    /// Name of the target, with its unit.
    pub target: String,
    /// One panel per method.
    pub panels: Vec<TitledPosterior>,
    /// How to read it; may be empty.
    pub caption: String,
}

/// One method's posterior.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TitledPosterior {
    /// Name of the method.
    pub title: String,
    /// Its posterior. Samples and marks of absent data are not drawn at this size.
    pub posterior: PosteriorPanel,
}

impl PosteriorPanels {
    /// Panels under a heading, with words on how to read them.
    pub fn new(
        title: impl Into<String>,
        target: impl Into<String>,
        panels: Vec<TitledPosterior>,
        caption: impl Into<String>,
    ) -> Self {
        Self { title: title.into(), target: target.into(), panels, caption: caption.into() }
    }
}

impl TitledPosterior {
    /// A posterior and whose it is.
    pub fn new(title: impl Into<String>, posterior: PosteriorPanel) -> Self {
        Self { title: title.into(), posterior }
    }
}

/// What the values of a map are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaneKind {
    /// The probability of the second of two classes, 0 to 1: one colour per class, none at ½.
    #[default]
    Probability,
    /// Any amount (entropy, variance): none at the lowest value of the panel, full colour at the highest.
    Amount,
    /// The probability of the most probable of several classes, which [`PlanePanel::classes`] names: one colour per class, none where all are equal.
    Classes,
}

/// Values over a grid of the plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanePanel {
    /// What or whose it is.
    pub title: String,
    /// What the values are.
    pub kind: PlaneKind,
    /// One value per grid point, row-major [y × x].
    pub values: Vec<f64>,
    /// For [`PlaneKind::Classes`]: the class of each grid point; empty otherwise.
    pub classes: Vec<usize>,
}

/// Maps over one grid of the plane side by side, with points on top: predictions of two moons, say. Cells without a finite value
/// stay empty and are counted, as are points without finite coordinates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plane {
    /// Heading.
    pub title: String,
    /// Name of the horizontal axis.
    pub x: String,
    /// Name of the vertical axis.
    pub y: String,
    /// Equally spaced abscissae of the grid, ascending.
    pub grid_x: Vec<f64>,
    /// Equally spaced ordinates of the grid, ascending.
    pub grid_y: Vec<f64>,
    /// The maps.
    pub panels: Vec<PlanePanel>,
    /// Abscissae of the points.
    pub points_x: Vec<f64>,
    /// Ordinates of the points.
    pub points_y: Vec<f64>,
    /// Classes of the points: the first is drawn as a dot, all others as diamonds.
    pub points_class: Vec<usize>,
    /// How to read it; may be empty.
    pub caption: String,
}
