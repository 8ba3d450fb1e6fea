//! What a report is made of. Everything is plain data that can be written to and read from JSON; nothing is required
//! to be consistent: what cannot be drawn is left out and said.
//!
//! | file | what |
//! |---|---|
//! | this | the report, its sections and facts |
//! | `regression`, `classification` | a model on one dataset |
//! | `item` | any picture or table, tables, curves, distributions, reliability |
//! | `layers` | the layers of a network |
//! | `named` | named numbers with their intervals |
//! | `panels` | several posteriors side by side, maps over the plane |
//! | `images` | pictures with predictions |

mod classification;
mod images;
mod item;
mod layers;
mod named;
mod panels;
mod regression;

pub use classification::{
    ClassificationBaseline, ClassificationReport, JointScores, MethodRow, OutOfDistribution,
    OutOfDistributionMethod, ShiftCurve, ShiftCurves,
};
pub use images::{Image, ImageGallery, ImageLayout, ImagePrediction, Picture};
pub use item::{
    ConfusionFigure, Curves, Distribution, Distributions, Item, Line, Reliability, ReliabilityForm,
    ReliabilitySeries, Table,
};
pub use layers::{LayerBox, LayerGraph};
pub use named::{NamedValue, NamedValues};
pub use panels::{Plane, PlaneKind, PlanePanel, PosteriorPanels, TitledPosterior};
use posterior_notes::Note;
pub use regression::{
    Baseline, FeatureLengthscale, Hyperparameter, PosteriorPanel, PredictedDistribution, Predictions,
    RegressionReport, ScoredRows,
};
use serde::{Deserialize, Serialize};

/// A whole report: a title and sections, one per model and dataset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Heading of the page.
    pub title: String,
    /// A sentence below it; may be empty.
    pub subtitle: String,
    /// The sections in order.
    pub sections: Vec<Section>,
}

impl Report {
    /// A report with the given heading, sentence below it (may be empty) and sections.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>, sections: Vec<Section>) -> Self {
        Self { title: title.into(), subtitle: subtitle.into(), sections }
    }

    /// The report as one self-contained HTML document. Never fails; cost linear in the number of points, of which at
    /// most 2,000 are drawn per picture.
    pub fn to_html(&self) -> String {
        crate::page::render(self)
    }
}

/// One part of a report. Further kinds (tomography) will join.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Section {
    /// A regression model on one dataset.
    Regression(Box<RegressionReport>),
    /// A classification model on one dataset.
    Classification(Box<ClassificationReport>),
    /// Any pictures and tables, in order.
    Figures(Box<FiguresReport>),
}

impl From<RegressionReport> for Section {
    fn from(report: RegressionReport) -> Self {
        Self::Regression(Box::new(report))
    }
}

impl From<ClassificationReport> for Section {
    fn from(report: ClassificationReport) -> Self {
        Self::Classification(Box::new(report))
    }
}

impl From<FiguresReport> for Section {
    fn from(report: FiguresReport) -> Self {
        Self::Figures(Box::new(report))
    }
}

/// Any pictures and tables under one heading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FiguresReport {
    /// Heading of the section.
    pub title: String,
    /// What is to be seen; may be empty.
    pub text: String,
    /// Facts, in order (network, seeds, seconds, ...).
    pub summary: Vec<SummaryRow>,
    /// The pictures and tables in order.
    pub items: Vec<Item>,
    /// What happened on the way.
    pub notes: Vec<Note>,
}

/// A labelled fact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryRow {
    /// What it is.
    pub label: String,
    /// Its value, ready to show.
    pub value: String,
}

impl SummaryRow {
    /// A labelled fact.
    pub fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self { label: label.into(), value: value.into() }
    }
}
