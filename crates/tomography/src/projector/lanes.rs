//! Several images at once, or the slices of a volume: every pixel is a list of numbers, and lists are the vectors of the innermost loops. A weight is made once for all of them.
//!
//! With k right-hand sides and d slices, lane `column · d + slice` of `L = k d`.

use super::frames::{add_transposed, transposed};
use super::line::split;
use super::rays::Rays;
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_linalg::vectorised::{add_scaled, dispatch};

/// `T X` for a block of volumes. Each angle is one task. Memory: two copies of the input and one of the output.
pub(super) fn forward<T: Real>(rays: &Rays, input: MatRef<'_, T>, output: MatMut<'_, T>) {
    let lanes = rays.depth * input.ncols();
    let image = gathered(input, rays.height * rays.width, rays.depth);
    let columns = transposed(&image, rays.height, rays.width, lanes);
    let per_angle = rays.per_angle * lanes;
    let mut sinogram = vec![T::ZERO; rays.of_angle.len() * per_angle];
    parallel::chunks(&mut sinogram, per_angle, 1, |angle, out| {
        dispatch(
            #[inline(always)]
            || one_angle(rays, angle, [&image, &columns], lanes, out),
        );
    });
    scattered(&sinogram, output, rays.per_angle, rays.depth);
}

#[inline(always)]
fn one_angle<T: Real>(rays: &Rays, angle: usize, frames: [&[T]; 2], lanes: usize, out: &mut [T]) {
    for bundle in &rays.bundles[rays.of_angle[angle].clone()] {
        let frame = frames[usize::from(!bundle.rows)];
        let first = bundle.positions.start;
        let mut near = rays.near(bundle, 0);
        for (i, line) in frame.chunks_exact(rays.across(bundle.rows) * lanes).enumerate() {
            near = rays.touching(bundle, i, near);
            for p in near.clone() {
                let detector = bundle.detector(p - first);
                let sums = &mut out[detector * lanes..(detector + 1) * lanes];
                let (j, t) = split(rays.starts[p] + rays.slopes[p] * i as f64);
                for (j, weight) in [(j, 1.0 - t), (j.wrapping_add(1), t)] {
                    if let Some(pixel) = list(line, j, lanes) {
                        add_scaled(T::from_f64(weight * rays.scales[p]), pixel, sums);
                    }
                }
            }
        }
    }
}

/// The list of pixel j, if there is such a pixel.
#[inline(always)]
fn list<T>(line: &[T], j: i32, lanes: usize) -> Option<&[T]> {
    let at = usize::try_from(j).ok()? * lanes;
    line.get(at..at + lanes)
}

/// `Tᵀ Y` for a block of sinograms. Each line of the image is one task. Memory: one copy of the input and two of the output.
pub(super) fn backward<T: Real>(rays: &Rays, input: MatRef<'_, T>, output: MatMut<'_, T>) {
    let lanes = rays.depth * input.ncols();
    let sinogram = per_angle_gathered(input, rays);
    let [mut image, columns] = [true, false].map(|rows| {
        let across = rays.across(rows) * lanes;
        let mut frame = vec![T::ZERO; rays.lines(rows) * across];
        parallel::chunks(&mut frame, across, 1, |i, line| {
            dispatch(
                #[inline(always)]
                || one_line(rays, rows, i, &sinogram, lanes, line),
            );
        });
        frame
    });
    add_transposed(&mut image, &columns, rays.height, rays.width, lanes);
    scattered(&image, output, rays.height * rays.width, rays.depth);
}

#[inline(always)]
fn one_line<T: Real>(rays: &Rays, rows: bool, i: usize, sinogram: &[T], lanes: usize, line: &mut [T]) {
    for (angle, bundles) in rays.of_angle.iter().enumerate() {
        for bundle in rays.bundles[bundles.clone()].iter().filter(|bundle| bundle.rows == rows) {
            let some = rays.touching(bundle, i, rays.near(bundle, i));
            for p in some {
                let ray = angle * rays.per_angle + bundle.detector(p - bundle.positions.start);
                let values = &sinogram[ray * lanes..(ray + 1) * lanes];
                let (j, t) = split(rays.starts[p] + rays.slopes[p] * i as f64);
                for (j, weight) in [(j, 1.0 - t), (j.wrapping_add(1), t)] {
                    let Ok(j) = usize::try_from(j) else { continue };
                    if let Some(pixel) = line.get_mut(j * lanes..(j + 1) * lanes) {
                        add_scaled(T::from_f64(weight * rays.scales[p]), values, pixel);
                    }
                }
            }
        }
    }
}

/// Lists of lanes from a block whose columns have, slice by slice, `size` numbers each.
pub(super) fn gathered<T: Real>(block: MatRef<'_, T>, size: usize, depth: usize) -> Vec<T> {
    let lanes = depth * block.ncols();
    let mut out = vec![T::ZERO; size * lanes];
    const PIECE: usize = 64;
    parallel::chunks(&mut out, PIECE * lanes, 1, |piece, out| {
        for column in 0..block.ncols() {
            for slice in 0..depth {
                for (at, list) in out.chunks_exact_mut(lanes).enumerate() {
                    list[column * depth + slice] = block[(slice * size + piece * PIECE + at, column)];
                }
            }
        }
    });
    out
}

/// The same for measurements, which have their slices within each angle.
fn per_angle_gathered<T: Real>(block: MatRef<'_, T>, rays: &Rays) -> Vec<T> {
    let lanes = rays.depth * block.ncols();
    let rows = rays.per_angle * rays.depth;
    let mut out = vec![T::ZERO; rays.of_angle.len() * rays.per_angle * lanes];
    parallel::chunks(&mut out, rays.per_angle * lanes, 1, |angle, out| {
        for column in 0..block.ncols() {
            for slice in 0..rays.depth {
                for (element, list) in out.chunks_exact_mut(lanes).enumerate() {
                    let row = angle * rows + slice * rays.per_angle + element;
                    list[column * rays.depth + slice] = block[(row, column)];
                }
            }
        }
    });
    out
}

/// The way back: lists of `size` pixels (or detector elements, angle by angle) into the columns of a block.
pub(super) fn scattered<T: Real>(lists: &[T], block: MatMut<'_, T>, size: usize, depth: usize) {
    let lanes = depth * block.ncols();
    parallel::columns(block, 1, |column, mut numbers| {
        for (group, lists) in lists.chunks_exact(size * lanes).enumerate() {
            for slice in 0..depth {
                for (at, list) in lists.chunks_exact(lanes).enumerate() {
                    numbers[(group * depth + slice) * size + at] = list[column * depth + slice];
                }
            }
        }
    });
}
