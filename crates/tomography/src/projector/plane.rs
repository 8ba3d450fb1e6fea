//! Rays in the plane: parallel, from a point, or the same through every slice.

use crate::geometry::{Geometry, PlaneRay};
use posterior_linalg::Real;
use rayon::prelude::*;
use std::ops::Range;

/// Lines of a picture that one task back-projects.
const LINES: usize = 16;

/// The lines of a main axis: `count` of `width` pixels, in memory of `width + 2` with a margin of zeros on both sides, so that the loops need not ask where the picture ends.
#[derive(Clone, Copy)]
struct Lines {
    count: usize,
    width: usize,
}

impl Lines {
    fn of(height: usize, width: usize, main: usize) -> Self {
        if main == 0 { Self { count: height, width } } else { Self { count: width, width: height } }
    }

    fn stride(self) -> usize {
        self.width + 2
    }

    /// A picture (row-major) along the main axis.
    fn spread<T: Real>(self, picture: &[T], main: usize) -> Vec<T> {
        let mut out = vec![T::ZERO; self.count * self.stride()];
        for line in 0..self.count {
            for place in 0..self.width {
                let from = if main == 0 { line * self.width + place } else { place * self.count + line };
                out[line * self.stride() + place + 1] = picture[from];
            }
        }
        out
    }

    /// Adds lines to a picture, margins left out.
    fn gather<T: Real>(self, lines: &[T], main: usize, picture: &mut [T]) {
        for line in 0..self.count {
            for place in 0..self.width {
                let to = if main == 0 { line * self.width + place } else { place * self.count + line };
                picture[to] += lines[line * self.stride() + place + 1];
            }
        }
    }

    /// Those of some lines at which the ray is above -1 and below the width: where the picture has a part in it.
    fn crossed(self, ray: &PlaneRay, lines: Range<usize>) -> Range<usize> {
        let inside = |p: usize| {
            let at = position(ray, p);
            at > -1.0 && at < self.width as f64
        };
        let (mut low, mut high) = (lines.start as f64, lines.end as f64);
        if ray.slope.abs() > 1e-12 {
            let [a, b] = [-1.0, self.width as f64].map(|edge| (edge - ray.start) / ray.slope);
            // One more on either side: rounding decides below, in the same words as in the loops.
            low = low.max(a.min(b).floor() - 1.0);
            high = high.min(a.max(b).ceil() + 2.0);
        }
        if !(low < high) {
            return 0..0;
        }
        let (mut start, mut end) = (low as usize, high as usize);
        while start < end && !inside(start) {
            start += 1;
        }
        while start < end && !inside(end - 1) {
            end -= 1;
        }
        start..end
    }
}

/// Where a ray crosses a line.
#[inline(always)]
fn position(ray: &PlaneRay, line: usize) -> f64 {
    ray.start + ray.slope * line as f64
}

/// First pixel, margin included, and the share of the second.
#[inline(always)]
fn between(ray: &PlaneRay, line: usize) -> (usize, f64) {
    let place = position(ray, line) + 1.0;
    let first = place as usize;
    (first, place - first as f64)
}

/// Rows, columns, slices and elements of a slice's detector.
fn sizes(geometry: &Geometry) -> (usize, usize, usize, usize) {
    match geometry {
        Geometry::Parallel(own) => (own.height, own.width, 1, own.detectors),
        Geometry::Fan(own) => (own.height, own.width, 1, own.detectors),
        Geometry::Stacked(own) => (own.slice.height, own.slice.width, own.depth, own.slice.detectors),
        Geometry::Cone(_) => unreachable!("cones are rays in space"),
    }
}

/// `T x`, angle by angle.
pub(super) fn project<T: Real>(geometry: &Geometry, image: &[T]) -> Vec<T> {
    let (height, width, slices, elements) = sizes(geometry);
    let axes = [Lines::of(height, width, 0), Lines::of(height, width, 1)];
    let spread: Vec<[Vec<T>; 2]> = image
        .chunks_exact(height * width)
        .map(|slice| [axes[0].spread(slice, 0), axes[1].spread(slice, 1)])
        .collect();
    let mut out = vec![T::ZERO; geometry.measurements()];
    out.par_chunks_exact_mut(slices * elements).enumerate().for_each(|(angle, out)| {
        let rays = geometry.plane_rays(angle);
        for (slice, out) in spread.iter().zip(out.chunks_exact_mut(elements)) {
            for (ray, out) in rays.iter().zip(out) {
                let (axis, lines) = (axes[ray.main], &slice[ray.main]);
                let stride = axis.stride();
                let mut sum = T::ZERO;
                for line in axis.crossed(ray, 0..axis.count) {
                    let (first, share) = between(ray, line);
                    let pair = &lines[line * stride + first..][..2];
                    let share = T::from_f64(share);
                    sum += pair[0] + share * (pair[1] - pair[0]);
                }
                *out = sum * T::from_f64(ray.length);
            }
        }
    });
    out
}

/// `T' y`: each task has a few lines of its own and goes through all rays in their order.
pub(super) fn back_project<T: Real>(geometry: &Geometry, sinogram: &[T]) -> Vec<T> {
    let (height, width, slices, elements) = sizes(geometry);
    let angles = geometry.angles().len();
    let rays: Vec<Vec<PlaneRay>> = (0..angles).map(|a| geometry.plane_rays(a)).collect();
    let mut out = vec![T::ZERO; geometry.pixels()];
    out.par_chunks_exact_mut(height * width).enumerate().for_each(|(slice, picture)| {
        for main in 0..2 {
            let axis = Lines::of(height, width, main);
            let stride = axis.stride();
            let mut lines = vec![T::ZERO; axis.count * stride];
            lines.par_chunks_mut(LINES * stride).enumerate().for_each(|(task, lines)| {
                let start = task * LINES;
                let range = start..start + lines.len() / stride;
                for (angle, rays) in rays.iter().enumerate() {
                    let measured = &sinogram[(angle * slices + slice) * elements..][..elements];
                    for (ray, y) in rays.iter().zip(measured).filter(|(ray, _)| ray.main == main) {
                        let y = *y * T::from_f64(ray.length);
                        for line in axis.crossed(ray, range.clone()) {
                            let (first, share) = between(ray, line);
                            let pair = &mut lines[(line - start) * stride + first..][..2];
                            let second = T::from_f64(share) * y;
                            pair[0] += y - second;
                            pair[1] += second;
                        }
                    }
                }
            });
            axis.gather(&lines, main, picture);
        }
    });
    out
}

/// Every weight of one ray.
pub(super) fn visit(geometry: &Geometry, angle: usize, element: usize, visit: &mut dyn FnMut(usize, f64)) {
    let (height, width, _, elements) = sizes(geometry);
    let ray = geometry.plane_rays(angle)[element % elements];
    let axis = Lines::of(height, width, ray.main);
    let first_pixel = element / elements * height * width;
    for line in axis.crossed(&ray, 0..axis.count) {
        let (first, share) = between(&ray, line);
        for (place, weight) in [(first, 1.0 - share), (first + 1, share)] {
            if place >= 1 && place <= axis.width && weight > 0.0 {
                let place = place - 1;
                let pixel = if ray.main == 0 { line * width + place } else { place * width + line };
                visit(first_pixel + pixel, weight * ray.length);
            }
        }
    }
}
