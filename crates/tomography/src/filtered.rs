//! Filtered back-projection.

use crate::TomographyError;
use crate::geometry::{FanBeam, Geometry, ParallelBeam};
use crate::projector::Projector;
use faer::MatRef;
use posterior_linalg::operator::LinearOperator;
use rayon::prelude::*;
use realfft::RealFftPlanner;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// What projections are filtered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
    /// The ramp, sampled in space: sharp.
    #[default]
    RamLak,
    /// The ramp under Hann's window: smooth.
    Hann,
}

/// Projections (rows of `elements` at a distance) through the filter.
///
/// The kernel is sampled in space, `1 / 4 D²` at 0, `-1 / (pi n D)²` at odd n and 0 elsewhere: a sampled ramp would miss the mean. Rows are padded to twice their length, so that nothing wraps around.
fn filtered(
    rows: &[f64],
    elements: usize,
    spacing: f64,
    filter: Filter,
) -> Result<Vec<f64>, TomographyError> {
    let length = (2 * elements).next_power_of_two();
    let mut planner = RealFftPlanner::<f64>::new();
    let (forward, inverse) = (planner.plan_fft_forward(length), planner.plan_fft_inverse(length));
    let failed = |e: realfft::FftError| TomographyError::Geometry { problem: e.to_string() };
    let mut kernel = vec![0.0; length];
    for (n, value) in kernel.iter_mut().enumerate() {
        let n = n.min(length - n);
        *value = match n {
            0 => 0.25 / (spacing * spacing),
            n if n % 2 == 1 => -1.0 / (PI * n as f64 * spacing).powi(2),
            _ => 0.0,
        };
    }
    let mut spectrum = forward.make_output_vec();
    forward.process(&mut kernel, &mut spectrum).map_err(failed)?;
    let last = spectrum.len() - 1;
    let response: Vec<f64> = spectrum
        .iter()
        .enumerate()
        .map(|(k, value)| {
            let window = match filter {
                Filter::RamLak => 1.0,
                Filter::Hann => 0.5 * (1.0 + (PI * k as f64 / last as f64).cos()),
            };
            // The kernel is even, its spectrum real. The inverse transform here is not divided by its length.
            value.re * spacing * window / length as f64
        })
        .collect();
    let mut out = vec![0.0; rows.len()];
    out.par_chunks_exact_mut(elements).zip(rows.par_chunks_exact(elements)).try_for_each(|(out, row)| {
        let mut padded = vec![0.0; length];
        padded[..elements].copy_from_slice(row);
        let mut spectrum = forward.make_output_vec();
        forward.process(&mut padded, &mut spectrum).map_err(failed)?;
        spectrum.iter_mut().zip(&response).for_each(|(s, r)| *s *= *r);
        inverse.process(&mut spectrum, &mut padded).map_err(failed)?;
        out.copy_from_slice(&padded[..elements]);
        Ok::<(), TomographyError>(())
    })?;
    Ok(out)
}

/// Where a position (in elements) lies in a row; zero outside.
#[inline(always)]
fn interpolated(row: &[f64], position: f64) -> f64 {
    let last = (row.len() - 1) as f64;
    if !(position >= 0.0 && position <= last) {
        return 0.0;
    }
    let first = (position as usize).min(row.len().saturating_sub(2));
    let share = position - first as f64;
    let next = row[(first + 1).min(row.len() - 1)];
    row[first] + share * (next - row[first])
}

/// The picture of a sinogram by filtered back-projection: every pixel takes what lies between two elements of its projection. Angles are taken for equidistant over half a turn (parallel) or a whole one (fan).
///
/// Cost: a Fourier transform of each projection, a dozen flops for each pixel and angle. Source: Kak and Slaney (1988), sections 3.3 and 3.4; spec `tomography`, section 3.3.
///
/// # Errors
/// [`TomographyError::Shape`]; [`TomographyError::NoFilteredBackProjection`] for cones.
pub fn filtered_back_projection(
    geometry: &Geometry,
    sinogram: &[f64],
    filter: Filter,
) -> Result<Vec<f64>, TomographyError> {
    crate::error::same_count("measurements", geometry.measurements(), sinogram.len())?;
    match geometry {
        Geometry::Parallel(scan) => {
            parallel(scan, &filtered(sinogram, scan.detectors, scan.spacing, filter)?)
        }
        Geometry::Fan(scan) => fan(scan, sinogram, filter),
        Geometry::Stacked(scan) => {
            let (own, depth) = (&scan.slice, scan.depth);
            let all = filtered(sinogram, own.detectors, own.spacing, filter)?;
            let mut out = Vec::with_capacity(geometry.pixels());
            for slice in 0..depth {
                let rows: Vec<f64> = (0..own.angles.len())
                    .flat_map(|angle| {
                        let start = (angle * depth + slice) * own.detectors;
                        all[start..start + own.detectors].iter().copied()
                    })
                    .collect();
                out.extend(parallel(own, &rows)?);
            }
            Ok(out)
        }
        Geometry::Cone(_) => Err(TomographyError::NoFilteredBackProjection),
    }
}

/// Back-projection of filtered rows.
fn parallel(scan: &ParallelBeam, rows: &[f64]) -> Result<Vec<f64>, TomographyError> {
    let directions: Vec<(f64, f64)> = scan.angles.iter().map(|a| a.sin_cos()).collect();
    let share = PI / scan.angles.len() as f64;
    let middle = 0.5 * (scan.detectors as f64 - 1.0);
    let mut out = vec![0.0; scan.height * scan.width];
    out.par_chunks_exact_mut(scan.width).enumerate().for_each(|(i, line)| {
        let y = 0.5 * (scan.height as f64 - 1.0) - i as f64;
        for ((sin, cos), row) in directions.iter().zip(rows.chunks_exact(scan.detectors)) {
            let step = cos / scan.spacing;
            let start = (y * sin - 0.5 * (scan.width as f64 - 1.0) * cos) / scan.spacing + middle;
            for (j, pixel) in line.iter_mut().enumerate() {
                *pixel += interpolated(row, start + step * j as f64);
            }
        }
        line.iter_mut().for_each(|v| *v *= share);
    });
    Ok(out)
}

/// Projections of a flat detector, scaled to one through the centre: weighted by the cosine of each ray, filtered, and back-projected by the inverse square of a pixel's distance from the source.
fn fan(scan: &FanBeam, sinogram: &[f64], filter: Filter) -> Result<Vec<f64>, TomographyError> {
    let spacing = scan.spacing * scan.source / (scan.source + scan.detector);
    let middle = 0.5 * (scan.detectors as f64 - 1.0);
    let weight = |l: usize| scan.source / scan.source.hypot((l as f64 - middle) * spacing);
    let weighted: Vec<f64> =
        sinogram.iter().enumerate().map(|(k, y)| y * weight(k % scan.detectors)).collect();
    let rows = filtered(&weighted, scan.detectors, spacing, filter)?;
    let directions: Vec<(f64, f64)> = scan.angles.iter().map(|a| a.sin_cos()).collect();
    // Every line is seen from both ends.
    let share = PI / scan.angles.len() as f64;
    let mut out = vec![0.0; scan.height * scan.width];
    out.par_chunks_exact_mut(scan.width).enumerate().for_each(|(i, line)| {
        let y = 0.5 * (scan.height as f64 - 1.0) - i as f64;
        for ((sin, cos), row) in directions.iter().zip(rows.chunks_exact(scan.detectors)) {
            for (j, pixel) in line.iter_mut().enumerate() {
                let x = j as f64 - 0.5 * (scan.width as f64 - 1.0);
                // How far along the middle ray, and across it.
                let (along, across) = (y * cos - x * sin, x * cos + y * sin);
                let ratio = (scan.source + along) / scan.source;
                *pixel += interpolated(row, across / ratio / spacing + middle) / (ratio * ratio);
            }
        }
        line.iter_mut().for_each(|v| *v *= share);
    });
    Ok(out)
}

/// What a network looks at when only some of `total` equidistant angles were measured: filtered projections sent back by the matched transpose, as bright as the picture.
///
/// Source: spec `tomography`, section 3.3.
///
/// # Errors
/// [`TomographyError::Shape`]; [`TomographyError::NoFilteredBackProjection`] for rays that are not parallel.
pub fn scaled_back_projection(
    projector: &Projector,
    sinogram: &[f64],
    filter: Filter,
) -> Result<Vec<f64>, TomographyError> {
    let geometry = projector.geometry();
    crate::error::same_count("measurements", geometry.measurements(), sinogram.len())?;
    let (elements, spacing) = match geometry {
        Geometry::Parallel(scan) => (scan.detectors, scan.spacing),
        Geometry::Stacked(scan) => (scan.slice.detectors, scan.slice.spacing),
        Geometry::Fan(_) | Geometry::Cone(_) => return Err(TomographyError::NoFilteredBackProjection),
    };
    let rows = filtered(sinogram, elements, spacing, filter)?;
    let back = projector.multiply_transpose(MatRef::from_column_major_slice(&rows, rows.len(), 1));
    // The transpose counts each pixel once for each angle and 1 / spacing elements.
    let share = PI * spacing / geometry.angles().len() as f64;
    Ok(back.col_as_slice(0).iter().map(|v| v * share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::StackedParallel;
    use crate::quality::peak_signal_to_noise_ratio;

    fn sinogram(geometry: &Geometry, picture: &[f64]) -> (Projector, Vec<f64>) {
        let projector = Projector::new(geometry.clone()).unwrap();
        let y = projector.multiply(MatRef::from_column_major_slice(picture, picture.len(), 1));
        (projector, y.col_as_slice(0).to_vec())
    }

    #[test]
    fn a_disk_comes_back_as_well_as_the_specification_says() {
        let geometry = Geometry::Parallel(ParallelBeam::usual(64, 64, 180));
        let disk = crate::phantom::disk(64, 64, 20.0);
        let (_, y) = sinogram(&geometry, &disk);
        let of = |filter| filtered_back_projection(&geometry, &y, filter).unwrap();
        let (sharp, smooth) = (of(Filter::RamLak), of(Filter::Hann));
        let quality = |p: &[f64]| peak_signal_to_noise_ratio(&disk, p);
        assert!((quality(&sharp) - 31.1).abs() < 0.2, "{}", quality(&sharp));
        assert!((quality(&smooth) - 25.3).abs() < 0.2, "{}", quality(&smooth));
        let centre = 0.25
            * [(31, 31), (31, 32), (32, 31), (32, 32)].map(|(i, j)| sharp[i * 64 + j]).iter().sum::<f64>();
        assert!((centre - 0.9998).abs() < 1e-3, "{centre}");
    }

    #[test]
    fn the_head_comes_back_and_slices_as_one() {
        let geometry = Geometry::Parallel(ParallelBeam::usual(96, 96, 240));
        let head = crate::phantom::shepp_logan(96, 96);
        let (projector, y) = sinogram(&geometry, &head);
        let picture = filtered_back_projection(&geometry, &y, Filter::RamLak).unwrap();
        let quality = peak_signal_to_noise_ratio(&head, &picture);
        assert!(quality > 27.0, "{quality}");
        // The matched transpose is nearly the same picture.
        let scaled = scaled_back_projection(&projector, &y, Filter::RamLak).unwrap();
        assert!((peak_signal_to_noise_ratio(&head, &scaled) - quality).abs() < 2.0);
        let slice = ParallelBeam::usual(20, 16, 30);
        let stacked = Geometry::Stacked(StackedParallel { depth: 2, slice: slice.clone() });
        let volume: Vec<f64> = (0..640).map(|i| ((i * i) as f64 * 0.11).sin()).collect();
        let (_, y) = sinogram(&stacked, &volume);
        let both = filtered_back_projection(&stacked, &y, Filter::Hann).unwrap();
        let flat = Geometry::Parallel(slice);
        for (k, own) in volume.chunks_exact(320).enumerate() {
            let (_, y) = sinogram(&flat, own);
            let one = filtered_back_projection(&flat, &y, Filter::Hann).unwrap();
            assert!(one.iter().zip(&both[320 * k..]).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }

    #[test]
    fn a_fan_sees_what_parallel_rays_do() {
        let scan = FanBeam {
            height: 64,
            width: 64,
            detectors: 151,
            spacing: 1.5,
            source: 120.0,
            detector: 80.0,
            angles: crate::geometry::equidistant(360, 2.0 * PI),
        };
        let geometry = Geometry::Fan(scan);
        // Off the centre, so that a wrong weight or sense of rotation shows.
        let picture: Vec<f64> = (0..4096)
            .map(|p| {
                let (x, y) = ((p % 64) as f64 - 40.0, (p / 64) as f64 - 22.0);
                (9.0 - x.hypot(y) + 0.5).clamp(0.0, 1.0)
            })
            .collect();
        let (_, y) = sinogram(&geometry, &picture);
        let back = filtered_back_projection(&geometry, &y, Filter::RamLak).unwrap();
        let quality = peak_signal_to_noise_ratio(&picture, &back);
        assert!(quality > 28.0, "{quality}");
        assert!((back[22 * 64 + 40] - 1.0).abs() < 0.02);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let geometry = Geometry::Parallel(ParallelBeam::usual(8, 8, 4));
        assert!(matches!(
            filtered_back_projection(&geometry, &[0.0; 3], Filter::RamLak),
            Err(TomographyError::Shape { .. })
        ));
    }
}
