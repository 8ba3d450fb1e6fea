//! Parallel rays: an image, or a stack of images.

use super::check;
use crate::TomographyError;
use std::f64::consts::PI;

/// Parallel rays through an image of `height` x `width` pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct ParallelBeam {
    /// Rows of the image.
    pub height: usize,
    /// Columns of the image.
    pub width: usize,
    /// Detector elements.
    pub detectors: usize,
    /// Distance between them, in pixels.
    pub spacing: f64,
    /// Angles, in radians.
    pub angles: Vec<f64>,
}

/// The same parallel rays through every slice of a volume of `depth` slices.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedParallel {
    /// Slices.
    pub depth: usize,
    /// The beam of each.
    pub slice: ParallelBeam,
}

impl ParallelBeam {
    /// Detector elements and angles by the usual convention: with `ρ = √(h² + w²)/2`, `2⌈ρ⌉ + 1` elements at a distance of `2ρ` over their number, and `angles` equidistant
    /// ones in [0, π) from 0.
    ///
    /// # Errors
    /// [`TomographyError`] for sizes of zero or beyond all measure.
    pub fn usual(height: usize, width: usize, angles: usize) -> Result<Self, TomographyError> {
        let (detectors, spacing) = usual_detector(height, width)?;
        Ok(Self { height, width, detectors, spacing, angles: equidistant_angles(angles, PI)? })
    }
}

impl StackedParallel {
    /// [`ParallelBeam::usual`] for each of `depth` slices.
    ///
    /// # Errors
    /// [`TomographyError`] for sizes of zero or beyond all measure.
    pub fn usual(depth: usize, height: usize, width: usize, angles: usize) -> Result<Self, TomographyError> {
        check::size("the depth", depth)?;
        Ok(Self { depth, slice: ParallelBeam::usual(height, width, angles)? })
    }
}

/// Half the diagonal of an image, in pixels: what a detector must see on either side of the centre.
pub(super) fn radius(height: usize, width: usize) -> f64 {
    0.5 * (height as f64).hypot(width as f64)
}

/// Elements and their distance by the convention of ODL.
pub(super) fn usual_detector(height: usize, width: usize) -> Result<(usize, f64), TomographyError> {
    check::size("the height", height)?;
    check::size("the width", width)?;
    let radius = radius(height, width);
    let detectors = 2 * radius.ceil() as usize + 1;
    Ok((detectors, 2.0 * radius / detectors as f64))
}

/// `k · range / count` for `k = 0, …, count - 1`, in radians.
///
/// # Errors
/// [`TomographyError`] for no angles or more than can be meant.
pub fn equidistant_angles(count: usize, range: f64) -> Result<Vec<f64>, TomographyError> {
    if count == 0 {
        return Err(TomographyError::NoAngles);
    }
    check::size("the number of angles", count)?;
    Ok((0..count).map(|k| k as f64 * range / count as f64).collect())
}
