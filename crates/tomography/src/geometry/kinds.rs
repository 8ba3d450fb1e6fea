//! The four scanners. All lengths are in sides of a pixel.

use super::angles::equidistant;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Parallel rays: element l of the detector sees the line `X cos + Y sin = s_l` with `s_l = (l - (n - 1) / 2) spacing`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParallelBeam {
    /// Rows of the picture.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Elements of the detector.
    pub detectors: usize,
    /// Their distance.
    pub spacing: f64,
    /// Radians.
    pub angles: Vec<f64>,
}

/// Half the diagonal, the elements that cover the diagonal, and their distance (the convention of ODL; spec `tomography`, section 3.1).
pub(super) fn usual_detector(height: usize, width: usize) -> (usize, f64) {
    let radius = 0.5 * (height as f64).hypot(width as f64);
    let detectors = 2 * (radius.ceil() as usize) + 1;
    (detectors, 2.0 * radius / detectors as f64)
}

impl ParallelBeam {
    /// A detector that covers the diagonal, and so many equidistant angles over half a turn from 0 on.
    pub fn usual(height: usize, width: usize, angles: usize) -> Self {
        let (detectors, spacing) = usual_detector(height, width);
        Self { height, width, detectors, spacing, angles: equidistant(angles, PI) }
    }
}

/// Rays from a point source, in the plane: at angle beta the source stands at `source (sin, -cos)`, the middle of the detector at `detector (-sin, cos)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FanBeam {
    /// Rows of the picture.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Elements of the detector.
    pub detectors: usize,
    /// Their distance, at the detector.
    pub spacing: f64,
    /// From the source to the centre.
    pub source: f64,
    /// From the centre to the detector.
    pub detector: f64,
    /// Radians.
    pub angles: Vec<f64>,
}

/// Every slice of a volume by the same parallel rays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackedParallel {
    /// Slices.
    pub depth: usize,
    /// The scan of each.
    pub slice: ParallelBeam,
}

/// Rays from a point source that goes around a volume in the plane of its middle slice, onto a flat panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConeBeam {
    /// Slices of the volume.
    pub depth: usize,
    /// Rows of a slice.
    pub height: usize,
    /// Columns of a slice.
    pub width: usize,
    /// Rows of the panel, along the slices.
    pub rows: usize,
    /// Elements of a row.
    pub columns: usize,
    /// Distance of elements and of rows, at the panel.
    pub spacing: f64,
    /// From the source to the centre.
    pub source: f64,
    /// From the centre to the panel.
    pub detector: f64,
    /// Radians.
    pub angles: Vec<f64>,
}
