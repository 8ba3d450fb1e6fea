//! Handwritten digits, made up.

use super::drawn;
use posterior_linalg::random::Streams;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Samples along each side of a pixel: edges are soft already.
const SAMPLES: usize = 2;

type Point = [f64; 2];

/// Points on an arc around a centre from one angle to another, in degrees.
fn arc(centre: Point, radii: Point, from: f64, to: f64) -> Vec<Point> {
    const POINTS: usize = 16;
    let at = |i: usize| {
        let (sin, cos) = (from + (to - from) * i as f64 / POINTS as f64).to_radians().sin_cos();
        [centre[0] + radii[0] * cos, centre[1] + radii[1] * sin]
    };
    (0..=POINTS).map(at).collect()
}

/// The strokes of a digit, about 0.7 wide and 1.2 high around the origin.
fn strokes(digit: u8) -> Vec<Vec<Point>> {
    let joined = |parts: Vec<Vec<Point>>| vec![parts.concat()];
    match digit {
        0 => vec![arc([0.0, 0.0], [0.35, 0.6], 90.0, 450.0)],
        1 => vec![vec![[-0.15, 0.4], [0.05, 0.6], [0.05, -0.6]]],
        2 => joined(vec![arc([0.0, 0.3], [0.3, 0.3], 160.0, -40.0), vec![[-0.35, -0.6], [0.35, -0.6]]]),
        3 => joined(vec![
            arc([0.0, 0.3], [0.28, 0.3], 150.0, -90.0),
            arc([0.0, -0.3], [0.32, 0.3], 90.0, -150.0),
        ]),
        4 => vec![vec![[0.15, -0.6], [0.15, 0.6], [-0.35, -0.15], [0.35, -0.15]]],
        5 => joined(vec![
            vec![[0.3, 0.6], [-0.22, 0.6], [-0.25, 0.1]],
            arc([0.0, -0.22], [0.34, 0.36], 120.0, -140.0),
        ]),
        6 => joined(vec![vec![[0.2, 0.6], [-0.2, 0.2]], arc([0.0, -0.25], [0.32, 0.34], 150.0, 510.0)]),
        7 => vec![vec![[-0.32, 0.6], [0.32, 0.6], [-0.1, -0.6]]],
        8 => vec![arc([0.0, 0.3], [0.26, 0.29], 90.0, 450.0), arc([0.0, -0.3], [0.32, 0.3], 90.0, 450.0)],
        _ => joined(vec![arc([0.0, 0.26], [0.3, 0.32], 0.0, 360.0), vec![[0.2, -0.6]]]),
    }
}

/// The square of the distance from a place to a piece of a line.
fn squared_distance([x, y]: Point, from: Point, to: Point) -> f64 {
    let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
    let along = ((x - from[0]) * dx + (y - from[1]) * dy) / (dx * dx + dy * dy).max(f64::MIN_POSITIVE);
    let along = along.clamp(0.0, 1.0);
    (x - from[0] - along * dx).powi(2) + (y - from[1] - along * dy).powi(2)
}

/// A digit (`index` modulo 10) in a hand of its own: slant, size, place, width of the pen and tremor are random. Values in [0, 1], 0 around it.
///
/// The image of number `index` under a seed is the same whatever others are drawn. It stands in where no digits that people wrote are at hand.
pub fn random_digit(height: usize, width: usize, streams: Streams, index: u64) -> Vec<f64> {
    let mut stream = streams.child("tomography/digits", index).stream("tomography/digits");
    let mut normal = |scale: f64| -> f64 {
        let z: f64 = StandardNormal.sample(&mut stream);
        scale * z.clamp(-3.0, 3.0)
    };
    let (slant, shift) = (normal(0.15), [normal(0.05), normal(0.05)]);
    let mut drawn_strokes = strokes((index % 10) as u8);
    drawn_strokes.iter_mut().flatten().for_each(|point| point.iter_mut().for_each(|v| *v += normal(0.015)));
    let size = [(); 2].map(|()| stream.random_range(0.9..1.15));
    let pen: f64 = stream.random_range(0.08..0.13);
    for point in drawn_strokes.iter_mut().flatten() {
        let [x, y] = [size[0] * point[0], size[1] * point[1]];
        *point = [x + slant * y + shift[0], y + shift[1]];
    }
    drawn(height, width, SAMPLES, |x, y| {
        let pieces = drawn_strokes.iter().flat_map(|stroke| stroke.windows(2));
        let nearest =
            pieces.map(|ends| squared_distance([x, y], ends[0], ends[1])).fold(f64::INFINITY, f64::min);
        // Full within the pen, fading over half of it.
        ((1.5 * pen - nearest.sqrt()) / (0.5 * pen)).clamp(0.0, 1.0)
    })
}
