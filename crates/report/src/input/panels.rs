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
    /// Any amount (entropy, variance, a log evidence): none at the lowest value of the panel, full colour at the highest, with a bar that says which is which.
    Amount,
    /// Values of either sign (a covariance, a mean): none at 0, one colour for each sign, full at the largest magnitude of the panel, with a bar.
    Signed,
    /// The number of one of several classes, 0, 1, ...: decision regions, in the colours of the classes' points. Colours repeat after eight.
    Class,
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
    /// Of maps of classes: how strongly each value is shown, 0 to 1 (how much more probable than a guess the class is, say), one for each value; empty: all fully.
    pub strengths: Vec<f64>,
    /// A place that is marked in this map: where its maximum is, say.
    pub mark: Option<(f64, f64)>,
}

impl PlanePanel {
    /// Values of a kind, and whose they are.
    pub fn new(title: impl Into<String>, kind: PlaneKind, values: Vec<f64>) -> Self {
        Self { title: title.into(), kind, values, ..Self::default() }
    }

    /// Decision regions: the most probable class at each grid point, as strong as it is more probable than a guess among the classes. `probabilities` holds those of all classes, grid point by grid point.
    pub fn decisions(title: impl Into<String>, probabilities: &[f64], classes: usize) -> Self {
        let guess = 1.0 / classes.max(2) as f64;
        let best = |row: &[f64]| {
            let found = (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap_or(0);
            let finite = row.iter().all(|p| p.is_finite());
            (
                if finite { found as f64 } else { f64::NAN },
                ((row[found] - guess) / (1.0 - guess)).clamp(0.0, 1.0),
            )
        };
        let (values, strengths) = probabilities.chunks_exact(classes.max(1)).map(best).unzip();
        Self { strengths, ..Self::new(title, PlaneKind::Class, values) }
    }

    /// The same with a marked place.
    pub fn marked(self, x: f64, y: f64) -> Self {
        Self { mark: Some((x, y)), ..self }
    }
}

/// Maps over one grid of the plane side by side, with points on top: predictions of two moons, regions of several classes, an evidence over two hyperparameters, a kernel over pairs of places, say. Cells without a finite value
/// stay empty and are counted, as are points and marks that are not on the map.
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
    /// Classes of the points: each in its colour, the first as dots, all others as diamonds; 0 of points without classes.
    pub points_class: Vec<usize>,
    /// How to read it; may be empty.
    pub caption: String,
}
