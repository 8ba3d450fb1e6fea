//! Volumes under a cone: in the plane a fan; along the depth, where a ray of a panel column crosses a line, the panel's rows see the list of voxels there, magnified.
//!
//! Two lists of voxels are mixed once for all rows of the panel; then each row reads between two entries of the mixture.

use super::frames::{add_transposed, transposed};
use super::lanes::{gathered, scattered};
use super::line::{PAD, split};
use super::rays::Rays;
use crate::ConeBeam;
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_linalg::vectorised::{add_scaled, dispatch};

/// `T X`, column by column. Each angle is one task.
pub(super) fn forward<T: Real>(
    rays: &Rays,
    beam: &ConeBeam,
    input: MatRef<'_, T>,
    mut output: MatMut<'_, T>,
) {
    for column in 0..input.ncols() {
        let volume = gathered(input.subcols(column, 1), rays.height * rays.width, rays.depth);
        let columns = transposed(&volume, rays.height, rays.width, rays.depth);
        let per_angle = beam.rows * beam.columns;
        let mut sinogram = vec![T::ZERO; output.nrows()];
        parallel::chunks(&mut sinogram, per_angle, 1, |angle, out| {
            dispatch(
                #[inline(always)]
                || one_angle(rays, angle, [&volume, &columns], beam, out),
            );
        });
        output.as_mut().col_mut(column).iter_mut().zip(sinogram).for_each(|(o, v)| *o = v);
    }
}

#[inline(always)]
fn one_angle<T: Real>(rays: &Rays, angle: usize, frames: [&[T]; 2], beam: &ConeBeam, out: &mut [T]) {
    let depth = rays.depth;
    let mut mixed = vec![T::ZERO; depth + 2 * PAD];
    let mut sums = vec![T::ZERO; rays.per_angle * beam.rows];
    for bundle in &rays.bundles[rays.of_angle[angle].clone()] {
        let frame = frames[usize::from(!bundle.rows)];
        let first = bundle.positions.start;
        let mut near = rays.near(bundle, 0);
        for (i, line) in frame.chunks_exact(rays.across(bundle.rows) * depth).enumerate() {
            near = rays.touching(bundle, i, near);
            for p in near.clone() {
                let (j, t) = split(rays.starts[p] + rays.slopes[p] * i as f64);
                mixed.fill(T::ZERO);
                for (j, weight) in [(j, 1.0 - t), (j.wrapping_add(1), t)] {
                    let Ok(j) = usize::try_from(j) else { continue };
                    if let Some(voxels) = line.get(j * depth..(j + 1) * depth) {
                        add_scaled(T::from_f64(weight), voxels, &mut mixed[PAD..PAD + depth]);
                    }
                }
                let place = place(rays, p, i);
                let element = bundle.detector(p - first);
                let sums = &mut sums[element * beam.rows..(element + 1) * beam.rows];
                for (row, sum) in sums.iter_mut().enumerate() {
                    let Some((at, t)) = place(row) else { continue };
                    let t = T::from_f64(t);
                    *sum = mixed[at].mul_add(T::ONE - t, mixed[at + 1].mul_add(t, *sum));
                }
            }
        }
        for p in bundle.positions.clone() {
            let element = bundle.detector(p - first);
            for row in 0..beam.rows {
                let scale = rays.steep(p, rays.panel_height(row));
                out[row * beam.columns + element] = sums[element * beam.rows + row] * T::from_f64(scale);
            }
        }
    }
}

/// Where the ray at position p to a row of the panel is along the depth at line i: an entry of a padded list and the remainder, if it touches the volume.
#[inline(always)]
fn place(rays: &Rays, p: usize, i: usize) -> impl Fn(usize) -> Option<(usize, f64)> {
    let [start, slope] = rays.parts[p];
    let (part, middle) = (start + slope * i as f64, 0.5 * (rays.depth as f64 - 1.0));
    let (depth, (rows, spacing)) = (rays.depth as f64, rays.panel);
    move |row| {
        // As `Rays::panel_height`.
        let up = (row as f64 - 0.5 * (rows as f64 - 1.0)) * spacing * part + middle;
        if up <= -1.0 || up >= depth {
            return None;
        }
        let (k, t) = split(up);
        Some(((k + PAD as i32) as usize, t))
    }
}

/// `Tᵀ Y`, column by column. Each line of the plane is one task.
pub(super) fn backward<T: Real>(
    rays: &Rays,
    beam: &ConeBeam,
    input: MatRef<'_, T>,
    mut output: MatMut<'_, T>,
) {
    for column in 0..input.ncols() {
        let values = scaled(rays, beam, input, column);
        let [mut volume, columns] = [true, false].map(|rows| {
            let across = rays.across(rows) * rays.depth;
            let mut frame = vec![T::ZERO; rays.lines(rows) * across];
            parallel::chunks(&mut frame, across, 1, |i, line| {
                dispatch(
                    #[inline(always)]
                    || one_line(rays, rows, i, &values, beam.rows, line),
                );
            });
            frame
        });
        add_transposed(&mut volume, &columns, rays.height, rays.width, rays.depth);
        scattered(&volume, output.as_mut().subcols_mut(column, 1), rays.height * rays.width, rays.depth);
    }
}

/// Measurements times lengths, by position of the ray in the plane and then by panel row.
fn scaled<T: Real>(rays: &Rays, beam: &ConeBeam, input: MatRef<'_, T>, column: usize) -> Vec<T> {
    let mut values = vec![T::ZERO; input.nrows()];
    for (angle, bundles) in rays.of_angle.iter().enumerate() {
        for bundle in &rays.bundles[bundles.clone()] {
            for (q, p) in bundle.positions.clone().enumerate() {
                for row in 0..beam.rows {
                    let measurement = (angle * beam.rows + row) * beam.columns + bundle.detector(q);
                    let scale = T::from_f64(rays.steep(p, rays.panel_height(row)));
                    values[p * beam.rows + row] = input[(measurement, column)] * scale;
                }
            }
        }
    }
    values
}

#[inline(always)]
fn one_line<T: Real>(rays: &Rays, rows: bool, i: usize, values: &[T], panel: usize, line: &mut [T]) {
    let depth = rays.depth;
    let mut seen = vec![T::ZERO; depth + 2 * PAD];
    for bundle in rays.bundles.iter().filter(|bundle| bundle.rows == rows) {
        for p in rays.touching(bundle, i, rays.near(bundle, i)) {
            seen.fill(T::ZERO);
            let place = place(rays, p, i);
            for (row, &value) in values[p * panel..(p + 1) * panel].iter().enumerate() {
                let Some((at, t)) = place(row) else { continue };
                let t = T::from_f64(t);
                seen[at] = value.mul_add(T::ONE - t, seen[at]);
                seen[at + 1] = value.mul_add(t, seen[at + 1]);
            }
            let (j, t) = split(rays.starts[p] + rays.slopes[p] * i as f64);
            for (j, weight) in [(j, 1.0 - t), (j.wrapping_add(1), t)] {
                let Ok(j) = usize::try_from(j) else { continue };
                if let Some(voxels) = line.get_mut(j * depth..(j + 1) * depth) {
                    add_scaled(T::from_f64(weight), &seen[PAD..PAD + depth], voxels);
                }
            }
        }
    }
}
