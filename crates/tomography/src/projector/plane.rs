//! One image: rays are the vectors of the innermost loops.

use super::frames::{add_transposed, transposed};
use super::line::{PAD, collect, gather, scatter};
use super::rays::Rays;
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_linalg::vectorised::dispatch;

/// `T x`. Each angle is one task.
pub(super) fn forward<T: Real>(rays: &Rays, image: MatRef<'_, T>, output: MatMut<'_, T>) {
    let image: Vec<T> = image.col(0).iter().copied().collect();
    let frames = both(&image, rays);
    let mut sinogram = vec![T::ZERO; output.nrows()];
    parallel::chunks(&mut sinogram, rays.per_angle, 1, |angle, out| {
        dispatch(
            #[inline(always)]
            || one_angle(rays, angle, &frames, out),
        );
    });
    output.col_mut(0).iter_mut().zip(sinogram).for_each(|(o, v)| *o = v);
}

#[inline(always)]
fn one_angle<T: Real>(rays: &Rays, angle: usize, frames: &[Vec<T>; 2], out: &mut [T]) {
    let mut sums = vec![T::ZERO; rays.per_angle];
    for bundle in &rays.bundles[rays.of_angle[angle].clone()] {
        let frame = &frames[usize::from(!bundle.rows)];
        let first = bundle.positions.start;
        let sums = &mut sums[..bundle.positions.len()];
        sums.fill(T::ZERO);
        let mut near = rays.near(bundle, 0);
        for (i, line) in frame.chunks_exact(rays.across(bundle.rows) + 2 * PAD).enumerate() {
            near = rays.touching(bundle, i, near);
            let some = &mut sums[near.start - first..near.end - first];
            gather(line, &rays.starts[near.clone()], &rays.slopes[near.clone()], i as f64, some);
        }
        for (q, sum) in sums.iter().enumerate() {
            out[bundle.detector(q)] = *sum * T::from_f64(rays.scales[first + q]);
        }
    }
}

/// The image with padded rows, and with padded columns; a frame that no ray marches through is empty.
fn both<T: Real>(image: &[T], rays: &Rays) -> [Vec<T>; 2] {
    [true, false].map(|rows| {
        if !rays.bundles.iter().any(|bundle| bundle.rows == rows) {
            return Vec::new();
        }
        let turned;
        let image = if rows {
            image
        } else {
            turned = transposed(image, rays.height, rays.width, 1);
            &turned
        };
        let (lines, across) = (rays.lines(rows), rays.across(rows));
        let mut padded = vec![T::ZERO; lines * (across + 2 * PAD)];
        for (to, from) in padded.chunks_exact_mut(across + 2 * PAD).zip(image.chunks_exact(across)) {
            to[PAD..PAD + across].copy_from_slice(from);
        }
        padded
    })
}

/// `Tᵀ y`. Each line of the image is one task.
pub(super) fn backward<T: Real>(rays: &Rays, sinogram: MatRef<'_, T>, output: MatMut<'_, T>) {
    let sinogram: Vec<T> = sinogram.col(0).iter().copied().collect();
    let mut values = vec![T::ZERO; sinogram.len()];
    for (angle, bundles) in rays.of_angle.iter().enumerate() {
        for bundle in &rays.bundles[bundles.clone()] {
            for (q, p) in bundle.positions.clone().enumerate() {
                values[p] =
                    sinogram[angle * rays.per_angle + bundle.detector(q)] * T::from_f64(rays.scales[p]);
            }
        }
    }
    let [mut image, columns] = [true, false].map(|rows| {
        let across = rays.across(rows);
        let mut frame = vec![T::ZERO; rays.lines(rows) * across];
        parallel::chunks(&mut frame, across, 1, |i, line| {
            dispatch(
                #[inline(always)]
                || one_line(rays, rows, i, &values, line),
            );
        });
        frame
    });
    add_transposed(&mut image, &columns, rays.height, rays.width, 1);
    output.col_mut(0).iter_mut().zip(image).for_each(|(o, v)| *o = v);
}

#[inline(always)]
fn one_line<T: Real>(rays: &Rays, rows: bool, i: usize, values: &[T], line: &mut [T]) {
    let across = line.len();
    let [mut lefts, mut rights] = [(); 2].map(|()| vec![T::ZERO; across + 2 * PAD]);
    for bundle in rays.bundles.iter().filter(|bundle| bundle.rows == rows) {
        if let Some(step) = bundle.step {
            let values = &values[bundle.positions.clone()];
            let start = rays.starts[bundle.positions.start] + rays.slopes[bundle.positions.start] * i as f64;
            // Detector elements about a pixel apart: the usual ones.
            if (1.0..2.0).contains(&step) {
                collect::<T, 2>(line, start, step, values);
                continue;
            }
            if (2.0 / 3.0..1.0).contains(&step) {
                collect::<T, 3>(line, start, step, values);
                continue;
            }
        }
        let some = rays.touching(bundle, i, rays.near(bundle, i));
        let (starts, slopes) = (&rays.starts[some.clone()], &rays.slopes[some.clone()]);
        scatter([&mut lefts, &mut rights], starts, slopes, i as f64, &values[some]);
    }
    let both = lefts[PAD..].iter().zip(&rights[PAD..]);
    line.iter_mut().zip(both).for_each(|(v, (left, right))| *v += *left + *right);
}
