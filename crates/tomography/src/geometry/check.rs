//! Whether a geometry can be meant.

use super::Geometry;
use super::parallel::radius;
use crate::TomographyError;
use std::f64::consts::TAU;
use std::fmt;

/// The largest size of one axis, and the largest number of angles.
const LARGEST_SIZE: usize = 1 << 24;
/// The most pixels: compressed rows name them by 32 bits.
const MOST_PIXELS: u64 = u32::MAX as u64;
/// The most measurements.
const MOST_MEASUREMENTS: u64 = 1 << 36;

/// What is allowed and probably not meant.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum GeometryWarning {
    /// Angles that span more than a turn of radians, or lie more than two away from 0.
    Degrees {
        /// The smallest angle.
        smallest: f64,
        /// The largest angle.
        largest: f64,
    },
    /// A detector that does not see all of the image.
    Truncated {
        /// What the detector sees to either side, in pixels at the centre.
        seen: f64,
        /// Half the diagonal of the image.
        radius: f64,
    },
}

impl fmt::Display for GeometryWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Degrees { smallest, largest } => write!(
                f,
                "angles lie between {smallest} and {largest}: more than a turn of radians; they look like degrees: write `unit = \"degrees\"`"
            ),
            Self::Truncated { seen, radius } => write!(
                f,
                "the detector sees {seen:.1} pixels to either side of the centre and the image's corners are {radius:.1} away: what lies outside must be empty, or the picture has bright rims; add detector elements or widen their spacing"
            ),
        }
    }
}

impl Geometry {
    /// Whether it can be meant, before any memory is taken; what is allowed but suspicious comes back.
    ///
    /// # Errors
    /// [`TomographyError`]: no or non-finite angles, sizes of zero or beyond all measure, lengths that are none, a source within the image, cones steeper
    /// than 45 degrees.
    pub fn check(&self) -> Result<Vec<GeometryWarning>, TomographyError> {
        let names: &[&'static str] = match self {
            Self::Parallel(_) | Self::Fan(_) => &["the height", "the width"],
            Self::Stacked(_) | Self::Cone(_) => &["the depth", "the height", "the width"],
        };
        let (shape, (rows, columns)) = (self.image_shape(), self.detector_shape());
        names.iter().zip(&shape).try_for_each(|(name, &value)| size(name, value))?;
        size("the number of detector rows", rows)?;
        size("the number of detector elements", columns)?;
        let angles = self.angles();
        if angles.is_empty() {
            return Err(TomographyError::NoAngles);
        }
        size("the number of angles", angles.len())?;
        if let Some((index, &value)) = angles.iter().enumerate().find(|(_, a)| !a.is_finite()) {
            return Err(TomographyError::Angle { index, value });
        }
        product("the axes of the image", shape, MOST_PIXELS)?;
        product("angles and detector elements", vec![angles.len(), rows, columns], MOST_MEASUREMENTS)?;
        let (height, width) = self.plane();
        let radius = radius(height, width);
        let magnification = match self {
            Self::Parallel(_) | Self::Stacked(_) => 1.0,
            Self::Fan(beam) => {
                distances(radius, beam.source_distance, beam.detector_distance)?;
                1.0 + beam.detector_distance / beam.source_distance
            }
            Self::Cone(beam) => {
                distances(radius, beam.source_distance, beam.detector_distance)?;
                positive("the distance of panel rows", beam.row_spacing)?;
                let steepest = 0.5 * (beam.rows as f64 - 1.0) * beam.row_spacing;
                let length = beam.source_distance + beam.detector_distance;
                // A ray takes at least 1/√2 of its way along the main axis of the plane.
                if steepest * 2f64.sqrt() > length {
                    let expected = "the panel must not reach higher than 0.7 times its distance from the source; take fewer rows or a smaller spacing";
                    return Err(TomographyError::Length {
                        what: "half the panel's height",
                        value: steepest,
                        expected,
                    });
                }
                1.0 + beam.detector_distance / beam.source_distance
            }
        };
        let spacing = match self {
            Self::Parallel(beam) => beam.spacing,
            Self::Fan(beam) => beam.spacing,
            Self::Stacked(beam) => beam.slice.spacing,
            Self::Cone(beam) => beam.column_spacing,
        };
        positive("the distance of detector elements", spacing)?;
        let mut warnings = Vec::new();
        let smallest = angles.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = angles.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // A turn with both its ends is one; single angles may be counted on from an earlier turn.
        if largest - smallest > 1.001 * TAU || smallest.abs().max(largest.abs()) > 2.0 * TAU {
            warnings.push(GeometryWarning::Degrees { smallest, largest });
        }
        let seen = 0.5 * columns as f64 * spacing / magnification;
        if seen < 0.999 * radius {
            warnings.push(GeometryWarning::Truncated { seen, radius });
        }
        Ok(warnings)
    }
}

/// Refuses sizes of zero and absurd ones.
pub(super) fn size(what: &'static str, value: usize) -> Result<(), TomographyError> {
    if value == 0 || value > LARGEST_SIZE {
        return Err(TomographyError::Size { what, value, largest: LARGEST_SIZE });
    }
    Ok(())
}

/// Refuses lengths that are none.
pub(super) fn positive(what: &'static str, value: f64) -> Result<(), TomographyError> {
    if !(value > 0.0 && value.is_finite()) {
        return Err(TomographyError::Length { what, value, expected: "it is positive and finite" });
    }
    Ok(())
}

/// Refuses sources and detectors that the image would turn into.
pub(super) fn distances(radius: f64, source: f64, detector: f64) -> Result<(), TomographyError> {
    positive("the distance of the source from the centre", source)?;
    let expected = "source and detector stay outside the circle around the image, so that every ray crosses all of it; distances are in pixels";
    if source <= radius {
        let what = "the distance of the source from the centre";
        return Err(TomographyError::Length { what, value: source, expected });
    }
    if !(detector >= radius && detector.is_finite()) {
        let what = "the distance of the detector from the centre";
        return Err(TomographyError::Length { what, value: detector, expected });
    }
    Ok(())
}

/// Refuses products of sizes beyond `largest`, overflow included.
fn product(what: &'static str, sizes: Vec<usize>, largest: u64) -> Result<(), TomographyError> {
    let all = sizes.iter().try_fold(1u64, |all, &size| all.checked_mul(size as u64));
    match all {
        Some(all) if all <= largest => Ok(()),
        _ => Err(TomographyError::TooLarge { what, sizes, largest }),
    }
}
