//! Rays from a point source: a fan in a plane, a cone to a flat panel.

use super::check;
use super::parallel::{equidistant_angles, radius, usual_detector};
use crate::TomographyError;
use std::f64::consts::TAU;

/// Rays from a point to a straight detector, in the plane of an image: a cone beam's central slice.
///
/// At angle β the source is at `source_distance (sin β, -cos β)` and the detector's middle at `detector_distance (-sin β, cos β)`: far sources
/// make the rays of [`ParallelBeam`](super::ParallelBeam) at the same angle.
#[derive(Clone, Debug, PartialEq)]
pub struct FanBeam {
    /// Rows of the image.
    pub height: usize,
    /// Columns of the image.
    pub width: usize,
    /// From the source to the centre of rotation, in pixels.
    pub source_distance: f64,
    /// From the centre of rotation to the detector, in pixels.
    pub detector_distance: f64,
    /// Detector elements.
    pub detectors: usize,
    /// Distance between them, in pixels, at the detector.
    pub spacing: f64,
    /// Angles, in radians.
    pub angles: Vec<f64>,
}

/// Rays from a point on a circle around a volume's axis of depth to a flat panel opposite.
#[derive(Clone, Debug, PartialEq)]
pub struct ConeBeam {
    /// Slices of the volume.
    pub depth: usize,
    /// Rows of a slice.
    pub height: usize,
    /// Columns of a slice.
    pub width: usize,
    /// From the source to the axis of rotation, in voxels.
    pub source_distance: f64,
    /// From the axis of rotation to the panel, in voxels.
    pub detector_distance: f64,
    /// Rows of the panel, along the depth.
    pub rows: usize,
    /// Columns of the panel.
    pub columns: usize,
    /// Distance between rows, in voxels, at the panel.
    pub row_spacing: f64,
    /// Distance between columns, in voxels, at the panel.
    pub column_spacing: f64,
    /// Angles, in radians.
    pub angles: Vec<f64>,
}

impl FanBeam {
    /// As many detector elements as a parallel beam has by convention, spread over the shadow of the image's circumscribed circle; `angles` equidistant ones in
    /// [0, 2π) from 0.
    ///
    /// # Errors
    /// [`TomographyError`] for sizes of zero or beyond all measure, and for a source within the circle.
    pub fn usual(
        height: usize,
        width: usize,
        source_distance: f64,
        detector_distance: f64,
        angles: usize,
    ) -> Result<Self, TomographyError> {
        let (detectors, _) = usual_detector(height, width)?;
        let radius = radius(height, width);
        check::distances(radius, source_distance, detector_distance)?;
        let half = (source_distance + detector_distance) * (radius / source_distance).asin().tan();
        let (spacing, angles) = (2.0 * half / detectors as f64, equidistant_angles(angles, TAU)?);
        Ok(Self { height, width, source_distance, detector_distance, detectors, spacing, angles })
    }
}

impl ConeBeam {
    /// Columns as [`FanBeam::usual`]; `2⌈d/2⌉ + 1` rows over the shadow of the whole depth.
    ///
    /// # Errors
    /// [`TomographyError`] for sizes of zero or beyond all measure, and for a source within the circle.
    pub fn usual(
        (depth, height, width): (usize, usize, usize),
        source_distance: f64,
        detector_distance: f64,
        angles: usize,
    ) -> Result<Self, TomographyError> {
        check::size("the depth", depth)?;
        let fan = FanBeam::usual(height, width, source_distance, detector_distance, angles)?;
        let rows = 2 * depth.div_ceil(2) + 1;
        let nearest = source_distance - radius(height, width);
        let row_spacing = depth as f64 * (source_distance + detector_distance) / nearest / rows as f64;
        Ok(Self {
            depth,
            height,
            width,
            source_distance,
            detector_distance,
            rows,
            columns: fan.detectors,
            row_spacing,
            column_spacing: fan.spacing,
            angles: fan.angles,
        })
    }

    /// The fan of the panel's rays as seen along the depth.
    pub fn central(&self) -> FanBeam {
        FanBeam {
            height: self.height,
            width: self.width,
            source_distance: self.source_distance,
            detector_distance: self.detector_distance,
            detectors: self.columns,
            spacing: self.column_spacing,
            angles: self.angles.clone(),
        }
    }
}
