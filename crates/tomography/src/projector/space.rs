//! Rays in space: from a point onto a flat panel.

use crate::geometry::{ConeBeam, SpaceRay};
use posterior_linalg::Real;
use rayon::prelude::*;
use std::ops::Range;

/// The planes of a main axis: `count` of `sides`, with a margin of one voxel of zeros all around.
#[derive(Clone, Copy)]
struct Planes {
    count: usize,
    sides: [usize; 2],
    /// Steps in the volume along the main axis and both others.
    steps: [usize; 3],
}

impl Planes {
    fn of(cone: &ConeBeam, main: usize) -> Self {
        let shape = [cone.depth, cone.height, cone.width];
        let steps = [cone.height * cone.width, cone.width, 1];
        let [a, b]: [usize; 2] = [[1, 2], [0, 2], [0, 1]][main];
        Self { count: shape[main], sides: [shape[a], shape[b]], steps: [steps[main], steps[a], steps[b]] }
    }

    fn row(self) -> usize {
        self.sides[1] + 2
    }

    fn stride(self) -> usize {
        (self.sides[0] + 2) * self.row()
    }

    /// Voxel and place among the planes, for each voxel.
    fn places(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.count).flat_map(move |p| {
            (0..self.sides[0]).flat_map(move |a| {
                (0..self.sides[1]).map(move |b| {
                    let voxel = p * self.steps[0] + a * self.steps[1] + b * self.steps[2];
                    (voxel, p * self.stride() + (a + 1) * self.row() + b + 1)
                })
            })
        })
    }

    /// Planes at which the ray is within the margin.
    fn crossed(self, ray: &SpaceRay, planes: Range<usize>) -> Range<usize> {
        let at = |p: usize, i: usize| ray.start[i] + ray.slope[i] * p as f64;
        let inside = |p: usize| (0..2).all(|i| at(p, i) > -1.0 && at(p, i) < self.sides[i] as f64);
        let (mut low, mut high) = (planes.start as f64, planes.end as f64);
        for i in 0..2 {
            if ray.slope[i].abs() > 1e-12 {
                let [a, b] = [-1.0, self.sides[i] as f64].map(|edge| (edge - ray.start[i]) / ray.slope[i]);
                low = low.max(a.min(b).floor() - 1.0);
                high = high.min(a.max(b).ceil() + 2.0);
            }
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

    /// The first of four voxels, margin included, and the shares of the later ones along both axes.
    #[inline(always)]
    fn between(self, ray: &SpaceRay, plane: usize) -> (usize, [f64; 2]) {
        let place = [0, 1].map(|i| ray.start[i] + ray.slope[i] * plane as f64 + 1.0);
        let first = place.map(|p| p as usize);
        (first[0] * self.row() + first[1], [place[0] - first[0] as f64, place[1] - first[1] as f64])
    }
}

fn rays(cone: &ConeBeam, angle: usize) -> Vec<SpaceRay> {
    let direction = cone.angles[angle].sin_cos();
    (0..cone.rows * cone.columns).map(|e| cone.ray(direction, e / cone.columns, e % cone.columns)).collect()
}

/// `T x`.
pub(super) fn project<T: Real>(cone: &ConeBeam, volume: &[T]) -> Vec<T> {
    let axes = [0, 1, 2].map(|main| Planes::of(cone, main));
    let elements = cone.rows * cone.columns;
    let all: Vec<Vec<SpaceRay>> = (0..cone.angles.len()).into_par_iter().map(|a| rays(cone, a)).collect();
    let used = [0, 1, 2].map(|main| all.iter().flatten().any(|ray| ray.main == main));
    let spread: Vec<Vec<T>> = (0..3)
        .into_par_iter()
        .map(|main| {
            let mut out = vec![T::ZERO; if used[main] { axes[main].count * axes[main].stride() } else { 0 }];
            if used[main] {
                axes[main].places().for_each(|(voxel, place)| out[place] = volume[voxel]);
            }
            out
        })
        .collect();
    let mut out = vec![T::ZERO; cone.angles.len() * elements];
    out.par_chunks_exact_mut(elements).zip(&all).for_each(|(out, rays)| {
        for (ray, out) in rays.iter().zip(out) {
            let (axis, planes) = (axes[ray.main], &spread[ray.main]);
            let (stride, row) = (axis.stride(), axis.row());
            let mut sum = T::ZERO;
            for plane in axis.crossed(ray, 0..axis.count) {
                let (first, shares) = axis.between(ray, plane);
                let [s, t] = shares.map(T::from_f64);
                let (above, below) =
                    (&planes[plane * stride + first..][..2], &planes[plane * stride + first + row..][..2]);
                let upper = above[0] + t * (above[1] - above[0]);
                let lower = below[0] + t * (below[1] - below[0]);
                sum += upper + s * (lower - upper);
            }
            *out = sum * T::from_f64(ray.length);
        }
    });
    out
}

/// `T' y`: each plane is one task's.
pub(super) fn back_project<T: Real>(cone: &ConeBeam, sinogram: &[T]) -> Vec<T> {
    let elements = cone.rows * cone.columns;
    let all: Vec<Vec<SpaceRay>> = (0..cone.angles.len()).into_par_iter().map(|a| rays(cone, a)).collect();
    let mut out = vec![T::ZERO; cone.depth * cone.height * cone.width];
    for main in 0..3 {
        if !all.iter().flatten().any(|ray| ray.main == main) {
            continue;
        }
        let axis = Planes::of(cone, main);
        let (stride, row) = (axis.stride(), axis.row());
        let mut planes = vec![T::ZERO; axis.count * stride];
        planes.par_chunks_exact_mut(stride).enumerate().for_each(|(plane, own)| {
            for (rays, measured) in all.iter().zip(sinogram.chunks_exact(elements)) {
                for (ray, y) in rays.iter().zip(measured).filter(|(ray, _)| ray.main == main) {
                    if axis.crossed(ray, plane..plane + 1).is_empty() {
                        continue;
                    }
                    let (first, shares) = axis.between(ray, plane);
                    let [s, t] = shares.map(T::from_f64);
                    let y = *y * T::from_f64(ray.length);
                    let (lower, upper) = (s * y, y - s * y);
                    own[first] += upper - t * upper;
                    own[first + 1] += t * upper;
                    own[first + row] += lower - t * lower;
                    own[first + row + 1] += t * lower;
                }
            }
        });
        axis.places().for_each(|(voxel, place)| out[voxel] += planes[place]);
    }
    out
}

/// Every weight of one ray.
pub(super) fn visit(cone: &ConeBeam, angle: usize, element: usize, visit: &mut dyn FnMut(usize, f64)) {
    let ray = cone.ray(cone.angles[angle].sin_cos(), element / cone.columns, element % cone.columns);
    let axis = Planes::of(cone, ray.main);
    for plane in axis.crossed(&ray, 0..axis.count) {
        let (first, [s, t]) = axis.between(&ray, plane);
        let (a, b) = (first / axis.row(), first % axis.row());
        for (a, b, weight) in [
            (a, b, (1.0 - s) * (1.0 - t)),
            (a, b + 1, (1.0 - s) * t),
            (a + 1, b, s * (1.0 - t)),
            (a + 1, b + 1, s * t),
        ] {
            let inside = a >= 1 && a <= axis.sides[0] && b >= 1 && b <= axis.sides[1];
            if inside && weight > 0.0 {
                let voxel = plane * axis.steps[0] + (a - 1) * axis.steps[1] + (b - 1) * axis.steps[2];
                visit(voxel, weight * ray.length);
            }
        }
    }
}
