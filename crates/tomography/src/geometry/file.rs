//! Geometries in files.

use super::angles::ScanAngles;
use super::kinds::usual_detector;
use super::{ConeBeam, FanBeam, Geometry, MOST_VALUES, ParallelBeam, StackedParallel};
use crate::TomographyError;
use serde::Deserialize;

/// What a file may say.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
enum File {
    Parallel {
        height: usize,
        width: usize,
        detectors: Option<usize>,
        spacing: Option<f64>,
        angles: ScanAngles,
    },
    Fan {
        height: usize,
        width: usize,
        detectors: Option<usize>,
        spacing: Option<f64>,
        source: f64,
        detector: f64,
        angles: ScanAngles,
    },
    Stacked {
        depth: usize,
        height: usize,
        width: usize,
        detectors: Option<usize>,
        spacing: Option<f64>,
        angles: ScanAngles,
    },
    Cone {
        depth: usize,
        height: usize,
        width: usize,
        rows: Option<usize>,
        columns: Option<usize>,
        spacing: Option<f64>,
        source: f64,
        detector: f64,
        angles: ScanAngles,
    },
}

/// Elements and their distance, where they are not given such that a shadow `magnification` times as large as the diagonal is covered.
fn detector(
    (height, width): (usize, usize),
    detectors: Option<usize>,
    spacing: Option<f64>,
    magnification: f64,
) -> Result<(usize, f64), TomographyError> {
    if height.max(width) > MOST_VALUES {
        let problem = format!("a picture of {height} x {width} pixels is beyond memory");
        return Err(TomographyError::Geometry { problem });
    }
    let (usual, distance) = usual_detector(height, width);
    let span = usual as f64 * distance * magnification;
    let detectors = detectors.unwrap_or(usual);
    Ok((detectors, spacing.unwrap_or(span / detectors.max(1) as f64)))
}

impl Geometry {
    /// Reads `kind = "parallel"` (`height`, `width`, `angles`), `"fan"` (also `source`, `detector`), `"stacked"` (also `depth`) or `"cone"`. Detectors and their spacing have defaults that cover the picture; angles are those of [`ScanAngles`]: half a turn for
    /// parallel rays and a whole one for rays from a point.
    ///
    /// # Errors
    /// [`TomographyError::GeometryFile`] for text that is none, [`TomographyError::Geometry`] for what has no meaning.
    pub fn from_toml(text: &str) -> Result<Self, TomographyError> {
        let file: File = toml::from_str(text)
            .map_err(|e| TomographyError::GeometryFile { problem: e.message().to_owned() })?;
        let out = match file {
            File::Parallel { height, width, detectors, spacing, angles } => {
                let (detectors, spacing) = detector((height, width), detectors, spacing, 1.0)?;
                Self::Parallel(ParallelBeam {
                    height,
                    width,
                    detectors,
                    spacing,
                    angles: angles.radians(180.0)?,
                })
            }
            File::Stacked { depth, height, width, detectors, spacing, angles } => {
                let (detectors, spacing) = detector((height, width), detectors, spacing, 1.0)?;
                let angles = angles.radians(180.0)?;
                let slice = ParallelBeam { height, width, detectors, spacing, angles };
                Self::Stacked(StackedParallel { depth, slice })
            }
            File::Fan { height, width, detectors, spacing, source, detector: away, angles } => {
                let magnified = magnification(height, width, source, away);
                let (detectors, spacing) = detector((height, width), detectors, spacing, magnified)?;
                let angles = angles.radians(360.0)?;
                Self::Fan(FanBeam { height, width, detectors, spacing, source, detector: away, angles })
            }
            File::Cone { depth, height, width, rows, columns, spacing, source, detector: away, angles } => {
                let magnified = magnification(height, width, source, away);
                let (columns, spacing) = detector((height, width), columns, spacing, magnified)?;
                // The panel reaches as far up as the nearest voxels' shadow.
                let usual = (depth as f64 * magnified / spacing).ceil().max(1.0) as usize;
                let rows = rows.unwrap_or(usual);
                let angles = angles.radians(360.0)?;
                Self::Cone(ConeBeam {
                    depth,
                    height,
                    width,
                    rows,
                    columns,
                    spacing,
                    source,
                    detector: away,
                    angles,
                })
            }
        };
        out.check()?;
        Ok(out)
    }
}

/// How much larger than the picture's circle its shadow is: the tangent from the source touches it.
fn magnification(height: usize, width: usize, source: f64, detector: f64) -> f64 {
    let radius = 0.5 * (height as f64).hypot(width as f64);
    if source > radius { (source + detector) / (source * source - radius * radius).sqrt() } else { 1.0 }
}
