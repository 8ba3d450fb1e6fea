//! The TOML form of a geometry.

use super::{ConeBeam, FanBeam, Geometry, ParallelBeam, StackedParallel, check, equidistant_angles};
use crate::TomographyError;
use serde::{Deserialize, Serialize};

/// A geometry as files have it. What is left out follows the convention of the kind's `usual`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Description {
    Parallel {
        height: usize,
        width: usize,
        detectors: Option<usize>,
        spacing: Option<f64>,
        angles: Angles,
    },
    Fan {
        height: usize,
        width: usize,
        source_distance: f64,
        detector_distance: f64,
        detectors: Option<usize>,
        spacing: Option<f64>,
        angles: Angles,
    },
    Stacked {
        depth: usize,
        height: usize,
        width: usize,
        detectors: Option<usize>,
        spacing: Option<f64>,
        angles: Angles,
    },
    Cone {
        depth: usize,
        height: usize,
        width: usize,
        source_distance: f64,
        detector_distance: f64,
        rows: Option<usize>,
        columns: Option<usize>,
        row_spacing: Option<f64>,
        column_spacing: Option<f64>,
        angles: Angles,
    },
}

/// Either a count of equidistant angles from 0, or a list with its unit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Angles {
    count: Option<usize>,
    range_degrees: Option<f64>,
    list: Option<Vec<f64>>,
    unit: Option<Unit>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Unit {
    Degrees,
    Radians,
}

impl Angles {
    /// In radians; `turn` is what a count covers unless it says so, in degrees.
    fn radians(self, turn: f64) -> Result<Vec<f64>, TomographyError> {
        let refuse = |problem: &str| Err(TomographyError::Description(format!("angles: {problem}")));
        match self {
            Self { count: Some(count), range_degrees, list: None, unit: None } => {
                let range = range_degrees.unwrap_or(turn);
                check::positive("the range of the angles in degrees", range)?;
                equidistant_angles(count, range.to_radians())
            }
            Self { count: None, range_degrees: None, list: Some(list), unit: Some(unit) } => Ok(match unit {
                Unit::Degrees => list.iter().map(|a| a.to_radians()).collect(),
                Unit::Radians => list,
            }),
            Self { list: Some(_), unit: None, .. } => {
                refuse("a list says in which unit it is: write `unit = \"degrees\"` or `unit = \"radians\"`")
            }
            Self { count: None, list: None, .. } => refuse(
                "write `{ count = 60, range_degrees = 180 }` or `{ list = [...], unit = \"degrees\" }`",
            ),
            _ => refuse("`count` goes with `range_degrees`, and `list` with `unit`; give one of the pairs"),
        }
    }

    fn list(radians: Vec<f64>) -> Self {
        Self { list: Some(radians), unit: Some(Unit::Radians), ..Self::default() }
    }
}

impl TryFrom<Description> for Geometry {
    type Error = TomographyError;

    fn try_from(description: Description) -> Result<Self, TomographyError> {
        let geometry: Self = match description {
            Description::Parallel { height, width, detectors, spacing, angles } => {
                parallel(height, width, detectors, spacing, angles)?.into()
            }
            Description::Stacked { depth, height, width, detectors, spacing, angles } => {
                let slice = parallel(height, width, detectors, spacing, angles)?;
                StackedParallel { depth, slice }.into()
            }
            Description::Fan {
                height,
                width,
                source_distance: source,
                detector_distance,
                detectors,
                spacing,
                angles,
            } => {
                let usual = FanBeam::usual(height, width, source, detector_distance, 1)?;
                let (detectors, spacing) = detector(detectors, spacing, usual.detectors, usual.spacing);
                FanBeam { detectors, spacing, angles: angles.radians(360.0)?, ..usual }.into()
            }
            Description::Cone {
                depth,
                height,
                width,
                source_distance: source,
                detector_distance,
                rows,
                columns,
                row_spacing,
                column_spacing,
                angles,
            } => {
                let usual = ConeBeam::usual((depth, height, width), source, detector_distance, 1)?;
                let (rows, row_spacing) = detector(rows, row_spacing, usual.rows, usual.row_spacing);
                let (columns, column_spacing) =
                    detector(columns, column_spacing, usual.columns, usual.column_spacing);
                let angles = angles.radians(360.0)?;
                ConeBeam { rows, columns, row_spacing, column_spacing, angles, ..usual }.into()
            }
        };
        geometry.check()?;
        Ok(geometry)
    }
}

fn parallel(
    height: usize,
    width: usize,
    detectors: Option<usize>,
    spacing: Option<f64>,
    angles: Angles,
) -> Result<ParallelBeam, TomographyError> {
    let usual = ParallelBeam::usual(height, width, 1)?;
    let (detectors, spacing) = detector(detectors, spacing, usual.detectors, usual.spacing);
    Ok(ParallelBeam { detectors, spacing, angles: angles.radians(180.0)?, ..usual })
}

/// What is left out keeps the width that the usual detector sees.
fn detector(count: Option<usize>, spacing: Option<f64>, usual: usize, usual_spacing: f64) -> (usize, f64) {
    let count = count.unwrap_or(usual);
    (count, spacing.unwrap_or(usual as f64 * usual_spacing / count.max(1) as f64))
}

impl From<Geometry> for Description {
    fn from(geometry: Geometry) -> Self {
        match geometry {
            Geometry::Parallel(beam) => Self::Parallel {
                height: beam.height,
                width: beam.width,
                detectors: Some(beam.detectors),
                spacing: Some(beam.spacing),
                angles: Angles::list(beam.angles),
            },
            Geometry::Stacked(beam) => Self::Stacked {
                depth: beam.depth,
                height: beam.slice.height,
                width: beam.slice.width,
                detectors: Some(beam.slice.detectors),
                spacing: Some(beam.slice.spacing),
                angles: Angles::list(beam.slice.angles),
            },
            Geometry::Fan(beam) => Self::Fan {
                height: beam.height,
                width: beam.width,
                source_distance: beam.source_distance,
                detector_distance: beam.detector_distance,
                detectors: Some(beam.detectors),
                spacing: Some(beam.spacing),
                angles: Angles::list(beam.angles),
            },
            Geometry::Cone(beam) => Self::Cone {
                depth: beam.depth,
                height: beam.height,
                width: beam.width,
                source_distance: beam.source_distance,
                detector_distance: beam.detector_distance,
                rows: Some(beam.rows),
                columns: Some(beam.columns),
                row_spacing: Some(beam.row_spacing),
                column_spacing: Some(beam.column_spacing),
                angles: Angles::list(beam.angles),
            },
        }
    }
}

impl Geometry {
    /// Reads the TOML form: `kind` is `parallel`, `fan`, `stacked` or `cone`; `angles` are `{ count = 60, range_degrees = 180 }`, equidistant from 0, or
    /// `{ list = [...], unit = "degrees" }`; a detector that is left out follows the convention of the kind's `usual`.
    ///
    /// # Errors
    /// [`TomographyError`]: text that does not read, or what [`Self::check`] refuses. Nothing of the declared sizes is allocated.
    pub fn from_toml(text: &str) -> Result<Self, TomographyError> {
        let description: Description =
            toml::from_str(text).map_err(|e| TomographyError::Description(e.to_string()))?;
        description.try_into()
    }

    /// The TOML form, with every number written out such that it reads as the same geometry.
    ///
    /// # Errors
    /// [`TomographyError::Description`] for what TOML has no form for.
    pub fn to_toml(&self) -> Result<String, TomographyError> {
        toml::to_string(self).map_err(|e| TomographyError::Description(e.to_string()))
    }
}
