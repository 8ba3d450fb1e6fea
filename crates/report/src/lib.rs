//! The report: one HTML file with its pictures and styles inside, to be looked at rather than read.
//!
//! The idea: fitting and scoring fill a [`Report`] with numbers only, and [`Report::to_html`] is a pure function from
//! it to text. Nothing is fetched, no script runs, and the same input gives the same bytes. Every text that comes from
//! outside (column names, file names, notes) is escaped; every number that cannot be drawn is left out of the picture
//! and counted in its caption.
//!
//! | file | what |
//! |---|---|
//! | `input` | the numbers and words that a report is made of |
//! | `page`, `style.css` | the document around the sections, light and dark |
//! | `section`, `tables`, `verdict` | a regression model on one dataset: verdict, tiles, figures, tables |
//! | `classification/` | the same for a classification model |
//! | `figures` | any pictures and tables under one heading |
//! | `words` | a dictionary for newcomers |
//! | `points` | rows that can be drawn, and thinning |
//! | `text` | escaping and numbers for people |
//! | `png` | pictures of pixels, inside the page |
//! | `svg/` | scales, ticks, axes and the drawing surface |
//! | `plots/` | one picture per file |
//!
//! ```
//! use posterior_report::{Predictions, RegressionReport, Report};
//! let section = RegressionReport {
//!     dataset: "wing noise".into(),
//!     target: "sound level".into(),
//!     target_unit: Some("dB".into()),
//!     predictions: Some(Predictions {
//!         mean: vec![120.0, 125.0],
//!         standard_deviation: vec![2.0, 3.0],
//!         truth: vec![121.0, 124.5],
//!         ..Predictions::default()
//!     }),
//!     ..RegressionReport::default()
//! };
//! let html = Report::new("A model and its error bars", "", vec![section.into()]).to_html();
//! assert!(html.starts_with("<!DOCTYPE html>") && html.contains("wing noise"));
//! ```

mod classification;
mod figure;
mod figures;
mod input;
mod page;
mod plots;
mod png;
mod points;
mod section;
mod svg;
mod tables;
mod text;
mod verdict;
mod words;

pub use input::{
    Baseline, ClassificationBaseline, ClassificationReport, ConfusionFigure, Curves, Distribution,
    Distributions, FeatureLengthscale, FiguresReport, Hyperparameter, Image, ImageGallery, ImageLayout,
    ImagePrediction, Item, JointScores, LayerBox, LayerGraph, Line, MethodRow, NamedValue, NamedValues,
    OutOfDistribution, OutOfDistributionMethod, Picture, Plane, PlaneKind, PlanePanel, PosteriorPanel,
    PosteriorPanels, PredictedDistribution, Predictions, RegressionReport, Reliability, ReliabilityForm,
    ReliabilitySeries, Report, ScoredRows, Section, ShiftCurve, ShiftCurves, SummaryRow, Table,
    TitledPosterior,
};
pub use posterior_notes::{Note, Severity};
