//! Back along the rays, pixel by pixel; each row of pixels is one task.

use crate::{ConeBeam, FanBeam, ParallelBeam};
use posterior_linalg::parallel;
use posterior_linalg::vectorised::dispatch;
use std::f64::consts::{PI, TAU};

/// Zeros before and after each projection.
const PAD: usize = 2;

/// Projections of `detectors` samples with zeros around each.
fn padded(filtered: &[f64], detectors: usize) -> Vec<f64> {
    let mut out = vec![0.0; filtered.len() / detectors * (detectors + 2 * PAD)];
    for (to, from) in out.chunks_exact_mut(detectors + 2 * PAD).zip(filtered.chunks_exact(detectors)) {
        to[PAD..PAD + detectors].copy_from_slice(from);
    }
    out
}

/// What a padded projection is at sample `u`, linear between samples, 0 outside.
#[inline(always)]
fn read(line: &[f64], u: f64) -> f64 {
    // Far outside is as good as just outside, and keeps the conversion in range.
    let u = u.max(-2.0).min(line.len() as f64);
    let (j, t) = crate::projector::split(u);
    let at = j.wrapping_add(PAD as i32) as u32 as usize;
    let left = if at < line.len() { line[at] } else { 0.0 };
    let right = if at + 1 < line.len() { line[at + 1] } else { 0.0 };
    left + t * (right - left)
}

/// `out[j] += line(start + step j)`: as a function of its own, so that the compiler knows that `out` is nothing else and makes vector code.
#[inline(always)]
fn add_read(line: &[f64], start: f64, step: f64, out: &mut [f64]) {
    for j in 0..out.len() {
        out[j] += read(line, start + step * j as f64);
    }
}

/// Parallel beams, `depth` slices of each angle.
pub(super) fn parallel(beam: &ParallelBeam, depth: usize, filtered: &[f64]) -> Vec<f64> {
    let (height, width, stride) = (beam.height, beam.width, beam.detectors + 2 * PAD);
    let lines = padded(filtered, beam.detectors);
    let middle = 0.5 * (beam.detectors as f64 - 1.0);
    let turns: Vec<(f64, f64)> = beam.angles.iter().map(|a| a.sin_cos()).collect();
    let mut image = vec![0.0; depth * height * width];
    parallel::chunks(&mut image, width, 1, |row, out| {
        let (slice, y) = (row / height, 0.5 * (height as f64 - 1.0) - (row % height) as f64);
        dispatch(
            #[inline(always)]
            || {
                for (angle, (sin, cos)) in turns.iter().enumerate() {
                    let line = &lines[(angle * depth + slice) * stride..][..stride];
                    let start = (y * sin - 0.5 * (width as f64 - 1.0) * cos) / beam.spacing + middle;
                    let step = cos / beam.spacing;
                    add_read(line, start, step, out);
                }
            },
        );
        let scale = PI / beam.angles.len() as f64;
        out.iter_mut().for_each(|v| *v *= scale);
    });
    image
}

/// Projections of a fan as seen at the centre, weighed by the cosine of each ray, and the distance of samples there.
pub(super) fn weighed_fan(fan: &FanBeam, sinogram: &[f64]) -> (Vec<f64>, f64) {
    let (distance, middle) = (fan.source_distance, 0.5 * (fan.detectors as f64 - 1.0));
    let spacing = fan.spacing * distance / (distance + fan.detector_distance);
    let weigh = |(at, value): (usize, &f64)| {
        let s = ((at % fan.detectors) as f64 - middle) * spacing;
        value * distance / s.hypot(distance)
    };
    (sinogram.iter().enumerate().map(weigh).collect(), spacing)
}

/// Fans over the whole turn: each pixel reads between two samples, with the inverse square of its share of the source's distance.
pub(super) fn fan(beam: &FanBeam, filtered: &[f64]) -> Vec<f64> {
    let (height, width, stride) = (beam.height, beam.width, beam.detectors + 2 * PAD);
    let lines = padded(filtered, beam.detectors);
    let distance = beam.source_distance;
    let spacing = beam.spacing * distance / (distance + beam.detector_distance);
    let turns: Vec<(f64, f64)> = beam.angles.iter().map(|a| a.sin_cos()).collect();
    let mut image = vec![0.0; height * width];
    parallel::chunks(&mut image, width, 1, |i, out| {
        let (x, y) = (-0.5 * (width as f64 - 1.0), 0.5 * (height as f64 - 1.0) - i as f64);
        dispatch(
            #[inline(always)]
            || {
                for (line, (sin, cos)) in lines.chunks_exact(stride).zip(&turns) {
                    // How far the first pixel is from the source, seen along the central ray, in distances of the source, and where it is across that ray, in samples.
                    let far = (1.0 + (y * cos - x * sin) / distance, -sin / distance);
                    let across = ((x * cos + y * sin) / spacing, cos / spacing);
                    add_read_far(line, across, far, 0.5 * (beam.detectors as f64 - 1.0), out);
                }
            },
        );
        // Half, since the turn sees every ray twice.
        let scale = 0.5 * TAU / beam.angles.len() as f64;
        out.iter_mut().for_each(|v| *v *= scale);
    });
    image
}

/// [`add_read`] under a fan: `out[j] += line(across_j / far_j + middle) / far_j²`, both linear in j.
#[inline(always)]
fn add_read_far(line: &[f64], across: (f64, f64), far: (f64, f64), middle: f64, out: &mut [f64]) {
    for j in 0..out.len() {
        let near = 1.0 / (far.0 + far.1 * j as f64);
        out[j] += read(line, (across.0 + across.1 * j as f64) * near + middle) * (near * near);
    }
}

/// As [`weighed_fan`], for the rows of a panel.
pub(super) fn weighed_cone(cone: &ConeBeam, sinogram: &[f64]) -> (Vec<f64>, f64) {
    let distance = cone.source_distance;
    let shrunk = distance / (distance + cone.detector_distance);
    let weigh = |(at, value): (usize, &f64)| {
        let (row, column) = (at / cone.columns % cone.rows, at % cone.columns);
        let s = (column as f64 - 0.5 * (cone.columns as f64 - 1.0)) * cone.column_spacing * shrunk;
        let z = (row as f64 - 0.5 * (cone.rows as f64 - 1.0)) * cone.row_spacing * shrunk;
        value * distance / s.hypot(z).hypot(distance)
    };
    (sinogram.iter().enumerate().map(weigh).collect(), cone.column_spacing * shrunk)
}

/// Cones over the whole turn: each voxel reads between two rows and two columns of each panel, with the inverse square of its share of the source's distance.
pub(super) fn cone(beam: &ConeBeam, filtered: &[f64]) -> Vec<f64> {
    let (height, width, stride) = (beam.height, beam.width, beam.columns + 2 * PAD);
    let lines = padded(filtered, beam.columns);
    let distance = beam.source_distance;
    let shrunk = distance / (distance + beam.detector_distance);
    let (column_spacing, row_spacing) = (beam.column_spacing * shrunk, beam.row_spacing * shrunk);
    let (middle, middle_row) = (0.5 * (beam.columns as f64 - 1.0), 0.5 * (beam.rows as f64 - 1.0));
    let turns: Vec<(f64, f64)> = beam.angles.iter().map(|a| a.sin_cos()).collect();
    let empty = vec![0.0; stride];
    let mut volume = vec![0.0; beam.depth * height * width];
    parallel::chunks(&mut volume, width, 1, |line, out| {
        let (k, y) = (line / height, 0.5 * (height as f64 - 1.0) - (line % height) as f64);
        let z = k as f64 - 0.5 * (beam.depth as f64 - 1.0);
        for (angle, (sin, cos)) in turns.iter().enumerate() {
            let panel_row = |row: f64| {
                if row < 0.0 || row >= beam.rows as f64 {
                    return &empty[..];
                }
                &lines[(angle * beam.rows + row as usize) * stride..][..stride]
            };
            for (j, voxel) in out.iter_mut().enumerate() {
                let x = j as f64 - 0.5 * (width as f64 - 1.0);
                // How far the voxel is from the source, seen along the central ray, in distances of the source.
                let far = 1.0 + (y * cos - x * sin) / distance;
                let u = (x * cos + y * sin) / far / column_spacing + middle;
                let v = z / far / row_spacing + middle_row;
                let (row, t) = (v.floor(), v - v.floor());
                let mut value = (1.0 - t) * read(panel_row(row), u);
                if t > 0.0 {
                    value += t * read(panel_row(row + 1.0), u);
                }
                *voxel += value / (far * far);
            }
        }
        // Half, since the turn sees every ray twice.
        let scale = 0.5 * TAU / beam.angles.len() as f64;
        out.iter_mut().for_each(|v| *v *= scale);
    });
    volume
}
