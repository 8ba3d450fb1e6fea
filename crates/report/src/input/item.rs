//! Any picture or table, and the kinds that every page uses.

use super::{ImageGallery, LayerGraph, NamedValues, Picture, Plane, PosteriorPanels};
use posterior_metrics::{ConfusionMatrix, ReliabilityBin};
use serde::{Deserialize, Serialize};

/// One picture, table or paragraph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Item {
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// Lines over a common axis.
    Curves(Curves),
    /// Histograms over a common axis.
    Distributions(Distributions),
    /// Predicted probabilities against what happened.
    Reliability(Reliability),
    /// Which classes are taken for which.
    Confusion(ConfusionFigure),
    /// Pictures with predictions.
    Images(ImageGallery),
    /// A picture of pixels.
    Picture(Picture),
    /// Maps over the plane with points.
    Plane(Plane),
    /// Posteriors of functions of one input, side by side.
    Posteriors(PosteriorPanels),
    /// Named numbers with their intervals.
    Named(NamedValues),
    /// The layers of a network.
    Layers(LayerGraph),
}

/// A table of ready texts. Rows shorter than the head are filled with dashes; cells beyond it are left out and counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Table {
    /// Heading.
    pub title: String,
    /// Names of the columns; the first column names the rows.
    pub head: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
    /// What to know about it; may be empty.
    pub caption: String,
}

/// Lines over a common axis: training curves, evidence along a hyperparameter, scores along a shift. At most eight lines are
/// drawn; points that are not finite, or not positive on a logarithmic axis, are left out and counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Curves {
    /// Heading.
    pub title: String,
    /// Name of the horizontal axis, with its unit.
    pub x: String,
    /// Name of the vertical axis, with its unit.
    pub y: String,
    /// The horizontal axis is logarithmic.
    pub x_logarithmic: bool,
    /// The vertical axis is logarithmic.
    pub y_logarithmic: bool,
    /// The vertical axis shows no more than this range; lines are cut at its borders. Absent: all that is drawn.
    pub y_range: Option<(f64, f64)>,
    /// The lines.
    pub lines: Vec<Line>,
    /// How to read it; may be empty.
    pub caption: String,
    /// What the rings are (references of lines). Absent: values from elsewhere.
    pub rings: Option<String>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Abscissae, in ascending order.
    pub x: Vec<f64>,
    /// Ordinates, as many.
    pub y: Vec<f64>,
    /// Half the height of an uncertainty band at each point (one standard error, say); empty for none.
    pub error: Vec<f64>,
    /// Lower and upper border of a band that is not as high above the line as below it, at each point; where there are some, `error` is not looked at.
    pub band: Vec<[f64; 2]>,
    /// The abscissa of its best point, marked by a diamond on the line.
    pub optimum: Option<f64>,
    /// Values from elsewhere (published, or by another program; something else where [`Curves::rings`] says what), shown as rings in the colour of the line: (x, y).
    pub reference: Vec<(f64, f64)>,
}

impl Line {
    /// A line and nothing beside it.
    pub fn new(name: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Self {
        Self { name: name.into(), x, y, ..Self::default() }
    }
}

impl Curves {
    /// Lines on linear axes with these names.
    pub fn new(
        title: impl Into<String>,
        x: impl Into<String>,
        y: impl Into<String>,
        lines: Vec<Line>,
    ) -> Self {
        Self { title: title.into(), x: x.into(), y: y.into(), lines, ..Self::default() }
    }

    /// The same on axes of which each may be logarithmic.
    pub fn logarithmic(self, x_logarithmic: bool, y_logarithmic: bool) -> Self {
        Self { x_logarithmic, y_logarithmic, ..self }
    }

    /// The same with words on how to read it.
    pub fn captioned(self, caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), ..self }
    }

    /// The same with rings that are something else than values from elsewhere.
    pub fn with_rings(self, what: impl Into<String>) -> Self {
        Self { rings: Some(what.into()), ..self }
    }
}

impl From<NamedValues> for Item {
    fn from(values: NamedValues) -> Self {
        Self::Named(values)
    }
}

impl From<Curves> for Item {
    fn from(curves: Curves) -> Self {
        Self::Curves(curves)
    }
}

impl From<PosteriorPanels> for Item {
    fn from(panels: PosteriorPanels) -> Self {
        Self::Posteriors(panels)
    }
}

/// Histograms over a common axis, as shares of their values. At most eight are drawn; values that are not finite are left out
/// and counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Distributions {
    /// Heading.
    pub title: String,
    /// Name of the axis, with its unit.
    pub x: String,
    /// Range of the axis; values beyond it are counted in the outermost bins. Absent: all values.
    pub range: Option<(f64, f64)>,
    /// The distributions.
    pub series: Vec<Distribution>,
    /// How to read it; may be empty.
    pub caption: String,
}

/// Values of one histogram.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Its name.
    pub name: String,
    /// The values, in any order.
    pub values: Vec<f64>,
}

/// Which predicted probabilities a reliability diagram shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReliabilityForm {
    /// The probability of the most probable class of each row; what happened is a hit.
    #[default]
    TopClass,
    /// The probabilities of all classes of each row; what happened is that the class is the label.
    EveryClass,
}

/// Predicted probabilities against the share that happened, of one or several methods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reliability {
    /// Which probabilities.
    pub form: ReliabilityForm,
    /// One line per method.
    pub series: Vec<ReliabilitySeries>,
}

/// The reliability of one method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReliabilitySeries {
    /// Name of the method.
    pub name: String,
    /// Its bins in ascending order.
    pub bins: Vec<ReliabilityBin>,
}

/// Which classes are taken for which; drawn up to 20 classes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfusionFigure {
    /// Names of the classes; missing ones are numbered.
    pub class_names: Vec<String>,
    /// The counts.
    pub matrix: ConfusionMatrix,
}
