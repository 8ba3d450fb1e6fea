//! Phantoms without chance.

use super::shapes::{Shape, painted, sum_of};

/// Points along a side of a pixel at which shapes are sampled.
const SAMPLES: usize = 8;

/// A disk of value 1 and a radius in pixels around the centre.
pub fn disk(height: usize, width: usize, radius: f64) -> Vec<f64> {
    let scale = 0.5 * height.max(width) as f64;
    painted(height, width, SAMPLES, |x, y| f64::from(u8::from(scale * x.hypot(y) <= radius)))
}

/// Ten ellipses of a head with the contrasts of Toft (1996), between 0 and 1.
pub fn shepp_logan(height: usize, width: usize) -> Vec<f64> {
    // Value, half axes, centre, degrees.
    const ELLIPSES: [[f64; 6]; 10] = [
        [1.0, 0.69, 0.92, 0.0, 0.0, 0.0],
        [-0.8, 0.6624, 0.874, 0.0, -0.0184, 0.0],
        [-0.2, 0.11, 0.31, 0.22, 0.0, -18.0],
        [-0.2, 0.16, 0.41, -0.22, 0.0, 18.0],
        [0.1, 0.21, 0.25, 0.0, 0.35, 0.0],
        [0.1, 0.046, 0.046, 0.0, 0.1, 0.0],
        [0.1, 0.046, 0.046, 0.0, -0.1, 0.0],
        [0.1, 0.046, 0.023, -0.08, -0.605, 0.0],
        [0.1, 0.023, 0.023, 0.0, -0.606, 0.0],
        [0.1, 0.023, 0.046, 0.06, -0.605, 0.0],
    ];
    let shapes = ELLIPSES.map(|[value, a, b, x, y, degrees]| Shape {
        rectangle: false,
        centre: [x, y],
        half: [a, b],
        angle: degrees.to_radians(),
        value,
    });
    sum_of(height, width, SAMPLES, &shapes)
}
