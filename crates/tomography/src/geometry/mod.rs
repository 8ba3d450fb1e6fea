//! **Geometries of scans**: where the rays of a measurement run through a grid of pixels.
//!
//! Pixels have sides of length 1 and the grid is centred at the origin: pixel (row i, column j) of a picture of h x w has its centre at `X = j - (w - 1) / 2`, `Y = (h - 1) / 2 - i`. At angle beta the detector's axis is `(cos, sin)` and rays run along
//! `(-sin, cos)`. Pictures are row-major, volumes slice by slice (`[depth, height, width]`); measurements are ordered by angle, then detector row or slice, then detector element.
//!
//! | file | what |
//! |---|---|
//! | `kinds` | the four scanners |
//! | `angles` | [`ScanAngles`]: equidistant or listed, in degrees or radians |
//! | `file` | [`Geometry::from_toml`] |
//! | `rays` | one ray as a line through the grid |
//!
//! ```
//! use posterior_tomography::Geometry;
//! let scan = Geometry::from_toml("kind = 'parallel'\nheight = 28\nwidth = 28\nangles = { count = 20 }")?;
//! // The usual detector covers the diagonal.
//! assert_eq!((scan.measurements_per_angle(), scan.measurements()), (41, 820));
//! # Ok::<(), posterior_tomography::TomographyError>(())
//! ```

mod angles;
mod file;
mod kinds;
mod rays;

pub use angles::{AngleUnit, ScanAngles, equidistant};
pub use kinds::{ConeBeam, FanBeam, ParallelBeam, StackedParallel};
pub(crate) use rays::{PlaneRay, SpaceRay};

use crate::TomographyError;
use serde::{Deserialize, Serialize};

/// Values of a picture or a sinogram at most: what is declared beyond is a mistake or an attack.
const MOST_VALUES: usize = 1 << 34;

/// How a sinogram was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Geometry {
    /// Parallel rays through a picture.
    Parallel(ParallelBeam),
    /// Rays from a point through a picture.
    Fan(FanBeam),
    /// Parallel rays through the slices of a volume.
    Stacked(StackedParallel),
    /// Rays from a point through a volume onto a flat panel.
    Cone(ConeBeam),
}

impl Geometry {
    /// `[height, width]` of the picture, or `[depth, height, width]` of the volume.
    pub fn image_shape(&self) -> Vec<usize> {
        match self {
            Self::Parallel(own) => vec![own.height, own.width],
            Self::Fan(own) => vec![own.height, own.width],
            Self::Stacked(own) => vec![own.depth, own.slice.height, own.slice.width],
            Self::Cone(own) => vec![own.depth, own.height, own.width],
        }
    }

    /// Pixels (or voxels) in all.
    pub fn pixels(&self) -> usize {
        self.image_shape().iter().product()
    }

    /// The angles, radians.
    pub fn angles(&self) -> &[f64] {
        match self {
            Self::Parallel(own) => &own.angles,
            Self::Fan(own) => &own.angles,
            Self::Stacked(own) => &own.slice.angles,
            Self::Cone(own) => &own.angles,
        }
    }

    fn angles_mut(&mut self) -> &mut Vec<f64> {
        match self {
            Self::Parallel(own) => &mut own.angles,
            Self::Fan(own) => &mut own.angles,
            Self::Stacked(own) => &mut own.slice.angles,
            Self::Cone(own) => &mut own.angles,
        }
    }

    /// Shape of what is measured at one angle: `[elements]`, or `[slices or rows, elements]`.
    pub fn detector_shape(&self) -> Vec<usize> {
        match self {
            Self::Parallel(own) => vec![own.detectors],
            Self::Fan(own) => vec![own.detectors],
            Self::Stacked(own) => vec![own.depth, own.slice.detectors],
            Self::Cone(own) => vec![own.rows, own.columns],
        }
    }

    /// Numbers measured at one angle.
    pub fn measurements_per_angle(&self) -> usize {
        self.detector_shape().iter().product()
    }

    /// Numbers measured in all, c.
    pub fn measurements(&self) -> usize {
        self.angles().len() * self.measurements_per_angle()
    }

    /// Shape of a sinogram: angles, then [`Self::detector_shape`].
    pub fn sinogram_shape(&self) -> Vec<usize> {
        [self.angles().len()].into_iter().chain(self.detector_shape()).collect()
    }

    /// The same scan at some of its angles, in the order given.
    ///
    /// # Panics
    /// When there is no such angle, which is a mistake of the program.
    pub fn at_angles(&self, chosen: &[usize]) -> Self {
        let mut out = self.clone();
        *out.angles_mut() = chosen.iter().map(|i| self.angles()[*i]).collect();
        out
    }

    /// The same scan at other angles (radians).
    pub fn with_angles(&self, angles: Vec<f64>) -> Self {
        let mut out = self.clone();
        *out.angles_mut() = angles;
        out
    }

    /// Refuses sizes of zero or beyond memory, numbers that are none, scanners that stand within the object.
    ///
    /// # Errors
    /// [`TomographyError::Geometry`] with what to change.
    pub fn check(&self) -> Result<(), TomographyError> {
        let wrong = |problem: String| Err(TomographyError::Geometry { problem });
        let sizes = |names: &[&str], sizes: &[usize]| {
            let zero = names.iter().zip(sizes).find(|(_, s)| **s == 0);
            zero.map_or(Ok(()), |(name, _)| wrong(format!("`{name}` is 0; it must be at least 1")))
        };
        match self {
            Self::Parallel(own) => {
                sizes(&["height", "width", "detectors"], &[own.height, own.width, own.detectors])?
            }
            Self::Fan(own) => {
                sizes(&["height", "width", "detectors"], &[own.height, own.width, own.detectors])?
            }
            Self::Stacked(own) => sizes(
                &["depth", "height", "width", "detectors"],
                &[own.depth, own.slice.height, own.slice.width, own.slice.detectors],
            )?,
            Self::Cone(own) => sizes(
                &["depth", "height", "width", "rows", "columns"],
                &[own.depth, own.height, own.width, own.rows, own.columns],
            )?,
        }
        if self.angles().is_empty() {
            return wrong("there are no angles: give `angles = { count = 60 }` or a list".into());
        }
        let product = |shape: &[usize]| shape.iter().try_fold(1usize, |n, s| n.checked_mul(*s));
        for (what, shape) in [("picture", self.image_shape()), ("sinogram", self.sinogram_shape())] {
            if product(&shape).is_none_or(|n| n > MOST_VALUES) {
                return wrong(format!("the {what} of shape {shape:?} has more than {MOST_VALUES} values"));
            }
        }
        if let Some((i, angle)) = self.angles().iter().enumerate().find(|(_, a)| !a.is_finite()) {
            return wrong(format!("angle {i} is {angle}"));
        }
        let spacing = match self {
            Self::Parallel(own) => own.spacing,
            Self::Fan(own) => own.spacing,
            Self::Stacked(own) => own.slice.spacing,
            Self::Cone(own) => own.spacing,
        };
        if !(spacing > 0.0 && spacing.is_finite()) {
            return wrong(format!("`spacing` is {spacing}; detector elements are a positive distance apart"));
        }
        let stand = match self {
            Self::Fan(own) => Some((own.source, own.detector, own.height, own.width)),
            Self::Cone(own) => Some((own.source, own.detector, own.height, own.width)),
            Self::Parallel(_) | Self::Stacked(_) => None,
        };
        if let Some((source, detector, height, width)) = stand {
            let radius = 0.5 * (height as f64).hypot(width as f64);
            if !(source > radius && source.is_finite()) {
                return wrong(format!(
                    "`source` is {source} pixels from the centre, and the picture reaches {radius:.1}: the source stands outside"
                ));
            }
            if !(detector >= 0.0 && detector.is_finite()) {
                return wrong(format!(
                    "`detector` is {detector}; it is a distance from the centre, at least 0"
                ));
            }
        }
        Ok(())
    }

    /// What looks wrong though it can be computed: angles that are degrees called radians.
    pub fn warnings(&self) -> Vec<String> {
        let (low, high) =
            self.angles().iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), a| (l.min(*a), h.max(*a)));
        let mut out = Vec::new();
        if high - low > std::f64::consts::TAU + 1e-6 {
            out.push(format!(
                "angles lie between {low:.4} and {high:.4} radians, more than a whole turn; if they are degrees, write `unit = \"degrees\"`"
            ));
        }
        out
    }
}

#[cfg(test)]
mod tests;
