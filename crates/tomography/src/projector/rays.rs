//! The rays of a geometry as numbers.

use super::line::split;
use crate::{FanBeam, Geometry, ParallelBeam};
use std::ops::Range;

/// Rays of one angle that march along the same axis, in the order in which they cross its lines.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    /// Whether lines are rows of the image (rays mostly along Y) or its columns.
    pub(super) rows: bool,
    /// Positions among all rays.
    pub(super) positions: Range<usize>,
    /// The detector element of the first position, and of the others counted up or down from it.
    detector: usize,
    down: bool,
    /// The distance of neighbours on a line where all are the same: parallel rays.
    pub(super) step: Option<f64>,
}

impl Bundle {
    /// The detector element of the q-th ray.
    #[inline(always)]
    pub(super) fn detector(&self, q: usize) -> usize {
        if self.down { self.detector - q } else { self.detector + q }
    }
}

/// All rays of a scan in the plane. Ray p is at `u = start + slope i` on line i, and has `scale` of length from line to line.
#[derive(Clone, Debug)]
pub(super) struct Rays {
    pub(super) height: usize,
    pub(super) width: usize,
    /// Slices: lists of numbers that every pixel of the plane has.
    pub(super) depth: usize,
    /// Detector elements of an angle in the plane.
    pub(super) per_angle: usize,
    pub(super) bundles: Vec<Bundle>,
    /// The bundles of each angle.
    pub(super) of_angle: Vec<Range<usize>>,
    pub(super) starts: Vec<f64>,
    pub(super) slopes: Vec<f64>,
    pub(super) scales: Vec<f64>,
    /// For cones: which part of its way from source to panel a ray has made at line i, `start + slope i`.
    pub(super) parts: Vec<[f64; 2]>,
    /// For cones: the panel's rows and their distance.
    pub(super) panel: (usize, f64),
}

/// A ray in the plane: a point and a direction.
struct Ray {
    point: [f64; 2],
    direction: [f64; 2],
}

impl Rays {
    pub(super) fn of(geometry: &Geometry) -> Self {
        let (height, width) = geometry.plane();
        let (depth, panel) = match geometry {
            Geometry::Stacked(beam) => (beam.depth, (0, 0.0)),
            Geometry::Cone(beam) => (beam.depth, (beam.rows, beam.row_spacing)),
            Geometry::Parallel(_) | Geometry::Fan(_) => (1, (0, 0.0)),
        };
        let per_angle = geometry.detector_shape().1;
        let all = geometry.angles().len() * per_angle;
        let new = || Vec::with_capacity(all);
        let mut rays = Self {
            height,
            width,
            depth,
            per_angle,
            bundles: Vec::new(),
            of_angle: Vec::new(),
            starts: new(),
            slopes: new(),
            scales: new(),
            parts: Vec::new(),
            panel,
        };
        for &angle in geometry.angles() {
            let first = rays.bundles.len();
            match geometry {
                Geometry::Parallel(beam) => rays.add(|l| parallel(beam, angle, l), true, false),
                Geometry::Stacked(beam) => rays.add(|l| parallel(&beam.slice, angle, l), true, false),
                Geometry::Fan(beam) => rays.add(|l| fan(beam, angle, l), false, false),
                Geometry::Cone(beam) => {
                    let plane = beam.central();
                    rays.add(|l| fan(&plane, angle, l), false, true);
                }
            }
            rays.of_angle.push(first..rays.bundles.len());
        }
        rays
    }

    /// Adds the rays of one angle, bundle by bundle.
    fn add(&mut self, ray: impl Fn(usize) -> Ray, same: bool, parts: bool) {
        let rays: Vec<Ray> = (0..self.per_angle).map(ray).collect();
        let along_rows = |r: &Ray| r.direction[1].abs() >= r.direction[0].abs();
        let mut first = 0;
        for some in rays.chunk_by(|a, b| along_rows(a) == along_rows(b)) {
            let rows = along_rows(&some[0]);
            let begin = self.starts.len();
            for ray in some {
                let (start, slope, scale, part) = self.marched(ray, rows);
                self.starts.push(start);
                self.slopes.push(slope);
                self.scales.push(scale);
                if parts {
                    self.parts.push(part);
                }
            }
            self.bundle(rows, begin, first, same);
            first += some.len();
        }
    }

    /// Makes bundles of the rays from position `begin` on, whose first is that of detector element `first`.
    fn bundle(&mut self, rows: bool, begin: usize, first: usize, same: bool) {
        let end = self.starts.len();
        let last = self.lines(rows).saturating_sub(1) as f64;
        // Differences of neighbours change linearly with the line: their signs at both ends are their signs in between.
        let ordered = |sign: f64| {
            [0.0, last]
                .iter()
                .all(|&i| (begin + 1..end).all(|p| sign * (self.at(p, i) - self.at(p - 1, i)) >= 0.0))
        };
        let (up, down) = (ordered(1.0), ordered(-1.0));
        if !up && !down {
            // Fans so wide that rays cross within the image's lines: one by one.
            for p in begin..end {
                let (positions, detector) = (p..p + 1, first + p - begin);
                self.bundles.push(Bundle { rows, positions, detector, down: false, step: None });
            }
            return;
        }
        let down = !up;
        if down {
            self.starts[begin..].reverse();
            self.slopes[begin..].reverse();
            self.scales[begin..].reverse();
            if !self.parts.is_empty() {
                self.parts[begin..].reverse();
            }
        }
        let detector = if down { first + end - begin - 1 } else { first };
        let step = (same && end - begin > 1)
            .then(|| (self.starts[end - 1] - self.starts[begin]) / (end - begin - 1) as f64);
        self.bundles.push(Bundle { rows, positions: begin..end, detector, down, step });
    }

    /// Start, slope, length from line to line, and the part of the way made: of a ray along rows or columns.
    fn marched(&self, ray: &Ray, rows: bool) -> (f64, f64, f64, [f64; 2]) {
        let ([x, y], [dx, dy]) = (ray.point, ray.direction);
        let (top, left) = (0.5 * (self.height as f64 - 1.0), 0.5 * (self.width as f64 - 1.0));
        if rows {
            // Line i is at Y = top - i.
            let q = dx / dy;
            (x + (top - y) * q + left, -q, q.hypot(1.0), [(top - y) / dy, -1.0 / dy])
        } else {
            // Line j is at X = j - left, and u counts rows from the top.
            let q = dy / dx;
            (top - y + (left + x) * q, -q, q.hypot(1.0), [-(left + x) / dx, 1.0 / dx])
        }
    }

    /// Lines that rays along rows (or columns) cross.
    #[inline(always)]
    pub(super) fn lines(&self, rows: bool) -> usize {
        if rows { self.height } else { self.width }
    }

    /// Pixels of such a line.
    #[inline(always)]
    pub(super) fn across(&self, rows: bool) -> usize {
        if rows { self.width } else { self.height }
    }

    /// Where ray p crosses line i.
    #[inline(always)]
    fn at(&self, p: usize, i: f64) -> f64 {
        self.starts[p] + self.slopes[p] * i
    }

    /// The positions of a bundle whose rays touch line i: those with u in (-1, pixels). `near` is where they may begin and end; the way from there costs a step a ray.
    #[inline(always)]
    pub(super) fn touching(&self, bundle: &Bundle, i: usize, near: Range<usize>) -> Range<usize> {
        let Range { start: first, end } = bundle.positions.clone();
        let pixels = self.across(bundle.rows) as f64;
        let i = i as f64;
        let (mut low, mut high) = (near.start.clamp(first, end), near.end.clamp(first, end));
        while low > first && self.at(low - 1, i) > -1.0 {
            low -= 1;
        }
        while low < end && self.at(low, i) <= -1.0 {
            low += 1;
        }
        while high > first && self.at(high - 1, i) >= pixels {
            high -= 1;
        }
        while high < end && self.at(high, i) < pixels {
            high += 1;
        }
        low..high.max(low)
    }

    /// About where the rays begin and end that touch line i, if neighbours had the same distance.
    #[inline(always)]
    pub(super) fn near(&self, bundle: &Bundle, i: usize) -> Range<usize> {
        let Range { start: first, end } = bundle.positions.clone();
        let (a, b) = (self.at(first, i as f64), self.at(end - 1, i as f64));
        let step = ((b - a) / (end - first).saturating_sub(1).max(1) as f64).max(f64::MIN_POSITIVE);
        // Conversions saturate.
        let place = |u: f64| first.saturating_add(((u - a) / step).max(0.0) as usize);
        place(-1.0)..place(self.across(bundle.rows) as f64)
    }

    /// Height of panel row `row`, at the panel.
    #[inline(always)]
    pub(super) fn panel_height(&self, row: usize) -> f64 {
        (row as f64 - 0.5 * (self.panel.0 as f64 - 1.0)) * self.panel.1
    }

    /// Length from line to line of the ray at position p to a panel row at `height`.
    #[inline(always)]
    pub(super) fn steep(&self, p: usize, height: f64) -> f64 {
        self.scales[p].hypot(height * self.parts[p][1])
    }

    /// Every weight of the ray at position p, told with its pixel; `slice` is the slice of a stack or the panel row of a cone.
    pub(super) fn each_weight(
        &self,
        bundle: &Bundle,
        p: usize,
        slice: usize,
        mut tell: impl FnMut(usize, f64),
    ) {
        let pixels = self.across(bundle.rows) as i32;
        let plane = self.height * self.width;
        for i in 0..self.lines(bundle.rows) {
            let u = self.at(p, i as f64);
            if u <= -1.0 || u >= f64::from(pixels) {
                continue;
            }
            let (j, t) = split(u);
            for (j, share) in [(j, 1.0 - t), (j + 1, t)] {
                if j < 0 || j >= pixels || share == 0.0 {
                    continue;
                }
                let pixel =
                    if bundle.rows { i * self.width + j as usize } else { j as usize * self.width + i };
                if self.parts.is_empty() {
                    tell(slice * plane + pixel, share * self.scales[p]);
                    continue;
                }
                let height = self.panel_height(slice);
                let [start, slope] = self.parts[p];
                let up = height * (start + slope * i as f64) + 0.5 * (self.depth as f64 - 1.0);
                if up <= -1.0 || up >= self.depth as f64 {
                    continue;
                }
                let (k, s) = split(up);
                for (k, part) in [(k, 1.0 - s), (k + 1, s)] {
                    if k >= 0 && (k as usize) < self.depth && part != 0.0 {
                        tell(k as usize * plane + pixel, share * part * self.steep(p, height));
                    }
                }
            }
        }
    }

    /// At most how many weights a measurement has.
    pub(super) fn most_weights(&self) -> usize {
        let in_plane = 2 * self.height.max(self.width);
        if self.parts.is_empty() { in_plane } else { 2 * in_plane }
    }
}

fn parallel(beam: &ParallelBeam, angle: f64, element: usize) -> Ray {
    let (sin, cos) = angle.sin_cos();
    let s = (element as f64 - 0.5 * (beam.detectors as f64 - 1.0)) * beam.spacing;
    Ray { point: [s * cos, s * sin], direction: [-sin, cos] }
}

/// From the source, in units of the whole way to the detector.
fn fan(beam: &FanBeam, angle: f64, element: usize) -> Ray {
    let (sin, cos) = angle.sin_cos();
    let s = (element as f64 - 0.5 * (beam.detectors as f64 - 1.0)) * beam.spacing;
    let source = [beam.source_distance * sin, -beam.source_distance * cos];
    let element = [s * cos - beam.detector_distance * sin, s * sin + beam.detector_distance * cos];
    Ray { point: source, direction: [element[0] - source[0], element[1] - source[1]] }
}
