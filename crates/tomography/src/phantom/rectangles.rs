//! Phantoms of rectangles, which have a direction.

use super::drawn;
use posterior_linalg::random::Streams;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::PI;

/// Three superimposed rectangles along nearly one direction, for the choice of angles: intensities in (0.5, 1), half-sides in (0.1, 0.8) and centres in (-0.75, 0.75) times half the
/// image's side, added where they overlap, and scaled to [0, 1]; orientations are one direction of the image, uniform in [0, π), plus a normal of standard deviation 0.05 each. 64 samples a
/// pixel.
///
/// The image of number `index` under a seed is the same whatever others are drawn. Source: Antorán (2024), section 7.5; spec `tomography`, E7 (whose reading of the orientation it is).
pub fn random_rectangles(height: usize, width: usize, streams: Streams, index: u64) -> Vec<f64> {
    let mut stream = streams.child("tomography/rectangles", index).stream("tomography/rectangles");
    let direction = stream.random_range(0.0..PI);
    let rectangles = [(); 3].map(|()| {
        let intensity = stream.random_range(0.5..1.0);
        let sides = [(); 2].map(|()| stream.random_range(0.1..0.8));
        let centre = [(); 2].map(|()| stream.random_range(-0.75..0.75));
        let normal: f64 = StandardNormal.sample(&mut stream);
        let angle: f64 = (direction + 0.05 * normal).rem_euclid(PI);
        (intensity, sides, centre, angle.sin_cos())
    });
    let mut image = drawn(height, width, 8, |x, y| {
        let covers = |(intensity, sides, centre, (sin, cos)): &(f64, [f64; 2], [f64; 2], (f64, f64))| {
            let (x, y) = (x - centre[0], y - centre[1]);
            let inside = (x * cos + y * sin).abs() <= sides[0] && (y * cos - x * sin).abs() <= sides[1];
            if inside { *intensity } else { 0.0 }
        };
        rectangles.iter().map(covers).sum()
    });
    let largest = image.iter().copied().fold(0.0, f64::max);
    if largest > 0.0 {
        image.iter_mut().for_each(|v| *v /= largest);
    }
    image
}
