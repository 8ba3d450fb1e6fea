//! One ray as a line through the grid, in the coordinates of Joseph's method: for each row (or column, or slice) where between two pixels it crosses.

use super::{ConeBeam, FanBeam, Geometry, ParallelBeam};

/// A ray in the plane. It crosses line p of the main axis at pixel `start + slope p` of the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlaneRay {
    /// 0: it runs along the columns and crosses rows; 1: it crosses columns.
    pub(crate) main: usize,
    pub(crate) start: f64,
    pub(crate) slope: f64,
    /// Length between two lines.
    pub(crate) length: f64,
}

impl PlaneRay {
    /// The line `X cos + Y sin = s` through a picture of height x width.
    ///
    /// Source: Joseph (1982); spec `tomography`, section 3.2.
    fn of(cos: f64, sin: f64, s: f64, height: usize, width: usize) -> Self {
        let (down, right) = (0.5 * (height as f64 - 1.0), 0.5 * (width as f64 - 1.0));
        if cos.abs() >= sin.abs() {
            Self { main: 0, start: (s - down * sin) / cos + right, slope: sin / cos, length: 1.0 / cos.abs() }
        } else {
            Self { main: 1, start: down - (s + right * cos) / sin, slope: cos / sin, length: 1.0 / sin.abs() }
        }
    }
}

/// A ray in space. It crosses plane p of the main axis at `start + slope p` of both others, in the order of the volume's axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SpaceRay {
    /// 0: slices, 1: rows, 2: columns.
    pub(crate) main: usize,
    pub(crate) start: [f64; 2],
    pub(crate) slope: [f64; 2],
    pub(crate) length: f64,
}

impl ParallelBeam {
    fn ray(&self, (sin, cos): (f64, f64), element: usize) -> PlaneRay {
        let s = (element as f64 - 0.5 * (self.detectors as f64 - 1.0)) * self.spacing;
        PlaneRay::of(cos, sin, s, self.height, self.width)
    }
}

/// Source and direction in the plane of an element that is `s` from the middle of its detector.
fn from_source((sin, cos): (f64, f64), source: f64, detector: f64, s: f64) -> ([f64; 2], [f64; 2]) {
    let from = [source * sin, -source * cos];
    let to = [-detector * sin + s * cos, detector * cos + s * sin];
    (from, [to[0] - from[0], to[1] - from[1]])
}

impl FanBeam {
    fn ray(&self, direction: (f64, f64), element: usize) -> PlaneRay {
        let s = (element as f64 - 0.5 * (self.detectors as f64 - 1.0)) * self.spacing;
        let (from, along) = from_source(direction, self.source, self.detector, s);
        let norm = along[0].hypot(along[1]);
        // Parallel rays along (-sin, cos) have the normal (cos, sin).
        let (cos, sin) = (along[1] / norm, -along[0] / norm);
        PlaneRay::of(cos, sin, cos * from[0] + sin * from[1], self.height, self.width)
    }
}

impl ConeBeam {
    pub(crate) fn ray(&self, direction: (f64, f64), row: usize, column: usize) -> SpaceRay {
        let s = (column as f64 - 0.5 * (self.columns as f64 - 1.0)) * self.spacing;
        let ([x, y], [along_x, along_y]) = from_source(direction, self.source, self.detector, s);
        let along_z = (row as f64 - 0.5 * (self.rows as f64 - 1.0)) * self.spacing;
        // Positions and directions along slices, rows and columns.
        let middle = [self.depth, self.height, self.width].map(|n| 0.5 * (n as f64 - 1.0));
        let from = [middle[0], middle[1] - y, middle[2] + x];
        let along = [along_z, -along_y, along_x];
        let main =
            (0..3).fold(0, |best, axis| if along[axis].abs() > along[best].abs() { axis } else { best });
        let others: [usize; 2] = [[1, 2], [0, 2], [0, 1]][main];
        let slope = others.map(|axis| along[axis] / along[main]);
        let start = [from[others[0]] - slope[0] * from[main], from[others[1]] - slope[1] * from[main]];
        let norm = along.iter().map(|a| a * a).sum::<f64>().sqrt();
        SpaceRay { main, start, slope, length: norm / along[main].abs() }
    }
}

impl Geometry {
    /// Every ray of one angle through a picture (for stacked slices, through each).
    pub(crate) fn plane_rays(&self, angle: usize) -> Vec<PlaneRay> {
        let direction = self.angles()[angle].sin_cos();
        match self {
            Self::Parallel(own) => (0..own.detectors).map(|l| own.ray(direction, l)).collect(),
            Self::Stacked(own) => (0..own.slice.detectors).map(|l| own.slice.ray(direction, l)).collect(),
            Self::Fan(own) => (0..own.detectors).map(|l| own.ray(direction, l)).collect(),
            Self::Cone(_) => Vec::new(),
        }
    }
}
