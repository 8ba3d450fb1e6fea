//! **Filtered back-projection**: a picture in closed form, `x = ∫ (filtered projections back along their rays) dβ`.
//!
//! Each projection p is convolved with the ramp in the space of samples (Ram-Lak: `h[0] = 1/4Δ²`, `h[n] = -1/π²n²Δ²` for odd n, 0 for other even n), which has no bias at frequency 0, and
//! `x_ij = (π / angles) Σ_β q_β(X_j cos β + Y_i sin β)`, q being linear between its samples. Fans and cones weigh their projections before and distances after (Feldkamp, Davis and Kress).
//!
//! | file | what |
//! |---|---|
//! | `ramp` | filters, by fast Fourier transforms |
//! | `back` | back along rays, pixel by pixel |
//!
//! Cost: `pixels · angles` interpolations. It is linear in the sinogram, needs many angles, and is where iterative reconstructions and networks begin.
//!
//! Source: spec `tomography`, section 3.3; Kak and Slaney, *Principles of computerized tomographic imaging* (1988), chapter 3.

mod back;
mod ramp;
#[cfg(test)]
mod tests;

use crate::{Geometry, Projector, TomographyError};
use serde::{Deserialize, Serialize};
use std::f64::consts::{PI, TAU};

/// What a projection is filtered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Filter {
    /// Sharp
    ///
    /// The ramp itself, and noisy.
    #[default]
    RamLak,
    /// Smooth
    ///
    /// The ramp times Hann's window.
    Hann,
}

/// How filtered projections get back into the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackProjection {
    /// Each pixel reads between two samples of each projection. Every angle has the same weight, so angles must be equidistant.
    Interpolated,
    /// The transpose of the forward operator times the detector's spacing and `π / angles`, whatever the angles are: for subsets that are not equidistant. (Published code scales filtered
    /// data by total over used angles, and the operator of all by `π / total`: the total cancels.) Parallel rays only.
    Matched,
}

/// A picture from a sinogram; without `back`, interpolated where angles are equidistant and by the matched transpose elsewhere.
///
/// ```
/// use posterior_tomography::{Filter, ParallelBeam, Projector, filtered_back_projection, phantom, psnr};
/// let projector = Projector::new(ParallelBeam::usual(64, 64, 180)?)?;
/// let disk = phantom::disk(64, 64, 20.0);
/// let picture = filtered_back_projection(&projector, &projector.project(&disk)?, Filter::RamLak, None)?;
/// assert!(psnr(&picture, &disk) > 30.0);
/// # Ok::<(), posterior_tomography::TomographyError>(())
/// ```
///
/// # Errors
/// [`TomographyError`]: a sinogram of another scan or with numbers that are none; angles that the method does not have weights for.
pub fn filtered_back_projection(
    projector: &Projector,
    sinogram: &[f64],
    filter: Filter,
    back: Option<BackProjection>,
) -> Result<Vec<f64>, TomographyError> {
    let geometry = projector.geometry();
    geometry.check_sinogram(&[sinogram.len()], sinogram)?;
    let turn = if matches!(geometry, Geometry::Parallel(_) | Geometry::Stacked(_)) { PI } else { TAU };
    let equidistant = equidistant(geometry.angles(), turn);
    let back =
        back.unwrap_or(if equidistant { BackProjection::Interpolated } else { BackProjection::Matched });
    let refuse = |what, instead| {
        Err(TomographyError::Unsupported { what, geometry: format!("the {} beam", geometry.kind()), instead })
    };
    if back == BackProjection::Interpolated && !equidistant {
        return refuse(
            "interpolated back-projection of angles that are not equidistant over the half turn (of fans and cones: the turn)",
            "use the matched back-projection (parallel beams), or total variation",
        );
    }
    let beam = match geometry {
        Geometry::Parallel(beam) => beam,
        Geometry::Stacked(beam) => &beam.slice,
        Geometry::Fan(_) | Geometry::Cone(_) if back == BackProjection::Matched => {
            return refuse(
                "filtered back-projection by the matched transpose, which angles that are not equidistant over the turn need,",
                "scan equidistant angles over 360 degrees, or use total variation",
            );
        }
        Geometry::Fan(fan) => {
            let (weighed, spacing) = back::weighed_fan(fan, sinogram);
            let filtered = ramp::filtered(&weighed, fan.detectors, spacing, filter);
            return Ok(back::fan(fan, &filtered));
        }
        Geometry::Cone(cone) => {
            let (weighed, spacing) = back::weighed_cone(cone, sinogram);
            let filtered = ramp::filtered(&weighed, cone.columns, spacing, filter);
            return Ok(back::cone(cone, &filtered));
        }
    };
    let filtered = ramp::filtered(sinogram, beam.detectors, beam.spacing, filter);
    if back == BackProjection::Matched {
        let scale = beam.spacing * PI / beam.angles.len() as f64;
        let mut image = projector.back_project(&filtered)?;
        image.iter_mut().for_each(|v| *v *= scale);
        return Ok(image);
    }
    let depth = geometry.detector_shape().0;
    Ok(back::parallel(beam, depth, &filtered))
}

/// Whether angles have the same distance all around `turn`.
fn equidistant(angles: &[f64], turn: f64) -> bool {
    let step = turn / angles.len() as f64;
    // Half a step from the first angle, so that rounding never carries one over the end of the turn.
    let first = angles.first().copied().unwrap_or_default();
    let mut sorted: Vec<f64> = angles.iter().map(|a| (a - first + 0.5 * step).rem_euclid(turn)).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.iter().enumerate().all(|(k, a)| (a - (k as f64 + 0.5) * step).abs() < 1e-6 * step)
}
