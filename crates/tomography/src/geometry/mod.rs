//! **Geometries**: where the rays of a scan run.
//!
//! Lengths are in pixels: pixel (i, j) of an image of h x w has its centre at `X = j - (w - 1)/2`, `Y = (h - 1)/2 - i` and unit sides; voxel k of a
//! volume's depth lies at `Z = k - (d - 1)/2`. Angles are in radians. At angle β the detector's axis is `(cos β, sin β)` and central rays run along
//! `(-sin β, cos β)`; element ℓ of n lies at `s = (ℓ - (n - 1)/2) Δ` on that axis.
//!
//! Images are flattened by rows (volumes depth first). Measurements are angle-major: `row = angle · measurements_per_angle + detector`, and within an angle
//! of three dimensions panel row (or slice) first, then panel column.
//!
//! | file | what |
//! |---|---|
//! | `parallel` | [`ParallelBeam`], and [`StackedParallel`]: the same beam for every slice of a volume |
//! | `diverging` | [`FanBeam`] and [`ConeBeam`]: rays from a point |
//! | `check` | sizes, angles and lengths that make no sense; [`GeometryWarning`] |
//! | `measured` | what a sinogram must be to belong to a geometry |
//! | `description` | the TOML form |
//!
//! ```
//! use posterior_tomography::Geometry;
//! let geometry = Geometry::from_toml("kind = 'parallel'\nheight = 28\nwidth = 28\nangles = { count = 20, range_degrees = 180 }")?;
//! assert_eq!((geometry.image_shape(), geometry.measurements()), (vec![28, 28], 820));
//! # Ok::<(), posterior_tomography::TomographyError>(())
//! ```
//!
//! Source: spec `tomography`, section 3.1 (the detector by the convention of ODL).

mod check;
mod description;
mod diverging;
mod measured;
mod parallel;
#[cfg(test)]
mod tests;

pub use check::GeometryWarning;
pub use diverging::{ConeBeam, FanBeam};
pub use parallel::{ParallelBeam, StackedParallel, equidistant_angles};

use crate::TomographyError;
use serde::{Deserialize, Serialize};

/// Any geometry. Serialised in the form that files have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "description::Description", into = "description::Description")]
pub enum Geometry {
    /// Parallel rays in a plane.
    Parallel(ParallelBeam),
    /// Rays from a point, in a plane.
    Fan(FanBeam),
    /// Parallel rays in every slice of a volume.
    Stacked(StackedParallel),
    /// Rays from a point to a flat panel.
    Cone(ConeBeam),
}

impl Geometry {
    /// `[h, w]` of an image, or `[d, h, w]` of a volume.
    pub fn image_shape(&self) -> Vec<usize> {
        match self {
            Self::Parallel(beam) => vec![beam.height, beam.width],
            Self::Fan(beam) => vec![beam.height, beam.width],
            Self::Stacked(beam) => vec![beam.depth, beam.slice.height, beam.slice.width],
            Self::Cone(beam) => vec![beam.depth, beam.height, beam.width],
        }
    }

    /// Pixels, or voxels: columns of the operator.
    pub fn pixels(&self) -> usize {
        self.image_shape().iter().product()
    }

    /// `[h, w]` of a slice.
    pub(crate) fn plane(&self) -> (usize, usize) {
        match self {
            Self::Parallel(beam) => (beam.height, beam.width),
            Self::Fan(beam) => (beam.height, beam.width),
            Self::Stacked(beam) => (beam.slice.height, beam.slice.width),
            Self::Cone(beam) => (beam.height, beam.width),
        }
    }

    /// The angles, in radians.
    pub fn angles(&self) -> &[f64] {
        match self {
            Self::Parallel(beam) => &beam.angles,
            Self::Fan(beam) => &beam.angles,
            Self::Stacked(beam) => &beam.slice.angles,
            Self::Cone(beam) => &beam.angles,
        }
    }

    fn angles_mut(&mut self) -> &mut Vec<f64> {
        match self {
            Self::Parallel(beam) => &mut beam.angles,
            Self::Fan(beam) => &mut beam.angles,
            Self::Stacked(beam) => &mut beam.slice.angles,
            Self::Cone(beam) => &mut beam.angles,
        }
    }

    /// Rows and columns of the detector: of an image one row, of a stack one for each slice.
    pub fn detector_shape(&self) -> (usize, usize) {
        match self {
            Self::Parallel(beam) => (1, beam.detectors),
            Self::Fan(beam) => (1, beam.detectors),
            Self::Stacked(beam) => (beam.depth, beam.slice.detectors),
            Self::Cone(beam) => (beam.rows, beam.columns),
        }
    }

    /// Measurements of one angle.
    pub fn measurements_per_angle(&self) -> usize {
        let (rows, columns) = self.detector_shape();
        rows * columns
    }

    /// All measurements: rows of the operator.
    pub fn measurements(&self) -> usize {
        self.angles().len() * self.measurements_per_angle()
    }

    /// The shape of a sinogram: `[angles, detectors]`, or `[angles, rows, columns]`.
    pub fn sinogram_shape(&self) -> Vec<usize> {
        let (rows, columns) = self.detector_shape();
        match self {
            Self::Parallel(_) | Self::Fan(_) => vec![self.angles().len(), columns],
            Self::Stacked(_) | Self::Cone(_) => vec![self.angles().len(), rows, columns],
        }
    }

    /// The scan at some of the angles, in the order named; a number may occur more than once.
    ///
    /// # Errors
    /// [`TomographyError::NoAngles`], [`TomographyError::AngleIndex`].
    pub fn at_angles(&self, chosen: &[usize]) -> Result<Self, TomographyError> {
        let angles = self.angles();
        if chosen.is_empty() {
            return Err(TomographyError::NoAngles);
        }
        if let Some(&index) = chosen.iter().find(|&&index| index >= angles.len()) {
            return Err(TomographyError::AngleIndex { index, angles: angles.len() });
        }
        let some = chosen.iter().map(|&index| angles[index]).collect();
        let mut geometry = self.clone();
        *geometry.angles_mut() = some;
        Ok(geometry)
    }

    /// The kind, as files name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Parallel(_) => "parallel",
            Self::Fan(_) => "fan",
            Self::Stacked(_) => "stacked",
            Self::Cone(_) => "cone",
        }
    }
}

macro_rules! from {
    ($($beam:ident => $kind:ident),*) => {$(
        impl From<$beam> for Geometry {
            fn from(beam: $beam) -> Self {
                Self::$kind(beam)
            }
        }
    )*};
}
from!(ParallelBeam => Parallel, FanBeam => Fan, StackedParallel => Stacked, ConeBeam => Cone);
